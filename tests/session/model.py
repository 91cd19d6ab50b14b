"""A second, plain telling of the machines' table: what is accepted and where it leads. Written apart from the code."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Model:
    """Inputs, the turn, its run and the calls of its step, as words and sets."""

    submitted: dict[str, str] = field(default_factory=dict)  # input -> when
    turn: str = "none"  # none | active | failed
    attempt: int = 0
    phase: str = ""  # open | prepared | executing | tools, "" without a run
    stopping: bool = False
    rejects: int = 0
    pending: list[str] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)  # pending | approval | external | executing | replayable | over

    def _end(self, turn: str) -> bool:
        self.phase, self.stopping, self.calls, self.pending, self.consumed = "", False, [], [], []
        self.turn = turn
        return True

    def submit(self, name: str, when: str) -> bool:
        self.submitted[name] = when
        return True

    def withdraw(self, name: str) -> bool:
        return self.submitted.pop(name, None) is not None

    def create(self, names: list[str]) -> bool:
        in_order = [n for n in self.submitted if n in names]
        if self.turn != "none" or not names or in_order != names:
            return False
        self._begin(1, names)
        self.delivered = list(names)
        for name in names:
            del self.submitted[name]
        return True

    def _begin(self, attempt: int, names: list[str]) -> None:
        self.turn, self.attempt, self.phase, self.rejects = "active", attempt, "open", 0
        self.pending, self.consumed, self.calls, self.stopping = list(names), [], [], False

    def retry(self) -> bool:
        if self.turn != "failed":
            return False
        self._begin(self.attempt + 1, self.delivered)
        return True

    def settle_turn(self) -> bool:
        return self.turn == "failed" and self._end("none")

    def deliver(self, names: list[str]) -> bool:
        right = names and len(set(names)) == len(names) and all(self.submitted.get(n) == "step" for n in names)
        if not self.phase or self.stopping or not right:
            return False
        self.pending += names
        self.delivered += names
        for name in names:
            del self.submitted[name]
        return True

    def prepare(self, names: list[str], fresh: bool) -> bool:
        if self.phase != "open" or self.stopping or names != self.pending or not fresh:
            return False
        self.phase, self.consumed, self.pending = "prepared", names, []
        return True

    def withdraw_step(self) -> bool:
        if self.phase != "prepared" or self.stopping or not self.pending:
            return False
        return self._uncounted()

    def _uncounted(self) -> bool:
        self.phase, self.pending, self.consumed = "open", self.consumed + self.pending, []
        return True

    def start_model(self, right: bool) -> bool:
        if self.phase != "prepared" or self.stopping or self.pending or not right:
            return False
        self.phase = "executing"
        return True

    def recover(self) -> bool:
        return self.phase == "executing" and not self.stopping and self._uncounted()

    def result(self, calls: int, dispatch: bool) -> bool:
        if self.phase != "executing" or self.stopping:
            return False
        self.rejects, self.consumed = 0, []
        if not dispatch:
            return self._end("none")
        if calls:
            self.phase, self.calls = "tools", ["pending"] * calls
        elif self.pending:
            self.phase = "open"
        else:
            self._end("none")
        return True

    def malformed(self) -> bool:
        if self.phase != "executing" or self.stopping:
            return False
        self.rejects += 1
        self.phase = "prepared"
        return self._end("failed") if self.rejects == 3 else True

    def fail(self) -> bool:
        return self.phase == "executing" and not self.stopping and self._end("failed")

    def fail_run(self) -> bool:
        return bool(self.phase) and not self.stopping and self._end("failed")

    def call(self, place: int, wanted: tuple[str, ...], then: str, settles: bool = False) -> bool:
        if self.phase != "tools" or (self.stopping and not settles) or self.calls[place] not in wanted:
            return False
        self.calls[place] = then
        if all(call == "over" for call in self.calls):
            self.phase, self.calls = "open", []
        return True

    def interrupt(self) -> bool:
        if not self.phase or self.stopping:
            return False
        self.stopping = True
        return True

    def stop(self) -> bool:
        if not self.phase:
            return False
        self.submitted.clear()
        return self._end("none")

    def crash(self) -> None:
        """What opening records after a crash."""
        if self.stopping:
            self.stop()
        elif self.phase == "executing":
            self._uncounted()
        elif self.phase == "tools":
            self.calls = ["over" if call == "executing" else call for call in self.calls]
            if all(call == "over" for call in self.calls):
                self.phase, self.calls = "open", []
