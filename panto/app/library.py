"""`import panto`: agents from Python. They run on a thread and loop of their own; nothing starts before it is used.

    import panto

    with panto.Agent(model="fake:small") as agent:
        for event in agent.run("hello"):            # async for, where a loop runs in this thread
            if event.type == "text_delta":
                print(event.text, end="")

A stream gives events until `turn_ended`; then the iteration ends. A failed turn raises ProviderError (a model's
failure) or PantoError. What is not a stream returns a `Pending`: `await` it, or call `.result()` where no loop runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from panto.agent.ports import Limits
from panto.app.resident import Pending, Resident, no_loop
from panto.app.turns import Event, Job, Stream
from panto.lua.api.jobs import Slot
from panto.providers.provider import Provider
from panto.scheduler import Agent as OpenAgent
from panto.scheduler import Scheduler
from panto.scheduler.job import JobResult
from panto.schema.errors import UsageError
from panto.schema.messages import Message, Text, ToolChoice, ToolSpec
from panto.schema.queries import SessionRow
from panto.tools.tool import Tool

T = TypeVar("T")


_shared: Resident | None = None
_making = threading.Lock()


def resident() -> Resident:
    """The agents' thread of this process, unless one is given to what is made."""
    global _shared
    with _making:
        if _shared is None:
            _shared = Resident()
        return _shared


class Agent:
    """One agent and its session; opened when first used.

    `model` is a label (default: the configured one), `session_id` opens or creates exactly that session,
    `system_messages` are texts or (text, metadata) pairs, `tools` names, declarations or Tool objects (None: the
    built-in ones), `store` the sessions it lies among.
    """

    def __init__(
        self,
        *,
        model: str = "",
        reasoning: str = "",
        tool_choice: str = "",
        session_id: str = "",
        system_messages: Sequence[str | tuple[str, Mapping[str, object]]] = (),
        tools: Sequence[str | ToolSpec | Tool] | None = None,
        base_prompt: bool = True,
        store: SessionStore | None = None,
        resident: Resident | None = None,
    ) -> None:
        self._resident = resident or (store._resident if store else globals()["resident"]())
        self._config = (model, reasoning, tool_choice)
        self._session_id, self._under = session_id, store.under if store else ""
        self._system = tuple(_system(one) for one in system_messages)
        self._tools, self._base_prompt = tools, base_prompt
        self._agent: OpenAgent | None = None
        self._opening: asyncio.Lock | None = None

    async def _open(self) -> OpenAgent:
        """On the owner loop."""
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._agent is None:
                scheduler, (model, reasoning, choice) = self._resident.scheduler, self._config
                self._agent = await scheduler.open_agent(
                    opener="", session_id=self._session_id, under=self._under, system=self._system, model=model,
                    reasoning=reasoning, tools=self._declared(scheduler), base_prompt=self._base_prompt,
                )  # fmt: skip
                if choice:
                    await self._agent.set_config(tool_choice=_choice(choice))
        return self._agent

    def _declared(self, scheduler: Scheduler) -> tuple[ToolSpec, ...] | None:
        if self._tools is None:
            return None
        registry, out = scheduler.shared.registry, []
        for one in self._tools:
            if isinstance(one, ToolSpec):
                out.append(one)
                continue
            name = one if isinstance(one, str) else one.spec.name
            if not isinstance(one, str) and registry.get(name) is not one:
                registry.add(one, "library")
            found = registry.get(name)
            if found is None:
                raise UsageError(f"there is no tool {name!r}", f"there are: {', '.join(registry.names())}")
            out.append(found.spec)
        return tuple(out)

    def _call(self, work: Callable[[OpenAgent], Awaitable[T]]) -> Pending[T]:
        async def on_loop() -> T:
            return await work(await self._open())

        return Pending(self._resident.submit(on_loop))

    def open(self) -> Pending[str]:
        """Open it now; its session id. Raises PantoError."""

        async def identity(agent: OpenAgent) -> str:
            return agent.id

        return self._call(identity)

    def run(self, prompt: str | Message, **options: Any) -> Stream:
        """A turn as a stream of events. Options as for `run_async`."""
        return Stream(self.run_async(prompt, **options))

    def run_async(
        self,
        prompt: str | Message,
        *,
        metadata: Mapping[str, object] | None = None,
        dispatch_tools: bool = True,
        limits: Limits | None = None,
        id: str = "",
    ) -> Job:
        """A turn as a job that runs by itself. A known `id` is not run again."""
        message = prompt if isinstance(prompt, Message) else Message("user", (Text(prompt),), dict(metadata or {}))
        slot = Slot(0, None)

        async def begin(agent: OpenAgent) -> None:
            job = self._resident.scheduler.run(
                agent, message, id=id, dispatch_tools=dispatch_tools, limits=limits, source="program"
            )
            slot.job = job
            job.on_ready(lambda settled: job_.take())
            job_.take()

        job_ = Job(self._resident, slot)
        job_.begun = self._call(begin)
        return job_

    def submit(self, prompt: str, *, when: str = "steer", id: str = "") -> Pending[str]:
        """A durable input (`when`: steer or follow_up); its id."""
        message = Message("user", (Text(prompt),))
        return self._call(
            lambda agent: agent.submit(message, "step" if when == "steer" else "turn", id=id, source="program")
        )

    def tools(self) -> Pending[tuple[ToolSpec, ...]]:
        """The declarations in force."""

        async def declared(agent: OpenAgent) -> tuple[ToolSpec, ...]:
            return agent.tools()

        return self._call(declared)

    def set_tools(self, tools: Sequence[ToolSpec]) -> Pending[None]:
        """Exactly these from the next request on."""
        return self._call(lambda agent: agent.set_tools(tuple(tools)))

    def set_config(
        self, *, model: str | None = None, reasoning: str | None = None, tool_choice: str | None = None
    ) -> Pending[None]:
        """Merge into what is in force."""
        choice = _choice(tool_choice) if tool_choice else None
        return self._call(lambda agent: agent.set_config(model=model, reasoning=reasoning, tool_choice=choice))

    def conversation(self) -> Conversation:
        """Its conversation, to be read and written."""
        return Conversation(self)

    def close(self) -> Pending[None]:
        """Let go of the session. Idempotent."""

        async def close() -> None:
            agent, self._agent = self._agent, None
            if agent is not None and agent.id in self._resident.scheduler.agents:
                await self._resident.scheduler.close_agent(agent)

        return Pending(self._resident.submit(close))

    def __enter__(self) -> Agent:
        self.open().result()
        return self

    def __exit__(self, *_: object) -> None:
        self.close().result()

    async def __aenter__(self) -> Agent:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _system(one: str | tuple[str, Mapping[str, object]]) -> Message:
    text, metadata = (one, {}) if isinstance(one, str) else one
    return Message("system", (Text(text),), dict(metadata))


