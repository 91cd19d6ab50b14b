"""The list above the rule: at most eight rows over the transcript, so that nothing moves."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.events import Click

from panto.tui.completing import ROWS, Choice
from panto.tui.sanitize import clean_line
from panto.tui.widgets.lines import Line, cut, width_of
from panto.tui.widgets.panel import PLAIN, Panel, sides


class Completion(Panel):
    """Shows `choices` from `top`; `chosen` -1 while no arrow was used."""

    choices: Sequence[Choice] = ()
    chosen = -1
    message = ""

    @property
    def is_open(self) -> bool:
        """Whether it is on the screen."""
        return bool(self.display)

    def show(self, choices: Sequence[Choice], chosen: int = -1, message: str = "") -> None:
        """Show these rows, or say why there are none; nothing to say closes the list."""
        self.choices, self.chosen, self.message = choices, chosen, message
        rows = min(ROWS, len(choices)) or (1 if message else 0)
        self.styles.height = rows
        self.display = bool(rows)
        self.panto.place_completion()
        self.redraw()

    def close(self) -> None:
        """Take it off the screen."""
        if self.display:
            self.show(())

    def move(self, step: int) -> None:
        """Up or down, around the ends."""
        if self.choices:
            start = self.chosen if self.chosen >= 0 else -1 if step > 0 else 0
            self.chosen = (start + step) % len(self.choices)
            self.redraw()

    @property
    def top(self) -> int:
        """The first row shown."""
        return max(0, min(self.chosen - ROWS // 2, len(self.choices) - ROWS))

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Names in one column, meanings in the next, values at the right."""
        if not self.choices:
            return [sides([("  " + self.message, self.palette.aside)], [], width)]
        shown = self.choices[self.top : self.top + height]
        room = max(16, width // 2 if any(one.meaning or one.value for one in shown) else width - 4)
        names = min(max(width_of(_named(one)) for one in shown), room)
        return [self._row(at + self.top, one, names, width) for at, one in enumerate(shown)]

    def _row(self, at: int, choice: Choice, names: int, width: int) -> Line:
        here = at == self.chosen
        name = cut(clean_line(choice.name), names)
        usage = cut(_named(choice).removeprefix(name), names - width_of(name))
        left = [
            ("▸ " if here else "  ", self.palette.accent),
            (name, Style(bold=True) if here else PLAIN),
            (usage + " " * (names - width_of(name) - width_of(usage) + 2), self.palette.aside),
            (clean_line(choice.meaning), self.palette.aside),
        ]
        right = [(clean_line(choice.value) + "  ", self.palette.aside)] if choice.value else []
        return sides(left, right, width, self.palette.current if here else None)

    def on_click(self, event: Click) -> None:
        """A click takes a row."""
        event.stop()
        at = self.top + event.y
        if at < len(self.choices):
            self.chosen = at
            self.panto.take_completion()


def _named(choice: Choice) -> str:
    name = clean_line(choice.name)
    return f"{name} {clean_line(choice.usage)}" if choice.usage else name
