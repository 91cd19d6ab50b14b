"""All machines of a session, pure: `decide(state, view, command)` gives events or raises Refused."""

from __future__ import annotations

from typing import assert_never

from panto.schema.errors import Refused
from panto.schema.events import (
    AnyEvent,
    ApprovalGranted,
    ApprovalRevoked,
    CheckpointInvalidated,
    CheckpointMade,
    CwdChanged,
    ExtensionAppended,
    InputRejected,
    InputSubmitted,
    InputWithdrawn,
    JobEnded,
    JobLost,
    JobStarted,
    MetadataSet,
    ModeChanged,
    ModelChanged,
    ReasoningChanged,
    RunCreated,
    SetupChanged,
    TitleChanged,
    TurnRetried,
    TurnSettled,
    TurnStarted,
    TurnSuperseded,
)
from panto.schema.events import InputAccepted as InputAccepted
from panto.session import run_machine
from panto.session.commands import (
    AnyCommand,
    AppendFact,
    ChangeCwd,
    ChangeMode,
    ChangeModel,
    ChangeReasoning,
    ChangeSetup,
    ChangeTitle,
    CreateTurn,
    EndJob,
    GrantApproval,
    InvalidateCheckpoint,
    LoseJob,
    MakeCheckpoint,
    RejectInput,
    RetryTurn,
    RevokeApproval,
    SetMetadata,
    SettleTurn,
    StartJob,
    SubmitInput,
    Supersede,
    WithdrawInput,
)
from panto.session.ids import is_entity, is_id
from panto.session.refusal import need
from panto.session.state import State, Turn
from panto.session.view import View

Events = tuple[AnyEvent, ...]

WIDE = (Supersede, MakeCheckpoint)
"""Commands that look at the views, so that they are decided only when the views are up to date with the state."""


def decide(state: State, view: View, command: AnyCommand) -> Events:
    """What the command leads to, on this state. Only `WIDE` commands look at the view. Raises Refused."""
    match command:
        case SubmitInput() | WithdrawInput() | RejectInput():
            return (_input(state, command),)
        case CreateTurn() | RetryTurn() | SettleTurn():
            return _turn(state, command)
        case Supersede():
            return _supersede(state, view, command)
        case MakeCheckpoint():
            return (_checkpoint(state, view, command),)
        case InvalidateCheckpoint():
            return (_invalidate(state, command),)
        case StartJob() | EndJob() | LoseJob():
            return (_job(state, command),)
        case GrantApproval() | RevokeApproval():
            return (_grant(state, command),)
        case (
            SetMetadata() | ChangeModel() | ChangeReasoning() | ChangeMode() | ChangeTitle() | ChangeCwd()
            | ChangeSetup() | AppendFact()
        ):  # fmt: skip
            return (_free(state, command),)
        case _:
            return run_machine.decide(state, command)


def _input(state: State, command: SubmitInput | WithdrawInput | RejectInput) -> AnyEvent:
    match command:
        case SubmitInput():
            need(is_id(command.input), "id", f"{command.input!r} is not an id")
            need(command.input not in state.inputs, "exists", f"input {command.input[:8]} was submitted before")
            return InputSubmitted(
                input=command.input, body=command.body, when=command.when, source=command.source
            )
        case WithdrawInput():
            need(command.input in state.inputs, "delivered", f"input {command.input[:8]} is not waiting any more")
            return InputWithdrawn(input=command.input, returned=command.returned)
        case RejectInput():
            need(command.input in state.inputs, "delivered", f"input {command.input[:8]} is not waiting any more")
            return InputRejected(input=command.input, reason=command.reason)
        case _:
            assert_never(command)


def _turn(state: State, command: CreateTurn | RetryTurn | SettleTurn) -> Events:
    turn = state.turn
    if isinstance(command, CreateTurn):
        need(turn is None, "turn", "a turn is open: it must settle first")
        need(is_id(command.turn) and is_id(command.run), "id", "turn and run need ids of their own")
        need(bool(command.inputs), "empty", "a turn starts with at least one input")
        order = [name for name in state.inputs if name in command.inputs]
        accepted = run_machine.accept(state, command.run, command.inputs)
        need(order == list(command.inputs), "order", "a turn takes its inputs in the order of their submission")
        return (
            TurnStarted(turn=command.turn, run=command.run),
            RunCreated(run=command.run, turn=command.turn),
            *accepted,
        )
    failed = _failed_turn(state, command.turn)
    if isinstance(command, SettleTurn):
        need(command.attempt == failed.attempt, "stale", f"attempt {failed.attempt} is the last one")
        return (TurnSettled(turn=failed.turn, status="failed"),)
    need(is_id(command.run) and command.run != failed.run, "id", "the new attempt needs a run of its own")
    need(command.attempt == failed.attempt + 1, "stale", f"attempt {failed.attempt + 1} is next")
    return (
        TurnRetried(turn=failed.turn, run=command.run, attempt=command.attempt),
        RunCreated(run=command.run, turn=failed.turn, attempt=command.attempt),
        *(InputAccepted(run=command.run, input=name, body=body) for name, body in failed.inputs),
    )


