"""Durable facts: everything that was decided, past tense, one tagged union.

Each event belongs to a stream (machine, entity id): the machine that owns it folds it. Large things are not in
events: `*_digest` fields and `Digest` values name bodies, which were stored before the event could be seen.
`v` is the payload's version; old versions are upcast on read (session room), stored bytes never change.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import field

from panto.schema.codec import Digest
from panto.schema.errors import FailureClass, ProviderErrorKind
from panto.schema.messages import Usage
from panto.schema.value import Value

Machine = Literal["run", "input", "turn", "job", "checkpoint", "message", "grant", "session", "setup", "extension"]
StopReason = Literal["cancelled", "loop_guard", "steps", "budget"]
FailReason = Literal["provider", "malformed", "context", "storage", "internal", "ownership_lost"]
Cause = Literal["tool", "interrupted", "crash", "exception"]
Effects = Literal["none", "unknown"]


def version(number: int) -> int:
    """A payload's version: a default that is nevertheless always written (defaults are left out otherwise)."""
    default: int = field(default_factory=lambda: number)
    return default


class Event(Value, frozen=True, tag_field="type"):
    """The base of all facts. `machine` and `entity` name the stream; `entity` is the payload's own id field."""

    machine: ClassVar[Machine]
    id_field: ClassVar[str]

    @property
    def entity(self) -> str:
        """The id of the thing this fact is about; equals the stream's id (R13)."""
        return str(getattr(self, self.id_field))


# --- input: submitted > delivered (= the run's input_accepted), withdrawn or rejected, once ---------------------


class InputEvent(Event, frozen=True):
    machine = "input"
    id_field = "input"


class InputSubmitted(InputEvent, frozen=True, tag="input_submitted"):
    """A person, program or extension said something. `body` names a user Message.

    `when`: "step" joins the running turn at its next step, "turn" waits for the turn after.
    """

    input: str
    body: Digest
    when: Literal["step", "turn"] = "step"
    source: Literal["person", "program", "extension", "child", "command"] = "person"
    v: int = version(1)


class InputWithdrawn(InputEvent, frozen=True, tag="input_withdrawn"):
    """Taken back before delivery; its text returns to the composer where `returned`."""

    input: str
    returned: bool = True
    v: int = version(1)


class InputRejected(InputEvent, frozen=True, tag="input_rejected"):
    """A hook or rule refused it; `reason` is for the person."""

    input: str
    reason: str
    v: int = version(1)


# --- turn ------------------------------------------------------------------------------------------------------


class TurnEvent(Event, frozen=True):
    machine = "turn"
    id_field = "turn"


class TurnStarted(TurnEvent, frozen=True, tag="turn_started"):
    """A turn begins with its first run (attempt 1)."""

    turn: str
    run: str
    v: int = version(1)


class TurnAttemptFailed(TurnEvent, frozen=True, tag="turn_attempt_failed"):
    """The run failed; the turn waits for a retry or is settled as failed."""

    turn: str
    run: str
    v: int = version(1)


class TurnRetried(TurnEvent, frozen=True, tag="turn_retried"):
    """A new run of the same turn with all delivered inputs, in accepted order, once."""

    turn: str
    run: str
    attempt: int
    v: int = version(1)


class TurnSettled(TurnEvent, frozen=True, tag="turn_settled"):
    """The turn is over. `refused`: a call was refused for want of a person (the text is kept)."""

    turn: str
    status: Literal["completed", "failed", "refused"]
    v: int = version(1)


class TurnStopped(TurnEvent, frozen=True, tag="turn_stopped"):
    """Stopped by a person or a limit."""

    turn: str
    reason: StopReason
    v: int = version(1)


class TurnSuperseded(TurnEvent, frozen=True, tag="turn_superseded"):
    """Rewound: the context skips it, the history shows it."""

    turn: str
    v: int = version(1)


# --- run (one attempt of a turn) -------------------------------------------------------------------------------


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


# --- checkpoints (compaction) ----------------------------------------------------------------------------------


class CheckpointEvent(Event, frozen=True):
    machine = "checkpoint"
    id_field = "checkpoint"


class CheckpointMade(CheckpointEvent, frozen=True, tag="checkpoint_made"):
    """The context becomes: `summary` (a user Message), then exactly the `retained` entries, then what comes later.

    `base` is the digest of the context it was made from; `retained` are entry ids of the context fold (see
    session/view), a closed set: a call's assistant entry and its results go together.
    """

    checkpoint: str
    base: Digest
    summary: Digest
    retained: tuple[str, ...] = ()
    usage: Usage = Usage()
    cost: float | None = None
    automatic: bool = False
    v: int = version(1)


