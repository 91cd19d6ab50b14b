"""One agent's inbox: what is said becomes a turn, joins the running one, or waits; one drive at a time.

Every answer to "what now" is read from the session's state, never remembered here, so that a crash between any two
lines leaves a session that goes on. What is remembered may be lost: which calls ran here, what could not be written.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Literal

from panto.agent import parking, steps, waiting
from panto.agent.dispatch import Step
from panto.agent.loop import drive, stop
from panto.agent.ports import Base, Control, Ports
from panto.scheduler import answers, turns
from panto.scheduler.parked import Parked as Parked
from panto.scheduler.parked import Reason
from panto.schema.bodies import MessageBody, Question
from panto.schema.errors import Conflict, OwnershipLost, PantoError, Refused, StorageFailed, UsageError
from panto.schema.messages import Message
from panto.schema.ops import Answer, Decide
from panto.schema.signals import Noticed
from panto.session import stage
from panto.session.append import lost as ownership_lost
from panto.session.command import Command
from panto.session.commands import FailRun, RequestInterrupt, SubmitInput, WithdrawInput
from panto.session.context import InputEntry
from panto.session.ids import new_id
from panto.session.state import Run

WINDOW = 0.9
"""Seconds from Escape until every call of a primary agent has settled."""

DEPTH_STEP = 0.2
"""Seconds by which a child's window is shorter, for each level: its parent needs time to answer after it."""

Source = Literal["person", "program", "extension", "child", "command"]