def _failed_turn(state: State, turn: str) -> Turn:
    if state.turn is None or state.turn.turn != turn:
        raise Refused("terminal", f"turn {turn[:8]} is not open")
    need(state.turn.status == "attempt_failed", "turn", f"turn {turn[:8]} is active")
    return state.turn


def _supersede(state: State, view: View, command: Supersede) -> Events:
    need(state.run is None, "active", "a run is active or parked: stop it before rewinding")
    gone: list[TurnSuperseded] = []
    for turn in reversed(view.turns):
        if turn.state != "superseded":
            gone.append(TurnSuperseded(turn=turn.turn))
        if turn.turn == command.turn:
            need(turn.state != "superseded", "superseded", f"turn {command.turn[:8]} is superseded already")
            made = [c for c in reversed(state.checkpoints) if c.seq > turn.seq]
            return (*(CheckpointInvalidated(checkpoint=c.checkpoint) for c in made), *gone)
    raise Refused("unknown_turn", f"there is no turn {command.turn[:8]}")


def _quiet(state: State) -> None:
    quiet = state.run is None or (state.run.quiescent and not state.run.interrupting)
    need(quiet, "busy", "a request or a call is under way: compaction waits for it")


def _checkpoint(state: State, view: View, command: MakeCheckpoint) -> AnyEvent:
    _quiet(state)
    run = state.run
    need(not command.automatic or run is None or run.phase == "open", "busy", "only an open run compacts by itself")
    need(command.base == view.context.digest(), "base", "the context has changed since the summary was made")
    view.context.closed(command.retained)
    return CheckpointMade(
        checkpoint=command.checkpoint, base=command.base, summary=command.summary, retained=command.retained,
        usage=command.usage, cost=command.cost, automatic=command.automatic,
    )  # fmt: skip


def _invalidate(state: State, command: InvalidateCheckpoint) -> AnyEvent:
    _quiet(state)
    newest = state.checkpoints[-1].checkpoint if state.checkpoints else ""
    need(newest == command.checkpoint, "order", "only the newest checkpoint can be invalidated")
    return CheckpointInvalidated(checkpoint=command.checkpoint)


def _job(state: State, command: StartJob | EndJob | LoseJob) -> AnyEvent:
    if isinstance(command, StartJob):
        need(is_entity(command.job), "id", f"{command.job!r} cannot name a job")
        need(command.job not in state.jobs, "exists", f"job {command.job} runs already")
        return JobStarted(job=command.job, kind=command.kind, title=command.title, call=command.call)
    need(command.job in state.jobs, "settled", f"job {command.job} does not run")
    if isinstance(command, EndJob):
        return JobEnded(job=command.job, status=command.status, outcome=command.outcome)
    return JobLost(job=command.job)


def _grant(state: State, command: GrantApproval | RevokeApproval) -> AnyEvent:
    if isinstance(command, GrantApproval):
        need(is_entity(command.grant), "id", f"{command.grant!r} cannot name a grant")
        need(command.grant not in state.grants, "exists", f"grant {command.grant[:8]} holds already")
        return ApprovalGranted(grant=command.grant, rule=command.rule)
    need(command.grant in state.grants, "settled", f"grant {command.grant[:8]} does not hold")
    return ApprovalRevoked(grant=command.grant)


def _free(
    state: State,
    command: (
        SetMetadata | ChangeModel | ChangeReasoning | ChangeMode | ChangeTitle | ChangeCwd | ChangeSetup | AppendFact
    ),
) -> AnyEvent:
    need(is_id(command.key), "id", f"{command.key!r} is not an id")
    session = state.session
    match command:
        case SetMetadata():
            need(is_entity(command.message), "id", f"{command.message!r} cannot name a message")
            return MetadataSet(message=command.message, metadata=command.metadata)
        case ChangeModel():
            return ModelChanged(session=session, model=command.model)
        case ChangeReasoning():
            return ReasoningChanged(session=session, reasoning=command.reasoning)
        case ChangeMode():
            return ModeChanged(session=session, mode=command.mode)
        case ChangeTitle():
            return TitleChanged(session=session, title=command.title)
        case ChangeCwd():
            return CwdChanged(session=session, cwd=command.cwd)
        case ChangeSetup():
            return SetupChanged(session=session, setup=command.setup)
        case AppendFact():
            need(is_entity(command.owner), "id", f"{command.owner!r} cannot name an extension")
            return ExtensionAppended(owner=command.owner, kind=command.kind, value=command.value)
        case _:
            assert_never(command)
