"""The run machine's commands: model steps, tool calls, the end. They name their run, settlements their effect."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from panto.schema.codec import Digest
from panto.schema.errors import FailureClass, ProviderErrorKind
from panto.schema.events import CallBinding, Cause, Effects, FailReason, FileChange, StopReason
from panto.schema.messages import ModelResult, Usage
from panto.session.command import Command, Position
from panto.session.ids import bind

# --- the run: its model steps -----------------------------------------------------------------------------------


class DeliverInputs(Command, frozen=True):
    """Submitted `step` inputs join the run, the whole batch or none; they are pending until a request consumes them."""

    run: str
    inputs: tuple[str, ...]

    def subject(self) -> tuple[object, ...]:
        return ("deliver", self.run, *self.inputs)


class PrepareStep(Command, frozen=True):
    """Freeze a request. `position` is the run's last position it was planned at; `inputs` all pending ones in order."""

    run: str
    position: Position
    request: Digest
    inputs: tuple[str, ...] = ()

    def subject(self) -> tuple[object, ...]:
        return ("prepare", self.run, *self.position)


class WithdrawStep(Command, frozen=True):
    """Drop the unsent request, since input is pending. `position` is where it was prepared (Run.prepared_at)."""

    run: str
    position: Position

    def subject(self) -> tuple[object, ...]:
        return ("withdraw", self.run, *self.position)


class StartModel(Command, frozen=True):
    """The prepared request is about to leave. `effect` must be Run.next_effect."""

    run: str
    effect: str

    def subject(self) -> tuple[object, ...]:
        return ("start", self.effect)


class RecoverModel(Command, frozen=True):
    """The model call left no trace (crash, quit): Open again, the step not counted."""

    run: str
    effect: str

    def subject(self) -> tuple[object, ...]:
        return ("recover", self.effect)


class SubmitResult(Command, frozen=True):
    """The model answered; build it with `of`. `names` are the result's calls in order, `calls` their bindings.

    `dispatch` False ends the run here: the calls stay unresolved (not_dispatched).
    """

    run: str
    effect: str
    result: Digest
    usage: Usage = Usage()
    cost: float | None = None
    names: tuple[str, ...] = ()
    calls: tuple[CallBinding, ...] = ()
    parallel: int = 16
    dispatch: bool = True

    @classmethod
    def of(
        cls,
        run: str,
        step: int,
        effect: str,
        result: ModelResult,
        body: Digest,
        *,
        mutating: frozenset[str] | None = None,
        parallel: int = 16,
        dispatch: bool = True,
    ) -> SubmitResult:
        """The command for `result`, whose staged ResultBody is `body`; calls are bound to panto's own ids.

        `mutating`: names of tools that change things (None: all). `parallel`: the frozen bound of calls at once.
        """
        return cls(
            run=run, effect=effect, result=body, usage=result.usage, cost=result.cost,
            names=tuple(call.name for call in result.calls()), calls=bind(run, step, result, mutating),
            parallel=parallel, dispatch=dispatch,
        )  # fmt: skip

    def subject(self) -> tuple[object, ...]:
        return ("settle", self.effect)


class FailModel(Command, frozen=True):
    """The model call failed for good: the run fails, the turn waits for a retry (attempt_failed)."""

    run: str
    effect: str
    message: str
    reason: FailReason = "provider"
    error_kind: ProviderErrorKind | None = None

    def subject(self) -> tuple[object, ...]:
        return ("settle", self.effect)


class RejectResult(Command, frozen=True):
    """The result was malformed: Prepared again, at the third time the run fails. `result` names what came."""

    run: str
    effect: str
    problem: str
    result: Digest | None = None

    def subject(self) -> tuple[object, ...]:
        return ("settle", self.effect)


class FailRun(Command, frozen=True):
    """The run cannot go on for a reason other than a model call (context, storage, internal).

    Unfinished calls become terminal as when it is stopped; the turn waits for a retry.
    """

    run: str
    reason: FailReason
    message: str

    def subject(self) -> tuple[object, ...]:
        return ("fail", self.run)


# --- the run: its tool calls ------------------------------------------------------------------------------------


class StartCall(Command, frozen=True):
    """A pending call is about to run. `effect` must be Call.next_effect; `arguments` names what is run (TextBody)."""

    run: str
    call: str
    effect: str
    arguments: Digest
    replay: bool = False
    changed_by: Literal["", "person", "hook"] = ""

    def subject(self) -> tuple[object, ...]:
        return ("start", self.effect)


