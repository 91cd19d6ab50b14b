"""Agents: opening them, turns, inputs, declarations, configuration. Everything runs where the agents live."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from panto.agent.ports import Limits
from panto.lua.api.jobs import JobTable, wake_descriptor
from panto.lua.bridge import plain_text
from panto.lua.driver import Driver, LuaTask
from panto.scheduler.agent import Agent
from panto.scheduler.scheduler import Scheduler
from panto.schema.codec import loads
from panto.schema.errors import UsageError
from panto.schema.messages import Image, Message, Part, Text, ToolChoice, ToolSpec

OnEngine = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Runs a coroutine function on the loop of the agents and gives its result."""

EXTENSION = "extension"


async def here(work: Callable[[], Awaitable[Any]]) -> Any:
    """Inside panto Lua and the agents share a loop."""
    return await work()


def metadata_of(text: str | None) -> dict[str, object]:
    """A JSON object from its text."""
    value = loads(plain_text(text)) if text else {}
    return value if isinstance(value, dict) else {}


def message_of(prompt: Any, metadata: dict[str, object]) -> Message:
    """A user message from text or a list of blocks. Raises UsageError."""
    if isinstance(prompt, str):
        return Message("user", (Text(plain_text(prompt)),), metadata)
    if not isinstance(prompt, list) or not prompt:
        raise UsageError("prompt: text or a list of blocks expected")
    return Message("user", tuple(_block(item) for item in prompt), metadata)


def _block(item: Any) -> Part:
    match item:
        case str(text) | {"type": "text", "text": str(text)}:
            return Text(plain_text(text))
        case {"type": "image", "media_type": str(kind), "data": str(data)}:
            try:
                return Image(kind, base64.b64decode(data, validate=True), str(item.get("name", "")))
            except (binascii.Error, ValueError):
                raise UsageError("prompt: an image's data must be base64") from None
    raise UsageError("prompt: a block is { type = 'text', text } or { type = 'image', media_type, data }")


def limits_of(table: Any) -> Limits | None:
    """Limits of a run from a table. Raises UsageError for an unknown one."""
    if not table:
        return None
    known = {"steps", "tokens", "cost", "seconds"}
    if not isinstance(table, dict) or set(table) - known:
        raise UsageError(f"limits: {', '.join(sorted(known))} expected")
    if not all(isinstance(v, int | float) and v >= 0 for v in table.values()):
        raise UsageError("limits: numbers from 0 expected")
    return Limits(
        steps=int(table.get("steps", 0)),
        tokens=int(table.get("tokens", 0)),
        cost=float(table.get("cost", 0)),
        seconds=float(table.get("seconds", 0)),
    )


def specs_of(tools: Any) -> tuple[ToolSpec, ...] | None:
    """Declarations from tables with their schema as text. Raises UsageError for a repeated name."""
    if tools is None:
        return None
    specs = tuple(ToolSpec(plain_text(t["name"]), plain_text(t["description"]), plain_text(t["schema"])) for t in tools)
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise UsageError(f"the tool {next(n for n in names if names.count(n) > 1)} is declared twice")
    return specs


def choice_of(name: str | None) -> ToolChoice | None:
    """auto, none, required, or the name of a tool."""
    if name is None:
        return None
    if name in ("auto", "none", "required"):
        return ToolChoice(name)  # type: ignore[arg-type]
    return ToolChoice("named", name)


