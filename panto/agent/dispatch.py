"""One tool call: review (hooks, validation, approval), then run and settle. Nothing here decides what comes next."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from panto.agent import waiting
from panto.agent.approval import Allow, Ask, Deny
from panto.agent.hooks import Block, Rewrite
from panto.agent.ports import Ports, Setup
from panto.schema.bodies import Question, TextBody, ToolOutcome
from panto.schema.errors import FailureClass, ToolFailure, ToolStop
from panto.schema.messages import BadJson, ModelResult, Text, ToolCall
from panto.session import Staged, stage
from panto.session.command import Command
from panto.session.commands import DeclineCall, FailCall, FailRun, HoldCall, StartCall, SubmitCallResult
from panto.session.state import Call, Run
from panto.tools.arguments import parse
from panto.tools.masks import hide, masked_value
from panto.tools.tool import Tool, ToolContext, ToolReply

EXCERPT = 800
"""Characters of unreadable arguments that the model is shown."""

MESSAGE = 2000
"""Characters of an unexpected error that are kept."""

DECLINES: tuple[FailureClass, ...] = ("not_found", "invalid_input", "permission_denied", "not_dispatched", "cancelled")
"""What a call that never ran can have failed of."""

TRIES = 2
"""Runs of one effect in all, where the tool says that a failure proves nothing happened."""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands to commit together, the bodies they name, and the files a started call will change."""

    commands: tuple[Command, ...]
    bodies: tuple[Staged, ...] = ()
    paths: frozenset[str] = frozenset()


async def guarded(work: Coroutine[Any, Any, Step], broken: Callable[[BaseException], Step]) -> Step:
    """One call's part of the work: whatever a tool raises, it must not take the run down with it.

    Raises CancelledError where the agent itself cancels it, and KeyboardInterrupt.
    """
    try:
        return await work
    except BaseException as error:
        task = asyncio.current_task()
        ours = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
        if ours or isinstance(error, KeyboardInterrupt):
            raise
        return broken(error)


async def review(ports: Ports, setup: Setup, run: Run, call: Call, result: ModelResult) -> Step:
    """What becomes of a pending call: started, declined, or held for a person."""

    def broken(error: BaseException) -> Step:
        return _decline(run, call, "invalid_input", f"{call.name} cannot be run like this: {_named(error)}")

    return await guarded(_review(ports, setup, run, call, result), broken)


async def _review(ports: Ports, setup: Setup, run: Run, call: Call, result: ModelResult) -> Step:
    given = result.calls()[call.index]
    if result.finish.reason in ("length", "content_filter"):
        why = "the output limit" if result.finish.reason == "length" else "the provider's content filter"
        return _decline(run, call, "not_dispatched", f"Not run: this reply was cut off by {why}. Send a smaller piece.")
    tool = ports.tool(call.name)
    if tool is None or call.name not in {spec.name for spec in setup.tools}:
        names = ", ".join(sorted(spec.name for spec in setup.tools))
        return _decline(run, call, "not_found", f"There is no tool named {call.name!r}. Tools: {names}.")
    changed_by = call.changed_by
    try:
        text = await _arguments(ports, call, given)
        arguments = parse(tool.spec, text)
        if not call.approved:
            progress = ports.tool_context(run.run, call.call, "", text).progress
            verdict = await ports.hooks.tool_call(ports.session.id, call.call, call.name, text, progress)
            if isinstance(verdict, Block):
                return _decline(run, call, "permission_denied", verdict.reason)
            if isinstance(verdict, Rewrite):
                text, changed_by = verdict.arguments, "hook"
                arguments = parse(tool.spec, text)
            held = await _ask(ports, setup, run, call, tool, arguments, text)
            if held is not None:
                return held
        paths = tool.paths(arguments, ports.session.state.settings.cwd) if tool.mutates else ()
    except ToolFailure as failure:
        return _decline(run, call, failure.cls if failure.cls in DECLINES else "invalid_input", failure.message)
    body = stage(TextBody(text))
    effect = run.call_effect(call.call)
    start = StartCall(
        run=run.run, call=call.call, effect=effect, arguments=body.digest, replay=tool.replay, changed_by=changed_by
    )
    return Step((start,), (body,), frozenset(paths))


def _decline(run: Run, call: Call, cls: FailureClass, message: str, *, unattended: bool = False) -> Step:
    return Step((DeclineCall(run=run.run, call=call.call, cls=cls, message=_said(message), unattended=unattended),))


async def _arguments(ports: Ports, call: Call, given: ToolCall) -> str:
    """The JSON text to run with: a person's or hook's, else the model's. Raises ToolFailure where it is none."""
    if call.arguments is not None:
        body = await ports.session.body(call.arguments)
        assert isinstance(body, TextBody)
        return body.text
    if isinstance(given.arguments, BadJson):
        raise ToolFailure(
            f"The arguments of {call.name} are not a JSON object: {given.arguments.problem}. "
            f"Nothing was run. They began: {given.arguments.text[:EXCERPT]}"
        )
    return given.arguments.text


