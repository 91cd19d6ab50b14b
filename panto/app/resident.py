"""What the library and scripts run on: agents on a thread and a loop of their own, started when first needed."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Generic, TypeVar

from panto.app import ground as ground_
from panto.app import log
from panto.app.ground import Ground
from panto.app.paths import Paths
from panto.scheduler import Scheduler
from panto.schema.errors import PantoError

T = TypeVar("T")


class Pending(Generic[T]):
    """Something under way on the agents' thread: `await` it, or `.result()`."""

    def __init__(self, future: concurrent.futures.Future[T]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> T:
        """Wait for it (seconds). Raises RuntimeError where a loop runs in this thread: `await` it there."""
        no_loop("await")
        return self._future.result(timeout)


def no_loop(instead: str) -> None:
    """Raises RuntimeError where a loop runs in this thread, naming what to use instead."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"a loop is running in this thread, waiting would stop it: use `{instead}`")


class Resident:
    """The agents of this process, on a thread of their own. Starts when first asked for something."""

    def __init__(self, ground: Callable[[], Ground] | None = None) -> None:
        self._ground = ground or (lambda: ground_.read(Paths(Path.cwd(), dict(os.environ)), {}))
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._open: Scheduler | None = None

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler; to be used on the owner loop only."""
        assert self._open is not None
        return self._open

    def start(self) -> None:
        """Start it; returns when agents can be opened. Raises PantoError."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="panto-agents", daemon=True)
                self._thread.start()
                atexit.register(self.close)
        self._ready.result()

    def submit(self, work: Callable[[], Awaitable[T]]) -> concurrent.futures.Future[T]:
        """Run a coroutine function on the owner loop."""
        self.start()
        assert self._loop is not None

        async def call() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(call(), self._loop)

    async def on_owner(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """The same for whoever runs a loop."""
        if self._loop is None:
            await asyncio.to_thread(self.start)
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Park what runs, release every session, end the thread. Idempotent."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(10)
        atexit.unregister(self.close)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except PantoError as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)
        finally:
            if not self._ready.done():
                self._ready.set_exception(RuntimeError("panto did not start; its thread's traceback says why"))

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        ground = self._ground()
        logged = log.install(lambda: ground.paths.log_file, False)
        async with AsyncExitStack() as house:
            self._open = await open_agents(ground, house, logged)
            house.push_async_callback(self._open.close)
            self._ready.set_result(None)
            await self._stop.wait()


async def open_agents(ground: Ground, house: AsyncExitStack, logged: log.Log) -> Scheduler:
    """What runs agents, without a session or a person; `house` closes it. Raises PantoError."""
    from panto.app import build, rooms
    from panto.app import hands as hands_
    from panto.app.catalog import Models
    from panto.session import Store

    opening = asyncio.ensure_future(Store.open(ground.paths.sessions or rooms.NOWHERE))
    house.push_async_callback(rooms.close_store, opening)
    models = Models(ground)
    house.push_async_callback(models.http.aclose)
    logged.mask = models.secrets()
    hands = hands_.made(ground, models.http)
    house.push_async_callback(rooms.close_hands, hands)
    store = await asyncio.shield(opening)  # a stop before it is open leaves it to be closed
    start = build.Start(attended=False)
    shared = build._shared(ground, start, store, models, models.default(), hands, [], logged)
    return Scheduler(shared, hands.jobs)
