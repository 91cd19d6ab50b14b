"""A script's Lua: the same agent surface without `ext`, on its own thread's loop; agents live on the engine's loop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from panto.lua import loader
from panto.lua.api import files, http, models, processes
from panto.lua.api import time as clock
from panto.lua.api.agents import Desk, OnEngine
from panto.lua.api.conversations import Conversations
from panto.lua.api.jobs import JobTable
from panto.lua.driver import Driver, Outcome
from panto.lua.guard import Guard
from panto.lua.host import Host
from panto.lua.uv import UvPump
from panto.providers.catalog import Catalog
from panto.providers.http import Http
from panto.scheduler.scheduler import Scheduler
from panto.tools.processes import Spawner

FOREVER_S = 1e9
MEMORY_KB = 1 << 40


class Surroundings(Struct, frozen=True):
    """What a script stands on. `on_owner` runs work where the agents live; `scheduler` and `catalog` are asked there.

    `say` takes log lines; `trees` are rock trees whose modules can be required; `env` holds no credentials.
    """

    on_owner: OnEngine
    scheduler: Callable[[], Scheduler]
    catalog: Callable[[], Catalog]
    http: Http
    env: Mapping[str, str]
    trees: Sequence[Path] = ()
    say: Callable[[str], None] = print


async def run_script(path: str, words: Sequence[str], at: Surroundings) -> tuple[int | None, Outcome]:
    """Run a script file to its end: (the code it gave to os.exit, or None; how its main chunk ended)."""
    script = _Script(at)
    try:
        return await script.run(path, words)
    finally:
        await script.close()


class _Script:
    def __init__(self, at: Surroundings) -> None:
        loop = asyncio.get_running_loop()
        self.jobs = JobTable(at.on_owner)
        self.host = Host(session=False, env=at.env, asks=self.jobs.asks)
        self.guard = Guard(self.host, lambda owner: None, MEMORY_KB)
        self.driver = driver = Driver(self.host, loop, self.guard)
        self.spawner = Spawner()
        self.uv = UvPump(driver)
        self.exit: asyncio.Future[int] = loop.create_future()
        self.desk = Desk(at.scheduler, self.jobs, at.on_owner)
        here = os.getcwd()
        clock.install(driver)
        files.install(driver, lambda lane: here)
        processes.install(driver, lambda: self.spawner, at.env, lambda lane: here)
        self.jobs.install(driver)
        self.desk.install(driver)
        Conversations(self.desk).install(driver)
        models.install(driver, at.catalog, at.on_owner)
        self.requests = http.Requests(lambda: at.http, lambda id: None)
        self.requests.install(driver)
        driver.ops["luv"] = lambda task: self.uv.load()
        driver.ops["exit"] = self._exit
        driver.messages["print"] = lambda text, owner: at.say(text.rstrip("\n"))
        driver.messages["log"] = lambda text, owner: at.say(text)
        driver.messages["callback_failed"] = lambda owner, what, message, place, trace: at.say(f"{what}: {message}")
        driver.on_task_failed = lambda task, outcome: None
        places = self.driver.bridge.to_lua(list(loader.C_PLACES))
        self.host.function("set_paths")(self.driver.bridge.to_lua([str(tree) for tree in at.trees]), places)

    def _exit(self, task: object, code: int) -> Awaitable[None]:
        if not self.exit.done():
            self.exit.set_result(code)
        return asyncio.Event().wait()  # type: ignore[return-value] # never: the script ends here

    async def run(self, path: str, words: Sequence[str]) -> tuple[int | None, Outcome]:
        folder = os.path.dirname(os.path.abspath(path))
        self.host.function("prepend_path")(folder)
        scope = self.driver.scope("script", "")
        with ExitStack() as stack:
            stack.enter_context(_interruptible(self.guard.interrupt))
            task = self.driver.start("script", path, *words, scope=scope, what="the script", guard_s=FOREVER_S)
            both: set[asyncio.Future[Any]] = {task.done, self.exit}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if self.exit.done():
            return self.exit.result(), Outcome(True)
        return None, task.done.result()

    async def close(self) -> None:
        self.driver.close_all()
        for number in tuple(self.jobs.slots):
            await self.jobs.close(number)
        for handle in tuple(self.desk.handles):
            await self.desk.on_owner(lambda handle=handle: self.desk.close(handle))  # type: ignore[misc]
        self.uv.close()
        self.guard.close()
        self.spawner.close()


class _interruptible(ExitStack):
    """Ctrl+C also stops code that does not return from Lua: the first ends the script, the second the process."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        super().__init__()
        self._interrupt = interrupt

    def __enter__(self) -> _interruptible:
        super().__enter__()
        if threading.current_thread() is threading.main_thread():
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            self.callback(os.close, writer)
            self.callback(signal.set_wakeup_fd, before)
            threading.Thread(target=self._listen, args=(reader,), name="panto-script-signals", daemon=True).start()
        return self

    def _listen(self, reader: int) -> None:
        seen = 0
        while data := os.read(reader, 64):
            seen += data.count(signal.SIGINT)
            if seen:
                self._interrupt()
            if seen > 1:
                os._exit(130)
        os.close(reader)