async def _ask(
    ports: Ports, setup: Setup, run: Run, call: Call, tool: Tool, arguments: Mapping[str, object], text: str
) -> Step | None:
    """Hold or decline a call that may not simply run; None where it may."""
    match ports.judge(tool, arguments):
        case Deny(reason=reason):
            return _decline(run, call, "permission_denied", reason)
        case _ if tool.external:  # whoever answers it decides
            question = Question("ask", call.name, tool.title(arguments), arguments=text)
            return hold(run, call, "external", _asked(question, arguments))
        case Allow():
            return None
        case Ask() as ask if setup.attended:
            context = ports.tool_context(run.run, call.call, "", text)
            view = await tool.preview(arguments, context)
            view = masked_value(view, context.mask) if view is not None else None
            question = Question(
                "approval", call.name, tool.title(arguments), ask.reason, text, view, ask.dangerous, ask.rule,
                child=ports.child, limits=await tool.limits(arguments, context),
            )  # fmt: skip
            return hold(run, call, "approval", question)
        case Ask() as ask:
            rule = f"; the rule {ask.rule} would allow it" if ask.rule else ""
            message = f"refused: {'; '.join(ask.reason.splitlines())}, and nobody is here to ask{rule}"
            return _decline(run, call, "permission_denied", message, unattended=True)


def _asked(question: Question, arguments: Mapping[str, object]) -> Question:
    """The `ask` tool's own question and choices, where the arguments carry them."""
    asked, choices = arguments.get("question"), arguments.get("choices")
    if isinstance(asked, str):
        question = replace(question, title=asked, multiple=bool(arguments.get("multiple")))
    if isinstance(choices, list):
        question = replace(question, choices=tuple(str(choice) for choice in choices))
    return question


def hold(run: Run, call: Call, kind: str, question: Question) -> Step:
    """Hold a call until a person has answered. `kind`: approval or external."""
    body = stage(question)
    held = HoldCall(run=run.run, call=call.call, kind=kind, question=body.digest)  # type: ignore[arg-type]
    return Step((held,), (body,))


async def run_call(ports: Ports, run: Run, call: Call, note: str = "") -> Step:
    """Run an executing call and give back how to settle it; the model is also told `note`. Raises when cancelled."""
    started = time.monotonic()
    tool = ports.tool(call.name)
    harmless = tool is not None and not tool.mutates

    def broken(error: BaseException) -> Step:
        return _crashed(run, call, error, harmless, started)

    return await guarded(_run(ports, run, call, tool, note, started), broken)


async def _run(ports: Ports, run: Run, call: Call, tool: Tool | None, note: str, started: float) -> Step:
    try:
        if tool is None:
            raise ToolFailure(f"the tool {call.name} is no longer there", "unavailable")
        body = await ports.session.body(call.arguments or "")
        assert isinstance(body, TextBody)
        context = ports.tool_context(run.run, call.call, call.effect, body.text)
        reply = await _attempts(tool, parse(tool.spec, body.text), context)
        outcome = masked_value(await _patched(ports, call, reply.outcome, context), context.mask)
        if call.changed_by:
            said = Text(f"(The arguments were changed by the {call.changed_by} before this ran: {body.text})")
            outcome = replace(outcome, parts=(said, *outcome.parts))
        if note:
            outcome = replace(outcome, parts=(*outcome.parts, Text(note)))
    except ToolFailure as failure:
        return _failed(run, call, failure, started)
    except ToolStop as stop:
        failed = _failed(run, call, ToolFailure(stop.message, "internal", effects="unknown"), started)
        broken = FailRun(run=run.run, reason="internal", message=_said(stop.message))
        return Step((*failed.commands, broken), failed.bodies)
    staged = stage(outcome)
    settled = SubmitCallResult(
        run=run.run, call=call.call, effect=call.effect, outcome=staged.digest, duration_ms=_ms(started),
        files=reply.files,
    )  # fmt: skip
    return Step((settled,), (staged, *(stage(body) for body in reply.bodies)))


async def _attempts(tool: Tool, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
    for attempt in range(1, TRIES + 1):
        try:
            return await tool.run(arguments, context)
        except ToolFailure as failure:
            if not failure.retry_allowed or attempt == TRIES or context.cancelled.is_set():
                hide(failure, context.mask)
                raise
            await asyncio.sleep(0.05 * attempt)
    raise AssertionError("unreachable")


async def _patched(ports: Ports, call: Call, outcome: ToolOutcome, context: ToolContext) -> ToolOutcome:
    """The outcome as extensions leave it; as it was where an interrupt comes first."""
    if not ports.hooks.watches("tool_result"):
        return outcome
    hooks = ports.hooks.tool_result(ports.session.id, call.call, call.name, outcome, context.progress)
    patched = await waiting.unless(context.cancelled, hooks)
    return outcome if patched is None else patched


def _failed(run: Run, call: Call, failure: ToolFailure, started: float) -> Step:
    body = stage(failure.outcome) if failure.outcome is not None else None
    failed = FailCall(
        run=run.run, call=call.call, effect=call.effect, cls=failure.cls, message=_said(failure.message),
        effects=failure.effects, cause="interrupted" if failure.cls == "cancelled" else "tool",
        outcome="unknown" if failure.lost else "known",
        outcome_digest=body.digest if body else None, duration_ms=_ms(started), files=failure.files,
    )  # fmt: skip
    return Step((failed,), (body,) if body else ())


def _crashed(run: Run, call: Call, error: BaseException, harmless: bool, started: float) -> Step:
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
    return Step((
        FailCall(
            run=run.run, call=call.call, effect=call.effect, cls="internal",
            message=_said(f"{call.name} broke: {_named(error)} ({place})"), outcome="known" if harmless else "unknown",
            effects="none" if harmless else "unknown", cause="exception", duration_ms=_ms(started),
        ),
    ))  # fmt: skip


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:MESSAGE]


def _said(text: str) -> str:
    """A message as it may be recorded: what is no Unicode text becomes marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
