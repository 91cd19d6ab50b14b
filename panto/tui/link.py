"""The line to the engine: what is asked for goes out, everything that happens comes in, also before it is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from panto.schema.client import Client
from panto.schema.errors import PantoError, SessionError, UsageError
from panto.schema.ops import Interrupt, Op, Prompt, Shutdown
from panto.schema.queries import AskHistory, History, Query
from panto.schema.signals import Fact, Left, SessionOpened, Update

A = TypeVar("A")
Connect = Callable[[], Awaitable[Client]]
LEAVE_S = 6.0
log = logging.getLogger(__name__)


class Ends(Protocol):
    """Who is told."""

    async def opened(self, primary: str, history: History, read_only: bool) -> None:
        """A session is open: draw it."""

    def update(self, update: Update) -> None:
        """Something happened."""

    def refused(self, op: Op | None, error: PantoError) -> None:
        """An op (None: connecting) was refused."""

    def unusable(self, error: PantoError) -> None:
        """There is no session to show: what was asked for cannot be."""

    def crashed(self, error: BaseException) -> None:
        """The screen itself failed."""

    def gone(self, left: Left) -> None:
        """The engine has closed."""


class Link:
    """One client, made by `connect` when `open` is called. Everything runs on the application's loop."""

    def __init__(self, connect: Connect, ends: Ends) -> None:
        self._connect = connect
        self._ends = ends
        self._client: Client | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._seen: dict[str, tuple[int, int]] = {}
        self._loading: list[Update] | None = []  # what came while a history was being read
        self._gone = asyncio.Event()
        self._reader: asyncio.Task[Any] | None = None
        self.early: list[Prompt] = []  # prompts sent before there was anyone to take them
        self.failed: PantoError | None = None

    @property
    def ready(self) -> bool:
        """Whether the engine is there."""
        return self._client is not None

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something beside the screen; its failure is shown, never lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and task is self._reader:
            self._ends.crashed(error)  # nothing that happens would be seen any more
        elif error is not None:
            log.error("a task of the screen failed", exc_info=error)
            shown = PantoError(f"{type(error).__name__}: {error}", "details are in the log")
            self.failed = self.failed if self.ready else shown
            self._ends.refused(None, shown)

    async def open(self) -> None:
        """Make the client, draw its session, then follow it."""
        self.failed = None
        try:
            client = await self._connect()
        except (UsageError, SessionError) as error:
            self._gone.set()
            self._ends.unusable(error)
            return
        except PantoError as error:
            self.failed = error
            self._gone.set()
            self._ends.refused(None, error)
            return
        self._gone.clear()
        self._client = client
        self._reader = self.start(self._follow(client))
        await asyncio.sleep(0)  # listening before the history is read: nothing falls between the two
        await self._load(client, read_only=False)
        early, self.early = self.early, []
        for prompt in early:
            self.submit(prompt)

    async def _load(self, client: Client, read_only: bool) -> None:
        history = await client.ask(AskHistory())
        for fact in history.facts:
            self._seen[fact.agent] = max(self._seen.get(fact.agent, (-1, -1)), (fact.seq, fact.index))
        await self._ends.opened(client.primary, history, read_only)
        waiting, self._loading = self._loading or [], None
        for update in waiting:
            self._deliver(update)

    async def _follow(self, client: Client) -> None:
        async for update in client.subscribe():
            if isinstance(update, SessionOpened):
                self._seen.clear()
                self._loading = []
                self.start(self._load(client, update.read_only))
            elif self._loading is not None and not isinstance(update, Left):
                self._loading.append(update)
            else:
                self._deliver(update)
        self._gone.set()

    def _deliver(self, update: Update) -> None:
        if isinstance(update, Left):
            self._gone.set()
            self._ends.gone(update)
            return
        if isinstance(update, Fact):
            place = (update.seq, update.index)
            if place <= self._seen.get(update.agent, (-1, -1)):
                return  # it was in the history already
            self._seen[update.agent] = place
        self._ends.update(update)

    def submit(self, op: Op) -> None:
        """Ask for something; a refusal comes back by `refused`. A prompt waits for the engine, other ops need it."""
        if self._client is not None:
            self.start(self._submit(self._client, op))
        elif isinstance(op, Prompt):
            self.early.append(op)
            if self.failed is not None:
                self.start(self.open())
        elif not isinstance(op, Interrupt):
            self._ends.refused(op, self.failed or PantoError("still starting", "try again in a moment"))

    async def do(self, *ops: Op) -> bool:
        """Submit one after the other, waiting for each; False (and shown) as soon as one is refused."""
        for op in ops:
            if self._client is None or not await self._submit(self._client, op):
                return False
        return True

    async def _submit(self, client: Client, op: Op) -> bool:
        try:
            await client.submit(op)
        except PantoError as error:
            self._ends.refused(op, error)
            return False
        return True

    async def ask(self, query: Query[A], quiet: bool = False) -> A | None:
        """An answer, or None where there is no engine yet or it says no (which is shown, unless `quiet`)."""
        if self._client is None:
            return None
        try:
            return await self._client.ask(query)
        except PantoError as error:
            if not quiet:
                self._ends.refused(None, error)
            return None

    async def close(self) -> None:
        """Shut the engine down and wait for it to say so, a few seconds at most."""
        if self._client is not None and not self._gone.is_set():
            self.submit(Shutdown())
            try:
                await asyncio.wait_for(self._gone.wait(), LEAVE_S)
            except TimeoutError:
                pass  # it is asked again by whoever built it
        for task in tuple(self._tasks):
            if task is not asyncio.current_task():
                task.cancel()
