"""A transcript without a terminal, and what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style

from panto.tui.colours import GLYPHS, ThemeName, palette
from panto.tui.items import Item
from panto.tui.transcript import Story
from panto.tui.widgets.lines import Line, Look, width_of
from panto.tui.widgets.paint import Rows, line_of
from panto.tui.widgets.viewport import Viewport
from tests.tui.picture import Runs
from tests.tui.transcript.script import Script


class Stage:
    """A story and its view without a terminal; `script` writes, `rows()` reads."""

    def __init__(self, width: int = 120, height: int = 33, theme: ThemeName = "dark", no_color: bool = False) -> None:
        self.script = Script()
        self.story = Story(lambda: self.script.time)
        self.script.tell = self.story.apply
        self.view = Viewport(self.story)
        self.palette = palette(theme, no_color=no_color)
        self.width, self.height = width, height

    @property
    def look(self) -> Look:
        return Look(self.width, self.height, self.palette, GLYPHS, 2, self.script.time)

    def sync(self) -> None:
        self.view.relook(self.look)
        self.view.sync()

    def colour(self) -> None:
        """Works out the colours of what is in view, as frames do bit by bit."""
        while True:
            self.sync()
            for index, _, line in self.view.visible():
                if line.art is not None and line.art.wants_colours:
                    for _step in line.art.colour():
                        pass
                    self.story.touch(self.view.layout.items[index])
                    break
            else:
                return

    def rows(self) -> list[str]:
        """The rows as text, as many as the view has."""
        self.sync()
        return [line_of(row).text.rstrip() for row in self.view.states()]

    def text(self) -> list[str]:
        """All rows of all items, whatever fits."""
        self.sync()
        out = []
        for index in range(len(self.story.items)):
            lines = self.view.layout.lines(index)
            self.view.layout.settle()
            out += [""] * (self.view.layout.gaps[index] if lines else 0)
            out += [line.text.rstrip() for line in lines]
        return out

    def items(self, kind: type[Item]) -> list[Item]:
        return [item for item in self.story.items if isinstance(item, kind)]

    def runs(self) -> list[Runs]:
        """Rows with their styles."""
        self.colour()
        rows = Rows()
        rows.show(self.view.states(), self.look)
        for strip in rows.strips:
            assert strip.cell_length == self.width == sum(width_of(text) for text, _, _ in strip._segments)
        return [[(text, style or Style()) for text, style, _ in strip._segments] for strip in rows.strips]


def shown(lines: Sequence[Line]) -> list[str]:
    """Lines as text."""
    return [line.text.rstrip() for line in lines]
