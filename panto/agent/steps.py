"""What the loop's steps are made of: deliveries, limits, openings, settlements, and waiting for several things."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from panto.agent import compaction
from panto.agent.dispatch import Step, hold, review, run_call
from panto.agent.loop_guard import WARNING
from panto.agent.ports import Control, Ports, Setup
from panto.schema.bodies import MessageBody, Question, ResultBody, TextBody
from panto.schema.codec import Digest, canonical, loads
from panto.schema.errors import ProviderError, Refused
from panto.schema.events import StopReason
from panto.schema.messages import ModelResult, Request
from panto.schema.signals import Noticed
from panto.session import Staged, stage
from panto.session.command import Command
from panto.session.commands import (
    DeliverInputs,
    FailCall,
    FailModel,
    RecoverModel,
    RejectResult,
    SettleTurn,
    StartCall,
    StopRun,
    SubmitCallResult,
    SubmitInput,
    SubmitResult,
)
from panto.session.ids import new_id
from panto.session.state import Call, Run, State
from panto.session.view import View

OVERFLOWS = 2
"""Times in a row that a reply may fail for want of room before the run fails."""


def deliveries(state: State, control: Control) -> tuple[Command, ...]:
    """Submitted inputs that join the running turn now: those that do not wait for the turn's end."""
    due = tuple(name for name, said in state.inputs.items() if said.when == "step")
    if not due or state.run is None:
        return ()
    control.circles.heard()
    return (DeliverInputs(run=state.run.run, inputs=due),)


def limit_reached(control: Control, run: Run, view: View, setup: Setup) -> tuple[StopReason, str] | None:
    """The limit that ends the run now, and how to say it."""
    limits, base = setup.limits, control.base
    if limits.steps and run.done >= limits.steps:
        return "steps", f"stopped after {run.done} steps (limits.steps)"
    used = view.usage.input + view.usage.output - base.tokens
    if limits.tokens and used >= limits.tokens:
        return "budget", f"stopped after {used} tokens of a budget of {limits.tokens}"
    cost = (view.cost or 0.0) - base.cost
    if limits.cost and cost >= limits.cost:
        return "budget", f"stopped after ${cost:.2f} of a budget of ${limits.cost:.2f}"
    if limits.seconds and time.monotonic() - base.time >= limits.seconds:
        return "budget", f"stopped after {limits.seconds:g} s"
    return None


async def detour(ports: Ports, control: Control, setup: Setup, settled: Step, run: Run, request: Request) -> bool:
    """Whether something comes before this request (settlements are then committed): a summary, extensions' words."""
    crowded = compaction.due(ports, control, setup, request)
    if settled.commands and (crowded or ports.hooks.watches("context")):
        await ports.session.commit(*settled.commands, bodies=settled.bodies)
        return True
    if crowded:
        await compaction.automatic(ports, control, setup)
        return True
    return await add_context(ports, control, run)


async def add_context(ports: Ports, control: Control, run: Run) -> bool:
    """Once a step, let extensions add to the context; what they add is recorded like any input."""
    if not ports.hooks.watches("context") or control.asked_context == (run.run, run.step):
        return False
    control.asked_context = (run.run, run.step)
    added = [stage(MessageBody(message)) for message in await ports.hooks.context(ports.session.id)]
    if not added:
        return False
    inputs = {new_id(): body for body in added}
    submitted = [SubmitInput(input=name, body=b.digest, source="extension") for name, b in inputs.items()]
    deliver = DeliverInputs(run=run.run, inputs=tuple(inputs))
    await ports.session.commit(*submitted, deliver, bodies=tuple(added))
    return True


# --- the model's reply ------------------------------------------------------------------------------------------


def malformed(result: ModelResult) -> str:
    """Why a result cannot stand ("" it can)."""
    if result.calls() or result.text().strip() or result.finish.reason in ("length", "content_filter"):
        return ""
    return "the reply held neither text nor a tool call"


