"""One agent's inbox: what is said becomes a turn, joins the running one, or waits; one drive at a time.

Every answer to "what now" is read from the session's state, never remembered here, so that a crash between any two
lines leaves a session that goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal

from panto.agent.loop import drive
from panto.agent.ports import Base, Control, Ports
from panto.schema.bodies import MessageBody, Question, TextBody, ToolOutcome
from panto.schema.codec import derive_id
from panto.schema.errors import OwnershipLost, PantoError, Refused, UsageError
from panto.schema.messages import Message, Text
from panto.schema.ops import Answer, Decide
from panto.schema.signals import Noticed
from panto.session import stage
from panto.session.command import Command
from panto.session.commands import (
    AnswerCall,
    ApproveCall,
    CreateTurn,
    FailRun,
    RejectAnswer,
    RejectCall,
    RequestInterrupt,
    RetryTurn,
    SettleTurn,
    StopRun,
    SubmitInput,
    WithdrawInput,
)
from panto.session.ids import new_id
from panto.session.recovery import abandon
from panto.session.state import Call, Run

WINDOW = 0.9
"""Seconds from Escape until every call of a primary agent has settled."""

DEPTH_STEP = 0.2
"""Seconds by which a child's window is shorter, for each level: its parent needs time to answer after it."""

Source = Literal["person", "program", "extension", "child", "command"]


