"""What the loop's steps are made of: deliveries, limits, openings, settlements, and what cannot be written."""

from __future__ import annotations

import asyncio
import contextlib

from panto.agent import compaction, waiting
from panto.agent.context import Frozen
from panto.agent.dispatch import Step, hold, review, run_call
from panto.agent.loop_guard import WARNING
from panto.agent.parking import left, unknown
from panto.agent.ports import Control, Ports, Setup
from panto.schema.bodies import MessageBody, Question, ResultBody, TextBody
from panto.schema.codec import Digest, canonical, loads
from panto.schema.errors import ProviderError, Refused, StorageFailed
from panto.schema.messages import ModelResult
from panto.schema.signals import Noticed
from panto.session import Staged, stage
from panto.session.command import Command
from panto.session.commands import (
    DeliverInputs,
    FailCall,
    FailModel,
    FailRun,
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

PATIENCE = 3
"""Refusals in a row without progress after which the loop gives up (R44)."""

OVERFLOWS = 2
"""Times in a row that a reply may fail for want of room before the run fails."""


def deliveries(state: State, control: Control) -> tuple[Command, ...]:
    """Submitted inputs that join the running turn now: those that do not wait for the turn's end."""
    due = tuple(name for name, said in state.inputs.items() if said.when == "step")
    if not due or state.run is None:
        return ()
    control.circles.heard()
    return (DeliverInputs(run=state.run.run, inputs=due),)


def limit_reached(control: Control, run: Run, view: View, setup: Setup) -> StopRun | None:
    """How the run ends now, where it has reached a limit."""
    limits, base = setup.limits, control.base
    if limits.steps and run.done >= limits.steps:
        return StopRun(run=run.run, reason="steps", message=f"stopped after {run.done} steps (limits.steps)")
    message = ""
    used, cost = view.usage.input + view.usage.output - base.tokens, (view.cost or 0.0) - base.cost
    if limits.tokens and used >= limits.tokens:
        message = f"stopped after {used} tokens of a budget of {limits.tokens}"
    elif limits.cost and cost >= limits.cost:
        message = f"stopped after ${cost:.2f} of a budget of ${limits.cost:.2f}"
    return StopRun(run=run.run, reason="budget", message=message) if message else None


def refused(control: Control, refusal: Refused) -> None:
    """Something else was committed meanwhile: look again. Raises the refusal where that does not help."""
    control.refusals += 1
    if control.refusals >= PATIENCE:
        raise refusal


async def detour(ports: Ports, control: Control, setup: Setup, settled: Step, run: Run, frozen: Frozen) -> bool:
    """Whether something comes before this request (settlements are then committed): a summary, extensions' words."""
    crowded = compaction.due(control, setup, frozen)
    if settled.commands and (crowded or ports.hooks.watches("context")):
        await ports.session.commit(*settled.commands, bodies=settled.bodies)
        return True
    if crowded:
        await compaction.automatic(ports, control, setup)
        return True
    if hopeless := compaction.hopeless(setup, frozen):
        await commit_end(ports, Step((*settled.commands, FailRun(run=run.run, reason="context", message=hopeless)),
                                     settled.bodies))  # fmt: skip
        return True
    return await add_context(ports, control, run)


async def add_context(ports: Ports, control: Control, run: Run) -> bool:
    """Once a step, let extensions add to the context; what they add is recorded like any input."""
    if not ports.hooks.watches("context") or control.asked_context == (run.run, run.step):
        return False
    messages = await waiting.unless(control.interrupt, ports.hooks.context(ports.session.id))
    if messages is None:
        return True
    control.asked_context = (run.run, run.step)
    added = [stage(MessageBody(message)) for message in messages]
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
        await commit_end(ports, Step((reject,), (body,)))
        return
    mutating = frozenset(
        call.name for call in result.calls() if (tool := ports.tool(call.name)) is None or tool.mutates
    )
    control.reviewed.clear()
    control.launched.clear()
    measure(ports, setup, result)
    submit = SubmitResult.of(
        run.run, run.step, run.effect, result, body.digest, mutating=mutating, parallel=setup.parallel,
        dispatch=setup.dispatch,
    )  # fmt: skip
    try:
        first, opened = await _with_reply(ports, control, setup, submit, result)
        try:
            await ports.session.commit(*first, *opened.commands, bodies=(body, *opened.bodies))
        except Refused:  # an input was taken back, or a call's opening is not due any more: the reply stands by itself
            if not opened.commands and first == (submit,):
                raise
            await ports.session.commit(submit, bodies=(body,))
    except StorageFailed as failure:
        await keep(ports, control, Step((submit,), (body,)), failure)
        raise
    control.overflows = 0


def measure(ports: Ports, setup: Setup, result: ModelResult) -> None:
    """Take the vendor's count of tokens; said before the reply is recorded, since a turn's end may be the last word."""
    odd = ports.context.measure(result.usage, setup)
    if odd:
        how = f" ({setup.model.window_setting})" if setup.model.window_setting else ""
        hint = f"Give it a larger context{how}, or set context of {setup.model.label} to what it really has."
        ports.signal(Noticed(ports.session.id, f"{odd}: the rest was cut off", "attention", hint))


async def _with_reply(
    ports: Ports, control: Control, setup: Setup, submit: SubmitResult, result: ModelResult
) -> tuple[tuple[Command, ...], Step]:
    """What is committed with a reply: inputs that make the run go on before it, openings of its calls behind it."""
    if not setup.dispatch:
        return (submit,), Step(())
    if not result.calls():
        return (*deliveries(ports.session.state, control), submit), Step(())
    if ports.hooks.watches("tool_call"):  # a hook may take its time: the reply is recorded first
        return (submit,), Step(())
    run = ports.session.preview(submit).state.run
    opened = await waiting.unless(control.interrupt, _openings(ports, control, setup, run, result)) if run else None
    return (submit,), opened or Step(())


async def settle_failure(ports: Ports, control: Control, run: Run, error: ProviderError) -> None:
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
    await commit_end(ports, Step((failed,)))


def last(run: Run, step: Step) -> bool:
    """Whether these settlements are those of all calls that were still due."""
    settled = {command.call for command in step.commands if isinstance(command, SubmitCallResult | FailCall)}
    return settled.issuperset(call.call for call in run.unfinished)


def done(control: Control, run: Run) -> Step | None:
    """The settlements of all calls that are done; None where none is. What parking cut short and may be repeated has
    not come to anything: it runs again when the turn is continued."""
    ended = [name for name, task in control.running.items() if task.done()]
    if not ended:
        return None
    settled = [control.running.pop(name).result() for name in ended]
    if control.parking:
        settled = [left(step) for step in settled if not _cut_short(run, step)]
        if not settled:
            return None
    step = Step(tuple(c for s in settled for c in s.commands), tuple(b for s in settled for b in s.bodies))
    for command in step.commands:
        if isinstance(command, SubmitCallResult | FailCall) and any(f.before != f.after for f in command.files):
            control.circles.changed(command.call)
    return step


def _cut_short(run: Run, step: Step) -> bool:
    """Whether this is the cancellation of a replay-safe call."""
    cancelled = {c.call for c in step.commands if isinstance(c, FailCall) and c.cls == "cancelled"}
    return any(call.call in cancelled and call.replay for call in run.unfinished)


async def let_go(control: Control) -> None:
    """Nobody waits for what still runs any more."""
    await waiting.ended(*control.running.values(), within=0.02)
    control.running.clear()


async def settle(ports: Ports, step: Step) -> None:
    """Commit settlements by themselves. A run that is being interrupted ends as that, whatever else befell it."""
    try:
        await commit_end(ports, step)
    except Refused:
        settlements = tuple(command for command in step.commands if not isinstance(command, FailRun))
        if settlements == step.commands:
            raise
        await commit_end(ports, Step(settlements, step.bodies))


async def commit_end(ports: Ports, step: Step) -> None:
    """Commit what may end the run; where nobody retries by hand, a failed turn settles in the same commit."""
    turn = ports.session.preview(*step.commands).state.turn
    over: tuple[Command, ...] = ()
    if turn is not None and turn.status == "attempt_failed" and not ports.by_hand():
        over = (SettleTurn(turn=turn.turn, attempt=turn.attempt),)
    await ports.session.commit(*step.commands, *over, bodies=step.bodies)


async def keep(ports: Ports, control: Control, step: Step, failure: StorageFailed) -> None:
    """What something came to cannot be written now: keep it, and say so at once (of the first: once)."""
    if not control.held:
        ports.signal(storage_notice(ports, failure))
    control.held.append(step)
    for command in step.commands:
        if isinstance(command, SubmitCallResult | FailCall):
            with contextlib.suppress(StorageFailed):
                await ports.session.keep(command, *step.bodies)


def storage_notice(ports: Ports, failure: StorageFailed) -> Noticed:
    """What a person is told when the ledger cannot be written."""
    after = "Enter tries to write again, what has finished is kept"
    if not ports.by_hand():
        after = f"panto --resume {ports.session.id[:8]} then goes on"
    hint = f"{failure.hint}; {after}".removeprefix("; ")
    return Noticed(ports.session.id, failure.message, "wrong", hint, key="storage")


# --- tool calls -------------------------------------------------------------------------------------------------


async def open_calls(ports: Ports, control: Control, run: Run) -> bool:
    """Start, decline or hold the pending calls that are due, run those that were started; whether to look again."""
    lost = tuple(
        unknown(run, call, "what became of it was lost", "exception")
        for call in run.unfinished
        if call.state == "executing" and call.call in control.launched and call.call not in control.running
    )
    if lost:
        await ports.session.commit(*lost)
        return True
    if any(call.state == "pending" for call in run.unfinished):
        body = await ports.session.body(run.result or "")
        assert isinstance(body, ResultBody)
        opened = await waiting.unless(control.interrupt, _openings(ports, control, ports.setup(), run, body.result))
        if opened is None:
            return True
        if opened.commands:
            await ports.session.commit(*opened.commands, bodies=opened.bodies)
            return True
    _launch(ports, control, run)
    return False


def _launch(ports: Ports, control: Control, run: Run) -> None:
    """Run the executing calls that nobody has run: those just started, replay-safe ones of a former life."""
    for call in run.unfinished:
        if call.state == "executing" and call.call not in control.launched:
            note = WARNING if call.call in control.circles.warned else ""
            control.launched.add(call.call)
            control.running[call.call] = asyncio.create_task(run_call(ports, run, call, note))


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
    if control.circles.start(call.call, call.name, arguments, tool.mutates, setup.repeat, run.done) != "hold":
        return step
    reason = f"{call.name} was called like this {setup.repeat} times and nothing has changed since"
    if not setup.attended:
        return Step((StopRun(run=run.run, reason="loop_guard", message=f"going round in circles: {reason}"),))
    given = loads(body.text or "{}")
    title = tool.title(given) if isinstance(given, dict) else ""
    question = Question("approval", call.name, title, reason, body.text, child=ports.child)
    return hold(run, call, "approval", question)


async def _openings(ports: Ports, control: Control, setup: Setup, run: Run, result: ModelResult) -> Step:
    """Openings of pending calls, each reviewed once; a call waits while another changes the same file."""
    executing = [call for call in run.unfinished if call.state == "executing"]
    busy = {path for call in executing for path in control.reviewed.get(call.call, (False, Step(())))[1].paths}
    room = run.parallel - len(executing)
    commands: list[Command] = []
    bodies: list[Staged] = []
    for call in run.unfinished:
        if call.state != "pending":
            continue
        known = control.reviewed.get(call.call)
        if known is None or known[0] != call.approved:
            step = await review(ports, setup, run, call, result)
            step = guarded(ports, control, setup, run, call, step)
            if isinstance(step.commands[0], StopRun):
                return step
            known = control.reviewed[call.call] = (call.approved, step)
        step = known[1]
        if isinstance(step.commands[0], StartCall):
            if room <= 0 or busy & step.paths:
                continue
            room -= 1
            busy |= step.paths
        commands.extend(step.commands)
        bodies.extend(step.bodies)
    return Step(tuple(commands), tuple(bodies))


# --- the end ----------------------------------------------------------------------------------------------------


def kept_text(control: Control) -> tuple[Digest | None, tuple[Staged, ...]]:
    """Text streamed by a step that was stopped, ready to be recorded; nothing where it is blank."""
    text, control.kept = control.kept, ""
    if not text.strip():
        return None, ()
    body = stage(TextBody(text))
    return body.digest, (body,)
