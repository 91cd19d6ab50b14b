"""A text on the whole screen: scroll, search, copy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rich.style import Style
from textual.events import Key, MouseScrollDown, MouseScrollUp, Paste

from panto.tui.sanitize import clean
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.lines import Line, Run, width_of
from panto.tui.widgets.panel import PLAIN, Panel, line, ruled, sides

LONGEST_LINE = 20_000
_HINTS = (("Esc", "back"), ("j k", "scroll"), ("g G", "ends"), ("/", "search"), ("n p", "next"), ("w", "wrap"),
          ("y", "copy"))  # fmt: skip


class Pager(Panel, can_focus=True):
    """Long lines wrap, or are cut and moved sideways. Rows are made for what is shown only."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text.split("\n")
        self.top = 0
        self.side = 0
        self.wraps = True
        self.search = ""
        self.typing: str | None = None
        self._sums: tuple[int, list[int]] = (-1, [])

    def on_mount(self) -> None:
        """Take the keys."""
        self.focus()

    # --- rows ------------------------------------------------------------------------------------------------

    def _starts(self, width: int) -> list[int]:
        """The first row of each source line, and the number of rows behind the last."""
        key = width if self.wraps else 0
        if self._sums[0] != key:
            sums, row = [], 0
            for text in self.source:
                sums.append(row)
                row += -(-min(len(text), LONGEST_LINE) // _step(text, width)) or 1 if self.wraps else 1
            self._sums = (key, [*sums, row])
        return self._sums[1]

    def _row(self, at: int, width: int) -> str:
        starts = self._starts(width)
        number = bisect_right(starts, at) - 1
        text = self.source[number][:LONGEST_LINE]
        if not self.wraps:
            return clean(text[self.side : self.side + width])
        step = _step(text, width)
        begin = (at - starts[number]) * step
        return clean(text[begin : begin + step])

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The text, a rule, the keys."""
        aside, room = self.palette.aside, max(1, height - 2)
        total = self._starts(width)[-1]
        self.top = max(0, min(self.top, total - room))
        shown = min(room, total - self.top)
        rows = [line(self._marked(self._row(at, width))) for at in range(self.top, self.top + shown)]
        rows += [line([])] * (room - shown)
        where = f"{self.top + 1}–{self.top + shown} of {total}"
        foot: list[Run] = [("  ", PLAIN)]
        if self.typing is not None:
            foot = [("  / ", self.palette.accent), (self.typing, PLAIN)]
        else:
            for key, meaning in _HINTS:
                if sum(width_of(text) for text, _ in foot) + width_of(key + meaning) + 1 > width:
                    break
                foot += [(key, self.palette.accent), (f" {meaning}   ", aside)]
        return [*rows, ruled([], [(where, aside)], width, aside, self.glyphs.rule), sides(foot, [], width)]

    def _marked(self, text: str) -> list[Run]:
        at = text.lower().find(self.search) if self.search else -1
        if at < 0:
            return [(text, PLAIN)]
        end = at + len(self.search)
        found: Style = self.palette.found
        return [(text[:at], PLAIN), (text[at:end], found), (text[end:], PLAIN)]

    # --- keys ------------------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Move, search, copy, back."""
        if event.key in ("ctrl+l", "ctrl+z"):
            return
        event.stop()
        page = max(1, self.size.height - 3)
        moves = {"j": 1, "down": 1, "k": -1, "up": -1, "pagedown": page, "space": page, "pageup": -page, "b": -page,
                 "g": -(10**9), "home": -(10**9), "ctrl+home": -(10**9), "G": 10**9, "end": 10**9,
                 "ctrl+end": 10**9}  # fmt: skip
        if self.typing is not None:
            self._type(event)
        elif event.key in moves:
            self.top += moves[event.key]
        elif event.key in ("escape", "q", "ctrl+c"):
            self.panto.close_overlay()
        elif event.key in ("left", "right") and not self.wraps:
            self.side = max(0, self.side + (20 if event.key == "right" else -20))
        elif event.key == "w":
            self.wraps, self.top, self.side = not self.wraps, 0, 0
        elif event.key == "y":
            self.panto.copy("\n".join(self.source))
        elif event.key == "slash":
            self.typing = ""
        elif event.key in ("n", "p"):
            self._find(1 if event.key == "n" else -1)
        self.redraw()

    def _type(self, event: Key) -> None:
        assert self.typing is not None
        if event.key in ("escape", "ctrl+c"):
            self.typing = None
        elif event.key == "enter":
            self.search, self.typing = self.typing.lower(), None
            self._find(1)
        elif event.key == "backspace":
            self.typing = self.typing[:-1]
        elif event.character and event.character.isprintable():
            self.typing += event.character

    def _find(self, step: int) -> None:
        starts = self._starts(self.size.width)
        at = bisect_right(starts, self.top) - 1
        numbers = range(at + 1, len(self.source)) if step > 0 else range(at - 1, -1, -1)
        found = next((number for number in numbers if self.search and self.search in self.source[number].lower()), None)
        if found is not None:
            self.top = starts[found]

    def on_paste(self, event: Paste) -> None:
        """Pasted while searching."""
        if self.typing is not None:
            self.typing += clean(event.text).replace("\n", " ")
            self.redraw()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Down."""
        self.top += 3
        self.redraw()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Up."""
        self.top -= 3
        self.redraw()


def _step(text: str, width: int) -> int:
    """Characters in a row: as many as fit for certain."""
    return max(1, width if text.isascii() else width // 2)


class PagerScreen(Overlay):
    """One text."""

    def __init__(self, text: str) -> None:
        super().__init__(Pager(text))
