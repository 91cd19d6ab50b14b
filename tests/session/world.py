"""What the session tests play with: machines without a disk, and short scripts for real sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from panto.schema.bodies import MessageBody, Question, RequestManifest, ResultBody, TextBody, ToolOutcome
from panto.schema.events import AnyEvent
from panto.schema.messages import Finish, Json, Message, ModelResult, Text, ToolCall, Usage
from panto.session import Session, Staged, Store, stage
from panto.session import commands as c
from panto.session.context import Context
from panto.session.evolve import evolve
from panto.session.fold import fold
from panto.session.ids import new_id
from panto.session.machine import decide
from panto.session.state import Run, State
from panto.session.view import View

T = TypeVar("T")
SESSION = "5" * 32


def number(n: int) -> str:
    """A plain id."""
    return f"{n:032x}"


def said(text: str) -> Staged:
    """A user message's body."""
    return stage(MessageBody(message=Message(role="user", parts=(Text(text=text),))))


def request(*names: str, note: str = "") -> Staged:
    """A frozen request of messages with these digests."""
    return stage(
        RequestManifest(
            provider="p", protocol="x", label="p:m", model="m", system=(), tools=(), messages=names, context_digest=note
        )
    )


def answer(text: str = "", *calls: str) -> ModelResult:
    """A model's result with calls of these tools."""
    parts = (*((Text(text=text),) if text else ()), *(ToolCall(name=n, arguments=Json(text="{}")) for n in calls))
    finish = Finish(reason="tool_calls" if calls else "stop")
    usage = Usage(input=10, output=5)
    return ModelResult(message=Message(role="assistant", parts=parts), finish=finish, usage=usage)


def outcome(text: str) -> Staged:
    """What a tool came to."""
    return stage(ToolOutcome(parts=(Text(text=text),)))


ARGUMENTS = stage(TextBody(text="{}"))
QUESTION = stage(Question(kind="approval", tool="bash", title="ls"))
ASK = stage(Question(kind="ask", tool="ask", title="which?"))


class Table:
    """The machines and the folds, without a disk: commands are decided and folded at once."""

    def __init__(self) -> None:
        self.state = State(SESSION)
        self.view = View(Context())
        self.seq = -1
        self.log: list[tuple[int, int, AnyEvent]] = []

    @property
    def run(self) -> Run:
        assert self.state.run is not None
        return self.state.run

    def do(self, *commands: c.Command) -> list[AnyEvent]:
        """One commit; all of it or, when refused, nothing."""
        state, found = self.state, []
        for command in commands:
            for event in decide(state, self.view, command):  # type: ignore[arg-type]
                found.append(event)
                state = evolve(state, event, (self.seq + 1, len(found) - 1))
        self.seq += 1
        for index, event in enumerate(found):
            fold(self.view, event, self.seq, 0.0)
            self.log.append((self.seq, index, event))
        self.state = state
        return found

    # --- short ways to a state ---

    def open(self, inputs: int = 1) -> Table:
        """A turn (1) with an open run (2) and inputs 100, 101, ..."""
        for n in range(inputs):
            self.do(c.SubmitInput(input=number(100 + n), body=said(f"say {n}").digest))
        self.do(c.CreateTurn(turn=number(1), run=number(2), inputs=tuple(number(100 + n) for n in range(inputs))))
        return self

    def prepared(self) -> Table:
        """... with a prepared request."""
        run = (self if self.state.run else self.open()).run
        made = request(note=str(self.seq)).digest
        self.do(c.PrepareStep(run=run.run, position=run.position, request=made, inputs=run.pending))
        return self

    def executing(self) -> Table:
        """... whose model call executes."""
        run = self.prepared().run
        self.do(c.StartModel(run=run.run, effect=run.next_effect))
        return self

    def tools(self, *names: str) -> Table:
        """... with calls due."""
        self.executing()
        self.do(self.result("", *(names or ("read", "bash"))))
        return self

    def result(self, text: str, *names: str, dispatch: bool = True) -> c.SubmitResult:
        """The command that settles the executing model call."""
        made = answer(text, *names)
        run = self.run
        body = stage(ResultBody(result=made)).digest
        return c.SubmitResult.of(run.run, run.step, run.effect, made, body, dispatch=dispatch)

    def call(self, index: int = 0) -> str:
        """A call's id."""
        return list(self.run.calls)[index]

    def start(self, index: int = 0, replay: bool = False) -> c.StartCall:
        """The command that starts a call."""
        call = self.call(index)
        return c.StartCall(
            run=self.run.run, call=call, effect=self.run.call_effect(call), arguments=ARGUMENTS.digest, replay=replay
        )

    def settle(self, index: int = 0, text: str = "done") -> c.SubmitCallResult:
        """The command that completes an executing call."""
        call = self.run.calls[self.call(index)]
        return c.SubmitCallResult(run=self.run.run, call=call.call, effect=call.effect, outcome=outcome(text).digest)

    def hold(self, index: int = 0, kind: str = "approval") -> c.HoldCall:
        """The command that makes a call wait."""
        question = QUESTION if kind == "approval" else ASK
        return c.HoldCall(run=self.run.run, call=self.call(index), kind=kind, question=question.digest)  # type: ignore[arg-type]


