"""Many agents on the one owner loop: who is open, who opened what, and what ends with it.

No tree, slot or child policy lives here: there are agents, jobs, and owners. An owner is whatever opened a job: the
effect of a tool call, an extension, or the session (None).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from panto.agent.ports import Limits
from panto.scheduler.agent import Agent
from panto.scheduler.job import Job, JobResult, from_record
from panto.scheduler.mailbox import DEPTH_STEP
from panto.scheduler.observing import told
from panto.scheduler.recovery import open_for_work, setup_of
from panto.scheduler.shared import Shared
from panto.schema.bodies import AgentSetup
from panto.schema.codec import derive_id
from panto.schema.errors import Missing, UsageError
from panto.schema.messages import Message, Text, ToolSpec, Usage
from panto.schema.records import Recorder
from panto.schema.signals import Fact, Update
from panto.session import stage
from panto.session.commands import ChangeSetup, EndJob, StartJob
from panto.tools.jobs import JobNotice, Jobs


class Scheduler:
    """All open agents and running jobs of a process. Everything here belongs to the owner loop's thread."""

    def __init__(self, shared: Shared, jobs: Jobs | None = None) -> None:
        self.shared = shared
        self.agents: dict[str, Agent] = {}
        self.readers: list[Callable[[Update], None]] = []
        self._jobs: set[Job] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        if jobs is not None:
            jobs.listen = self._background

    # --- telling -----------------------------------------------------------------------------------------------

    def tell(self, update: Update) -> None:
        """Give an update to every reader, to the observers, and to the job it belongs to."""
        for reader in self.readers:
            reader(update)
        if isinstance(update, Fact):
            for name, event in told(update):
                self.shared.observer.observe(name, event)
        for job in tuple(self._jobs):
            job.put(update)
            if job.result is not None:
                self._jobs.discard(job)
                self._rested(job)

    def _rested(self, job: Job) -> None:
        agent = self.agents.get(job.agent)
        if agent is not None and agent.job is job:
            agent.job, agent.dispatch, agent.limits = None, True, None

    def run_in_background(self, work: asyncio.Task[None]) -> None:
        """Keep a task alive until it is done; its error goes to the log."""
        self._tasks.add(work)
        work.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.shared.log(f"{type(error).__name__}: {error}")

    def _background(self, notice: JobNotice) -> None:
        """A background command started or ended: the ledger of its session says so."""
        agent = self.agents.get(notice.session)
        if agent is not None:
            self.run_in_background(asyncio.ensure_future(self._record_job(agent, notice)))

    async def _record_job(self, agent: Agent, notice: JobNotice) -> None:
        if not notice.status:
            await agent.session.commit(
                StartJob(job=notice.job, kind="command", title=notice.title, call=notice.call)
            )
            return
        body = stage(notice.outcome) if notice.outcome is not None else None
        ended = EndJob(job=notice.job, status=notice.status, outcome=body.digest if body else None)
        await agent.session.commit(ended, bodies=(body,) if body else ())

    # --- agents ------------------------------------------------------------------------------------------------

    async def create(self, *, cwd: str, model: str = "", reasoning: str = "", mode: str = "") -> Agent:
        """A new primary agent in a session of its own."""
        session = await self.shared.store.create(cwd=cwd, model=model, reasoning=reasoning, mode=mode)
        return self._add(Agent(self.shared, session, self.tell, self._interrupt_owned))

    async def open(self, name: str, *, take_over: bool = False) -> Agent:
        """Open a session as a primary agent; an active turn stays parked."""
        session = await open_for_work(self.shared.store, name, take_over=take_over)
        return self._add(Agent(self.shared, session, self.tell, self._interrupt_owned, None, await setup_of(session)))

    async def fork(self, name: str, before_turn: str = "") -> Agent:
        """A new primary that shares a session's history up to just before a turn ("" the head)."""
        session = await self.shared.store.fork(name, before_turn or None)
        return self._add(Agent(self.shared, session, self.tell, self._interrupt_owned, None, await setup_of(session)))

    def _add(self, agent: Agent) -> Agent:
        self.agents[agent.id] = agent
        return agent

    async def open_agent(
        self,
        *,
        opener: str,
        session_id: str = "",
        under: str = "",
        system: Sequence[Message] = (),
        model: str = "",
        reasoning: str = "",
        tools: Sequence[ToolSpec] | None = None,
        base_prompt: bool = True,
        title: str = "",
    ) -> Agent:
        """Open or create an agent made by another (`opener`: its session id). What is not given is the opener's, live.

        An id that is already open here gives the same agent; its handles are counted. `system` is written once, at
        creation. Raises UsageError (unknown model, not the id's scope), Owned, Missing.
        """
        parent = self.agents[opener]
        if session_id in self.agents:
            self.agents[session_id].handles += 1
            return self.agents[session_id]
        if model:
            self.shared.catalog.resolve(model)
        store, primary = self.shared.store, under or parent.session.under or parent.id
        try:
            session = await open_for_work(store, session_id) if session_id else None
        except Missing:
            session = None
        if session is not None:
            setup = await setup_of(session)
        else:
            session = await store.create(
                cwd=parent.cwd, model=model, reasoning=reasoning, id=session_id or None, under=primary, opener=opener,
                depth=parent.session.depth + 1, title=title,
            )  # fmt: skip
            setup = AgentSetup(
                tools=None if tools is None else tuple(tools), system=tuple(system), base_prompt=base_prompt
            )
            body = stage(setup)
            await session.commit(ChangeSetup(setup=body.digest), bodies=(body,))
        return self._add(Agent(self.shared, session, self.tell, self._interrupt_owned, parent, setup))

    async def close_agent(self, agent: Agent) -> None:
        """Drop one handle; the last one parks what runs and releases the session."""
        agent.handles -= 1
        if agent.handles > 0:
            return
        await agent.mailbox.park()
        self.agents.pop(agent.id, None)
        agent.forget()
        await agent.session.close()

    # --- jobs --------------------------------------------------------------------------------------------------

    def run(
        self,
        agent: Agent,
        prompt: Message | str,
        *,
        id: str = "",
        metadata: dict[str, object] | None = None,
        dispatch_tools: bool = True,
        limits: Limits | None = None,
        owner: Hashable = None,
        source: Literal["program", "extension", "child"] = "extension",
    ) -> Job:
        """Start a turn of an agent; give its job at once. Raises UsageError where it is in a turn.

        A known `id` submits nothing again: a settled turn's job has its result at once, a parked one is continued.
        """
        if agent.in_turn or agent.job is not None:
            raise UsageError("agent is in a turn")
        message = prompt if isinstance(prompt, Message) else Message("user", (Text(prompt),), metadata or {})
        name = id or derive_id("job", agent.id, len(agent.session.view.turns), *agent.session.head)
        job = Job(name, agent.id, agent.mailbox.interrupt, owner)
        agent.job, agent.dispatch, agent.limits = job, dispatch_tools, limits
        self._jobs.add(job)
        self.run_in_background(asyncio.ensure_future(self._begin(agent, job, message, source)))
        return job

    async def _begin(
        self, agent: Agent, job: Job, message: Message, source: Literal["program", "extension", "child"]
    ) -> None:
        try:
            turn = derive_id("turn", job.id)
            known = next((t for t in agent.session.view.turns if t.turn == turn), None)
            if known is None:
                await agent.mailbox.prompt(message, id=job.id, source=source)
            elif known.state in ("active", "attempt_failed"):
                await agent.mailbox.resume()
            else:
                await self._settled_before(agent, job)
        except UsageError as problem:
            error: dict[str, object] = {"kind": "invalid_request", "message": problem.message}
            job.settle(JobResult(job.id, "failed", error=error))
        if job.result is not None:
            self._jobs.discard(job)
            self._rested(job)

    async def _settled_before(self, agent: Agent, job: Job) -> None:
        """The result of a turn that an earlier process settled, read from its facts."""
        turn, recorder = derive_id("turn", job.id), Recorder(agent.id)
        page = await agent.session.history(None, 1 << 30)
        inside = False
        for fact in page.facts:
            for record in recorder.records(fact):
                inside = inside or (record["type"] == "turn_started" and record["turn"] == turn)
                if inside and record["type"] == "turn_ended":
                    job.settle(from_record(job.id, record, ()))
                    return
        job.settle(JobResult(job.id, "failed", error={"kind": "internal", "message": "the turn's record is missing"}))

    def _interrupt_owned(self, agent: Agent, deadline: float) -> None:
        """Escape reached an agent: what its running calls have opened ends before it."""
        run = agent.session.state.run
        for call in run.unfinished if run else ():
            if call.effect:
                self.interrupt_owner(call.effect, deadline - DEPTH_STEP)

    def interrupt_owner(self, owner: Hashable, deadline: float | None = None) -> None:
        """Interrupt every job that this owner opened; they settle by `deadline` (monotonic seconds)."""
        for job in tuple(self._jobs):
            agent = self.agents.get(job.agent)
            if job.owner == owner and owner is not None and agent is not None:
                self.run_in_background(asyncio.ensure_future(agent.mailbox.interrupt(deadline)))

    async def end_owner(self, owner: Hashable) -> None:
        """End every job that this owner opened, and wait until they have really ended."""
        mine = [job for job in self._jobs if job.owner == owner and owner is not None]
        await asyncio.gather(*(job.close() for job in mine))

    async def close(self) -> None:
        """Park everything and release every session."""
        await asyncio.gather(*(agent.mailbox.park() for agent in self.agents.values()))
        for job in tuple(self._jobs):
            job.settle(JobResult(job.id, "cancelled", usage=Usage()))
        self._jobs.clear()
        for agent in tuple(self.agents.values()):
            agent.handles = 1
            await self.close_agent(agent)
        for task in tuple(self._tasks):
            task.cancel()

