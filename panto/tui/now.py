"""What is going on: the fold of updates that the rule, the status line, dialogs and the farewell read.

Pure. It follows the primary agent; questions come from every agent of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from panto.schema.bodies import MessageBody, Question, ResultBody, ToolOutcome
from panto.schema.contributions import Contributions
from panto.schema.events import (
    InputAccepted,
    InputRejected,
    InputSubmitted,
    InputWithdrawn,
    JobEnded,
    JobLost,
    JobStarted,
    ModelStepCompleted,
    RunCreated,
    RunEnded,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    TurnAttemptFailed,
    TurnRetried,
    TurnSettled,
    TurnStarted,
    TurnStopped,
    TurnSuperseded,
)
from panto.schema.messages import Image, Text
from panto.schema.signals import (
    Asked,
    ContributionsChanged,
    Fact,
    RetryResumed,
    RetryWaiting,
    StatusChanged,
    TextStreamed,
    Update,
)
from panto.schema.view import CardView, DiffView, View
from panto.tui.changes import Changes

MODES = {"plan": "read only", "ask": "ask before running", "auto": "accept edits", "yolo": "runs everything"}


@dataclass(frozen=True)
class Held:
    """A call that waits for a person."""

    agent: str
    run: str
    call: str
    question: Question


@dataclass(frozen=True)
class Waiting:
    """A message that was not delivered yet."""

    text: str
    when: Literal["step", "turn"] = "step"
    images: tuple[Image, ...] = ()


@dataclass
class Now:
    """The present state of a session as far as the frame around the transcript shows it."""

    primary: str = ""
    read_only: bool = False  # another process writes it, it is only followed here
    partial: bool = False  # the beginning of the history was not loaded: what is counted here is not all
    held_by: str = ""  # which one, "" unknown or nobody
    status: StatusChanged | None = None
    contributions: Contributions = Contributions()
    retry: RetryWaiting | None = None
    retry_at: float = 0.0
    held: list[Held] = field(default_factory=list)
    waiting: dict[str, Waiting] = field(default_factory=dict)  # undelivered inputs, oldest first
    running: bool = False
    failed: bool = False  # the last attempt failed; Enter tries again
    turns: int = 0
    tokens: int = 0
    cost: float | None = None
    changes: Changes = field(default_factory=Changes)
    jobs: dict[str, tuple[str, float]] = field(default_factory=dict)  # background commands: title, begun (UTC seconds)
    turn: str = ""
    answer: str = ""
    first_prompt: str = ""
    unfinished: bool = False  # a turn was not at its end when the person left

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self.running or bool(self.status and self.status.busy)

    @property
    def asked(self) -> list[Held]:
        """Questions to put now: a parked turn asks when it goes on."""
        parked = self.status is not None and self.status.parked
        return [] if parked or self.read_only else self.held

    @property
    def mode(self) -> str:
        """The permission mode's name, "" before the engine is there."""
        return self.status.mode if self.status else ""

    @property
    def lines(self) -> tuple[int, int]:
        """Lines added and removed in this session, as far as its turns stand."""
        return sum(a for a, _ in self.changes.total.values()), sum(r for _, r in self.changes.total.values())

    def as_here(self, update: Update) -> Update:
        """What an update says of the session as it stands here: one that is only followed is never continued here."""
        return replace(update, parked=False) if isinstance(update, StatusChanged) and self.read_only else update

    def apply(self, update: Update, now: float = 0.0) -> None:
        """Take one update in. `now`: seconds of the monotonic clock, for what counts down."""
        match update:
            case Fact():
                self._fact(update)
            case StatusChanged() if update.agent in (self.primary, ""):
                self.status = update
                self.cost = update.cost
                if not update.busy:
                    self.running, self.retry = False, None
            case RetryWaiting() if update.agent == self.primary:
                self.retry, self.retry_at = update, now + update.wait_s
            case RetryResumed() | TextStreamed() if update.agent == self.primary:
                self.retry = None
            case Asked(over=True):
                self.held = [one for one in self.held if one.call != update.id]
            case Asked():
                self.held.append(Held(update.agent, "", update.id, update.question))
            case ContributionsChanged():
                self.contributions = update.contributions
            case _:
                pass

    def _fact(self, fact: Fact) -> None:
        self._questions(fact)
        event = fact.event
        if isinstance(event, ToolCallCompleted) and isinstance(fact.body, ToolOutcome) and fact.body.view is not None:
            self._count(fact.body.view)
        if fact.agent != self.primary:
            return
        match event:
            case RunCreated():
                self.running, self.failed = True, False
            case RunEnded():
                self.running, self.retry = False, None
            case TurnStarted() | TurnRetried():
                self.turns += isinstance(event, TurnStarted)
                self.turn = event.turn
                self.running = True
            case TurnSuperseded():
                self.turns = max(0, self.turns - 1)
                self.changes.without(event.turn)
            case JobStarted(kind="command"):
                self.jobs[event.job] = (event.title, fact.time)
            case JobEnded() | JobLost():
                self.jobs.pop(event.job, None)
            case TurnAttemptFailed():
                self.failed = True
            case TurnSettled() | TurnStopped():
                self.failed = False
            case InputSubmitted():
                text = _text(fact)
                self.waiting[event.input] = Waiting(text, event.when, _images(fact))
                self.first_prompt = self.first_prompt or text
            case InputAccepted() | InputWithdrawn() | InputRejected():
                self.waiting.pop(event.input, None)
            case ModelStepCompleted():
                self.tokens += event.usage.input + event.usage.output
                if isinstance(fact.body, ResultBody) and fact.body.result.text().strip():
                    self.answer = fact.body.result.text()
            case _:
                pass

    def _questions(self, fact: Fact) -> None:
        event = fact.event
        match event:
            case ToolCallHeld() if isinstance(fact.body, Question):
                self.held.append(Held(fact.agent, event.run, event.call, fact.body))
            case ToolCallApproved() | ToolCallAnswered() | ToolCallStarted() | ToolCallCompleted() | ToolCallFailed():
                self.held = [one for one in self.held if one.call != event.call]
            case RunEnded():
                self.held = [one for one in self.held if one.run != event.run]
            case _:
                pass

    def _count(self, view: View) -> None:
        for diff in _diffs(view):
            self.changes.add(self.turn, diff)


def _diffs(view: View) -> list[DiffView]:
    if isinstance(view, DiffView):
        return [view]
    if isinstance(view, CardView):
        return [diff for child in view.children for diff in _diffs(child)]
    return []


def _text(fact: Fact) -> str:
    if not isinstance(fact.body, MessageBody):
        return ""
    return "".join(part.text for part in fact.body.message.parts if isinstance(part, Text))


def _images(fact: Fact) -> tuple[Image, ...]:
    if not isinstance(fact.body, MessageBody):
        return ()
    return tuple(part for part in fact.body.message.parts if isinstance(part, Image))