def play(script: Callable[[], Awaitable[T]]) -> T:
    """Run a script on a loop of its own. What the loop reports (a callback that raised) fails it."""
    reported: list[str] = []

    async def whole() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(repr(context)))
        return await script()

    done = asyncio.run(whole())
    assert not reported, reported
    return done


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[Store]:
    """A store, closed in the end."""
    store = await Store.open(root)
    try:
        yield store
    finally:
        await store.close()


async def begin(session: Session, text: str = "hello") -> str:
    """Say something that starts a turn; the turn."""
    name, turn, body = new_id(), new_id(), said(text)
    await session.commit(
        c.SubmitInput(input=name, body=body.digest),
        c.CreateTurn(turn=turn, run=new_id(), inputs=(*session.state.inputs, name)),
        bodies=(body,),
    )
    return turn


async def send(session: Session) -> None:
    """Freeze a request and start the model call."""
    run = session.state.run
    assert run is not None
    names = tuple(entry.body for entry in session.view.context if hasattr(entry, "body"))
    made = request(*names, note=str(session.head))
    await session.commit(
        c.PrepareStep(run=run.run, position=run.position, request=made.digest, inputs=run.pending),
        c.StartModel(run=run.run, effect=run.next_effect),
        bodies=(made,),
    )


async def reply(session: Session, text: str = "", *names: str) -> tuple[str, ...]:
    """The model answers; the calls that are due."""
    run = session.state.run
    assert run is not None
    made = answer(text, *names)
    body = stage(ResultBody(result=made))
    command = c.SubmitResult.of(run.run, run.step, run.effect, made, body.digest)
    await session.commit(command, bodies=(body,))
    return tuple(bound.call for bound in command.calls)


async def start(session: Session, call: str, *, replay: bool = False) -> str:
    """Start a call; its effect."""
    run = session.state.run
    assert run is not None
    effect = run.call_effect(call)
    await session.commit(
        c.StartCall(run=run.run, call=call, effect=effect, arguments=ARGUMENTS.digest, replay=replay),
        bodies=(ARGUMENTS,),
    )
    return effect


async def settle(session: Session, call: str, text: str = "done") -> None:
    """An executing call is done."""
    run = session.state.run
    assert run is not None
    made = outcome(text)
    await session.commit(
        c.SubmitCallResult(run=run.run, call=call, effect=run.calls[call].effect, outcome=made.digest), bodies=(made,)
    )


async def turn(session: Session, text: str = "hello", back: str = "hi") -> str:
    """A whole turn without calls."""
    name = await begin(session, text)
    await send(session)
    await reply(session, back)
    return name
