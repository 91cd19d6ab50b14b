"""One call of a tool step, pure: Pending -> Executing or Waiting -> terminal, each way once."""

from __future__ import annotations

from typing import assert_never

from panto.schema.events import (
    AnyEvent,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
)
from panto.session.refusal import executing, need, the_call, waiting
from panto.session.run_commands import (
    AnswerCall,
    ApproveCall,
    CallCommand,
    DeclineCall,
    FailCall,
    HoldCall,
    RejectAnswer,
    RejectCall,
    StartCall,
    SubmitCallResult,
)
from panto.session.state import Run

DECLINES = ("not_found", "invalid_input", "permission_denied", "not_dispatched", "cancelled")


def decide(run: Run, command: CallCommand) -> AnyEvent:
    """The event of a call command on the active run. Raises Refused.

    While the run is being interrupted only settlements of executing calls are accepted.
    """
    match command:
        case SubmitCallResult():
            executing(run, command.call, command.effect)
            return ToolCallCompleted(
                run=run.run, call=command.call, effect=command.effect, outcome=command.outcome,
                duration_ms=command.duration_ms, files=command.files,
            )  # fmt: skip
        case FailCall():
            executing(run, command.call, command.effect)
            return ToolCallFailed(
                run=run.run, call=command.call, outcome=command.outcome, cls=command.cls, message=command.message,
                effect=command.effect, effects=command.effects, cause=command.cause,
                outcome_digest=command.outcome_digest, duration_ms=command.duration_ms, files=command.files,
            )  # fmt: skip
        case StartCall() | DeclineCall() | HoldCall():
            need(not run.interrupting, "interrupting", f"run {run.run[:8]} is being interrupted")
            return _pending(run, command)
        case ApproveCall() | RejectCall() | AnswerCall() | RejectAnswer():
            need(not run.interrupting, "interrupting", f"run {run.run[:8]} is being interrupted")
            return _waiting(run, command)
        case _:
            assert_never(command)


def _pending(run: Run, command: StartCall | DeclineCall | HoldCall) -> AnyEvent:
    match command:
        case StartCall():
            call = the_call(run, command.call, "pending")
            right = command.effect == run.call_effect(command.call)
            need(right, "effect", "the effect is not the one that follows from run, step and call")
            changed = call.arguments is None or call.arguments == command.arguments or bool(command.changed_by)
            need(changed, "arguments", "what is run is not what was approved")
            return ToolCallStarted(
                run=run.run, call=command.call, effect=command.effect, arguments=command.arguments,
                replay=command.replay, changed_by=command.changed_by or call.changed_by,
            )  # fmt: skip
        case DeclineCall():
            # A prompt to a parked turn also ends calls that wait for a person: known, cancelled.
            states = ("pending", "waiting") if command.cls == "cancelled" else ("pending",)
            the_call(run, command.call, *states)
            need(command.cls in DECLINES, "class", f"a call is not declined as {command.cls}")
            return ToolCallFailed(
                run=run.run, call=command.call, outcome="known", cls=command.cls, message=command.message,
                cause="interrupted" if command.cls == "cancelled" else "tool", outcome_digest=command.outcome,
                unattended=command.unattended,
            )  # fmt: skip
        case HoldCall():
            the_call(run, command.call, "pending")
            return ToolCallHeld(run=run.run, call=command.call, kind=command.kind, question=command.question)
        case _:
            assert_never(command)


def _waiting(run: Run, command: ApproveCall | RejectCall | AnswerCall | RejectAnswer) -> AnyEvent:
    match command:
        case ApproveCall():
            waiting(run, command.call, "approval", command.question)
            return ToolCallApproved(
                run=run.run, call=command.call, arguments=command.arguments, changed_by=command.changed_by
            )
        case RejectCall():
            waiting(run, command.call, "approval", command.question)
            return ToolCallFailed(
                run=run.run, call=command.call, outcome="known", cls="permission_denied", message=command.message,
                unattended=command.unattended,
            )  # fmt: skip
        case AnswerCall():
            waiting(run, command.call, "external", command.question)
            return ToolCallAnswered(run=run.run, call=command.call, outcome=command.outcome)
        case RejectAnswer():
            waiting(run, command.call, "external", command.question)
            return ToolCallFailed(
                run=run.run, call=command.call, outcome="known", cls="response_rejected", message=command.message,
                unattended=command.unattended,
            )  # fmt: skip
        case _:
            assert_never(command)
