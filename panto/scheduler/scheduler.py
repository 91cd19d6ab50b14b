"""Many agents on the one owner loop: who is open, who opened what, and what ends with it.

No tree, slot or child policy lives here: there are agents, jobs, and owners. An owner is whatever opened a job: the
effect of a tool call, an extension, or the session (None).
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Hashable, Sequence
from typing import Literal
from weakref import WeakValueDictionary

from panto.agent.ports import Limits
from panto.scheduler.agent import Agent
from panto.scheduler.job import Job, Unresolved, from_record
from panto.scheduler.mailbox import DEPTH_STEP, Parked
from panto.scheduler.observing import told
from panto.scheduler.recovery import open_for_work, setup_of
from panto.scheduler.shared import Shared
from panto.scheduler.viewed import Viewed
from panto.schema.bodies import AgentSetup
from panto.schema.codec import derive_id
from panto.schema.errors import Missing, PantoError, SessionError, UsageError
from panto.schema.events import ModelStepCompleted
from panto.schema.messages import Message, Text, ToolSpec
from panto.schema.records import Recorder
from panto.schema.signals import Fact, Update
from panto.session import Session, Spent, stage
from panto.session.commands import ChangeSetup, EndJob, StartJob
from panto.session.ids import new_id
from panto.tools.jobs import JobNotice, Jobs
from panto.tools.paths import storable


class Scheduler:
    """All open agents and running jobs of a process. Everything here belongs to the owner loop's thread."""

    def __init__(self, shared: Shared, jobs: Jobs | None = None) -> None:
        self.shared, self.jobs = shared, jobs
        self.agents: dict[str, Agent] = {}
        self.readers: list[Callable[[Update], None]] = []
        self._doors: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        if jobs is not None:
            jobs.listen = self._background

    # --- telling -----------------------------------------------------------------------------------------------

    def tell(self, update: Update) -> None:
        """Give an update to every reader, to the observers, and to the job it belongs to. Whoever raises there is
        reported by the loop and disturbs nobody."""
        if isinstance(update, Fact):
            self._count(update)
            self._give(update)  # the session has put it on the loop already
        else:
            asyncio.get_running_loop().call_soon(self._give, update)

    def _count(self, fact: Fact) -> None:
        """What a child used is counted to its primary."""
        child = self.agents.get(fact.agent)
        primary = self.agents.get(child.session.under) if child is not None else None
        if child is None or primary is None or not isinstance(fact.event, ModelStepCompleted):
            return
        used, cost = child.session.view.usage, child.session.view.cost
        primary.under[child.id] = Spent(used.input + used.output, cost)
        primary.signal(primary.status())

    def _give(self, update: Update) -> None:
        if not isinstance(update, Fact):  # these may be lost, and come by the thousand
            for reader in tuple(self.readers):
                reader(update)
            self._to_job(update)
            return
        with contextlib.ExitStack() as each:  # runs from the last to the first, all of them
            each.callback(self._to_job, update)
            if not isinstance(self.agents.get(update.agent), Viewed):
                for name, event in told(update):
                    each.callback(self.shared.observer.observe, name, event)
            for reader in reversed(self.readers):
                each.callback(reader, update)

    def _to_job(self, update: Update) -> None:
        agent = self.agents.get(update.agent)
        if agent is not None and agent.job is not None:
            agent.job.put(update)
            self._settled(agent, agent.job)

    def _settled(self, agent: Agent, job: Job) -> None:
        if job.result is not None and agent.job is job:
            agent.job, agent.dispatch, agent.limits = None, True, None

    def observe(self, name: str, event: dict[str, object]) -> None:
        """Tell observers something that no fact says."""
        asyncio.get_running_loop().call_soon(self.shared.observer.observe, name, event)

    def rested(self, agent: Agent, parked: Parked | None) -> None:
        """An agent's drive has ended; `parked` where its turn has not."""
        if parked is None:
            return
        if parked.reason != "attempt_failed":  # of that the facts have told
            turn = agent.session.state.turn
            self.observe("turn_end", {"agent": agent.id, "turn": turn.turn if turn else "", "reason": parked.reason})
        if agent.job is not None:
            agent.job.give_up(parked)
            self._settled(agent, agent.job)

    def run_in_background(self, work: asyncio.Task[None]) -> None:
        """Keep a task alive until it is done; its error goes to the log."""
        self._tasks.add(work)
        work.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.shared.log("".join(traceback.format_exception(error)))

    def _background(self, notice: JobNotice) -> None:
        """A background command started or ended: the ledger of its session says so."""
        agent = self.agents.get(notice.session)
        if agent is not None:
            self.run_in_background(asyncio.ensure_future(self._record_job(agent, notice)))

    async def _record_job(self, agent: Agent, notice: JobNotice) -> None:
        if not notice.status:
            await agent.session.commit(StartJob(job=notice.job, kind="command", title=notice.title, call=notice.call))
            return
        body = stage(notice.outcome) if notice.outcome is not None else None
        ended = EndJob(job=notice.job, status=notice.status, outcome=body.digest if body else None)
        await agent.session.commit(ended, bodies=(body,) if body else ())

    # --- agents ------------------------------------------------------------------------------------------------

    async def create(self, *, cwd: str, model: str = "", reasoning: str = "") -> Agent:
        """A new primary agent in a session of its own."""
        return await self._add(await self.shared.store.create(cwd=storable(cwd), model=model, reasoning=reasoning))

    async def open(self, name: str, *, take_over: bool = False) -> Agent:
        """Open a session as a primary agent; an active turn stays parked."""
        agent = await self._add(await open_for_work(self.shared.store, name, take_over=take_over))
        agent.under = await self.shared.store.spent(agent.id)
        return agent

    async def fork(self, name: str, before_turn: str = "", *, settled: bool = False) -> Agent:
        """A new primary that shares a session's history up to just before a turn ("" the head, or, `settled`, what is
        settled of it)."""
        return await self._add(await self.shared.store.fork(name, before_turn or None, settled=settled))

    async def view(self, name: str) -> Viewed:
        """Follow a session that another process may write; nothing can be done in it."""
        agent = Viewed(self.shared, await self.shared.store.view(name), self)
        agent.under = await self.shared.store.spent(agent.id)
        self.agents[agent.id] = agent
        return agent

    async def leave(self, agent: Viewed) -> None:
        """Follow a session no longer."""
        if self.agents.get(agent.id) is agent:
            del self.agents[agent.id]
        agent.forget()
        await agent.session.close()

    async def _add(self, session: Session, opener: Agent | None = None) -> Agent:
        try:
            agent = Agent(self.shared, session, self, opener, await setup_of(session))
            await agent.recall()
        except BaseException:  # nobody else could close it
            await session.close()
            raise
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

        Opener "": made by nobody (scripts, the library): a primary, or one under `under`, with the process's defaults.
        An id that is already open here gives the same agent as it is; its handles are counted. A stored one takes on
        the model, reasoning and tools given; `system` is written once, at creation. Raises UsageError (unknown model,
        an id of another scope), Owned.
        """
        parent = self.agents[opener] if opener else None
        if model:
            self.shared.catalog.resolve(model)
        primary = under or (parent.session.under or parent.id if parent else "")
        async with self._door(session_id or new_id()):
            if session_id in self.agents:
                self.agents[session_id].handles += 1
                return self.agents[session_id]
            given = None if tools is None else tuple(tools)
            session = await self._existing(session_id, primary) if session_id else None
            if session is not None:
                agent = await self._add(session, parent)
                await agent.take_on(model, reasoning, given)
                return agent
            session = await self.shared.store.create(
                cwd=storable(parent.cwd if parent else self.shared.cwd), model=model, reasoning=reasoning,
                id=session_id or None, under=primary or None, opener=opener or None, title=title,
                depth=parent.session.depth + 1 if parent else bool(primary),
            )  # fmt: skip
            body = stage(AgentSetup(tools=given, system=tuple(system), base_prompt=base_prompt))
            try:
                await session.commit(ChangeSetup(setup=body.digest), bodies=(body,))
            except BaseException:
                await session.close()
                raise
            return await self._add(session, parent)

    async def _existing(self, name: str, primary: str) -> Session | None:
        """A stored session of this primary's scope; None where there is none of that id."""
        try:
            session = await open_for_work(self.shared.store, name)
        except Missing:
            return None
        if session.under != primary:
            await session.close()
            raise UsageError(f"session {name[:8]} does not belong to session {primary[:8]}")
        return session

    def _door(self, name: str) -> asyncio.Lock:
        """Who opens or closes a session goes through its door alone."""
        return self._doors.setdefault(name, asyncio.Lock())

    async def close_agent(self, agent: Agent) -> None:
        """Drop one handle; the last one parks what runs and releases the session."""
        agent.handles -= 1
        if agent.handles > 0:
            return
        async with self._door(agent.id):
            if agent.handles > 0 or self.agents.get(agent.id) is not agent:
                return  # somebody came in at the last moment, or closed it
            await agent.mailbox.park()
            if agent.job is not None:  # it had not begun
                agent.job.give_up(Parked("shutdown"))
            self.agents.pop(agent.id, None)
            agent.forget()
            await agent.session.close()

    async def close_all(self, primary: Agent) -> None:
        """Close a primary and all agents under it, whoever still holds a handle."""
        gone = [agent for agent in self.agents.values() if agent.session.under == primary.id]
        await asyncio.gather(*(agent.mailbox.park() for agent in (primary, *gone)))
        for agent in (*gone, primary):
            agent.handles = 1
            await self.close_agent(agent)

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
        if agent.job is not None or (agent.in_turn and agent.session.state.turn is not None):
            raise UsageError("agent is in a turn")
        message = prompt if isinstance(prompt, Message) else Message("user", (Text(prompt),), metadata or {})
        name = id or derive_id("job", agent.id, len(agent.session.view.turns), *agent.session.head)
        job = Job(name, agent.id, agent.mailbox.interrupt, owner)
        agent.job, agent.dispatch, agent.limits = job, dispatch_tools, limits
        if agent.opener is not None:
            self.run_in_background(asyncio.ensure_future(self._tell_opener(agent, agent.opener, job)))
        self.run_in_background(asyncio.ensure_future(self._begin(agent, job, message, source)))
        return job

    async def _tell_opener(self, agent: Agent, opener: Agent, job: Job) -> None:
        """The session that opened an agent records that it runs, for which call, and how that ended."""
        run = opener.session.state.run
        call = next((one.call for one in run.unfinished if one.effect == job.owner), "") if run else ""
        try:
            await opener.session.commit(StartJob(job=agent.id, kind="child", title=agent.name, call=call))
            result = await job.wait()
            await opener.session.commit(EndJob(job=agent.id, status=result.status))
        except SessionError as problem:  # closed meanwhile, or not writable: the child's own session tells all
            self.shared.log(f"agent {agent.id[:8]}: {problem.message}")

    async def _begin(
        self, agent: Agent, job: Job, message: Message, source: Literal["program", "extension", "child"]
    ) -> None:
        try:
            said = agent.session.view.context.find(job.id)
            turn = agent.session.view.turn(said.turn) if said is not None else None
            if turn is not None and turn.state not in ("active", "attempt_failed"):
                await self._settled_before(agent, job, turn.turn)
            elif job.stopping.is_set():
                job.give_up(Parked("shutdown"))
            elif turn is not None:
                await agent.mailbox.resume()
            else:
                await agent.mailbox.prompt(message, id=job.id, source=source)
                if job.stopping.is_set():  # while it was on its way
                    await agent.mailbox.interrupt()
        except PantoError as problem:
            job.give_up(Parked("failed", problem))
        except BaseException:  # the log has it; who waits for the job must not wait for ever
            job.give_up(Parked("failed"))
            raise
        finally:
            self._settled(agent, job)

    async def _settled_before(self, agent: Agent, job: Job, turn: str) -> None:
        """The result of a turn that was settled before, read from its facts."""
        recorder, unresolved, inside = Recorder(agent.id), Unresolved(), False
        for fact in (await agent.session.history(None, 1 << 30)).facts:
            unresolved.take(fact)
            for record in recorder.records(fact):
                inside = inside or (record["type"] == "turn_started" and record["turn"] == turn)
                if inside and record["type"] == "turn_ended":
                    job.settle(from_record(job.id, record, unresolved.calls()))
                    return
        job.give_up(Parked("failed", Missing(f"what turn {turn[:8]} came to is not in the history")))

    def _jobs_of(self, owner: Hashable) -> list[tuple[Agent, Job]]:
        jobs = [(agent, agent.job) for agent in self.agents.values() if agent.job is not None]
        return [(agent, job) for agent, job in jobs if owner is not None and job.owner == owner]

    def interrupted(self, agent: Agent, deadline: float, parking: bool) -> None:
        """An agent stops: what its running calls have opened ends before it, or is parked with it."""
        run = agent.session.state.run
        for call in run.unfinished if run else ():
            if call.effect and parking:
                for child, _ in self._jobs_of(call.effect):
                    self.run_in_background(asyncio.ensure_future(child.mailbox.park(close=False)))
            elif call.effect:
                self.interrupt_owner(call.effect, deadline - DEPTH_STEP)

    def interrupt_owner(self, owner: Hashable, deadline: float | None = None) -> None:
        """Interrupt every job that this owner opened; they settle by `deadline` (monotonic seconds)."""
        for _, job in self._jobs_of(owner):
            job.request_cancel(deadline)

    async def end_owner(self, owner: Hashable) -> None:
        """End every job that this owner opened, and wait until they have really ended."""
        await asyncio.gather(*(job.close() for _, job in self._jobs_of(owner)))

    async def park(self) -> None:
        """End all that runs, so that a later start continues it; nothing starts any more."""
        agents = tuple(self.agents.values())
        for agent in agents:
            agent.mailbox.closed = True
        await asyncio.gather(*(agent.mailbox.park() for agent in agents))

    async def close(self) -> None:
        """Park everything and release every session."""
        await self.park()
        for agent in tuple(self.agents.values()):
            agent.handles = 1
            await self.close_agent(agent)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
