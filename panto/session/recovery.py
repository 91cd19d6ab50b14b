"""What opening a session may record by itself, and what a new prompt to a parked turn records first. Pure.

Nothing here sends or runs anything: it only says what is known of what was under way.
"""

from __future__ import annotations

from collections.abc import Mapping

from panto.session.commands import (
    AnyCommand,
    DeclineCall,
    DeliverInputs,
    FailCall,
    LoseJob,
    RecoverModel,
    StopRun,
    SubmitCallResult,
    WithdrawStep,
)
from panto.session.run_machine import CANCELLED
from panto.session.state import Call, Run, State

Settlement = SubmitCallResult | FailCall

LOST = "panto ended while this ran; whether it took effect is unknown"


def recovery(state: State, outcomes: Mapping[str, Settlement] | None = None) -> tuple[AnyCommand, ...]:
    """What opening records: lost jobs, and for an active run what became of its model step and executing calls.

    `outcomes`: settlements that were stored but not committed, by effect. An interrupted run is ended. Replay-safe
    calls stay executing: they run again, under the same effect, when the turn is continued. Run again on the state
    that results, this gives nothing.
    """
    lost = tuple(LoseJob(job=name) for name in state.jobs)
    run = state.run
    if run is None:
        return lost
    settled = _settlements(run, outcomes or {})
    if run.interrupting:
        return (*lost, *settled, StopRun(run=run.run))
    if run.phase == "executing":
        return (*lost, RecoverModel(run=run.run, effect=run.effect))
    known = {command.call for command in settled}
    unknown = tuple(
        _unknown(run, call)
        for call in run.calls.values()
        if call.state == "executing" and not call.replay and call.call not in known
    )
    return (*lost, *settled, *unknown)


def abandon(state: State, inputs: tuple[str, ...]) -> tuple[AnyCommand, ...]:
    """What a prompt to a parked turn records before anything is planned: its `inputs` are submitted already.

    Every unfinished call ends (pending and waiting: known, cancelled; executing, replay-safe too: unknown), the inputs
    are delivered to the same run, and a prepared request is withdrawn. Nothing where no run is active.
    """
    run = state.run
    if run is None:
        return ()
    ended = tuple(
        _unknown(run, call)
        if call.state == "executing"
        else DeclineCall(run=run.run, call=call.call, cls="cancelled", message=CANCELLED)
        for call in run.unfinished
    )
    recovered = (RecoverModel(run=run.run, effect=run.effect),) if run.phase == "executing" else ()
    delivered = (DeliverInputs(run=run.run, inputs=inputs),) if inputs else ()
    withdrawn = (WithdrawStep(run=run.run, position=run.prepared_at),) if run.phase == "prepared" and inputs else ()
    return (*recovered, *ended, *delivered, *withdrawn)


def _settlements(run: Run, outcomes: Mapping[str, Settlement]) -> tuple[Settlement, ...]:
    return tuple(
        outcomes[call.effect]
        for call in run.calls.values()
        if call.state == "executing" and call.effect in outcomes
    )


def _unknown(run: Run, call: Call) -> FailCall:
    return FailCall(
        run=run.run, call=call.call, effect=call.effect, cls="internal", message=LOST, outcome="unknown",
        effects="unknown", cause="crash",
    )  # fmt: skip
