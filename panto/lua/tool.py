"""A tool whose handler is Lua: a task in the lane of the agent that called it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from panto.lua.batch import Batches
from panto.lua.bridge import Ref, plain_text
from panto.lua.components import Components
from panto.lua.driver import Driver, LuaTask, Outcome, Scope, log
from panto.lua.tasks import GUARD_S
from panto.lua.views import view
from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure, UsageError
from panto.schema.messages import Image, Json, ResultPart, Text, ToolSpec
from panto.schema.view import View
from panto.tools.tool import Approval, ToolContext, ToolReply

if TYPE_CHECKING:
    from panto.tools.worker import WorkerPool

MARGIN_S = 0.03
"""Seconds before the Escape deadline at which a handler that has not returned is closed."""


class Workshop(Struct, frozen=True):
    """What all Lua tools share. `end_owner(effect)` ends the jobs that a call has opened and left running."""

    driver: Driver
    batches: Batches
    components: Components
    end_owner: Callable[[str], Awaitable[None]]


class LuaTool:
    """See tools.tool.Tool. `ref` is the handler's reference (0: external), `timeout_s` None: no limit.

    With a `pool` its calls run in worker processes, which can be killed.
    """

    def __init__(
        self,
        shop: Workshop,
        owner: str,
        spec: ToolSpec,
        ref: int,
        *,
        mutates: bool = True,
        replay: bool = False,
        external: bool = False,
        approval: Approval = "command",
        timeout_s: float | None = None,
        guard_s: float = GUARD_S,
        pool: Callable[[], WorkerPool] | None = None,
    ) -> None:
        self.spec = spec
        self.mutates, self.replay, self.external, self.approval = mutates, replay, external, approval
        self._shop, self._owner, self._ref, self._timeout_s = shop, owner, ref, timeout_s
        self._guard_s, self._pool = guard_s, pool

    @property
    def isolated(self) -> bool:
        """Whether its calls run in a worker process."""
        return self._pool is not None

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        """An extension's tool names no paths."""
        return ()

    def title(self, arguments: Mapping[str, object]) -> str:
        """The first short text among the arguments."""
        for value in arguments.values():
            if isinstance(value, str) and value.strip():
                return value.strip().splitlines()[0][:120]
        return ""

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        """Nothing beyond the arguments."""
        return None

    async def limits(self, arguments: Mapping[str, object], context: ToolContext) -> str:
        """Its time, and the box of an isolated one."""
        box = [self._pool().sandbox.words()] if self._pool is not None else []
        time_s = [f"up to {self._timeout_s:g} s"] if self._timeout_s else []
        return " · ".join(part for part in (*box, *time_s) if part)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        """Run the handler to its end, its timeout, or the Escape deadline."""
        if self._pool is not None:
            text = json.dumps(arguments, ensure_ascii=False)
            return await self._pool().run(self.spec.name, text, context, self._timeout_s, self.replay)
        driver, shop = self._shop.driver, self._shop
        scope = driver.scope(self._owner, context.agent, key=context.effect)
        batch = shop.batches.open(context.agent, context.run, context.call)
        shop.components.open(context.effect, context.progress)
        shown: View | None = None
        try:
            task = driver.start(
                "tool", self._ref, json.dumps(arguments, ensure_ascii=False), context.raw, context.session, context.run,
                context.call, context.effect, context.agent, context.cwd, scope=scope,
                what=f"tool {self.spec.name}", guard_s=self._guard_s,
            )  # fmt: skip
            task.done.add_done_callback(lambda done: batch.record(context.call, done.result()))
            outcome = await self._outcome(task, scope, context)
        finally:
            driver.close_scope(scope)
            shown = shop.components.close(context.effect)
            shop.batches.close(batch, context.call)
            driver.keep(asyncio.ensure_future(shop.end_owner(context.effect)))
        return self._reply(outcome, shown)

    async def _outcome(self, task: LuaTask, scope: Scope, context: ToolContext) -> Outcome:
        stopped: asyncio.Future[Any] = asyncio.ensure_future(context.cancelled.wait())
        try:
            both: set[asyncio.Future[Any]] = {task.done, stopped}
            await asyncio.wait(both, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not task.done.done() and not context.cancelled.is_set():
                self._shop.driver.interrupt(scope)
                await asyncio.wait({task.done}, timeout=0.5)
                raise ToolFailure(
                    f"{self.spec.name} took longer than {self._timeout_s:g} s", "timeout", effects=self._effects
                )
            if not task.done.done():
                self._shop.driver.interrupt(scope)
                await until_deadline(task, context.deadline())
        finally:
            stopped.cancel()
        if not task.done.done():
            raise ToolFailure("cancelled by user", "cancelled", effects=self._effects)
        return task.done.result()

    @property
    def _effects(self) -> Any:
        return "unknown" if self.mutates else "none"

    def _reply(self, outcome: Outcome, shown: View | None) -> ToolReply:
        if not outcome.ok:
            self._fail(outcome)
        kind, content, is_error, cancelled, details, title, fact = (*outcome.values, *[None] * 7)[:7]
        told = ToolOutcome(
            parts=_parts(str(kind), content),
            is_error=bool(is_error),
            title=plain_text(title or ""),
            fact=plain_text(fact or ""),
            view=self._view(details) or shown,
        )
        if cancelled:
            raise ToolFailure("cancelled by user", "cancelled", effects=self._effects, outcome=told)
        return ToolReply(told)

    def _fail(self, outcome: Outcome) -> None:
        log.warning("tool %s of %s: %s\n%s", self.spec.name, self._owner, outcome.message, outcome.traceback)
        if outcome.kind == "cancelled":
            raise ToolFailure("cancelled by user", "cancelled", effects=self._effects)
        message = plain_text(outcome.message)
        if outcome.kind == "runaway":
            raise ToolFailure(f"{self.spec.name} {message}", "timeout", effects=self._effects)
        raise ToolFailure(message, "internal", effects=self._effects)

    def _view(self, details: Any) -> View | None:
        if details is None:
            return None
        try:
            return view(details)
        except UsageError as e:
            log.warning("tool %s of %s: details: %s", self.spec.name, self._owner, e.message)
            return None


async def until_deadline(task: LuaTask, deadline: float | None) -> None:
    """Give a handler that was asked to end the time until just before `deadline` (monotonic seconds)."""
    left = 0.5 if deadline is None else deadline - MARGIN_S - time.monotonic()
    if left > 0:
        await asyncio.wait({task.done}, timeout=left)


def tool_of(
    shop: Workshop,
    owner: str,
    spec: Mapping[str, Any],
    *,
    guard_s: float = GUARD_S,
    pool: Callable[[], WorkerPool] | None = None,
) -> LuaTool:
    """The tool of a registration as the prelude checked it."""
    mutates, timeout, handler = spec.get("mutates", True), spec.get("timeout"), spec.get("handler")
    return LuaTool(
        shop, owner, ToolSpec(spec["name"], plain_text(spec["description"]), plain_text(spec["schema"])),
        handler.id if isinstance(handler, Ref) else 0, mutates=mutates, replay=spec.get("replay", False),
        external=spec.get("external", False), timeout_s=timeout / 1000 if timeout else None,
        approval=spec.get("approval") or ("command" if mutates else "read"), guard_s=guard_s,
        pool=pool if spec.get("isolate") else None,
    )  # fmt: skip


def _parts(kind: str, content: Any) -> tuple[ResultPart, ...]:
    """What the model is told. Raises ToolFailure for parts that are none."""
    match kind:
        case "json":
            return (Json(plain_text(content)),)
        case "parts":
            return tuple(_part(item) for item in content)
    return (Text(plain_text(content)),) if content else ()


def _part(item: Any) -> ResultPart:
    match item:
        case {"type": "text", "text": str(text)}:
            return Text(plain_text(text))
        case {"type": "json", "text": str(text)}:
            return Json(plain_text(text))
        case {"type": "image", "media_type": str(kind), "data": str(data)}:
            try:
                return Image(kind, base64.b64decode(data, validate=True), str(item.get("name", "")))
            except (binascii.Error, ValueError):
                raise ToolFailure("an image's data must be base64", "internal") from None
    raise ToolFailure("a part of the result must be text, json or image", "internal")
