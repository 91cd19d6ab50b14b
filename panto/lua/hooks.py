"""Hooks and observers written in Lua. Hooks are tasks and may wait; observers run to their end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from panto.agent.hooks import Block, Rewrite
from panto.lua.bridge import plain_text
from panto.lua.components import Components
from panto.lua.driver import Driver, LuaTask, Outcome, log
from panto.lua.tasks import GREEDY
from panto.lua.views import view
from panto.schema.bodies import ToolOutcome
from panto.schema.errors import UsageError
from panto.schema.messages import Image, Json, Message, Part, ResultPart, Text
from panto.tools.tool import Progress

TURN_EVENTS = frozenset({
    "session_start", "session_end", "turn_start", "turn_interrupt", "turn_end", "step_start", "step_end",
    "model_change",
})  # fmt: skip
"""What observers hear from panto itself: of the primary agent, not of children."""

LIMIT_S = 5.0
"""How long a hook may take, dialogs not counted."""


class Listener(Struct, frozen=True):
    """A function that listens, and where it was registered."""

    owner: str
    ref: int
    place: str


class Listeners:
    """Hooks and observers in activation order. Fits `agent.hooks.Hooks` and `scheduler.shared.Observer`.

    Made before there is a Lua state (agents hold it from their first day); `attach` gives it one.
    """

    def __init__(self) -> None:
        self.primary: Callable[[], str] = lambda: ""
        self.on_runaway: Callable[[str, str, str], None] = lambda owner, what, message: None
        self.started = False
        """Everything is loaded and has been told of the session's start; before that nobody hears of it."""
        self.hooks: dict[str, list[Listener]] = {}
        self.observers: dict[str, list[Listener]] = {}
        self._keys = itertools.count(1)
        self._attached: tuple[Driver, Components] | None = None
        self._loaded: asyncio.Event | None = None

    def attach(self, driver: Driver, components: Components) -> None:
        """Use this state."""
        self._attached = (driver, components)
        driver.messages["emit"] = self._emit

    def detach(self) -> None:
        """The state is gone: nobody listens."""
        self.hooks.clear()
        self.observers.clear()
        self._attached = None

    def hold(self) -> None:
        """Everything is loaded again from here to `release`: what may run is not decided while nobody stands guard."""
        if self.hooks.get("tool_call"):
            self._loaded = asyncio.Event()

    def release(self) -> None:
        """Everything is loaded."""
        held, self._loaded = self._loaded, None
        if held is not None:
            held.set()

    @property
    def _driver(self) -> Driver:
        assert self._attached is not None
        return self._attached[0]

    @property
    def _components(self) -> Components:
        assert self._attached is not None
        return self._attached[1]

    def add(self, kind: str, event: str, listener: Listener) -> None:
        """A new listener; `kind` is hook or observer."""
        (self.hooks if kind == "hook" else self.observers).setdefault(event, []).append(listener)

    def _emit(self, name: str, payload: dict[str, object]) -> None:
        self._driver.loop.call_soon(self.observe, name, payload)

    def withdraw(self, owner: str) -> None:
        """Forget what an extension listens to."""
        for kind in (self.hooks, self.observers):
            for name, listeners in kind.items():
                for gone in (one for one in listeners if one.owner == owner):
                    self._driver.host.unref(gone.ref)
                kind[name] = [one for one in listeners if one.owner != owner]

    # --- observers ---------------------------------------------------------------------------------------------

    def observe(self, name: str, event: dict[str, object]) -> None:
        """Tell observers; an error of one is logged and stops nobody."""
        if name in TURN_EVENTS and event.get("agent") not in (None, self.primary()):
            return
        if name == "session_start" and not self.started:
            return
        for one in tuple(self.observers.get(name, ())):
            told = self._driver.bridge.to_lua(event)
            lane = self.primary()
            outcome = self._driver.call(
                "observer", one.ref, name, told, owner=one.owner, lane=lane, what=f"an observer of {name}"
            )
            if not outcome.ok:
                log.warning("%s: observer of %s: %s\n%s", one.owner, name, outcome.message, outcome.traceback)
                if outcome.kind in GREEDY:
                    self.on_runaway(one.owner, f"an observer of {name}", outcome.message)

    # --- hooks -------------------------------------------------------------------------------------------------

    def watches(self, event: str) -> bool:
        """Is anybody there?"""
        return bool(self.hooks.get(event)) or (event == "tool_call" and self._loaded is not None)

    async def _ask(
        self,
        one: Listener,
        name: str,
        agent: str,
        event: dict[str, Any],
        progress: Progress | None,
        raw: str | None = None,
    ) -> Outcome:
        scope = self._driver.scope(one.owner, agent)
        key = f"hook {next(self._keys)}"
        if progress is not None:
            self._components.open(key, progress)
        try:
            sent = self._driver.bridge.to_lua(event)
            task = self._driver.start("hook", one.ref, name, agent, sent, key, raw, scope=scope, what=f"a {name} hook")
            return await _within(task, LIMIT_S)
        finally:
            self._driver.close_scope(scope)
            self._components.close(key)

    async def tool_call(
        self, agent: str, call: str, name: str, arguments: str, progress: Progress
    ) -> Block | Rewrite | None:
        """The first block wins; rewrites chain; a hook that fails blocks."""
        if self._loaded is not None:
            try:
                await asyncio.wait_for(self._loaded.wait(), LIMIT_S)
            except TimeoutError:
                return Block("extensions are being loaded again, and no permission hook is there yet: try again")
        given = arguments
        for one in tuple(self.hooks.get("tool_call", ())):
            outcome = await self._ask(one, "tool_call", agent, {"call_id": call, "name": name}, progress, given)
            if not outcome.ok:
                log.warning("%s: tool_call hook: %s\n%s", one.owner, outcome.message, outcome.traceback)
                return Block(f"the permission hook of {one.owner} failed: {plain_text(outcome.message)}")
            match outcome.values[0] if outcome.values else None:
                case {"block": blocked, **rest} if blocked is True or isinstance(blocked, str):
                    reason = blocked if isinstance(blocked, str) else rest.get("reason") or f"blocked by {one.owner}"
                    return Block(plain_text(str(reason)))
                case {"arguments": str(text)}:
                    given = plain_text(text)
        return Rewrite(given) if given != arguments else None

    async def tool_result(
        self, agent: str, call: str, name: str, outcome: ToolOutcome, progress: Progress
    ) -> ToolOutcome | None:
        """Patches chain; a hook that fails changes nothing."""
        now = outcome
        for one in tuple(self.hooks.get("tool_result", ())):
            event = {"call_id": call, "name": name, "content": _text(now.parts), "is_error": now.is_error}
            answer = await self._open_answer(one, "tool_result", agent, event, progress)
            if isinstance(answer, str):
                answer = {"content": answer}
            if isinstance(answer, dict):
                now = _patched(now, answer, one.owner)
        return now if now is not outcome else None

    async def input(self, agent: str, message: Message) -> Message | Block | None:
        """Text transforms chain; the first block (or `handled`) wins."""
        now = message
        for one in tuple(self.hooks.get("input", ())):
            event = {"text": "".join(p.text for p in now.parts if isinstance(p, Text)), "metadata": now.metadata}
            match await self._open_answer(one, "input", agent, event, None):
                case {"block": blocked, **rest} if blocked:
                    return Block(
                        plain_text(
                            str(rest.get("reason") or (f"refused by {one.owner}" if blocked is True else blocked))
                        )
                    )
                case {"handled": handled, **rest} if handled:
                    return Block(plain_text(str(rest.get("reason") or f"handled by {one.owner}")))
                case {"text": str(text)} | str(text):
                    others: tuple[Part, ...] = tuple(p for p in now.parts if not isinstance(p, Text))
                    now = msgspec.structs.replace(now, parts=(Text(plain_text(text)), *others))
        return now if now is not message else None

    async def context(self, agent: str) -> Sequence[Message]:
        """What every hook adds, in order."""
        added: list[Message] = []
        for one in tuple(self.hooks.get("context", ())):
            answer = await self._open_answer(one, "context", agent, {}, None)
            for text in answer if isinstance(answer, list) else [answer]:
                if isinstance(text, dict):
                    text = text.get("text")
                if isinstance(text, str) and text.strip():
                    added.append(Message("user", (Text(plain_text(text)),)))
        return added

    async def before_compact(self, agent: str, instructions: str) -> str | None:
        """The first summary that a hook gives."""
        for one in tuple(self.hooks.get("before_compact", ())):
            answer = await self._open_answer(one, "before_compact", agent, {"instructions": instructions}, None)
            if isinstance(answer, dict):
                answer = answer.get("summary")
            if isinstance(answer, str) and answer.strip():
                return plain_text(answer)
        return None

    async def _open_answer(
        self, one: Listener, name: str, agent: str, event: dict[str, Any], progress: Progress | None
    ) -> Any:
        outcome = await self._ask(one, name, agent, event, progress)
        if not outcome.ok:
            log.warning("%s: %s hook: %s\n%s", one.owner, name, outcome.message, outcome.traceback)
            return None
        return outcome.values[0] if outcome.values else None