class Desk:
    """The agents that one Lua state has opened, and what it does with them."""

    def __init__(self, scheduler: Callable[[], Scheduler], jobs: JobTable, on_owner: OnEngine = here) -> None:
        self._scheduler, self.jobs, self.on_owner = scheduler, jobs, on_owner
        self.handles: dict[int, Agent] = {}
        self.owners: dict[int, str] = {}
        self._last = 0

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler; asked for on the engine's loop only."""
        return self._scheduler()

    def install(self, driver: Driver) -> None:
        """Add the ops; each crosses to the engine's loop."""

        def op(work: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
            return lambda task, *args: self.on_owner(lambda: work(task, *args))

        driver.ops |= {
            "agent_open": op(self.open), "agent_close": op(self._close_op), "run": self._run, "submit": op(self.submit),
            "tools": op(self.tools), "set_tools": op(self.set_tools), "set_config": op(self.set_config),
        }  # fmt: skip

        def let_go(handle: int) -> None:
            driver.keep(driver.loop.create_task(self._close_quietly(handle)))

        driver.messages["agent_close"] = let_go
        driver.orphans["agent_open"] = lambda opened: let_go(opened[1])
        driver.orphans["run"] = driver.messages["job_close"]

    def find(self, id: str) -> Agent:
        """An open agent. Raises UsageError."""
        agent = self.scheduler.agents.get(id)
        if agent is None:
            raise UsageError(f"agent {id[:8]} is closed")
        return agent

    async def open(self, task: LuaTask, spec: dict[str, Any]) -> tuple[str, int]:
        """Open or create an agent in the task's lane: its id and a handle."""
        config = spec.get("config") or {}
        system = [
            Message("system", (Text(plain_text(m["text"])),), metadata_of(m.get("metadata")))
            for m in spec.get("system_messages") or ()
        ]
        base = spec.get("base_prompt")
        agent = await self.scheduler.open_agent(
            opener=task.lane, session_id=spec.get("session_id") or "", under=spec.get("under") or "", system=system,
            model=config.get("model") or "", reasoning=config.get("reasoning") or "", tools=specs_of(spec.get("tools")),
            base_prompt=True if base is None else bool(base), title=plain_text(spec.get("title") or ""),
        )  # fmt: skip
        choice = choice_of(config.get("tool_choice"))
        if choice is not None:
            await agent.set_config(tool_choice=choice)
        self._last += 1
        self.handles[self._last], self.owners[self._last] = agent, task.owner
        return agent.id, self._last

    async def _close_op(self, task: LuaTask, handle: int) -> None:
        await self.close(handle)

    async def _close_quietly(self, handle: int) -> None:
        await self.on_owner(lambda: self.close(handle))

    async def close(self, handle: int) -> None:
        """Drop a handle. Idempotent."""
        agent = self.handles.pop(handle, None)
        self.owners.pop(handle, None)
        if agent is not None and agent.id in self.scheduler.agents:
            await self.scheduler.close_agent(agent)

    async def close_of(self, owner: str) -> None:
        """Drop every handle that an extension has left open."""
        for handle in [number for number, name in self.owners.items() if name == owner]:
            await self.close(handle)

    def _owner(self, task: LuaTask, detached: bool) -> Hashable:
        if detached:
            return None
        scope = task.scope
        return scope.key if scope.key and scope.key != EXTENSION else (EXTENSION, task.owner)

    async def _run(self, task: LuaTask, id: str, spec: dict[str, Any]) -> int:
        message = message_of(spec.get("prompt"), metadata_of(spec.get("metadata")))
        limits, fd = limits_of(spec.get("limits")), spec.get("wake_fd")
        dispatch = spec.get("dispatch_tools")
        owner = self._owner(task, bool(spec.get("detached")))
        slot = self.jobs.add(None if fd is None else wake_descriptor(fd), task.owner)

        async def begin() -> None:
            job = self.scheduler.run(
                self.find(id), message, id=spec.get("id") or "", owner=owner, limits=limits,
                dispatch_tools=True if dispatch is None else bool(dispatch), source="extension",
            )  # fmt: skip
            self.jobs.follow(slot, job)

        try:
            await self.on_owner(begin)
        except BaseException:
            self.jobs.slots.pop(slot.number, None)
            slot.release()
            raise
        return slot.number

    async def submit(self, task: LuaTask, id: str, spec: dict[str, Any]) -> str:
        """A durable input: joins the running turn, waits, or starts one where a person is there and idle."""
        agent = self.find(id)
        when = spec.get("when", "steer")
        if when not in ("steer", "follow_up"):
            raise UsageError("submit: when: 'steer' or 'follow_up' expected")
        message = message_of(spec.get("prompt"), metadata_of(spec.get("metadata")))
        return await agent.submit(message, "step" if when == "steer" else "turn", id=spec.get("id") or "")

    async def tools(self, task: LuaTask, id: str) -> list[dict[str, str]]:
        """A copy of the declarations in force."""
        return [{"name": s.name, "description": s.description, "schema": s.schema} for s in self.find(id).tools()]

    async def set_tools(self, task: LuaTask, id: str, tools: Any) -> None:
        """Exactly these from the next request on."""
        await self.find(id).set_tools(specs_of(tools) or ())

    async def set_config(self, task: LuaTask, id: str, config: dict[str, Any]) -> None:
        """Merge into what is in force."""
        choice = choice_of(config.get("tool_choice"))
        await self.find(id).set_config(model=config.get("model"), reasoning=config.get("reasoning"), tool_choice=choice)
