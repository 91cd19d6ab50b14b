"""One turn of one agent. Read this file first.

The session's machine says where the run stands; each round of the loop takes the next step and commits it. So a run
that was killed anywhere goes on from here as if nothing had happened: there is no other state.

    open       fold the session into a request, freeze it, send it                 `plan`
    prepared   a frozen request that never left: send it, unless input came         `begin`
    executing  stream the reply; one commit settles it and opens its calls          `model_step`
    tools      review, start, run and settle each call                              `tool_step`
    interrupting, once nothing runs any more: end the run, keep what was streamed   `stop`
"""

from __future__ import annotations

import asyncio
import contextlib

from panto.agent import live, parking, steps, waiting
from panto.agent.dispatch import Step
from panto.agent.ports import Control, Ports
from panto.schema.errors import ProviderError, Refused, StorageFailed, UsageError
from panto.session.commands import PrepareStep, RecoverModel, StartModel, StopRun, WithdrawStep
from panto.session.state import Run


async def drive(ports: Ports, control: Control) -> None:
    """Drive the session's active run until it has ended, or is parked.

    Raises UsageError where the model is not available, SessionError where the ledger cannot be written; everything
    committed stays, and a later drive goes on.
    """
    while (run := ports.session.state.run) is not None:
        try:
            if control.parking:
                return await parking.park(ports, control, run)
            if run.interrupting or control.limit:
                await stop(ports, control, run)
            elif run.phase == "open":
                await plan(ports, control, Step(()))
            elif run.phase == "prepared":
                await begin(ports, control, run)
            elif run.phase == "executing":
                await model_step(ports, control, run)
            else:
                await tool_step(ports, control)
            control.refusals = 0
        except Refused as refusal:
            steps.refused(control, refusal)


async def plan(ports: Ports, control: Control, settled: Step) -> None:
    """Freeze the next request and send it off, in one commit with the settlements that made it due."""
    setup = ports.setup()
    deliver = steps.deliveries(ports.session.state, control)
    preview = ports.session.preview(*settled.commands, *deliver)
    run, view = preview.state.run, preview.view
    if run is None or run.phase != "open":  # the settlements ended the run
        return await steps.commit_end(ports, settled)
    if (limit := steps.limit_reached(control, run, view, setup)) is not None:
        await ports.session.commit(*settled.commands, limit, bodies=settled.bodies)
        return
    frozen = await ports.context.freeze(view.context, setup, run.turn, settled.bodies)
    if await steps.detour(ports, control, setup, settled, run, frozen):
        return
    prepare = PrepareStep(run=run.run, position=run.position, request=frozen.manifest.digest, inputs=run.pending)
    start = StartModel(run=run.run, effect=run.next_effect)
    due = (*settled.commands, *deliver, prepare, start)
    await ports.session.commit(*due, bodies=(*settled.bodies, *frozen.bodies))
    ports.context.recorded(frozen)


async def begin(ports: Ports, control: Control, run: Run) -> None:
    """Send a request that was frozen and never left; drop it where input came meanwhile."""
    if (deliver := steps.deliveries(ports.session.state, control)) or run.pending:
        await ports.session.commit(*deliver, WithdrawStep(run=run.run, position=run.prepared_at))
        return
    ports.setup()
    await ports.session.commit(StartModel(run=run.run, effect=run.next_effect))


async def model_step(ports: Ports, control: Control, run: Run) -> None:
    """Stream one reply and settle the step: its calls are due, the run ends, or another step follows."""
    setup = ports.setup()
    request = ports.context.request(run, setup)
    if request is None:  # it was meant for another model, or frozen in a former life: plan again
        await ports.session.commit(RecoverModel(run=run.run, effect=run.effect))
        return
    streamed = live.Live(ports, run.step)
    reply = asyncio.ensure_future(live.ask(ports, control, setup, request, streamed))
    try:
        await waiting.first(reply, control.interrupt)
        control.kept = streamed.text()
        if reply.done():
            await steps.settle_reply(ports, control, setup, run, reply.result())
            control.kept = ""
    except ProviderError as error:
        await steps.settle_failure(ports, control, run, error)
    finally:
        streamed.over = True
        await waiting.ended(reply)


async def tool_step(ports: Ports, control: Control) -> None:
    """Run the step's calls, at once where they do not change the same file; each settles by itself.

    Where nothing can be planned or written any more, what runs still ends; then the error is raised.
    """
    problem: UsageError | StorageFailed | None = None
    try:
        while (run := ports.session.state.run) is not None and run.phase == "tools":
            control.changed.clear()
            ending = problem is not None or run.interrupting or control.ending
            try:
                if not ending and await steps.open_calls(ports, control, run):
                    continue
                if done := steps.done(control, run):
                    await settle(ports, control, run, done)
                elif ending and (not control.running or control.late):
                    break
                else:
                    await waiting.any_of(control)
                control.refusals = 0
            except Refused as refusal:
                steps.refused(control, refusal)
            except (UsageError, StorageFailed) as error:
                problem = error
    finally:
        await steps.let_go(control)
    if problem is not None:
        raise problem


async def settle(ports: Ports, control: Control, run: Run, step: Step) -> None:
    """Commit settlements; where they close the step, together with the next request."""
    try:
        if not control.ending and steps.last(run, step):
            with contextlib.suppress(Refused, UsageError):  # an interrupt, another fact, no model: they stand alone
                return await plan(ports, control, step)
        await steps.settle(ports, step)
    except StorageFailed as failure:
        await steps.keep(ports, control, step, failure)
        raise


async def stop(ports: Ports, control: Control, run: Run) -> None:
    """End a run that is to stop: every call terminal and the turn settled in the same commit, streamed text kept."""
    kept, bodies = steps.kept_text(control)
    reason, message = control.limit if control.limit and not run.interrupting else ("cancelled", "")
    end = StopRun(run=run.run, reason=reason, text=kept, message=message)
    await ports.session.commit(*parking.never_run(control, run), end, bodies=bodies)