class Mailbox:
    """The inbox and the drive of one agent.

    `on_interrupt(deadline, parking)`: what the running calls have opened must end by then (monotonic seconds), or be
    parked. `on_rest(parked)`: nothing is driven any more, or an aside began or ended. `log` gets tracebacks.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        depth: int = 0,
        on_interrupt: Callable[[float, bool], None] = lambda deadline, parking: None,
        on_rest: Callable[[Parked | None], None] = lambda parked: None,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.ports = ports
        self.session = ports.session
        self.control: Control | None = None
        self.closed = False
        self._depth = depth
        self._on_interrupt = on_interrupt
        self._on_rest = on_rest
        self._log = log
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._asides: list[Control] = []
        self._leaving = self._beginning = False
        self._problem: PantoError | None = None
        self._launched: set[str] = set()
        self._held: list[Step] = []
        self._lock = asyncio.Lock()
        self.session.on_lost(self._lost)

    @property
    def in_turn(self) -> bool:
        """Whether a turn is being driven now."""
        return self._task is not None

    @property
    def busy(self) -> bool:
        """Whether anything runs that Escape would stop."""
        return self.in_turn or self._beginning or bool(self._asides)

    @property
    def parked(self) -> bool:
        """Whether a turn waits to be continued."""
        return self.session.state.turn is not None and self._task is None and not self._beginning

    # --- what is said ------------------------------------------------------------------------------------------

    async def prompt(
        self, message: Message, *, when: Literal["step", "turn"] = "step", id: str = "", source: Source = "person",
        start: bool = True,
    ) -> str:  # fmt: skip
        """Take an input; the id it has. Starts a turn where none runs, unless `start` is False (then it waits).

        A known `id` is not submitted again. A parked turn takes it in, its unfinished calls ended; a failed attempt
        is settled first. What is said while an interrupt is under way begins the next turn.
        """
        name, body = id or new_id(), stage(MessageBody(message))
        while self._stopping is not None:
            await asyncio.wait((self._stopping,))
        async with self._lock:
            await self._ready()
            begins, waits = start and not self.in_turn, name in self.session.state.inputs
            if not waits and isinstance(self.session.view.context.find(name), InputEntry):
                return name  # it was delivered before
            when = "step" if begins else when
            due: list[Command] = [] if waits else [SubmitInput(input=name, body=body.digest, when=when, source=source)]
            if not begins:
                await self.session.commit(*due, bodies=(body,)) if due else None
                return name
            with self._begin():
                await self._settle()
                await self.session.commit(*due, *turns.begin(self.session.state, name), bodies=(body,))
        return name

    @contextlib.contextmanager
    def _begin(self) -> Iterator[None]:
        """Around the commit after which a drive begins: what its facts lead to is told as it will be."""
        self._beginning = True
        try:
            yield
            self._start()
        finally:
            self._beginning = False
            self._on_rest(None)

    async def _settle(self) -> None:
        """End a failed attempt that nobody retries, before another turn begins."""
        if over := turns.settle(self.session.state):
            await self.session.commit(*over)

    async def withdraw(self, name: str = "") -> None:
        """Take an undelivered input back ("" the last one). Raises UsageError where there is none."""
        async with self._lock:
            inputs = self.session.state.inputs
            name = name or next(reversed(inputs), "")
            if name not in inputs:
                raise UsageError("there is no queued message to take back")
            await self.session.commit(WithdrawInput(input=name))

    # --- turns -------------------------------------------------------------------------------------------------

    async def resume(self) -> None:
        """Go on with a parked turn, retry a failed attempt, or send what waits. Nothing where there is nothing.

        Where the ledger could not be written it is opened again first. Raises StorageFailed where it still cannot.
        """
        async with self._lock:
            if self.in_turn:
                if self.control is not None:
                    self.control.retry_now.set()
                return
            await self._ready()
            state = self.session.state
            failed = state.turn if state.turn is not None and state.turn.status == "attempt_failed" else None
            due = (turns.again(failed),) if failed is not None else turns.follow(state)
            if state.turn is None and not due:
                return
            with self._begin():
                if due:
                    await self.session.commit(*due)
                if state.run is not None and not self.ports.setup().attended:
                    await answers.refuse(self.session, state.run)

    async def _ready(self) -> None:
        """Before anything new is said. Raises UsageError once the agent is closed, StorageFailed."""
        if self.closed:
            raise UsageError("this session is being closed")
        if not self.in_turn:
            await self._mend()

    async def _mend(self) -> None:
        """Open a ledger again that failed, commit what could not be written, and end what ran when a former drive
        broke off: nobody runs it twice."""
        if self.session.poisoned:
            await self.session.reopen()
        while self._held:
            with contextlib.suppress(Refused, Conflict):  # it had been written after all, or the run has ended
                await self.session.commit(*self._held[0].commands, bodies=self._held[0].bodies)
            self._held.pop(0)
        if (run := self.session.state.run) is not None and self._launched:
            await parking.park(self.ports, Control(launched=self._launched, parking=self._leaving), run)
        self._launched.clear()
        if (run := self.session.state.run) is not None and run.interrupting:
            await stop(self.ports, Control(), run)

    def _start(self) -> None:
        if self.closed:
            return
        self.session.parked = False
        self._problem, self._leaving = None, False
        self._task = asyncio.create_task(self._drive())
        self._task.add_done_callback(self._rest)

    async def _drive(self) -> None:
        """Drive turn after turn until nothing is due."""
        try:
            while await self._turn():
                pass
        except PantoError as problem:
            self._problem = problem
        self._task = self.control = None

    async def _turn(self) -> bool:
        """Drive a turn until it rests; whether another one has begun."""
        view = self.session.view
        base = Base(view.usage.input + view.usage.output, view.cost or 0.0)
        self.control = control = Control(base, launched=self._launched, held=self._held)
        clock = self._clock(control)
        try:
            await drive(self.ports, control)
        except PantoError:
            raise
        except Exception as error:  # a fault of panto's own ends the run, never the session
            await self._broke(error)
        finally:
            if clock is not None:
                clock.cancel()
        async with self._lock:
            following = () if control.ending else turns.follow(self.session.state)
            if following:
                await self._settle()
                await self.session.commit(*following)
        return bool(following)

    def _clock(self, control: Control) -> asyncio.TimerHandle | None:
        """What ends a run that takes too long."""
        with contextlib.suppress(UsageError):  # no model: the drive says so
            if seconds := self.ports.setup().limits.seconds:
                return asyncio.get_running_loop().call_later(seconds, self._expired, control, seconds)
        return None

    def _expired(self, control: Control, seconds: float) -> None:
        control.limit = ("budget", f"stopped after {seconds:g} s")
        deadline = time.monotonic() + WINDOW - DEPTH_STEP * self._depth
        self._on_interrupt(deadline, False)
        control.stop_by(deadline)

    async def _broke(self, error: Exception) -> None:
        self._log("".join(traceback.format_exception(error)))
        run = self.session.state.run
        message = f"panto itself failed: {type(error).__name__}: {error}".encode("utf-8", "replace").decode("utf-8")
        hint = "The details are in the log. Nothing is lost; Enter tries again."
        self.ports.signal(Noticed(self.session.id, message, "wrong", hint))
        if run is not None and not run.interrupting:
            await steps.commit_end(self.ports, Step((FailRun(run=run.run, reason="internal", message=message),)))

    def _rest(self, task: asyncio.Task[None]) -> None:
        """The drive has ended, as it should or by being cancelled."""
        if self._task not in (None, task):
            return
        self._task = self.control = None
        if self._stopping is None:
            self._rested()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log("".join(traceback.format_exception(error)))

    def _rested(self) -> None:
        """Tell how it came to rest."""
        problem, self._problem = self._problem, None
        turn = self.session.state.turn
        lost = isinstance(problem, OwnershipLost)
        reason: Reason = "ownership_lost" if lost else "shutdown" if self._leaving else "failed"
        if isinstance(problem, StorageFailed):
            if not self._held:  # else it was told at once
                self.ports.signal(steps.storage_notice(self.ports, problem))
        elif problem is not None:
            self.ports.signal(Noticed(self.session.id, problem.message, "wrong", problem.hint, reason if lost else ""))
        if turn is not None and turn.status == "attempt_failed":
            reason = "attempt_failed"
        self._on_rest(None if turn is None else Parked(reason, problem))

    # --- stopping ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def aside(self) -> Iterator[Control]:
        """Something that a person has started outside any turn: Escape stops it too, by the control it is given."""
        control = Control()
        self._asides.append(control)
        self._on_rest(None)
        try:
            yield control
        finally:
            self._asides.remove(control)
            self._on_rest(None)

    async def interrupt(self, deadline: float | None = None) -> None:
        """Escape, in order: recorded, told, what runs is stopped, the turn ended. Returns when the turn has ended.

        `deadline` (monotonic seconds) is handed down by a parent's Escape. A second one joins the first. Raises
        StorageFailed where it could not be recorded: what ran has stopped, the turn is parked. While it is being parked
        nothing is recorded: its turn stays.
        """
        if self._leaving:
            await asyncio.wait((self._task,)) if self._task is not None else None
            return
        if self._stopping is None:
            by = deadline or time.monotonic() + WINDOW - DEPTH_STEP * self._depth
            self._stopping = asyncio.create_task(self._interrupt(by))
            self._stopping.add_done_callback(self._stopped)
        elif deadline is not None and self.control is not None and self.control.ending:
            self.control.stop_by(deadline)
        await asyncio.shield(self._stopping)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._stopping = None
        if not task.cancelled():
            task.exception()
        if not self.in_turn:
            self._rested()

    async def _interrupt(self, deadline: float) -> None:
        for aside in self._asides:
            aside.stop_by(deadline)
        if self.session.state.run is None:
            async with self._lock:
                pass  # a turn may be about to begin
        run = self.session.state.run
        if run is None:
            return
        failure: StorageFailed | None = None
        try:
            await self.session.commit(RequestInterrupt(run=run.run))
        except Refused:  # it has just ended by itself; what was queued may have begun
            now = self.session.state.run
            return await self._interrupt(deadline) if now is not None and now.run != run.run else None
        except StorageFailed as error:
            failure = error
        control, task = self.control or Control(), self._task
        control.parking = failure is not None
        self._on_interrupt(deadline, False)
        control.stop_by(deadline)
        if task is not None:
            await asyncio.wait((task,), timeout=max(0.05, deadline + 0.03 - time.monotonic()))
            await waiting.ended(task, within=0.02)  # something does not let go: the turn ends all the same
        if failure is not None:
            raise failure
        await self._finish(run, control)

    async def _finish(self, run: Run, control: Control) -> None:
        """End an interrupted run that its drive has not ended."""
        await self.session.settled()
        left = self.session.state.run
        if left is not None and left.run == run.run:
            with contextlib.suppress(Refused):
                await stop(self.ports, control, left)

    async def park(self, within: float = 2.0, *, close: bool = True) -> None:
        """Quit, TERM, HUP: end what runs, keep the run active; a later start continues it. Seconds.

        `close`: nothing starts here any more.
        """
        self.closed, self._leaving = self.closed or close, True
        if self._stopping is not None:
            await asyncio.wait((self._stopping,))
        deadline = time.monotonic() + WINDOW
        for aside in self._asides:
            aside.stop_by(deadline)
        task, control = self._task, self.control
        if task is not None:
            if control is not None:
                control.parking = True
                self._on_interrupt(deadline, True)
                control.stop_by(deadline)
            await asyncio.wait((task,), timeout=within)
            await waiting.ended(task, within=0.2)
        with contextlib.suppress(PantoError):  # what cannot be written now is found out at the next opening
            await self._mend()

    def _lost(self) -> None:
        """Another process has the session: nothing more is done here."""
        if self._task is not None:
            self._problem = ownership_lost(self.session.id)
            self._task.cancel()

    # --- answers -----------------------------------------------------------------------------------------------

    async def decide(self, op: Decide) -> Question:
        """Record a person's decision about a call; the question it answers. Raises UsageError."""
        question = await answers.decide(self.session, op)
        await self._decided()
        return question

    async def answer(self, op: Answer) -> None:
        """Record the answer to an `ask` question or an external call. Raises UsageError."""
        await answers.answer(self.session, op)
        await self._decided()

    async def _decided(self) -> None:
        if self.control is not None:
            self.control.changed.set()
        elif self.parked:
            await self.resume()
