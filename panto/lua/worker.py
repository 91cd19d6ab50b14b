"""The tool worker: extensions in a process of their own, of which only the tools count.

It speaks tools/frames.py on its standard input (`command` starts it).
Here `sleep, exec, http, fs, json` and `ctx` work; anything else says that it is not possible in a worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from panto.lua import loader
from panto.lua.api import files, http, processes
from panto.lua.api import time as clock
from panto.lua.batch import Batches
from panto.lua.components import Components
from panto.lua.driver import Driver
from panto.lua.guard import Guard
from panto.lua.hooks import TURN_EVENTS
from panto.lua.host import Host
from panto.lua.sources import Source
from panto.lua.tool import LuaTool, Workshop, tool_of
from panto.providers.http import Http
from panto.schema.errors import ToolFailure
from panto.tools import frames
from panto.tools.processes import Spawner
from panto.tools.serve import Report, serve
from panto.tools.tool import ToolContext, ToolReply

GUARD_S = 3600.0
"""CPU seconds without a yield: what runs here may be long, and can be killed."""


def digest_of(main: Path) -> str:
    """A digest over an extension's Lua files: the one file, or all in its folder."""
    found = sorted(main.parent.rglob("*.lua")) if main.name == "init.lua" else [main]
    whole = hashlib.sha256()
    for path in found:
        data = path.read_bytes()
        whole.update(f"{path.relative_to(main.parent).as_posix()}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


class Worker:
    """See tools.serve.Serving."""

    def __init__(self, trees: Sequence[str] = ()) -> None:
        asks: dict[str, Callable[..., Any]] = {
            "primary": lambda: "", "is_turn_event": lambda name: name in TURN_EVENTS, "config": lambda owner: None,
            "session_info": lambda: "{}",
        }  # fmt: skip
        self.host = Host(asks=asks)
        self.guard = Guard(self.host, lambda owner: None)
        self.driver = driver = Driver(self.host, asyncio.get_running_loop(), self.guard)
        driver.missing = "not possible in a worker"
        self.tools: dict[str, LuaTool] = {}
        self._shop = Workshop(driver, Batches(), Components(driver), _nothing)
        self._spawner, network = Spawner(), Http()
        clock.install(driver)
        files.install(driver, lambda lane: os.getcwd())
        processes.install(driver, lambda: self._spawner, os.environ, lambda lane: os.getcwd())
        http.Requests(lambda: network, lambda id: None).install(driver)
        driver.messages["register"] = self._register
        for name in ("print", "log", "status", "notify", "emit", "callback_failed"):
            driver.messages[name] = lambda *values: None
        to_lua = driver.bridge.to_lua
        self.host.function("set_paths")(to_lua(list(trees)), to_lua(list(loader.C_PLACES)))

    def _register(self, owner: str, kind: str, spec: dict[str, Any], place: str) -> None:
        if kind == "tool" and not spec.get("external"):
            own = {**spec, "timeout": None}  # panto keeps the time, and kills
            self.tools[spec["name"]] = tool_of(self._shop, owner, own, guard_s=GUARD_S)

    async def activate(self, extensions: Sequence[frames.Source]) -> Sequence[str]:
        """Load them; a changed or broken one refuses."""
        for source in extensions:
            main = Path(source.path)
            if digest_of(main) != source.digest:
                raise ToolFailure(f"the extension {source.name} was changed since it was loaded: reload extensions")
            add_root = self.host.function("add_root")
            outcome = await loader.run_main(self.driver, Source(source.name, "worker", main), "", add_root)
            if not outcome.ok:
                raise ToolFailure(f"the extension {source.name} does not load in a worker: {outcome.message}")
        return tuple(self.tools)

    async def call(
        self, tool: str, arguments: Mapping[str, object], around: frames.Surroundings, progress: Report
    ) -> ToolReply:
        """Run one call."""
        found = self.tools.get(tool)
        if found is None:
            raise ToolFailure(f"no loaded extension has the tool {tool}", "not_found")
        self.host.function("set_env")(self.driver.bridge.to_lua(dict(os.environ)))
        context = ToolContext(
            session=around.session, run=around.run, call=around.call, effect=around.effect, agent=around.agent,
            cwd=around.cwd, progress=progress, fresh={}, spool="", raw=around.raw,
        )  # fmt: skip
        return await found.run(arguments, context)


async def _nothing(owner: str) -> None:
    pass


def command(trees: Sequence[str]) -> tuple[str, ...]:
    """The words that start a worker: this Python, this panto, these rock trees."""
    root = str(Path(__file__).resolve().parent.parent.parent)
    code = f"import sys; sys.path[:0] = [{root!r}]; from panto.lua.worker import main; main({list(trees)!r})"
    return (sys.executable, "-c", code)


def main(trees: Sequence[str]) -> None:
    """Serve until the other end is closed."""

    async def work() -> None:
        await serve(Worker(trees))

    asyncio.run(work())
