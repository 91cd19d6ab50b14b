"""What the machines are in: small frozen values, a pure fold of events. Nothing here grows with the session's length.

Tuples and dictionaries are replaced, never changed in place, so an old state stays what it was.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from panto.schema.codec import Digest
from panto.session.command import Position
from panto.session.ids import effect_id

CallState = Literal["pending", "waiting", "executing", "completed", "failed"]
Phase = Literal["open", "prepared", "executing", "tools"]

REJECT_LIMIT = 3
"""The malformed result at which the run fails."""


class Call(Struct, frozen=True):
    """One call of the current tool step.

    `kind` and `question` stand while it waits; `arguments` are the changed ones (approved) or the ones run (started).
    """

    call: str
    index: int
    name: str
    provider_id: str = ""
    mutates: bool = True
    state: CallState = "pending"
    kind: Literal["", "approval", "external"] = ""
    question: Digest | None = None
    approved: bool = False
    arguments: Digest | None = None
    changed_by: Literal["", "person", "hook"] = ""
    effect: str = ""
    replay: bool = False

    @property
    def finished(self) -> bool:
        """Whether the call is terminal."""
        return self.state in ("completed", "failed")


class Run(Struct, frozen=True):
    """The active run. `phase`: open (plan a request), prepared (frozen), executing (sent), tools (calls due).

    `done` counts completed model steps, `starts` the sendings of the current one. `pending` are inputs accepted and
    not consumed by a request, `inputs` those that the prepared request consumes. `position` is the run's last fact.
    `uncertain`: calls whose effects or outcome nobody knows.
    """

    run: str
    turn: str
    attempt: int = 1
    phase: Phase = "open"
    done: int = 0
    starts: int = 0
    rejects: int = 0
    request: Digest | None = None
    effect: str = ""
    result: Digest | None = None
    inputs: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    calls: dict[str, Call] = {}
    parallel: int = 16
    interrupting: bool = False
    unattended: bool = False
    uncertain: tuple[str, ...] = ()
    position: Position = (-1, 0)
    prepared_at: Position = (-1, 0)

    @property
    def step(self) -> int:
        """The number, from 1, of the model step that is planned, prepared, executing, or whose calls are due."""
        return self.done if self.phase == "tools" else self.done + 1

    @property
    def next_effect(self) -> str:
        """The effect id under which the prepared request starts."""
        return effect_id(self.run, self.step, "model", self.starts)

    def call_effect(self, call: str) -> str:
        """The effect id under which a call starts: a call starts once."""
        return effect_id(self.run, self.step, call, 0)

    @property
    def unfinished(self) -> tuple[Call, ...]:
        """Calls of the tool step that are not terminal, in call order."""
        return tuple(call for call in self.calls.values() if not call.finished)

    @property
    def quiescent(self) -> bool:
        """Open, or a tool step with no executing call."""
        if self.phase == "tools":
            return all(call.state != "executing" for call in self.calls.values())
        return self.phase == "open"


class Turn(Struct, frozen=True):
    """The turn that is not over. `inputs`: delivered (id, body), in accepted order. `unknown`: calls to verify."""

    turn: str
    run: str
    attempt: int = 1
    status: Literal["active", "attempt_failed"] = "active"
    inputs: tuple[tuple[str, Digest], ...] = ()
    unknown: tuple[str, ...] = ()


class Submitted(Struct, frozen=True):
    """An input that nobody has taken yet."""

    input: str
    body: Digest
    when: Literal["step", "turn"] = "step"
    source: Literal["person", "program", "extension", "child", "command"] = "person"


class Checkpoint(Struct, frozen=True):
    """A checkpoint in force. `seq` is the commit that made it."""

    checkpoint: str
    seq: int


class Job(Struct, frozen=True):
    """A background job that runs."""

    job: str
    kind: Literal["command", "child"]
    title: str
    call: str = ""


class Settings(Struct, frozen=True):
    """What is in force. `setup` names an AgentSetup body."""

    model: str = ""
    reasoning: str = ""
    mode: str = ""
    title: str = ""
    cwd: str = ""
    setup: Digest | None = None


class State(Struct, frozen=True):
    """All machines of one session.

    `turn`: the turn that is not over (active, or its attempt failed), `run`: the active run, None between runs.
    `inputs`: submitted and not taken, in order. `jobs` that run and `grants` (id to rule) in force, by id.
    `unknown`: why this version may only read the session ("" it may write).
    """

    session: str
    turn: Turn | None = None
    run: Run | None = None
    inputs: dict[str, Submitted] = {}
    checkpoints: tuple[Checkpoint, ...] = ()
    jobs: dict[str, Job] = {}
    grants: dict[str, str] = {}
    settings: Settings = Settings()
    unknown: str = ""

    @property
    def idle(self) -> bool:
        """Whether a new turn may start."""
        return self.turn is None
