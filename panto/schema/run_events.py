"""The run machine's facts: model steps, tool calls, how a run ends. See `events` for the rest."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from panto.schema.codec import Digest
from panto.schema.errors import FailureClass, ProviderErrorKind
from panto.schema.event import Cause, Effects, Event, FailReason, StopReason, version
from panto.schema.messages import Usage
from panto.schema.value import Value


class RunEvent(Event, frozen=True):
    machine = "run"
    id_field = "run"


class RunCreated(RunEvent, frozen=True, tag="run_created"):
    """A run begins, Open. `attempt` counts from 1."""

    run: str
    turn: str
    attempt: int = 1
    v: int = version(1)


class InputAccepted(RunEvent, frozen=True, tag="input_accepted"):
    """An input is delivered to this run: pending until a request consumes it."""

    run: str
    input: str
    body: Digest
    v: int = version(1)


class ModelStepPrepared(RunEvent, frozen=True, tag="model_step_prepared"):
    """A request is frozen. `request` names its manifest; `inputs` are all pending ones, consumed in order."""

    run: str
    step: int
    request: Digest
    inputs: tuple[str, ...] = ()
    v: int = version(1)


class ModelStepWithdrawn(RunEvent, frozen=True, tag="model_step_withdrawn"):
    """The unsent request is dropped, since input arrived; its inputs are pending again."""

    run: str
    step: int
    v: int = version(1)


class ModelStepStarted(RunEvent, frozen=True, tag="model_step_started"):
    """The request is on its way under `effect`."""

    run: str
    step: int
    effect: str
    v: int = version(1)


class ModelStepRecovered(RunEvent, frozen=True, tag="model_step_recovered"):
    """The model call left no trace (crash, quit): Open again, the step is not counted."""

    run: str
    step: int
    effect: str
    v: int = version(1)


class ModelStepRejected(RunEvent, frozen=True, tag="model_step_rejected"):
    """The result was malformed: Prepared again, or the run fails at the limit. `result` names what came."""

    run: str
    step: int
    effect: str
    problem: str
    result: Digest | None = None
    v: int = version(1)


class ModelStepCompleted(RunEvent, frozen=True, tag="model_step_completed"):
    """The model answered. `result` names the ModelResult; usage and cost (USD) stand here too, for sums."""

    run: str
    step: int
    effect: str
    result: Digest
    usage: Usage = Usage()
    cost: float | None = None
    v: int = version(1)


class CallBinding(Value, frozen=True):
    """One call of the result, given panto's own id. `index` is its place among the result's calls."""

    call: str
    index: int
    name: str
    provider_id: str = ""
    mutates: bool = True


class ToolStepOpened(RunEvent, frozen=True, tag="tool_step_opened"):
    """The result's calls are due. `parallel` is the frozen bound of calls at once."""

    run: str
    step: int
    calls: tuple[CallBinding, ...]
    parallel: int = 16
    v: int = version(1)


class ToolCallHeld(RunEvent, frozen=True, tag="tool_call_held"):
    """Waiting for a person. `question` names a Question body."""

    run: str
    call: str
    kind: Literal["approval", "external"]
    question: Digest
    v: int = version(1)


class ToolCallApproved(RunEvent, frozen=True, tag="tool_call_approved"):
    """Allowed; Pending again. `arguments` names the new arguments' JSON text where they were changed."""

    run: str
    call: str
    arguments: Digest | None = None
    changed_by: Literal["", "person", "hook"] = ""
    v: int = version(1)


class ToolCallAnswered(RunEvent, frozen=True, tag="tool_call_answered"):
    """An external answer completed the call. `outcome` names a ToolOutcome."""

    run: str
    call: str
    outcome: Digest
    v: int = version(1)


class ToolCallStarted(RunEvent, frozen=True, tag="tool_call_started"):
    """Durable before any side effect. `replay`: a lost run may be repeated. `arguments` names what is run."""

    run: str
    call: str
    effect: str
    arguments: Digest
    replay: bool = False
    changed_by: Literal["", "person", "hook"] = ""
    v: int = version(1)


class FileChange(Value, frozen=True):
    """A file a call touched: digests of its content before and after (None: absent). A read has before = after."""

    path: str
    before: Digest | None
    after: Digest | None


class ToolCallCompleted(RunEvent, frozen=True, tag="tool_call_completed"):
    """The call is done. `outcome` names a ToolOutcome."""

    run: str
    call: str
    effect: str
    outcome: Digest
    duration_ms: int = 0
    files: tuple[FileChange, ...] = ()
    v: int = version(1)


class ToolCallFailed(RunEvent, frozen=True, tag="tool_call_failed"):
    """The call failed. `known`: nothing is in doubt but `effects`; unknown: nobody can say whether it happened.

    `effect` is "" where the call never started (declined). `outcome_digest` names partial output (ToolOutcome).
    """

    run: str
    call: str
    outcome: Literal["known", "unknown"]
    cls: FailureClass = field(name="class")
    message: str
    effect: str = ""
    effects: Effects = "none"
    cause: Cause = "tool"
    outcome_digest: Digest | None = None
    duration_ms: int = 0
    files: tuple[FileChange, ...] = ()
    unattended: bool = False
    v: int = version(1)


class InterruptRequested(RunEvent, frozen=True, tag="interrupt_requested"):
    """Escape: only settlements of executing calls and the stop are accepted from here on."""

    run: str
    v: int = version(1)


class RunEnded(RunEvent, frozen=True, tag="run_ended"):
    """The run's last fact. Exactly one variant by `status`; stopped and failed carry their reason.

    `uncertain` lists calls with effects or outcome unknown; `text` names streamed text kept from a stopped step.
    """

    run: str
    status: Literal["completed", "stopped", "failed"]
    stopped: StopReason | None = None
    failed: FailReason | None = None
    error_kind: ProviderErrorKind | None = None
    message: str = ""
    uncertain: tuple[str, ...] = ()
    text: Digest | None = None
    v: int = version(1)


class ResultSuperseded(RunEvent, frozen=True, tag="result_superseded"):
    """A person verified an unknown result; `outcome` takes its place in the context, once."""

    run: str
    call: str
    outcome: Digest
    v: int = version(1)
