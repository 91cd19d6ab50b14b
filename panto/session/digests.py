"""Which bodies an event names."""

from __future__ import annotations

from panto.schema.bodies import RequestManifest
from panto.schema.codec import Digest
from panto.schema.events import (
    AnyEvent,
    CheckpointMade,
    ExtensionAppended,
    InputAccepted,
    InputSubmitted,
    JobEnded,
    ModelStepCompleted,
    ModelStepPrepared,
    ModelStepRejected,
    ResultSuperseded,
    RunEnded,
    SetupChanged,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
)


def shown(event: AnyEvent) -> Digest | None:
    """The body that a fact carries along for readers, if any."""
    match event:
        case InputSubmitted() | InputAccepted():
            return event.body
        case ModelStepCompleted() | ModelStepRejected():
            return event.result
        case ToolCallCompleted() | ToolCallAnswered() | ResultSuperseded() | JobEnded():
            return event.outcome
        case ToolCallFailed():
            return event.outcome_digest
        case ToolCallHeld():
            return event.question
        case ToolCallApproved() | ToolCallStarted():
            return event.arguments
        case CheckpointMade():
            return event.summary
        case RunEnded():
            return event.text
        case SetupChanged():
            return event.setup
        case ExtensionAppended():
            return event.value
        case _:
            return None


def needed(event: AnyEvent) -> tuple[Digest, ...]:
    """Every body that must outlive a collection: what the event names, and what its files held before a change."""
    files = event.files if isinstance(event, ToolCallCompleted | ToolCallFailed) else ()
    before = tuple(each.before for each in files if each.before is not None and each.before != each.after)
    return named(event) + before


def parts(manifest: RequestManifest) -> tuple[Digest, ...]:
    """The bodies that a request's manifest names. What its former one names is that one's."""
    former = () if manifest.former is None else (manifest.former,)
    return manifest.system + manifest.tools + manifest.messages + former


def named(event: AnyEvent) -> tuple[Digest, ...]:
    """Every body that must be stored before the event may be seen. (A manifest names further ones.)

    What a file held after a change, or when it was only read, is named for comparing and not stored.
    """
    if isinstance(event, ModelStepPrepared):
        return (event.request,)
    one = shown(event)
    return () if one is None else (one,)