async def _within(task: LuaTask, limit_s: float) -> Outcome:
    """A task's outcome; after `limit_s`, time in dialogs not counted, a failure."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not task.done.done():
        in_dialog = task.dialog_s + (loop.time() - task.dialog_since if task.dialog_since is not None else 0)
        left = limit_s - (loop.time() - begun - in_dialog)
        if left <= 0:
            return Outcome(False, kind="timeout", message=f"{task.what} took longer than {limit_s:g} s")
        await asyncio.wait({task.done}, timeout=left)
    return task.done.result()


def _text(parts: Sequence[ResultPart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text | Json))


def _patched(outcome: ToolOutcome, answer: dict[str, Any], owner: str) -> ToolOutcome:
    changes: dict[str, Any] = {}
    if isinstance(answer.get("content"), str):
        kept = tuple(part for part in outcome.parts if isinstance(part, Image))
        changes["parts"] = (Text(plain_text(answer["content"])), *kept)
    if isinstance(answer.get("is_error"), bool):
        changes["is_error"] = answer["is_error"]
    if answer.get("details") is not None:
        try:
            changes["view"] = view(answer["details"])
        except UsageError as e:
            log.warning("%s: tool_result hook: %s", owner, e.message)
    return msgspec.structs.replace(outcome, **changes) if changes else outcome
