"""Events to views, in place, O(1) for each: the second half of replay (`evolve` is the first)."""

from __future__ import annotations

from msgspec.structs import replace

from panto.schema.events import (
    AnyEvent,
    CheckpointInvalidated,
    CheckpointMade,
    ExtensionAppended,
    FileChange,
    InputAccepted,
    MetadataSet,
    ModelStepCompleted,
    ModelStepPrepared,
    ModelStepRecovered,
    ModelStepWithdrawn,
    ResultSuperseded,
    RunCreated,
    RunEnded,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    ToolStepOpened,
    TurnAttemptFailed,
    TurnRetried,
    TurnSettled,
    TurnStarted,
    TurnStopped,
    TurnSuperseded,
)
from panto.schema.messages import Usage
from panto.session.context import (
    AssistantEntry,
    Context,
    InputEntry,
    KeptEntry,
    ResultEntry,
    ResultStatus,
    SummaryEntry,
)
from panto.session.view import TurnView, View


def failed_status(event: ToolCallFailed) -> ResultStatus:
    """A failed call in the words used outside."""
    if event.cause == "interrupted" or event.cls == "cancelled":
        return "cancelled"
    if event.outcome == "unknown":
        return "unknown"
    return "denied" if event.cls == "permission_denied" else "error"


def fold(view: View, event: AnyEvent, seq: int, time: float) -> None:
    """Fold one event of commit `seq`, written at `time` (UTC seconds), into the view."""
    context = view.context
    match event:
        case ToolCallStarted() | ToolCallHeld() | ToolCallApproved() | ToolCallAnswered() | ToolCallFailed():
            _call(context, event)
            if isinstance(event, ToolCallFailed):
                _files(view, event.files)
        case ToolCallCompleted():
            _call(context, event)
            _files(view, event.files)
        case ModelStepPrepared():
            context.take()
        case ModelStepWithdrawn() | ModelStepRecovered():
            context.give_back()
        case ModelStepCompleted():
            context.held = 0
            context.before_tail(AssistantEntry(event.effect, context.turn, event.run, event.step, event.result))
            _spent(view, event.usage, event.cost)
            view.used = event.usage.input + event.usage.output if event.usage.input else view.used
        case ToolStepOpened():
            _opened(context, event)
        case InputAccepted():
            _accepted(view, event)
        case TurnStarted():
            view.turns.append(TurnView(event.turn, event.run, 1, seq, time, runs=[event.run]))
        case RunCreated():
            context.begin(event.turn)
        case RunEnded():
            if event.text is not None:
                context.before_tail(KeptEntry(event.run, context.turn, event.text))
        case TurnRetried() | TurnAttemptFailed() | TurnSettled() | TurnStopped() | TurnSuperseded():
            _turn(view, event)
        case CheckpointMade():
            context.compact(SummaryEntry(event.checkpoint, event.summary), event.retained)
            _spent(view, event.usage, event.cost)
            view.used = 0
        case CheckpointInvalidated():
            context.uncompact()
            view.used = 0
        case ResultSuperseded():
            result = context.result(event.call)
            if result is not None:
                context.put(replace(result, status="ok", outcome=event.outcome, message="", superseded=True))
        case MetadataSet():
            view.metadata[event.message] = event.metadata
        case ExtensionAppended():
            view.extensions.setdefault(event.owner, []).append((event.kind, event.value))
        case _:
            pass  # settings, jobs, grants and undelivered inputs are the machines' alone


def _accepted(view: View, event: InputAccepted) -> None:
    context = view.context
    if event.input in context.numbers:  # a retried attempt takes what the context has already
        return
    context.add(InputEntry(event.input, context.turn, event.run, event.body))
    context.tail += 1
    if view.turns:
        view.turns[-1].inputs.append(event.body)


def _opened(context: Context, event: ToolStepOpened) -> None:
    place = len(context.order) - context.tail
    assistant = context.entries[context.order[place - 1]]
    if isinstance(assistant, AssistantEntry):
        context.put(replace(assistant, calls=event.calls))
    for offset, bound in enumerate(event.calls):
        slot = ResultEntry(bound.call, context.turn, event.run, bound.name, bound.provider_id)
        context.add(slot, place + offset)


def _call(
    context: Context,
    event: (
        ToolCallStarted | ToolCallHeld | ToolCallApproved | ToolCallAnswered | ToolCallFailed | ToolCallCompleted
    ),
) -> None:
    result = context.result(event.call)
    if result is None:
        return
    match event:
        case ToolCallStarted():
            result = replace(result, status="executing")
        case ToolCallHeld():
            result = replace(result, status="waiting")
        case ToolCallApproved():
            result = replace(result, status="pending")
        case ToolCallAnswered() | ToolCallCompleted():
            result = replace(result, status="ok", outcome=event.outcome)
        case ToolCallFailed():
            effects = "unknown" if event.outcome == "unknown" else event.effects
            result = replace(
                result, status=failed_status(event), outcome=event.outcome_digest, message=event.message,
                cls=event.cls, effects=effects,
            )  # fmt: skip
    context.put(result)


def _turn(view: View, event: TurnRetried | TurnAttemptFailed | TurnSettled | TurnStopped | TurnSuperseded) -> None:
    place = next((n for n in range(len(view.turns) - 1, -1, -1) if view.turns[n].turn == event.turn), None)
    if place is None:
        return
    turn = view.turns[place]
    match event:
        case TurnRetried():
            turn = replace(turn, run=event.run, attempt=event.attempt, state="active", runs=[*turn.runs, event.run])
        case TurnAttemptFailed():
            turn = replace(turn, state="attempt_failed")
        case TurnSettled():
            turn = replace(turn, state=event.status)
        case TurnStopped():
            turn = replace(turn, state="stopped")
        case TurnSuperseded():
            turn = replace(turn, state="superseded")
            view.context.drop_turn(event.turn)
            view.used = 0
    view.turns[place] = turn


def _files(view: View, files: tuple[FileChange, ...]) -> None:
    for change in files:
        view.files[change.path] = change.after
        if change.before != change.after and view.turns:
            view.turns[-1].changes.append(change)


def _spent(view: View, usage: Usage, cost: float | None) -> None:
    view.usage = view.usage + usage
    if cost is not None:
        view.cost = (view.cost or 0.0) + cost
