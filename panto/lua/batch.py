"""Tool batches with identity: the calls one agent's step raised. A result is recorded to its own batch, once."""

from __future__ import annotations

from msgspec import Struct, field

from panto.lua.driver import Outcome, log


class Batch(Struct, eq=False):
    """The Lua calls of one lane's run that are under way."""

    lane: str
    run: str
    calls: dict[str, Outcome | None] = field(default_factory=dict)

    def record(self, call: str, outcome: Outcome) -> bool:
        """Take a call's result. False, and logged, where the call is not open here (closed, or another batch's)."""
        if call not in self.calls or self.calls[call] is not None:
            log.warning("a late result of call %s of agent %s is refused", call, self.lane)
            return False
        self.calls[call] = outcome
        return True


class Batches:
    """The live batches, one for each lane and run."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, str], Batch] = {}

    def open(self, lane: str, run: str, call: str) -> Batch:
        """The batch that this call belongs to; the call is open in it until `close`."""
        batch = self._live.setdefault((lane, run), Batch(lane, run))
        batch.calls[call] = None
        return batch

    def close(self, batch: Batch, call: str) -> None:
        """The call is over; the batch ends with its last call."""
        batch.calls.pop(call, None)
        if not batch.calls:
            self._live.pop((batch.lane, batch.run), None)

    def __len__(self) -> int:
        return len(self._live)