class CheckpointInvalidated(CheckpointEvent, frozen=True, tag="checkpoint_invalidated"):
    """The newest checkpoint no longer holds; the former context returns plus the tail."""

    checkpoint: str
    v: int = version(1)


# --- jobs, messages, grants, settings, extensions --------------------------------------------------------------


class JobEvent(Event, frozen=True):
    machine = "job"
    id_field = "job"


class JobStarted(JobEvent, frozen=True, tag="job_started"):
    """A background command or child began. `call` is the call that opened it ("" if none)."""

    job: str
    kind: Literal["command", "child"]
    title: str
    call: str = ""
    v: int = version(1)


class JobEnded(JobEvent, frozen=True, tag="job_ended"):
    """It ended; `outcome` names a ToolOutcome with what it printed or said."""

    job: str
    status: Literal["completed", "failed", "cancelled"]
    outcome: Digest | None = None
    v: int = version(1)


class JobLost(JobEvent, frozen=True, tag="job_lost"):
    """Found running when the session was opened: nobody knows how it ended."""

    job: str
    v: int = version(1)


class MetadataSet(Event, frozen=True, tag="metadata_set"):
    """A message's metadata (a JSON object as text); the latest counts; never sent to the model."""

    machine = "message"
    id_field = "message"
    message: str
    metadata: str
    v: int = version(1)


class ApprovalGranted(Event, frozen=True, tag="approval_granted"):
    """A rule a person allowed for this session (project and user rules live in config files)."""

    machine = "grant"
    id_field = "grant"
    grant: str
    rule: str
    v: int = version(1)


class ApprovalRevoked(Event, frozen=True, tag="approval_revoked"):
    """That rule no longer holds."""

    machine = "grant"
    id_field = "grant"
    grant: str
    v: int = version(1)


class SettingEvent(Event, frozen=True):
    machine = "session"
    id_field = "session"


class ModelChanged(SettingEvent, frozen=True, tag="model_changed"):
    """The model label (provider:alias) in force from here on."""

    session: str
    model: str
    v: int = version(1)


class ReasoningChanged(SettingEvent, frozen=True, tag="reasoning_changed"):
    """The reasoning effort in force ("" none)."""

    session: str
    reasoning: str
    v: int = version(1)


class ModeChanged(SettingEvent, frozen=True, tag="mode_changed"):
    """The permission mode in force."""

    session: str
    mode: Literal["plan", "ask", "auto", "yolo"]
    v: int = version(1)


class TitleChanged(SettingEvent, frozen=True, tag="title_changed"):
    """The session's title."""

    session: str
    title: str
    v: int = version(1)


class CwdChanged(SettingEvent, frozen=True, tag="cwd_changed"):
    """The working directory, absolute."""

    session: str
    cwd: str
    v: int = version(1)


class SetupChanged(Event, frozen=True, tag="setup_changed"):
    """An agent's setup: `setup` names an AgentSetup body; the latest counts, restored on open."""

    machine = "setup"
    id_field = "session"
    session: str
    setup: Digest
    v: int = version(1)


class ExtensionAppended(Event, frozen=True, tag="extension_appended"):
    """A fact of an extension's own; folded by it only. `value` names a JSON body."""

    machine = "extension"
    id_field = "owner"
    owner: str
    kind: str
    value: Digest
    v: int = version(1)


AnyEvent = (
    InputSubmitted | InputWithdrawn | InputRejected
    | TurnStarted | TurnAttemptFailed | TurnRetried | TurnSettled | TurnStopped | TurnSuperseded
    | RunCreated | InputAccepted | ModelStepPrepared | ModelStepWithdrawn | ModelStepStarted | ModelStepRecovered
    | ModelStepRejected | ModelStepCompleted | ToolStepOpened | ToolCallHeld | ToolCallApproved | ToolCallAnswered
    | ToolCallStarted | ToolCallCompleted | ToolCallFailed | InterruptRequested | RunEnded | ResultSuperseded
    | CheckpointMade | CheckpointInvalidated | JobStarted | JobEnded | JobLost | MetadataSet
    | ApprovalGranted | ApprovalRevoked | ModelChanged | ReasoningChanged | ModeChanged | TitleChanged | CwdChanged
    | SetupChanged | ExtensionAppended
)  # fmt: skip
"""Every event panto knows. Unknown ones are `codec`'s business: kept and skipped, never fatal."""
