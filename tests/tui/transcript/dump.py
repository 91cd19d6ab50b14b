"""What a screen shows as text: each row, and below it which cells have which colours, by meaning.

Snapshots lie in `snapshots/`; UPDATE_SNAPSHOTS=1 writes them anew instead of comparing.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from rich.color import Color
from rich.style import Style

from panto.tui.colours import Palette, ThemeName, glyphs, palette
from panto.tui.items import Item
from panto.tui.transcript import Story
from panto.tui.widgets.lines import Line, Look, width_of
from panto.tui.widgets.paint import Rows, line_of
from panto.tui.widgets.viewport import Viewport
from tests.tui.transcript.script import Script

HERE = Path(__file__).parent / "snapshots"
_GROUNDS = (
    "band", "code", "inline", "row_added", "row_removed", "word_added", "word_removed", "selection", "current", "found",
    "found_here",
)  # fmt: skip


class Stage:
    """A story and its view without a terminal; `script` writes, `rows()` reads."""

    def __init__(self, width: int = 120, height: int = 33, theme: ThemeName = "dark", no_color: bool = False) -> None:
        self.script = Script()
        self.story = Story(lambda: self.script.time)
        self.script.tell = self.story.apply
        self.view = Viewport(self.story)
        self.palette = palette(theme, no_color=no_color)
        self.width, self.height = width, height
        self.wide = False

    @property
    def look(self) -> Look:
        return Look(self.width, self.height, self.palette, glyphs(self.wide), 2, self.script.time)

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

    def dump(self) -> str:
        """Rows with their colours."""
        self.colour()
        rows = Rows()
        rows.show(self.view.states(), self.look)
        out = []
        for strip in rows.strips:
            assert strip.cell_length == self.width == sum(width_of(text) for text, _, _ in strip._segments)
            out.append("".join(text for text, _, _ in strip._segments).rstrip())
            note = described([(text, style or Style()) for text, style, _ in strip._segments], self.palette)
            if note:
                out.append(f"    ~ {note}")
        return "\n".join(out) + "\n"


def described(runs: Sequence[tuple[str, Style]], colours: Palette) -> str:
    notes: list[tuple[int, int, str]] = []
    at = 0
    for text, style in runs:
        size = width_of(text)
        name = style_name(style, colours)
        if name and not (text.isspace() and not style.bgcolor):
            if notes and notes[-1][1] == at and notes[-1][2] == name:
                notes[-1] = (notes[-1][0], at + size, name)
            else:
                notes.append((at, at + size, name))
        at += size
    return " ".join(f"{start}-{end}:{name}" for start, end, name in notes)


def style_name(style: Style, colours: Palette) -> str:
    words = []
    if style.color is not None and not style.color.is_default:
        words.append(_foreground(style.color, colours))
    if style.bgcolor is not None and not style.bgcolor.is_default:
        grounds = (name for name in _GROUNDS if getattr(colours, name).bgcolor == style.bgcolor)
        words.append("on " + next(grounds, style.bgcolor.name))
    words += [word for word in ("bold", "italic", "underline", "reverse", "strike", "dim") if getattr(style, word)]
    return ",".join(words).replace(" ", "_")


def _foreground(color: Color, colours: Palette) -> str:
    for name in ("aside", "accent", "attention", "wrong", "added"):
        if getattr(colours, name).color == color:
            return name
    return next((name for name, style in colours.syntax.items() if style.color == color), color.name)


def matches(name: str, dump: str) -> None:
    """Compares with the stored snapshot; raises AssertionError with the difference."""
    path = HERE / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(dump, encoding="utf-8")
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    if stored != dump:
        lines = difflib.unified_diff(stored.splitlines(), dump.splitlines(), "stored", "now", lineterm="", n=1)
        raise AssertionError(f"{name} looks different (UPDATE_SNAPSHOTS=1 accepts it):\n" + "\n".join(lines))


def shown(lines: Sequence[Line]) -> list[str]:
    """Lines as text."""
    return [line.text.rstrip() for line in lines]
