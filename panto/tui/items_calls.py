"""Items for tool calls: a card each, and one row for three or more reading calls of one step."""

from __future__ import annotations

from panto.tui.calls import Call
from panto.tui.items import Item, Kind
from panto.tui.sanitize import clean
from panto.tui.widgets.batch import batch, batch_state
from panto.tui.widgets.card import card
from panto.tui.widgets.children import children_card
from panto.tui.widgets.diff import DiffArt
from panto.tui.widgets.lines import Line, Look


class CallItem(Item):
    """The card of one call."""

    kind: Kind = "card"
    can_open = True

    def __init__(self, turn: str, call: Call) -> None:
        super().__init__(turn)
        self.call = call
        self._arts: list[DiffArt] = []
        self._drawn: object = None  # the views the arts were made of

    @property
    def moves(self) -> bool:
        return self.call.state in ("running", "drafted", "pending") and not self.call.paused

    def lines(self, look: Look) -> list[Line]:
        self.call.open = self.open
        return children_card(self.call, look) if self.call.agents else card(self.call, look, self._art())

    def estimate(self, look: Look) -> int:
        call = self.call
        if call.diffs and not self.open:
            return 2 + min(12, sum(len(hunk.lines) for hunk in call.diffs[0].hunks[:1]))
        if self.open:
            return 20
        return 1 if call.quiet or call.state in ("refused", "pending") else 1 + min(4, call.output.count)

    def toggle(self) -> bool:
        if self.call.live and not self.call.agents:
            return False
        return super().toggle()

    def wrap(self) -> None:
        """Long lines wrap, or do not."""
        self.call.wrapped = not self.call.wrapped
        self.touch()

    def source(self) -> str:
        call = self.call
        text = call.output.text or call.message
        return f"{call.verb} {call.title}\n{text}" if text else f"{call.verb} {call.title}"

    def copy(self) -> str:
        call = self.call
        return self.pager() if call.diffs else call.output.text or call.message or call.title

    def pager(self) -> str:
        call = self.call
        if call.diffs:
            return "\n\n".join(_plain_diff(art) for art in self._art())
        text = call.output.text[:4_000_000] or call.message
        if call.outcome is not None and call.outcome.file:
            text += f"\n\n(the whole text is in {call.outcome.file})"
        return clean(text)

    def release(self) -> None:
        self._arts, self._drawn = [], None

    def _art(self) -> list[DiffArt]:
        diffs = self.call.diffs
        if diffs != self._drawn:
            self._drawn = diffs
            self._arts = [DiffArt(diff) for diff in diffs]
        return self._arts


class BatchItem(Item):
    """Reading calls of one step in one row."""

    kind: Kind = "card"
    can_open = True

    def __init__(self, turn: str, calls: list[Call]) -> None:
        super().__init__(turn)
        self.calls = calls

    @property
    def moves(self) -> bool:
        return batch_state(self.calls) == "running" and not self.calls[0].paused

    def lines(self, look: Look) -> list[Line]:
        return batch(self.calls, look, self.open)

    def estimate(self, look: Look) -> int:
        return 1 + (len(self.calls) if self.open else 0)

    def source(self) -> str:
        return "\n".join(f"{call.verb} {call.title}" for call in self.calls)

    def pager(self) -> str:
        parts = [f"{call.verb} {call.title}\n\n{call.output.text or call.message}" for call in self.calls]
        return clean("\n\n".join(parts)[:4_000_000])


def _plain_diff(art: DiffArt) -> str:
    lines = [clean(art.path)]
    for hunk in art.hunks:
        lines.append("")
        lines += [f"{(line.old or line.new):>6} {line.kind} {line.text}" for line in hunk]
    return "\n".join(lines)