def _choice(name: str) -> ToolChoice:
    return ToolChoice(name) if name in ("auto", "none", "required") else ToolChoice("named", name)  # type: ignore[arg-type]


class Conversation:
    """The full history of an agent's session. Messages are numbered from 1."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def messages(self) -> Pending[tuple[Message, ...]]:
        """All messages, system messages first."""
        return self._agent._call(lambda agent: agent.conversation.messages())

    def add_system_message(self, text: str, metadata: Mapping[str, object] | None = None) -> Pending[int]:
        """Its number."""
        return self._agent._call(lambda agent: agent.conversation.add_message("system", text, dict(metadata or {})))

    def add_user_message(self, text: str, metadata: Mapping[str, object] | None = None) -> Pending[int]:
        """Its number; it goes along with the next turn."""
        return self._agent._call(lambda agent: agent.conversation.add_message("user", text, dict(metadata or {})))

    def set_message_metadata(self, number: int, metadata: Mapping[str, object]) -> Pending[None]:
        """Never sent to the model."""
        return self._agent._call(lambda agent: agent.conversation.set_message_metadata(number, dict(metadata)))


class SessionStore:
    """Sessions of this machine (`under` "": primaries; an id: those under it)."""

    def __init__(self, under: str = "", resident: Resident | None = None) -> None:
        self.under = under
        self._resident = resident or globals()["resident"]()

    def list(self, limit: int = 200) -> Pending[tuple[SessionRow, ...]]:
        """Newest first."""

        async def rows() -> tuple[SessionRow, ...]:
            store = self._resident.scheduler.shared.store
            return await (
                store.list(under=self.under, all=True, limit=limit) if self.under else store.list(limit=limit)
            )

        return Pending(self._resident.submit(rows))

    def metadata(self, id: str) -> Pending[SessionRow | None]:
        """What is known of one session, None if there is none."""

        async def find() -> SessionRow | None:
            rows = await self._resident.scheduler.shared.store.list(all=True, limit=1_000_000)
            return next((row for row in rows if row.id == id), None)

        return Pending(self._resident.submit(find))


def run(prompt: str, **options: Any) -> JobResult:
    """One turn of a new agent, waited for; options are Agent's. Raises RuntimeError where a loop runs here."""
    no_loop("await panto.Agent(...).run_async(...).wait()")
    with Agent(**options) as agent:
        job = agent.run_async(prompt)
        result = job.wait().result()
        job.close().result()
        return result


__all__ = [
    "Agent", "Conversation", "Resident", "Event", "Job", "Pending", "Provider", "SessionStore", "Stream", "Tool", "run",
]  # fmt: skip
