"""The run machine, pure: what a command leads to, or why not.

    Open -> prepared -> executing -> (calls: tools -> Open) | Open (inputs wait) | ended
"""

from __future__ import annotations

from typing import assert_never

from panto.schema.events import (
    AnyEvent,
    Cause,
    Effects,
    InputAccepted,
    InputWithdrawn,
    InterruptRequested,
    ModelStepCompleted,
    ModelStepPrepared,
    ModelStepRecovered,
    ModelStepRejected,
    ModelStepStarted,
    ModelStepWithdrawn,
    ResultSuperseded,
    RunEnded,
    ToolCallFailed,
    ToolStepOpened,
    TurnAttemptFailed,
    TurnSettled,
    TurnStopped,
)
from panto.session import call_machine
from panto.session.ids import call_id
from panto.session.refusal import need, the_run
from panto.session.run_commands import (
    CallCommand,
    DeliverInputs,
    FailModel,
    FailRun,
    PrepareStep,
    RecoverModel,
    RejectResult,
    RequestInterrupt,
    RunCommand,
    StartModel,
    StopRun,
    SubmitResult,
    SupersedeResult,
    WithdrawStep,
)
from panto.session.state import REJECT_LIMIT, Run, State

Events = tuple[AnyEvent, ...]

CANCELLED = "cancelled by user"
UNCERTAIN = "cancelled by user; it may have had effects"


def decide(state: State, command: RunCommand) -> Events:
    """The events of a run command. Raises Refused."""
    match command:
        case DeliverInputs():
            return _deliver(state, command)
        case PrepareStep() | WithdrawStep() | StartModel() | RecoverModel():
            return (_before_result(state, command),)
        case SubmitResult():
            return _submit(state, command)
        case FailModel():
            run = the_run(state, command.run)
            _model_executes(run, command.effect)
            ended = RunEnded(
                run=run.run, status="failed", failed=command.reason, error_kind=command.error_kind,
                message=command.message, uncertain=run.uncertain,
            )  # fmt: skip
            return (ended, TurnAttemptFailed(turn=run.turn, run=run.run))
        case RejectResult():
            return _reject(state, command)
        case FailRun():
            run = the_run(state, command.run)
            failed, uncertain = _end_calls(run, command.message, command.message, cause="exception")
            ended = RunEnded(
                run=run.run, status="failed", failed=command.reason, message=command.message, uncertain=uncertain
            )
            return (*failed, ended, TurnAttemptFailed(turn=run.turn, run=run.run))
        case SupersedeResult():
            return _verify(state, command)
        case RequestInterrupt():
            return (InterruptRequested(run=the_run(state, command.run).run),)
        case StopRun():
            return _stop(state, command)
        case _:
            return (call_machine.decide(the_run(state, command.run, interrupting=True), command),)


def _deliver(state: State, command: DeliverInputs) -> Events:
    run = the_run(state, command.run)
    need(bool(command.inputs), "empty", "no input to deliver")
    accepted = accept(state, run.run, command.inputs)
    for name in command.inputs:
        need(state.inputs[name].when == "step", "queued", f"input {name[:8]} waits for the next turn")
    return accepted


def accept(state: State, run: str, inputs: tuple[str, ...]) -> Events:
    """input_accepted for submitted inputs. Raises Refused for a repeated or unknown one."""
    need(len(set(inputs)) == len(inputs), "repeated", "an input is named twice")
    for name in inputs:
        need(name in state.inputs, "delivered", f"input {name[:8]} is not waiting for delivery")
    return tuple(InputAccepted(run=run, input=name, body=state.inputs[name].body) for name in inputs)


def _before_result(state: State, command: PrepareStep | WithdrawStep | StartModel | RecoverModel) -> AnyEvent:
    run = the_run(state, command.run)
    match command:
        case PrepareStep():
            need(run.phase == "open", "phase", f"the run is {run.phase}, not open")
            need(command.position == run.position, "stale", "the run has moved on since the request was planned")
            need(command.inputs == run.pending, "inputs", "a request consumes all pending inputs, in order")
            return ModelStepPrepared(run=run.run, step=run.step, request=command.request, inputs=command.inputs)
        case WithdrawStep():
            need(run.phase == "prepared", "phase", f"the run is {run.phase}, not prepared")
            need(command.position == run.prepared_at, "stale", "another request is prepared")
            need(bool(run.pending), "inputs", "no input waits: the prepared request stands")
            return ModelStepWithdrawn(run=run.run, step=run.step)
        case StartModel():
            need(run.phase == "prepared", "phase", f"the run is {run.phase}, not prepared")
            need(not run.pending, "inputs", "input waits: withdraw the prepared request first")
            need(command.effect == run.next_effect, "effect", "not the effect that follows from run and step")
            return ModelStepStarted(run=run.run, step=run.step, effect=command.effect)
        case RecoverModel():
            _model_executes(run, command.effect)
            return ModelStepRecovered(run=run.run, step=run.step, effect=command.effect)
        case _:
            assert_never(command)


