"""Events to state, pure: `evolve(state, event, position)`. Replay needs nothing else."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from panto.schema.events import (
    AnyEvent,
    ApprovalGranted,
    ApprovalRevoked,
    CheckpointEvent,
    CheckpointMade,
    CwdChanged,
    ExtensionAppended,
    InputAccepted,
    InputEvent,
    InputSubmitted,
    InterruptRequested,
    JobEvent,
    JobStarted,
    MetadataSet,
    ModeChanged,
    ModelChanged,
    ModelStepCompleted,
    ModelStepPrepared,
    ModelStepRecovered,
    ModelStepRejected,
    ModelStepStarted,
    ModelStepWithdrawn,
    ReasoningChanged,
    ResultSuperseded,
    RunCreated,
    RunEnded,
    RunEvent,
    SettingEvent,
    SetupChanged,
    TitleChanged,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    ToolStepOpened,
    TurnAttemptFailed,
    TurnEvent,
    TurnRetried,
    TurnStarted,
)
from panto.session.command import Position
from panto.session.state import Call, CallState, Checkpoint, Job, Run, State, Submitted, Turn

CallEvent = (
    ToolCallHeld | ToolCallApproved | ToolCallAnswered | ToolCallStarted | ToolCallCompleted | ToolCallFailed
)
StepEvent = (
    ModelStepPrepared | ModelStepWithdrawn | ModelStepStarted | ModelStepRecovered | ModelStepRejected
    | ModelStepCompleted | ToolStepOpened | InterruptRequested
)  # fmt: skip


def evolve(state: State, event: AnyEvent, position: Position) -> State:
    """The state after `event`, which stands at `position`. Never refuses: what was decided, was decided."""
    match event:
        case RunEvent():
            return _run(state, event, position)
        case TurnEvent():
            return replace(state, turn=_turn(state.turn, event))
        case InputEvent():
            return replace(state, inputs=_inputs(state.inputs, event))
        case SettingEvent() | SetupChanged():
            return _setting(state, event)
        case CheckpointEvent():
            made = isinstance(event, CheckpointMade)
            kept = state.checkpoints if made else tuple(c for c in state.checkpoints if c.checkpoint != event.entity)
            added = (Checkpoint(event.entity, position[0]),) if made else ()
            return replace(state, checkpoints=(*kept, *added))
        case JobEvent():
            jobs = {name: job for name, job in state.jobs.items() if name != event.entity}
            if isinstance(event, JobStarted):
                jobs[event.job] = Job(event.job, event.kind, event.title, event.call)
            return replace(state, jobs=jobs)
        case ApprovalGranted():
            return replace(state, grants={**state.grants, event.grant: event.rule})
        case ApprovalRevoked():
            return replace(state, grants={g: rule for g, rule in state.grants.items() if g != event.grant})
        case MetadataSet() | ExtensionAppended():
            return state
        case _:
            assert_never(event)


def _inputs(inputs: dict[str, Submitted], event: InputEvent) -> dict[str, Submitted]:
    if isinstance(event, InputSubmitted):
        return {**inputs, event.input: Submitted(event.input, event.body, event.when, event.source)}
    return {name: waiting for name, waiting in inputs.items() if name != event.entity}


def _turn(turn: Turn | None, event: TurnEvent) -> Turn | None:
    match event:
        case TurnStarted():
            return Turn(event.turn, event.run)
        case TurnRetried() if turn is not None:
            return replace(turn, run=event.run, attempt=event.attempt, status="active")
        case TurnAttemptFailed() if turn is not None:
            return replace(turn, status="attempt_failed")
        case _:  # settled, stopped, superseded
            return None if turn is not None and turn.turn == event.entity else turn


def _setting(
    state: State,
    event: ModelChanged | ReasoningChanged | ModeChanged | TitleChanged | CwdChanged | SetupChanged,
) -> State:
    settings = state.settings
    match event:
        case ModelChanged():
            settings = replace(settings, model=event.model)
        case ReasoningChanged():
            settings = replace(settings, reasoning=event.reasoning)
        case ModeChanged():
            settings = replace(settings, mode=event.mode)
        case TitleChanged():
            settings = replace(settings, title=event.title)
        case CwdChanged():
            settings = replace(settings, cwd=event.cwd)
        case SetupChanged():
            settings = replace(settings, setup=event.setup)
        case _:
            assert_never(event)
    return replace(state, settings=settings)


def _run(
    state: State,
    event: RunCreated | InputAccepted | CallEvent | StepEvent | RunEnded | ResultSuperseded,
    position: Position,
) -> State:
    if isinstance(event, RunCreated):
        return replace(state, run=Run(event.run, event.turn, event.attempt, position=position))
    if isinstance(event, ResultSuperseded):
        turn = state.turn
        if turn is not None:
            turn = replace(turn, unknown=tuple(call for call in turn.unknown if call != event.call))
        here = state.run is not None and state.run.run == event.run
        run = replace(state.run, position=position) if here and state.run is not None else state.run
        return replace(state, turn=turn, run=run)
    run = state.run
    if run is None or run.run != event.run:
        return state
    match event:
        case RunEnded():
            return replace(state, run=None)
        case InputAccepted():
            return _accepted(state, run, event, position)
        case (
            ToolCallHeld() | ToolCallApproved() | ToolCallAnswered() | ToolCallStarted() | ToolCallCompleted()
            | ToolCallFailed()
        ):  # fmt: skip
            return _call(state, run, event, position)
        case _:
            return replace(state, run=_step(run, event, position))


def _accepted(state: State, run: Run, event: InputAccepted, position: Position) -> State:
    turn = state.turn
    if turn is not None and all(name != event.input for name, _ in turn.inputs):
        turn = replace(turn, inputs=(*turn.inputs, (event.input, event.body)))
    waiting = state.inputs
    if event.input in waiting:
        waiting = {name: submitted for name, submitted in waiting.items() if name != event.input}
    run = replace(run, pending=(*run.pending, event.input), position=position)
    return replace(state, turn=turn, inputs=waiting, run=run)


def _step(run: Run, event: StepEvent, position: Position) -> Run:
    match event:
        case ModelStepPrepared():
            return replace(
                run, phase="prepared", request=event.request, inputs=event.inputs, pending=(),
                position=position, prepared_at=position,
            )  # fmt: skip
        case ModelStepStarted():
            return replace(run, phase="executing", effect=event.effect, starts=run.starts + 1, position=position)
        case ModelStepWithdrawn() | ModelStepRecovered():
            # The step is not counted: what its request consumed waits again, before what came later.
            return replace(
                run, phase="open", request=None, effect="", inputs=(), pending=run.inputs + run.pending,
                position=position,
            )  # fmt: skip
        case ModelStepRejected():
            return replace(run, phase="prepared", effect="", rejects=run.rejects + 1, position=position)
        case ModelStepCompleted():
            return replace(
                run, phase="open", done=run.done + 1, starts=0, rejects=0, request=None, effect="",
                result=event.result, inputs=(), position=position,
            )  # fmt: skip
        case ToolStepOpened():
            calls = {
                bound.call: Call(bound.call, bound.index, bound.name, bound.provider_id, bound.mutates)
                for bound in event.calls
            }
            return replace(run, phase="tools", calls=calls, parallel=event.parallel, position=position)
        case InterruptRequested():
            return replace(run, interrupting=True, position=position)
        case _:
            assert_never(event)


def _call(state: State, run: Run, event: CallEvent, position: Position) -> State:
    call = run.calls.get(event.call)
    if call is None:
        return state
    turn, uncertain, unattended = state.turn, run.uncertain, run.unattended
    ended: CallState = "completed"
    match event:
        case ToolCallHeld():
            call = replace(call, state="waiting", kind=event.kind, question=event.question)
        case ToolCallApproved():
            call = replace(
                call, state="pending", kind="", question=None, approved=True, arguments=event.arguments,
                changed_by=event.changed_by,
            )  # fmt: skip
        case ToolCallStarted():
            call = replace(
                call, state="executing", effect=event.effect, replay=event.replay, arguments=event.arguments,
                changed_by=event.changed_by,
            )  # fmt: skip
        case ToolCallFailed():
            ended = "failed"
            unattended = unattended or event.unattended
            if event.outcome == "unknown" or event.effects == "unknown":
                uncertain = (*uncertain, event.call)
            if event.outcome == "unknown" and turn is not None:
                turn = replace(turn, unknown=(*turn.unknown, event.call))
        case ToolCallCompleted() | ToolCallAnswered():
            pass
        case _:
            assert_never(event)
    if not isinstance(event, ToolCallHeld | ToolCallApproved | ToolCallStarted):
        call = replace(call, state=ended, kind="", question=None)
    calls = {**run.calls, event.call: call}
    if all(each.finished for each in calls.values()):
        run = replace(run, phase="open", calls={})
    else:
        run = replace(run, calls=calls)
    run = replace(run, uncertain=uncertain, unattended=unattended, position=position)
    return replace(state, run=run, turn=turn)
