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
import time

from panto.agent import live, steps
from panto.agent.dispatch import Step
from panto.agent.ports import Control, Ports
from panto.schema.errors import ProviderError, Refused, UsageError
from panto.session.commands import PrepareStep, StartModel, StopRun, WithdrawStep
from panto.session.state import Run

PATIENCE = 3
"""Refusals in a row without progress after which the loop gives up (R44)."""


async def drive(ports: Ports, control: Control) -> None:
    """Drive the session's active run until it has ended, or is parked.

    Raises UsageError where the model is not available, SessionError where the ledger cannot be written; everything
    committed stays, and a later drive goes on.
    """
    while (run := ports.session.state.run) is not None:
        try:
            if control.parking:
                return await steps.park(ports, run)
            if run.interrupting:
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
        except Refused:  # something else was committed meanwhile: look again
            control.refusals += 1
            if control.refusals >= PATIENCE:
                raise


async def plan(ports: Ports, control: Control, settled: Step) -> None:
    """Freeze the next request and send it off, in one commit with the settlements that made it due."""
    setup = ports.setup()
    deliver = steps.deliveries(ports.session.state, control)
    preview = ports.session.preview(*settled.commands, *deliver)
    run, view = preview.state.run, preview.view
    if run is None or run.phase != "open":  # calls of this step are still due
        return await steps.commit_end(ports, setup, settled)
    limit = steps.limit_reached(control, run, view, setup)
    if limit is not None:
        stopped = StopRun(run=run.run, reason=limit[0], message=limit[1])
        await ports.session.commit(*settled.commands, stopped, bodies=settled.bodies)
        return
    frozen = await ports.context.freeze(view.context, setup, run.turn, settled.bodies)
    if await steps.detour(ports, control, setup, settled, run, frozen.request):
        return
    prepare = PrepareStep(run=run.run, position=run.position, request=frozen.manifest.digest, inputs=run.pending)
    start = StartModel(run=run.run, effect=run.next_effect)
    due = (*settled.commands, *deliver, prepare, start)
    await ports.session.commit(*due, bodies=(*settled.bodies, *frozen.bodies))
    ports.context.recorded(frozen)


async def begin(ports: Ports, control: Control, run: Run) -> None:
    """Send a request that was frozen before a crash or without a model; drop it where input came meanwhile."""
    deliver = steps.deliveries(ports.session.state, control)
    if deliver or run.pending:
        await ports.session.commit(*deliver, WithdrawStep(run=run.run, position=run.prepared_at))
        return
    ports.setup()
    await ports.session.commit(StartModel(run=run.run, effect=run.next_effect))


async def model_step(ports: Ports, control: Control, run: Run) -> None:
    """Stream one reply and settle the step: its calls are due, the run ends, or another step follows."""
    setup = ports.setup()
    streamed = live.Live(ports, run.step)
    request = await ports.context.request(run)
    reply = asyncio.ensure_future(live.ask(ports, control, setup, request, streamed))
    try:
        await steps.first(reply, control.interrupt)
        control.kept = streamed.text()
        if reply.done():
            await steps.settle_reply(ports, control, setup, run, reply.result())
            control.kept = ""
    except ProviderError as error:
        await steps.settle_failure(ports, control, setup, run, error)
    finally:
        await steps.ended(reply)


async def tool_step(ports: Ports, control: Control) -> None:
    """Run the step's calls to their ends, at once where they do not change the same file, each settled by itself."""
    running: dict[str, asyncio.Task[Step]] = {}
    try:
        while (run := ports.session.state.run) is not None and run.phase == "tools":
            control.changed.clear()
            ending = run.interrupting or control.parking
            if not ending and await steps.open_calls(ports, control, run):
                continue
            for call in () if ending else run.unfinished:
                if call.state == "executing" and call.call not in running:
                    running[call.call] = steps.launch(ports, control, run, call)
            done = [name for name, task in running.items() if task.done()]
            if done:
                await settle(ports, control, [running.pop(name).result() for name in done])
            elif ending and (not running or time.monotonic() >= (control.deadline or 0)):
                return
            else:
                await steps.any_of(running.values(), control)
    finally:
        for task in running.values():
            await steps.ended(task)


async def settle(ports: Ports, control: Control, settled: list[Step]) -> None:
    """Commit settlements; where they close the step, together with the next request."""
    step = Step(tuple(c for s in settled for c in s.commands), tuple(b for s in settled for b in s.bodies))
    steps.learn(control, step)
    try:
        if control.parking or control.interrupt.is_set():
            raise Refused("interrupting", "no request is planned any more")
        await plan(ports, control, step)
    except (Refused, UsageError):  # an interrupt, another fact, no model: the settlements stand by themselves
        await ports.session.commit(*step.commands, bodies=step.bodies)


async def stop(ports: Ports, control: Control, run: Run) -> None:
    """End an interrupted run: every call terminal and the turn settled in the same commit, streamed text kept."""
    kept, bodies = steps.kept_text(control)
    await ports.session.commit(StopRun(run=run.run, reason="cancelled", text=kept), bodies=bodies)
