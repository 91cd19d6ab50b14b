"""A Lua state with its driver and nothing else of panto around it, for tests of the host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from panto.lua.api import files, processes, time
from panto.lua.driver import Driver, Outcome
from panto.lua.guard import Guard
from panto.lua.host import Host
from panto.lua.uv import UvPump
from panto.tools.processes import Spawner

T = TypeVar("T")

DEBIAN = "/usr/lib/x86_64-linux-gnu/lua/5.4/?.so"


class Lab:
    """`run` a piece of Lua as a task and see how it ended; `printed` is what it printed."""

    def __init__(self, *, session: bool = True, cwd: str = "/", memory_kb: int = 512 * 1024) -> None:
        asks: dict[str, Callable[..., Any]] = {
            "primary": lambda: "primary", "is_turn_event": lambda name: name.startswith("turn_"),
            "config": lambda owner: '{"owner":"' + owner + '"}', "session_info": lambda: '{"id":"primary"}',
        }  # fmt: skip
        self.host = Host(session=session, env={"PATH": os.environ["PATH"], "SEEN": "yes"}, asks=asks)
        self.stuck: list[str] = []
        self.guard = Guard(self.host, self.stuck.append, memory_kb)
        self.driver = Driver(self.host, asyncio.get_running_loop(), self.guard)
        self.printed: list[str] = []
        self.logged: list[str] = []
        self.posts: list[tuple[Any, ...]] = []
        self.spawner = Spawner()
        time.install(self.driver)
        files.install(self.driver, lambda lane: cwd)
        processes.install(self.driver, lambda: self.spawner, {"PATH": os.environ["PATH"]}, lambda lane: cwd)
        self.uv = UvPump(self.driver)
        self.driver.ops["luv"] = lambda task: self.uv.load()
        self.driver.ops["nop"] = lambda task, *values: values[0] if values else None
        self.driver.messages |= {
            "print": lambda text, owner: self.printed.append(text), "log": lambda text, owner: self.logged.append(text),
        }  # fmt: skip
        for name in ("register", "emit", "status", "notify", "progress", "component", "callback_failed"):
            self.driver.messages[name] = lambda *values, name=name: self.posts.append((name, *values))
        self.scope = self.driver.scope("ext", "primary")

    async def run(self, code: str, *args: Any, name: str = "@/ext/init.lua", within: float = 30) -> Outcome:
        task = self.driver.start("code", code, name, *args, scope=self.scope, what="a main chunk")
        return await asyncio.wait_for(asyncio.shield(task.done), within)

    async def value(self, code: str, *args: Any) -> Any:
        outcome = await self.run(code, *args)
        assert outcome.ok, (outcome.message, outcome.traceback)
        return outcome.values[0] if outcome.values else None

    def close(self) -> None:
        self.driver.close_all()
        self.uv.close()
        self.guard.close()
        self.spawner.close()


def in_lab(work: Callable[[Lab], Awaitable[T]], **options: Any) -> T:
    """Run an async function with a Lab, on a loop of its own."""

    async def main() -> T:
        lab = Lab(**options)
        try:
            return await work(lab)
        finally:
            lab.close()

    return asyncio.run(main())
