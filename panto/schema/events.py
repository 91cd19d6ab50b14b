"""Durable facts: everything that was decided, past tense, one tagged union.

Each event belongs to a stream (machine, entity id): the machine that owns it folds it. Large things are not in
events: `*_digest` fields and `Digest` values name bodies, which were stored before the event could be seen.
`v` is the payload's version; old versions are upcast on read (session room), stored bytes never change.
"""

from __future__ import annotations

from typing import Literal

from panto.schema.codec import Digest
from panto.schema.event import Cause, Effects, Event, FailReason, Machine, StopReason, version
from panto.schema.messages import Usage
from panto.schema.run_events import (
    CallBinding,
    FileChange,
    InputAccepted,
    InterruptRequested,
    ModelStepCompleted,
    ModelStepPrepared,
    ModelStepRecovered,
    ModelStepRejected,
    ModelStepStarted,
    ModelStepWithdrawn,
    ResultSuperseded,
    RunCreated,
    RunEnded,
    RunEvent,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    ToolStepOpened,
)

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

__all__ = [
    "AnyEvent", "ApprovalGranted", "ApprovalRevoked", "CallBinding", "Cause", "CheckpointEvent",
    "CheckpointInvalidated", "CheckpointMade", "CwdChanged", "Effects", "Event", "ExtensionAppended", "FailReason",
    "FileChange", "InputAccepted", "InputEvent", "InputRejected", "InputSubmitted", "InputWithdrawn",
    "InterruptRequested", "JobEnded", "JobEvent", "JobLost", "JobStarted", "Machine", "MetadataSet", "ModeChanged",
    "ModelChanged", "ModelStepCompleted", "ModelStepPrepared", "ModelStepRecovered", "ModelStepRejected",
    "ModelStepStarted", "ModelStepWithdrawn", "ReasoningChanged", "ResultSuperseded", "RunCreated", "RunEnded",
    "RunEvent", "SettingEvent", "SetupChanged", "StopReason", "TitleChanged", "ToolCallAnswered", "ToolCallApproved",
    "ToolCallCompleted", "ToolCallFailed", "ToolCallHeld", "ToolCallStarted", "ToolStepOpened", "TurnAttemptFailed",
    "TurnEvent", "TurnRetried", "TurnSettled", "TurnStarted", "TurnStopped", "TurnSuperseded", "version",
]  # fmt: skip
