"""A client without an engine: answers what it was given, records what it was asked, says what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar, cast

from panto.schema.bodies import Body, MessageBody, Question, ResultBody, ToolOutcome
from panto.schema.client import Client
from panto.schema.contributions import Contributions
from panto.schema.errors import PantoError
from panto.schema.events import (
    AnyEvent,
    InputAccepted,
    InputSubmitted,
    ModelStepCompleted,
    RunCreated,
    RunEnded,
    ToolCallHeld,
    TurnSettled,
    TurnStarted,
)
from panto.schema.messages import Finish, Message, ModelResult, Text
from panto.schema.ops import Op, Prompt, Shutdown
from panto.schema.queries import (
    AskCommands,
    AskContext,
    AskContributions,
    AskFiles,
    AskHistory,
    AskPreview,
    AskPrompts,
    AskStatus,
    CommandRow,
    FileRow,
    Files,
    History,
    PromptText,
    Query,
)
from panto.schema.signals import Fact, Left, StatusChanged, TextStreamed, Update

A = TypeVar("A")
ME = "3f2a9c0e"
DIGEST: Any = "0" * 64

STATUS = StatusChanged(
    agent=ME, model="anthropic:sonnet-5.5", reasoning="medium", mode="ask", cwd="/tmp/shop", branch="main",
    context_used=26_000, context_size=200_000, cost=0.12,
)  # fmt: skip
COMMANDS = (
    CommandRow("compact", "summarise the context now", "[what to keep]"),
    CommandRow("cost", "what this session cost"),
    CommandRow("export", "write this session to a file", "[file]"),
    CommandRow("mode", "plan · ask · auto · yolo", "<mode>", "ask"),
)
FILES = ("docs/makers.md", "docs/manual.md", "main.py", "shop.py", "tests/test_shop.py")


class StubClient(Client):
    """`ops` are the ops submitted, in order; `refuse` maps an op's class to the error it gets."""

    def __init__(self, history: tuple[Fact, ...] = (), status: StatusChanged = STATUS) -> None:
        self.ops: list[Op] = []
        self.refuse: dict[type, PantoError] = {}
        self.unanswered: set[type] = set()  # queries whose answer never comes
        self.answers: dict[type, Any] = {
            AskHistory: History(history, None),
            AskPreview: History((), None),
            AskStatus: status,
            AskCommands: COMMANDS,
            AskPrompts: (PromptText("the second prompt"), PromptText("the first prompt")),
            AskContributions: Contributions(),
            AskContext: (),
        }
        self.status = status
        self.files_unread = 0  # answers to AskFiles that come while the list is still being read
        self._queue: asyncio.Queue[Update] = asyncio.Queue()
        self._seq = 100

    @property
    def primary(self) -> str:
        return ME

    async def submit(self, op: Op) -> None:
        self.ops.append(op)
        if type(op) in self.refuse:
            raise self.refuse[type(op)]
        if isinstance(op, Shutdown):
            self.say(Left(ME))
        elif isinstance(op, Prompt):
            self.fact(InputSubmitted(input=f"i{len(self.ops)}", body=DIGEST, when=op.when),
                      MessageBody(Message("user", (Text(op.text),))))  # fmt: skip

    async def subscribe(self) -> AsyncIterator[Update]:
        while True:
            update = await self._queue.get()
            yield update
            if isinstance(update, Left):
                return

    async def ask(self, query: Query[A]) -> A:
        if type(query) in self.unanswered:
            await asyncio.Event().wait()
        if isinstance(query, AskFiles) and self.files_unread:
            self.files_unread -= 1
            return cast(A, Files((), 0, complete=False))
        if isinstance(query, AskFiles):
            rows = tuple(FileRow(path) for path in FILES if query.text.lower() in path.lower())
            return cast(A, Files(rows, 214))
        answer = self.answers.get(type(query), ())
        if isinstance(answer, PantoError):
            raise answer
        return cast(A, answer)

    # --- what a test makes happen -----------------------------------------------------------------------------

    def say(self, update: Update) -> None:
        """This update comes next."""
        self._queue.put_nowait(update)

    def fact(self, event: AnyEvent, body: Body | None = None, agent: str = ME) -> Fact:
        """This fact is committed next."""
        self._seq += 1
        made = Fact(agent=agent, seq=self._seq, index=0, time=1_700_000_000.0 + self._seq, event=event, body=body)
        self.say(made)
        return made

    def begin(self, text: str = "go") -> None:
        """A turn begins."""
        self.fact(TurnStarted(turn="t1", run="r1"))
        self.fact(RunCreated(run="r1", turn="t1"))
        self.fact(InputAccepted(run="r1", input="i1", body=DIGEST), MessageBody(Message("user", (Text(text),))))

    def stream(self, text: str) -> None:
        """The model says something."""
        self.say(TextStreamed(ME, 1, text))

    def answer(self, text: str) -> None:
        """The model said something."""
        message = Message("assistant", (Text(text),))
        self.fact(ModelStepCompleted(run="r1", step=1, effect="e1", result=DIGEST),
                  ResultBody(ModelResult(message, Finish("stop"))))  # fmt: skip

    def end(self) -> None:
        """The turn ends."""
        self.fact(RunEnded(run="r1", status="completed"))
        self.fact(TurnSettled(turn="t1", status="completed"))

    def hold(self, question: Question, call: str = "c1", agent: str = ME) -> None:
        """A call waits for a person."""
        self.fact(ToolCallHeld(run="r1", call=call, kind="approval", question=DIGEST), question, agent)


__all__ = ["COMMANDS", "FILES", "ME", "STATUS", "StubClient", "ToolOutcome"]
