"""Messages that wait: change one, order them, take them back."""

from __future__ import annotations

from panto.schema.ops import Prompt, Withdraw
from panto.tui.now import Waiting
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel

_WHEN = {"step": "next step", "turn": "after this turn"}


class Queue(PickerPanel):
    """Oldest first: the order in which they go out."""

    title = "messages that wait"
    empty = "nothing waits"
    hints = (("Enter", "back into the prompt"), ("Ctrl+↑ Ctrl+↓", "earlier, later"), ("Ctrl+D", "drop"),
             ("Esc", "back"))  # fmt: skip

    async def load(self) -> None:
        """What the session holds."""
        waiting = self.panto.now.waiting
        self.entries = [
            Entry(name, [("» ", self.palette.accent), (clean_line(one.text), PLAIN)],
                  [(_WHEN[one.when], self.palette.aside)])
            for name, one in waiting.items()
        ]  # fmt: skip

    def choose(self, entry: Entry) -> None:
        """Take it back, to be changed."""
        self.panto.link.submit(Withdraw(entry.value))
        self.dismiss()

    def other(self, key: str, entry: Entry | None) -> bool:
        """Drop one, or move it."""
        if entry is None or key not in ("ctrl+d", "ctrl+up", "ctrl+down"):
            return False
        names = list(self.panto.now.waiting)
        if entry.value not in names:
            return True
        at = names.index(entry.value)
        if key == "ctrl+d":
            self.panto.link.start(self._again({entry.value: None}))
            return True
        other = at + (1 if key == "ctrl+down" else -1)
        if 0 <= other < len(names):
            first = min(at, other)
            order = names[first:]
            order[0], order[1] = order[1], order[0]
            waiting = self.panto.now.waiting
            self.at = other
            self.panto.link.start(self._again({name: waiting[name] for name in order}))
        return True

    async def _again(self, wanted: dict[str, Waiting | None]) -> None:
        """Take these back without a word, and send those with a text again in this order."""
        for name in wanted:
            self.panto.swallow(self.panto.now.waiting[name].text)
            if not await self.panto.link.do(Withdraw(name)):
                return
        for one in wanted.values():
            if one is not None:
                await self.panto.link.do(Prompt(one.text, one.images, one.when))
        self.reload()


class QueueScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Queue())