async def settle_reply(ports: Ports, control: Control, setup: Setup, run: Run, result: ModelResult) -> None:
    """Record the reply, and in the same commit what starts at once because of it."""
    body = stage(ResultBody(result))
    problem = malformed(result)
    if problem:
        reject = RejectResult(run=run.run, effect=run.effect, problem=problem, result=body.digest)
        await commit_end(ports, setup, Step((reject,), (body,)))
        return
    mutating = frozenset(
        call.name for call in result.calls() if (tool := ports.tool(call.name)) is None or tool.mutates
    )
    submit = SubmitResult.of(
        run.run, run.step, run.effect, result, body.digest, mutating=mutating, parallel=setup.parallel,
        dispatch=setup.dispatch,
    )  # fmt: skip
    first: tuple[Command, ...] = (submit,)
    if not result.calls():
        first = (*deliveries(ports.session.state, control), submit)
    opened = Step(())
    if result.calls() and setup.dispatch and not ports.hooks.watches("tool_call"):
        preview = ports.session.preview(*first)
        if preview.state.run is not None:
            opened = await _openings(ports, control, setup, preview.state.run, result)
    try:
        await ports.session.commit(*first, *opened.commands, bodies=(body, *opened.bodies))
    except Refused:
        if not opened.commands:
            raise
        await ports.session.commit(*first, bodies=(body,))
    control.overflows = 0
    odd = ports.context.measure(result.usage, setup)
    if odd:
        hint = f"Give it a larger context, or set context of {setup.model.label} to what it really has."
        ports.signal(Noticed(ports.session.id, f"{odd}: the rest was cut off", "attention", hint))


async def settle_failure(ports: Ports, control: Control, setup: Setup, run: Run, error: ProviderError) -> None:
    """A reply that will not come: make room and plan again, or fail the run."""
    if error.kind == "overflow" and control.overflows < OVERFLOWS:
        control.overflows += 1
        control.crowded = True
        await ports.session.commit(RecoverModel(run=run.run, effect=run.effect))
        return
    message = f"{error.message}\n{error.hint}" if error.hint else error.message
    failed = FailModel(
        run=run.run, effect=run.effect, message=message, error_kind=error.kind,
        reason="context" if error.kind == "overflow" else "provider",
    )  # fmt: skip
    await commit_end(ports, setup, Step((failed,)))


def learn(control: Control, step: Step) -> None:
    """What the loop guard learns from settlements: which calls really changed something."""
    for command in step.commands:
        if isinstance(command, SubmitCallResult | FailCall) and any(f.before != f.after for f in command.files):
            control.circles.changed(command.call)


async def commit_end(ports: Ports, setup: Setup, step: Step) -> None:
    """Commit what may end the run; where nobody retries by hand, a failed turn settles in the same commit."""
    turn = ports.session.preview(*step.commands).state.turn
    over: tuple[Command, ...] = ()
    if turn is not None and turn.status == "attempt_failed" and not setup.retried_by_hand:
        over = (SettleTurn(turn=turn.turn, attempt=turn.attempt),)
    await ports.session.commit(*step.commands, *over, bodies=step.bodies)


# --- tool calls -------------------------------------------------------------------------------------------------


async def open_calls(ports: Ports, control: Control, run: Run) -> bool:
    """Start, decline or hold the pending calls that are due; whether anything was committed."""
    if all(call.state != "pending" for call in run.unfinished):
        return False
    body = await ports.session.body(run.result or "")
    assert isinstance(body, ResultBody)
    setup = ports.setup()
    opened = await _openings(ports, control, setup, run, body.result)
    if not opened.commands:
        return False
    await ports.session.commit(*opened.commands, bodies=opened.bodies)
    return True


def launch(ports: Ports, control: Control, run: Run, call: Call) -> asyncio.Task[Step]:
    """Start running an executing call."""
    note = WARNING if call.call in control.circles.warned else ""
    return asyncio.create_task(run_call(ports, run, call, note))


