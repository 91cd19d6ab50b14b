"""Which session a client shows: opened, viewed, forked, taken over, lost to another process, left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from panto.scheduler.agent import Agent
from panto.scheduler.scheduler import Scheduler
from panto.scheduler.viewed import Viewed
from panto.schema import ops
from panto.schema.errors import SessionError, UsageError
from panto.schema.signals import Left, Noticed, SessionOpened, Update


class Switching:
    """The primary agent of a client, and how another one takes its place."""

    def __init__(self, scheduler: Scheduler, agent: Agent) -> None:
        self.scheduler = scheduler
        self._agent = agent
        self._switching = asyncio.Lock()

    def _hear(self, update: Update) -> None:
        raise NotImplementedError

    def show(self, text: str, *, level: Any = "info", hint: str = "", key: str = "") -> None:
        """Put text before the person."""
        self._hear(Noticed(self.primary, text, level, hint, key))

    @property
    def primary(self) -> str:
        """The session id of the primary agent."""
        return self._agent.id

    @property
    def agent(self) -> Agent:
        """The primary agent."""
        return self._agent

    def find(self, name: str) -> Agent:
        """An open agent by id ("" the primary). Raises UsageError."""
        agent = self._agent if name in ("", self.primary) else self.scheduler.agents.get(name)
        if agent is None:
            raise UsageError(f"no agent {name[:8]} is at work")
        return agent

    def observe(self, name: str, agent: Agent) -> None:
        """Tell observers of a session's own course."""
        self.scheduler.observe(name, {"agent": agent.id, "cwd": agent.cwd})

    async def _switch(self, opening: Callable[[], Awaitable[Agent]]) -> None:
        """Leave the session (it stays resumable) and show another one."""
        async with self._switching:
            before = self._agent
            self._agent = agent = await opening()
            if isinstance(before, Viewed):
                await self.scheduler.leave(before)
            else:
                self.observe("session_end", before)
                await self.scheduler.close_all(before)
            self._shown(agent)

    def _begun(self, agent: Agent) -> None:
        """Work in a session begins here."""
        agent.session.on_lost(lambda: self._lost(agent))
        self.observe("session_start", agent)

    def _shown(self, agent: Agent) -> None:
        """Another session is shown from here on."""
        viewed = isinstance(agent, Viewed)
        if not viewed:
            self._begun(agent)
        self._hear(SessionOpened(agent.id, read_only=viewed))
        self._hear(agent.status())

    async def _new(self) -> None:
        """Begin an empty session, with the model and in the folder of the one that is left."""
        here, shared = self._agent, self.scheduler.shared
        if isinstance(here, Viewed):
            model, reasoning = shared.settings.default_model, shared.settings.default_reasoning
            await self._switch(lambda: self.scheduler.create(cwd=shared.cwd, model=model, reasoning=reasoning))
        else:
            await self._switch(
                lambda: self.scheduler.create(cwd=here.cwd, model=here.model, reasoning=here.reasoning)
            )

    async def _fork(self, of: Agent, turn: str) -> None:
        """A session of its own from here, or from just before a turn: what was said in it comes back to be edited."""
        await self._branch(of.id, of.name, turn, settled=isinstance(of, Viewed))

    async def _branch(self, id: str, name: str, turn: str = "", *, settled: bool) -> None:
        await self._switch(lambda: self.scheduler.fork(id, turn, settled=settled))
        self.show(f"a session of its own now, forked from: {name}")
        for said in tuple(self._agent.session.state.inputs):
            await self._agent.mailbox.withdraw(said)

    async def _open(self, op: ops.OpenSession) -> None:
        id = await self.scheduler.shared.store.resolve(op.session)
        if id == self.primary and not isinstance(self._agent, Viewed) and op.how != "fork":
            return
        match op.how:
            case "view":
                if id != self.primary:
                    await self._switch(lambda: self.scheduler.view(id))
            case "fork":
                await self._branch(id, id[:8], settled=True)
            case how:
                await self._switch(lambda: self.scheduler.open(id, take_over=how == "take_over"))

    def _lost(self, agent: Agent) -> None:
        """Another process has taken a session over. Who is there follows it from here on."""
        if agent is self._agent and self.scheduler.shared.attended and not agent.mailbox.closed:
            self.scheduler.run_in_background(asyncio.ensure_future(self._look_on(agent)))

    async def _look_on(self, agent: Agent) -> None:
        """Go on with a lost session as its viewer."""
        async with self._switching:
            if agent is not self._agent:
                return
            self.observe("session_end", agent)
            await self.scheduler.close_all(agent)
            try:
                self._agent = viewed = await self.scheduler.view(agent.id)
            except SessionError as problem:  # the other one has deleted it, say
                text = f"another process took this session over, and it cannot be viewed: {problem.message}"
                self.show(text, level="wrong", hint="/new begins another one", key="lost")
                return
            self._shown(viewed)
        text = "another process took this session over; here it can only be viewed from now on"
        self.show(text, level="attention", hint=viewed.refusal.hint, key="lost")

    async def _shutdown(self) -> None:
        agent = self._agent
        turns = len(agent.session.view.turns)
        usage, cost = agent.session.view.usage, agent.cost
        tokens = usage.input + usage.output + agent.status().agent_tokens
        facts = [f"{turns} turn{'s' if turns != 1 else ''}", f"{tokens / 1000:.0f}k tokens"]
        facts += [f"${cost:.2f}"] if cost is not None else []
        if not isinstance(agent, Viewed):
            self.observe("session_end", agent)
        summary = (" · ".join(facts), f"panto --resume {await self.short()}") if turns else ()
        await self.scheduler.close()
        self._hear(Left(agent.id, summary))

    async def short(self) -> str:
        """The shortest prefix that names the primary's session."""
        rows = await self.scheduler.shared.store.list(all=True, limit=5000)
        return next((row.short for row in rows if row.id == self.primary), self.primary[:8])
