"""The line above the prompt: what is going on at its left end, the mode or a hint at its right."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.events import Click

from panto.tui.now import MODES, Now
from panto.tui.widgets.lines import Line, Run, cut, width_of
from panto.tui.widgets.panel import PLAIN, Panel, ruled

STOPS = " · Esc stops"


class Rule(Panel):
    """Shows `now`; others lay words over its ends while they have something to say."""

    now = Now()
    left = ""  # a dialog's question, in place of the activity
    right = ""  # a hint, in place of the mode
    unseen = 0
    stopping = False

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """One row."""
        left, right = self._left(width), self._right()
        if self.now.retry is not None and not self.right and _size(left) + _size(right) + 12 > width:
            right = []  # why it waits matters more than the mode
        return [ruled(left, right, width, self.palette.aside, self.glyphs.rule)]

    def _left(self, width: int) -> list[Run]:
        colours, now = self.palette, self.now
        if self.left:
            return [(self.left, PLAIN + Style(bold=True))]
        spinner = (self.panto.spinner, colours.accent)
        if now.retry is not None:
            ways = " · Enter now · Esc stops" if width >= 90 else " · Esc stops"
            cause, gap, when = self.panto.activity().partition(" · again")
            if width < 72:
                cause, when = cause.partition(" (")[0], when.replace("try ", "")
            # The countdown matters more than the cause's last words.
            room = max(8, width - len(gap + when + ways) - 10)
            return [spinner, (f" {cut(cause, room)}{gap}{when}", colours.attention), (ways, colours.aside)]
        if self.stopping and now.busy:
            return [spinner, (" stopping", colours.attention)]
        if now.busy:
            stops = "" if now.read_only else STOPS
            return [spinner, (" " + self._fitted(self.panto.activity(), width), PLAIN), (stops, colours.aside)]
        if now.status is not None and not now.status.model:
            return [("no model", colours.attention)]
        return []

    def _fitted(self, activity: str, width: int) -> str:
        """An activity whose words are cut, never its time nor the way to stop it."""
        words, dot, time = activity.rpartition(" · ")
        tail = dot + time if words and time[:1].isdigit() else ""
        right = _size(self._right())
        return cut(activity.removesuffix(tail), max(8, width - right - width_of(tail + STOPS) - 14)) + tail

    def _right(self) -> list[Run]:
        colours = self.palette
        if self.left and not self.right:
            return []
        if self.right:
            return [(self.right, colours.aside)]
        if self.unseen:
            return [(f"{self.glyphs.down} {self.unseen} new", colours.accent)]
        if self.now.read_only:
            return [(self._viewing(), colours.attention)]
        mode = self.now.mode
        style = {"auto": colours.accent, "yolo": colours.attention}.get(mode, colours.aside)
        return [(MODES[mode], style)] if mode in MODES else []

    def _viewing(self) -> str:
        held = f"held by {self.now.held_by}" if self.now.held_by else "nobody writes it now · Enter does"
        return f"viewing · {held}" if self.size.width >= 72 else "viewing"

    def on_click(self, event: Click) -> None:
        """A click on "n new" goes to the end."""
        event.stop()
        if self.unseen:
            self.panto.action_to_end()


def _size(runs: Sequence[Run]) -> int:
    return sum(width_of(text) for text, _ in runs)