def _model_executes(run: Run, effect: str) -> None:
    need(run.phase == "executing", "phase", f"the run is {run.phase}, no model call executes")
    need(run.effect == effect, "effect", "the model call executes under another effect")


def _submit(state: State, command: SubmitResult) -> Events:
    run = the_run(state, command.run)
    _model_executes(run, command.effect)
    _bindings(run, command)
    done = ModelStepCompleted(
        run=run.run, step=run.step, effect=command.effect, result=command.result, usage=command.usage, cost=command.cost
    )
    opened = ToolStepOpened(run=run.run, step=run.step, calls=command.calls, parallel=command.parallel)
    if not command.dispatch:
        unresolved = tuple(
            ToolCallFailed(run=run.run, call=c.call, outcome="known", cls="not_dispatched", message="not dispatched")
            for c in command.calls
        )
        return (done, *((opened,) if command.calls else ()), *unresolved, *_completed(run))
    if command.calls:
        return (done, opened)
    return (done,) if run.pending else (done, *_completed(run))


def _bindings(run: Run, command: SubmitResult) -> None:
    need(len(command.calls) == len(command.names), "bindings", "the bindings do not match the calls of the result")
    for index, (bound, name) in enumerate(zip(command.calls, command.names, strict=True)):
        right = bound.name == name and bound.index == index and bound.call == call_id(run.run, run.step, index)
        need(right, "bindings", f"the binding of call {index} ({name}) does not match the result")
    need(command.parallel >= 1, "bindings", "at least one call must be allowed at once")


def _completed(run: Run) -> Events:
    ended = RunEnded(run=run.run, status="completed", uncertain=run.uncertain)
    return (ended, TurnSettled(turn=run.turn, status="refused" if run.unattended else "completed"))


def _reject(state: State, command: RejectResult) -> Events:
    run = the_run(state, command.run)
    _model_executes(run, command.effect)
    rejected = ModelStepRejected(
        run=run.run, step=run.step, effect=command.effect, problem=command.problem, result=command.result
    )
    if run.rejects + 1 < REJECT_LIMIT:
        return (rejected,)
    ended = RunEnded(
        run=run.run, status="failed", failed="malformed", error_kind="malformed",
        message=command.problem, uncertain=run.uncertain,
    )  # fmt: skip
    return (rejected, ended, TurnAttemptFailed(turn=run.turn, run=run.run))


def _verify(state: State, command: SupersedeResult) -> Events:
    turn = state.turn
    known = turn is not None and command.call in turn.unknown
    need(known, "verified", f"call {command.call[:8]} has no unknown result in a turn that is still open")
    if state.run is not None:
        need(not state.run.interrupting, "interrupting", "the run is being interrupted")
    return (ResultSuperseded(run=command.run, call=command.call, outcome=command.outcome),)


def _end_calls(run: Run, known: str, unknown: str, cause: Cause) -> tuple[tuple[AnyEvent, ...], tuple[str, ...]]:
    """Every unfinished call made terminal, and the run's uncertain list with them."""
    events: list[AnyEvent] = []
    uncertain = run.uncertain
    for call in run.unfinished:
        runs = call.state == "executing"
        effects: Effects = "unknown" if runs else "none"
        failed = ToolCallFailed(
            run=run.run, call=call.call, outcome="unknown" if runs else "known", cls="cancelled",
            message=unknown if runs else known, effect=call.effect, effects=effects, cause=cause,
        )  # fmt: skip
        events.append(failed)
        uncertain += (call.call,) if runs else ()
    return tuple(events), uncertain


def _stop(state: State, command: StopRun) -> Events:
    run = the_run(state, command.run, interrupting=True)
    failed, uncertain = _end_calls(run, command.message or CANCELLED, command.message or UNCERTAIN, "interrupted")
    ended = RunEnded(
        run=run.run, status="stopped", stopped=command.reason, message=command.message,
        uncertain=uncertain, text=command.text,
    )  # fmt: skip
    withdrawn = tuple(InputWithdrawn(input=name) for name in state.inputs)
    return (*failed, ended, TurnStopped(turn=run.turn, reason=command.reason), *withdrawn)


__all__ = ["CANCELLED", "UNCERTAIN", "CallCommand", "accept", "decide"]