class DeclineCall(Command, frozen=True):
    """A pending call is not run at all. `unattended`: refused for want of a person."""

    run: str
    call: str
    cls: FailureClass = field(name="class")
    message: str
    unattended: bool = False
    outcome: Digest | None = None

    def subject(self) -> tuple[object, ...]:
        return ("decline", self.run, self.call)


class HoldCall(Command, frozen=True):
    """A pending call waits for a person. `question` names a Question."""

    run: str
    call: str
    kind: Literal["approval", "external"]
    question: Digest

    def subject(self) -> tuple[object, ...]:
        return ("hold", self.run, self.call, self.question)


class ApproveCall(Command, frozen=True):
    """Allowed: pending again. `arguments` names new ones where they were changed."""

    run: str
    call: str
    question: Digest
    arguments: Digest | None = None
    changed_by: Literal["", "person", "hook"] = ""

    def subject(self) -> tuple[object, ...]:
        return ("respond", self.run, self.call, self.question)


class RejectCall(Command, frozen=True):
    """Not allowed; the model is told `message`. `unattended`: there was nobody to ask."""

    run: str
    call: str
    question: Digest
    message: str
    unattended: bool = False

    def subject(self) -> tuple[object, ...]:
        return ("respond", self.run, self.call, self.question)


class AnswerCall(Command, frozen=True):
    """The external answer came; `outcome` names a ToolOutcome."""

    run: str
    call: str
    question: Digest
    outcome: Digest

    def subject(self) -> tuple[object, ...]:
        return ("respond", self.run, self.call, self.question)


class RejectAnswer(Command, frozen=True):
    """The person declined to answer (or there is nobody: `unattended`)."""

    run: str
    call: str
    question: Digest
    message: str
    unattended: bool = False

    def subject(self) -> tuple[object, ...]:
        return ("respond", self.run, self.call, self.question)


class SubmitCallResult(Command, frozen=True):
    """An executing call is done."""

    run: str
    call: str
    effect: str
    outcome: Digest
    duration_ms: int = 0
    files: tuple[FileChange, ...] = ()

    def subject(self) -> tuple[object, ...]:
        return ("settle", self.effect)


class FailCall(Command, frozen=True):
    """An executing call failed: known, or unknown (nobody can say whether the effect happened)."""

    run: str
    call: str
    effect: str
    cls: FailureClass = field(name="class")
    message: str
    outcome: Literal["known", "unknown"] = "known"
    effects: Effects = "none"
    cause: Cause = "tool"
    outcome_digest: Digest | None = None
    duration_ms: int = 0
    files: tuple[FileChange, ...] = ()

    def subject(self) -> tuple[object, ...]:
        return ("settle", self.effect)


class SupersedeResult(Command, frozen=True):
    """A person verified an unknown result: `outcome` takes its place in the context, once, before the turn settles."""

    run: str
    call: str
    outcome: Digest

    def subject(self) -> tuple[object, ...]:
        return ("verify", self.run, self.call)


# --- the run: its end -------------------------------------------------------------------------------------------


class RequestInterrupt(Command, frozen=True):
    """Escape: from here on only settlements of executing calls and the stop are accepted."""

    run: str

    def subject(self) -> tuple[object, ...]:
        return ("interrupt", self.run)


class StopRun(Command, frozen=True):
    """End the run and its turn: stopped. Unfinished calls become terminal, submitted inputs are withdrawn.

    `text` names streamed text to keep (TextBody), None where there was none or only blanks.
    """

    run: str
    reason: StopReason = "cancelled"
    text: Digest | None = None
    message: str = ""

    def subject(self) -> tuple[object, ...]:
        return ("stop", self.run)


CallCommand = (
    StartCall | DeclineCall | HoldCall | ApproveCall | RejectCall | AnswerCall | RejectAnswer | SubmitCallResult
    | FailCall
)  # fmt: skip

RunCommand = (
    DeliverInputs | PrepareStep | WithdrawStep | StartModel | RecoverModel | SubmitResult | FailModel | RejectResult
    | FailRun | SupersedeResult | RequestInterrupt | StopRun | CallCommand
)  # fmt: skip