def guarded(ports: Ports, control: Control, setup: Setup, run: Run, call: Call, step: Step) -> Step:
    """The loop guard's word on a call that would start: let it, hold it for a person, or end the run."""
    tool = ports.tool(call.name)
    if not isinstance(step.commands[0], StartCall) or tool is None:
        return step
    body = step.bodies[0].value
    assert isinstance(body, TextBody)
    arguments = canonical(loads(body.text or "{}")).decode("utf-8")
    if call.approved:
        control.circles.count(call.call, call.name, arguments, tool.mutates)
        return step
    if control.circles.start(call.call, call.name, arguments, tool.mutates, setup.repeat) != "hold":
        return step
    reason = f"{call.name} was called like this {setup.repeat} times and nothing has changed since"
    if not setup.attended:
        return Step((StopRun(run=run.run, reason="loop_guard", message=f"going round in circles: {reason}"),))
    question = Question("approval", call.name, "the same call again", reason, body.text, child=ports.child)
    return hold(run, call, "approval", question)


async def _openings(ports: Ports, control: Control, setup: Setup, run: Run, result: ModelResult) -> Step:
    """Openings of pending calls, each reviewed once; a call waits while another changes the same file."""
    busy = {path for call in run.unfinished if call.state == "executing" for path in control.paths.get(call.call, ())}
    room = run.parallel - sum(call.state == "executing" for call in run.unfinished)
    commands: list[Command] = []
    bodies: list[Staged] = []
    for call in run.unfinished:
        if call.state != "pending":
            continue
        step = control.reviewed.get(call.call)
        if step is None or call.approved != control.approved.get(call.call, False):
            step = await review(ports, setup, run, call, result)
            step = guarded(ports, control, setup, run, call, step)
            if isinstance(step.commands[0], StopRun):
                return step
            control.reviewed[call.call], control.approved[call.call] = step, call.approved
        if isinstance(step.commands[0], StartCall):
            if room <= 0 or busy & step.paths:
                continue
            room -= 1
            busy |= step.paths
            control.paths[call.call] = step.paths
        commands.extend(step.commands)
        bodies.extend(step.bodies)
    return Step(tuple(commands), tuple(bodies))


async def park(ports: Ports, run: Run) -> None:
    """Record what became of what ran, and leave the run active: a model step is open again, a call is unknown."""
    commands: list[Command] = []
    if run.phase == "executing":
        commands.append(RecoverModel(run=run.run, effect=run.effect))
    for call in run.unfinished:
        if call.state == "executing" and not call.replay:
            commands.append(
                FailCall(
                    run=run.run, call=call.call, effect=call.effect, cls="cancelled", outcome="unknown",
                    message="panto was closed while this ran", effects="unknown", cause="interrupted",
                )  # fmt: skip
            )
    if commands:
        await ports.session.commit(*commands)


# --- the end, and waiting ---------------------------------------------------------------------------------------


def kept_text(control: Control) -> tuple[Digest | None, tuple[Staged, ...]]:
    """Text streamed by a step that was stopped, ready to be recorded; nothing where it is blank."""
    text, control.kept = control.kept, ""
    if not text.strip():
        return None, ()
    body = stage(TextBody(text))
    return body.digest, (body,)


async def first(reply: asyncio.Future[ModelResult], interrupt: asyncio.Event) -> None:
    """Wait until the reply is there or an interrupt came."""
    waiting = asyncio.ensure_future(interrupt.wait())
    try:
        await asyncio.wait((reply, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def any_of(tasks: Iterable[asyncio.Task[Step]], control: Control) -> None:
    """Wait until a task is done, something changed outside, or the Escape window closes."""
    changed = asyncio.ensure_future(control.changed.wait())
    window = None if control.deadline is None else max(0.0, control.deadline - time.monotonic())
    try:
        await asyncio.wait((*tasks, changed), timeout=window, return_when=asyncio.FIRST_COMPLETED)
    finally:
        changed.cancel()


async def ended(task: asyncio.Future[ModelResult] | asyncio.Task[Step], within: float = 0.1) -> None:
    """Cancel a task that may still run and give it a moment to clean up; it is left alone after that."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=within)
    if task.done() and not task.cancelled():
        task.exception()