class Mailbox:
    """The inbox and the drive of one agent. `log` gets tracebacks that no person is shown."""

    def __init__(
        self,
        ports: Ports,
        *,
        depth: int = 0,
        on_interrupt: Callable[[float], None] = lambda deadline: None,
        on_rest: Callable[[], None] = lambda: None,
        on_parked: Callable[[Literal["shutdown", "ownership_lost"]], None] = lambda why: None,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.ports = ports
        self.session = ports.session
        self.control: Control | None = None
        self._depth = depth
        self._on_interrupt = on_interrupt
        self._on_rest = on_rest
        self._on_parked = on_parked
        self._log = log
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @property
    def in_turn(self) -> bool:
        """Whether a turn is being driven now."""
        return self._task is not None

    @property
    def parked(self) -> bool:
        """Whether a turn waits to be continued."""
        return self.session.state.turn is not None and self._task is None

    # --- what is said ------------------------------------------------------------------------------------------

    async def prompt(
        self, message: Message, *, when: Literal["step", "turn"] = "step", id: str = "", source: Source = "person",
        start: bool = True,
    ) -> str:  # fmt: skip
        """Take an input; the id it has. Starts a turn where none runs, unless `start` is False (then it waits).

        A known `id` is not submitted again. A parked turn takes it in, its unfinished calls ended; a failed attempt
        is settled first.
        """
        name, body = id or new_id(), stage(MessageBody(message))
        submit = SubmitInput(input=name, body=body.digest, when=when, source=source)
        async with self._lock:
            state = self.session.state
            if self.in_turn or not start:
                await self.session.commit(submit, bodies=(body,))
                return name
            waiting = tuple(state.inputs)
            commands: tuple[Command, ...]
            if state.turn is None:
                commands = (submit, self._create(name, (*waiting, name)))
            elif state.turn.status == "attempt_failed":
                settle = SettleTurn(turn=state.turn.turn, attempt=state.turn.attempt)
                commands = (settle, submit, self._create(name, (*waiting, name)))
            else:
                commands = (submit, *abandon(state, (*waiting, name)))
            await self.session.commit(*commands, bodies=(body,))
            self._start()
        return name

    def _create(self, name: str, inputs: tuple[str, ...]) -> CreateTurn:
        turn = derive_id("turn", name)
        return CreateTurn(turn=turn, run=derive_id("run", turn, 1), inputs=inputs)

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
        """Go on with a parked turn, retry a failed attempt, or send what waits. Nothing where there is nothing."""
        async with self._lock:
            if self.in_turn:
                if self.control is not None:
                    self.control.retry_now.set()
                return
            state = self.session.state
            turn = state.turn
            if turn is not None and turn.status == "attempt_failed":
                again = turn.attempt + 1
                run = derive_id("run", turn.turn, again)
                await self.session.commit(RetryTurn(turn=turn.turn, run=run, attempt=again))
            elif turn is None and state.inputs:
                first = next(iter(state.inputs))
                await self.session.commit(self._create(first, tuple(state.inputs)))
            elif turn is None:
                return
            if state.run is not None and not self.ports.setup().attended:
                await self._refuse_waiting(state.run)
            self._start()

    async def _refuse_waiting(self, run: Run) -> None:
        """Nobody is here to answer what a parked turn had asked."""
        message = "refused: nobody is here to ask"
        for call in run.unfinished:
            if call.state == "waiting" and call.question:
                no = RejectCall if call.kind == "approval" else RejectAnswer
                await self.session.commit(
                    no(run=run.run, call=call.call, question=call.question, message=message, unattended=True)
                )

    def _start(self) -> None:
        self.session.parked = False
        self._task = asyncio.create_task(self._drive())
        self._task.add_done_callback(self._rest)

    def _rest(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
            self.control = None
        if not task.cancelled():
            task.exception()
        self._on_rest()

    async def _drive(self) -> None:
        """Drive turn after turn until nothing is due."""
        while True:
            view = self.session.view
            base = Base(view.usage.input + view.usage.output, view.cost or 0.0, time.monotonic())
            self.control = control = Control(base)
            try:
                await drive(self.ports, control)
            except OwnershipLost as lost:
                self._notice(lost, "wrong")
                self._on_parked("ownership_lost")
                return
            except PantoError as problem:
                self._notice(problem, "wrong")
                return
            except Exception as error:  # a fault of panto's own ends the run, never the session
                await self._broke(error)
            async with self._lock:
                state = self.session.state
                due = any(said.source != "command" for said in state.inputs.values())
                if control.parking or control.interrupt.is_set() or state.turn is not None or not due:
                    self._task = None
                    return
                first = next(iter(state.inputs))
                await self.session.commit(self._create(first, tuple(state.inputs)))

    async def _broke(self, error: Exception) -> None:
        import traceback

        self._log("".join(traceback.format_exception(error)))
        run = self.session.state.run
        message = f"panto itself failed: {type(error).__name__}: {error}"
        if run is not None:
            await self.session.commit(FailRun(run=run.run, reason="internal", message=message))
        hint = "The details are in the log. Nothing is lost; Enter tries again."
        self.ports.signal(Noticed(self.session.id, message, "wrong", hint))

    def _notice(self, problem: PantoError, level: Literal["attention", "wrong"]) -> None:
        self.ports.signal(Noticed(self.session.id, problem.message, level, problem.hint))

    # --- stopping ----------------------------------------------------------------------------------------------

    async def interrupt(self, deadline: float | None = None) -> None:
        """Escape, in order: recorded, told, what runs is stopped, the turn ended. Returns when the turn has ended.

        `deadline` (monotonic seconds) is handed down by a parent's Escape.
        """
        run = self.session.state.run
        if run is None:
            return
        deadline = deadline or time.monotonic() + WINDOW - DEPTH_STEP * self._depth
        try:
            await self.session.commit(RequestInterrupt(run=run.run))
        except Refused:  # it has just ended, or an interrupt is under way
            if self.session.state.run is None:
                return
        self._on_interrupt(deadline)
        task = self._task
        if task is not None and self.control is not None:
            self.control.stop_by(deadline)
            await asyncio.wait((task,), timeout=max(0.05, deadline + 0.05 - time.monotonic()))
            if not task.done():  # something does not let go: it is left behind, the turn ends all the same
                task.cancel()
        if (left := self.session.state.run) is not None and left.run == run.run:
            await self._stop(left)
        if task is not None:
            await asyncio.wait((task,), timeout=0.1)

    async def _stop(self, run: Run) -> None:
        kept = self.control.kept if self.control else ""
        body = stage(TextBody(kept)) if kept.strip() else None
        try:
            await self.session.commit(
                StopRun(run=run.run, text=body.digest if body else None), bodies=(body,) if body else ()
            )
        except Refused:
            if self.session.state.run is not None:
                raise

    async def park(self, within: float = 2.0) -> None:
        """Quit, TERM, HUP: end what runs, keep the run active; a later start continues it. Seconds."""
        task = self._task
        if task is None:
            return
        if self.control is not None:
            self.control.parking = True
            self._on_interrupt(time.monotonic() + WINDOW)
            self.control.stop_by(time.monotonic() + WINDOW)
        await asyncio.wait((task,), timeout=within)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=0.2)
        if self.session.state.run is not None:
            self._on_parked("shutdown")

    # --- answers -----------------------------------------------------------------------------------------------

    def held(self, name: str, kind: str) -> tuple[Run, Call]:
        """The waiting call with this id. Raises UsageError where it does not wait (any more)."""
        run = self.session.state.run
        call = run.calls.get(name) if run else None
        if run is None or call is None or call.state != "waiting" or call.kind != kind or not call.question:
            raise UsageError("this question has been answered already")
        return run, call

    async def decide(self, op: Decide) -> Question:
        """Record a person's decision about a call; the question it answers."""
        run, call = self.held(op.call, "approval")
        question = await self.session.body(call.question or "")
        assert isinstance(question, Question)
        if op.decision == "no":
            reason = f"the person said no: {op.reason}" if op.reason else "the person said no"
            await self.session.commit(
                RejectCall(run=run.run, call=call.call, question=call.question or "", message=reason)
            )
        else:
            edited = stage(TextBody(op.arguments)) if op.arguments and op.arguments != question.arguments else None
            approve = ApproveCall(
                run=run.run, call=call.call, question=call.question or "", arguments=edited.digest if edited else None,
                changed_by="person" if edited else "",
            )  # fmt: skip
            await self.session.commit(approve, bodies=(edited,) if edited else ())
        await self._decided()
        return question

    async def answer(self, op: Answer) -> None:
        """Record the answer to an `ask` question or an external call."""
        run, call = self.held(op.call, "external")
        if op.refused:
            refusal = "the person did not answer"
            await self.session.commit(
                RejectAnswer(run=run.run, call=call.call, question=call.question or "", message=refusal)
            )
        else:
            said = "\n".join((*op.choices, *((op.text,) if op.text else ()))) or "(nothing)"
            outcome = stage(ToolOutcome((Text(said),), title=said.split("\n", 1)[0][:80], fact="answered"))
            await self.session.commit(
                AnswerCall(run=run.run, call=call.call, question=call.question or "", outcome=outcome.digest),
                bodies=(outcome,),
            )
        await self._decided()

    async def _decided(self) -> None:
        if self.control is not None:
            self.control.changed.set()
        elif self.parked:
            await self.resume()
