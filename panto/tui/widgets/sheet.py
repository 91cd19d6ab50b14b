"""Something to read over the whole screen, with a few keys below it: no filter, nothing to choose, letters act."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rich.style import Style
from textual.events import Key, MouseScrollDown, MouseScrollUp

from panto.tui.widgets.lines import Line
from panto.tui.widgets.panel import Panel, key_rows, line, ruled, sides

DEAD_S = 0.4
"""Nothing but leaving and scrolling counts so soon after it appeared: the key was meant for something else."""
BOLD = Style(bold=True)
UNKNOWN = "not known: what went wrong stands in the transcript"


class Sheet(Panel, can_focus=True):
    """Subclasses give `load`, `made` and `pressed`. `asking`: a question at the bottom that y answers."""

    title = ""
    right = ""
    hints: Sequence[tuple[str, str]] = (("Esc", "back"),)
    asking = ""
    unknown = False  # `load` had no answer
    top = 0
    alive_at = 0.0
    read_whole = False  # the last row was on the screen
    page = 1  # rows that scroll at once
    _total = _room = 0

    # --- for subclasses --------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Ask for what is shown."""

    def made(self, width: int) -> list[Line]:
        """The rows to read."""
        raise NotImplementedError

    def pressed(self, key: str) -> bool:
        """A key that is not for reading; True when it meant something."""
        return False

    def confirmed(self) -> None:
        """`y` to what `asking` asks."""

    # --- life ------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Take the keys and load."""
        self.alive_at = time.monotonic() + DEAD_S
        self.focus()
        self.reload()

    def reload(self) -> None:
        """Load anew."""
        self.panto.link.start(self._reload())

    def forget(self) -> None:
        """Other colours: what was made of them is made anew."""
        super().forget()
        if self.is_mounted:
            self.reload()

    async def _reload(self) -> None:
        while self.is_mounted and not self.panto.link.ready and self.panto.link.failed is None:
            await asyncio.sleep(0.05)  # the engine is still being built
        await self.load()
        self.read_whole = False  # that was of what stood there before
        self.redraw()

    def dismiss(self) -> None:
        """Back to what was there before."""
        self.panto.close_overlay()

    # --- drawing ---------------------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """A head, the text, a rule, the keys."""
        aside, rule = self.palette.aside, self.glyphs.rule
        head = [ruled([(self.title, BOLD)], [(self.right, aside)] if self.right else [], width, aside, rule), Line(())]
        keys = self._foot(width)
        made = [line([("  " + UNKNOWN, aside)])] if self.unknown else self.made(width)
        self._total, self._room = len(made), max(1, height - len(head) - len(keys) - 1)
        self.top = max(0, min(self.top, self._total - self._room))
        shown = made[self.top : self.top + self._room]
        self.page = max(1, self._room - 1)
        self.read_whole |= bool(made) and self.top + self._room >= self._total
        scrolls = self._total > self._room
        where = f"{self.top + 1}–{self.top + len(shown)} of {self._total}   ↑ ↓" if scrolls else ""
        foot = ruled([], [(where, aside)] if where else [], width, aside, rule)
        return [*head, *shown, *[Line(())] * (self._room - len(shown)), foot, *keys]

    def _foot(self, width: int) -> list[Line]:
        accent, aside = self.palette.accent, self.palette.aside
        if self.note:
            return [sides([("  " + self.note, self.palette.attention)], [], width)]
        if self.asking:
            return [line([("  " + self.asking + "   ", self.palette.attention), ("y", accent), ("  yes   ", aside),
                          ("n", accent), ("  no", aside)])]  # fmt: skip
        return key_rows(self.hints, width, self.palette)

    # --- keys ------------------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Read, answer, or hand on to the subclass."""
        if event.key in ("ctrl+l", "ctrl+z"):
            return
        event.stop()
        key, self.note = event.key, ""
        if self.asking:
            self._answer(key)
        elif key in ("escape", "ctrl+c", "q"):
            self.dismiss()
        elif key in _STEPS:
            step = _STEPS[key]
            self.scroll_rows(step if abs(step) != _PAGE else step // _PAGE * self.page)
        elif time.monotonic() >= self.alive_at:
            self.pressed(key)

    def _answer(self, key: str) -> None:
        if key in ("y", "n", "escape", "ctrl+c"):
            self.asking = ""
            if key == "y":
                self.confirmed()
            self.redraw()

    def scroll_rows(self, rows: int) -> None:
        """Show what is further down or up."""
        self.top = max(0, min(self.top + rows, self._total - self._room))
        self.redraw()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Down."""
        event.stop()
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Up."""
        event.stop()
        self.scroll_rows(-3)


_PAGE = 1000
_STEPS = {"up": -1, "down": 1, "k": -1, "j": 1, "pageup": -_PAGE, "pagedown": _PAGE, "space": _PAGE,
          "home": -999_999, "end": 999_999, "ctrl+home": -999_999, "ctrl+end": 999_999}  # fmt: skip
