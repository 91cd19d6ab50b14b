"""The extensions of a session: one Lua state, everything that is loaded into it, and its end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from panto.lua import loader
from panto.lua.api import files, http, models, processes, session, ui
from panto.lua.api import time as clock
from panto.lua.api.agents import EXTENSION, Desk, here
from panto.lua.api.conversations import Conversations
from panto.lua.api.jobs import JobTable
from panto.lua.batch import Batches
from panto.lua.bridge import plain_text
from panto.lua.components import Components
from panto.lua.driver import Driver, LuaTask, Outcome, log
from panto.lua.guard import Guard
from panto.lua.hooks import TURN_EVENTS, Listeners
from panto.lua.host import Host
from panto.lua.protocol import Streams
from panto.lua.registrations import Registrations, Registries
from panto.lua.sources import LuaSettings, Source, find, main_of
from panto.lua.tasks import GREEDY
from panto.lua.tool import Workshop
from panto.lua.uv import UvPump
from panto.scheduler.client import LocalClient
from panto.schema.contributions import ExtensionRow
from panto.tools.processes import Spawner
from panto.tools.sandbox import Sandbox

if TYPE_CHECKING:
    from panto.tools.worker import WorkerPool


ENDING_S = 2.0
"""Seconds that a reload waits for the turns of what it takes away."""


class Loaded(Struct):
    """One extension as it is now."""

    source: Source
    state: Literal["active", "broken", "off"]
    cost_ms: float = 0.0
    problem: str = ""


class Extensions:
    """All extensions of one session. Everything here belongs to the owner loop's thread."""

    def __init__(
        self,
        settings: LuaSettings,
        client: LocalClient,
        listeners: Listeners,
        spawner: Spawner,
        add_provider: Callable[[str, Mapping[str, Any]], None],
        sandbox: Sandbox,
    ) -> None:
        self.settings, self.client, self.listeners = settings, client, listeners
        self.loaded: dict[str, Loaded] = {}
        self._off: set[str] = set()
        shared = client.scheduler.shared
        loop = asyncio.get_running_loop()
        self.jobs = JobTable(here)
        self.host = Host(env=settings.env, asks=self._asks() | self.jobs.asks)
        self.guard = Guard(self.host, lambda owner: _from_thread(loop, self._stuck, owner))
        self.driver = Driver(self.host, loop, self.guard)
        self.driver.on_task_failed = self._task_failed
        self.components = Components(self.driver)
        self.batches = Batches()
        self.streams = Streams(self.driver, self._primary)
        self.desk = Desk(lambda: client.scheduler, self.jobs)
        self.requests = http.Requests(lambda: shared.catalog.http, self.streams.endpoints.get)
        self.uv = UvPump(self.driver)
        listeners.primary = self._primary
        listeners.on_runaway = self._runaway
        listeners.attach(self.driver, self.components)
        registries = Registries(
            shared.registry, client.commands, shared.catalog.protocols, add_provider, client.contribute, self._cwd,
            self._workers, lambda name: any(fnmatchcase(name, one) for one in self.settings.isolate),
        )  # fmt: skip
        shop = Workshop(self.driver, self.batches, self.components, client.scheduler.end_owner)
        self.registrations = Registrations(shop, self.streams, listeners, registries)
        self.registrations.on_problem = self._registration_failed
        self._install(spawner)
        self._spawner, self._sandbox = spawner, sandbox
        self._pool: WorkerPool | None = None
        self._reloading = asyncio.Lock()
        self.renewed: Callable[[], Awaitable[LuaSettings]] | None = None
        """Reads what the config says by now, before anything is loaded again: a project may no longer be trusted."""

    def _install(self, spawner: Spawner) -> None:
        driver, shared = self.driver, self.client.scheduler.shared
        clock.install(driver)
        files.install(driver, self._cwd)
        processes.install(driver, lambda: spawner, self.settings.env, self._cwd)
        self.jobs.install(driver)
        self.desk.install(driver)
        Conversations(self.desk).install(driver)
        models.install(driver, lambda: shared.catalog, here)
        session.install(driver, self.desk)
        ui.install(driver, self.client.question, self._notify)
        self.requests.install(driver)
        driver.ops["luv"] = lambda task: self.uv.load()
        driver.messages["print"] = lambda text, owner: shared.log(f"{owner} prints: {text.rstrip()}")
        driver.messages["log"] = lambda text, owner: shared.log(f"{owner}: {text}")
        driver.messages["callback_failed"] = self._callback_failed
        self._set_places()

    def _set_places(self) -> None:
        trees = [str(tree) for tree in self.settings.trees]
        self.host.function("set_paths")(
            self.driver.bridge.to_lua(trees), self.driver.bridge.to_lua(list(loader.C_PLACES))
        )
        for name, folder in self.settings.shipped_rocks.items():
            self.host.function("add_root")(name, str(folder))

    def _workers(self) -> WorkerPool:
        """The workers of isolated tools, made with the extensions that have any now."""
        if self._pool is None:
            from panto.lua.worker import command, digest_of
            from panto.tools import frames
            from panto.tools.worker import WorkerPool, WorkerSettings

            tools = self.client.scheduler.shared.registry
            owners = {tools.owner(name) for name in tools.names() if getattr(tools.get(name), "isolated", False)}
            mains = {name: main_of(one.source, self.settings) for name, one in self.loaded.items() if name in owners}
            files = [(name, file) for name, file in mains.items() if file is not None]
            sources = tuple(frames.Source(name, str(file), digest_of(file)) for name, file in files)
            argv = command([str(tree) for tree in self.settings.trees])
            settings = WorkerSettings(argv, sources, size=1, workspace=self.client.agent.cwd)
            self._pool = WorkerPool(settings, self._spawner, self._sandbox)
        return self._pool

    async def _end_workers(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    # --- what Lua may ask at once ------------------------------------------------------------------------------

    def _asks(self) -> dict[str, Callable[..., Any]]:
        return {
            "primary": self._primary, "is_turn_event": lambda name: name in TURN_EVENTS,
            "config": lambda owner: self.settings.table(owner), "session_info": self._session_info,
        }  # fmt: skip

    def _primary(self) -> str:
        return self.client.primary

    def _cwd(self, lane: str) -> str:
        agent = self.client.scheduler.agents.get(lane)
        return (agent or self.client.agent).cwd

    def _session_info(self) -> str:
        agent = self.client.agent
        return json.dumps({
            "id": agent.id, "root": str(self.client.scheduler.shared.store.root),
            "scope": agent.session.under or agent.id, "cwd": agent.cwd, "model": agent.model,
            "reasoning": agent.reasoning, "attended": self.client.scheduler.shared.attended,
            **self.settings.places,
        })  # fmt: skip

    # --- what goes wrong ---------------------------------------------------------------------------------------

    def _notify(self, lane: str, text: str, level: str, hint: str, key: str) -> None:
        self.client.show(text, level=level, hint=hint, key=key)

    def _stuck(self, owner: str) -> None:
        log.error("extension %s does not return", owner)
        self.client.show(f"the extension {owner} held everything up", level="attention",
                         hint=f"/extensions off {owner} switches it off", key=f"held:{owner}")  # fmt: skip

    def _task_failed(self, task: LuaTask, outcome: Outcome) -> None:
        if outcome.kind in GREEDY:
            self._runaway(task.owner, task.what, outcome.message)
        elif task.what == "a spawned task" and outcome.kind != "cancelled":
            log.warning("%s: %s failed: %s\n%s", task.owner, task.what, outcome.message, outcome.traceback)

    def _runaway(self, owner: str, what: str, message: str) -> None:
        hint = f"/extensions off {owner} switches it off"
        self.client.show(f"{what} of {owner} {message}: stopped", level="attention", hint=hint, key=f"lua:{owner}")

    def _callback_failed(self, owner: str, what: str, message: str, place: str, traceback: str) -> None:
        if "too long without yielding" in message:
            self._runaway(owner, what, message)
        log.warning("%s: error in %s: %s\n%s", owner, what, message, traceback)

    def _registration_failed(self, owner: str, place: str, problem: str) -> None:
        where = f"{place}: " if place else ""
        log.warning("%s: %s%s", owner, where, problem)
        mine = self.loaded.get(owner)
        if mine is not None:
            mine.problem = mine.problem or f"{where}{problem}"
        self.client.show(f"extension {owner}: {where}{problem}", level="attention", key=f"lua:{owner}")

    # --- loading -----------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Find and activate everything, in order. A broken one is left out and told; the others load."""
        for source in find(self.settings):
            if source.name in self._off:
                self.loaded[source.name] = Loaded(source, "off")
                continue
            await self._activate(source)
        agent, self.listeners.started = self.client.agent, True
        self.listeners.observe("session_start", {"agent": agent.id, "cwd": agent.cwd})

    async def _activate(self, source: Source) -> None:
        mine = self.loaded[source.name] = Loaded(source, "active")
        begun = time.perf_counter()
        outcome = await loader.run_main(self.driver, source, self._primary(), self.host.function("add_root"))
        mine.cost_ms = (time.perf_counter() - begun) * 1000
        if outcome.ok:
            return
        mine.state, mine.problem = "broken", outcome.message
        self.withdraw(source.name)
        log.warning("extension %s is left out: %s\n%s", source.name, outcome.message, outcome.traceback)
        self.client.show(
            f"extension {source.name} is left out: {outcome.message}", level="attention",
            hint="/extensions lists all, /extensions reload tries again", key=f"lua:{source.name}",
        )  # fmt: skip

    def withdraw(self, owner: str) -> asyncio.Task[None]:
        """End everything of one extension; the task is done when the turns it had opened have ended."""
        self.registrations.withdraw(owner)
        for scope in [s for s in self.driver.scopes.values() if s.owner == owner]:
            self.driver.close_scope(scope)
        self.host.function("forget_modules")(owner)
        ending = self.driver.loop.create_task(self._let_go(owner))
        self.client.scheduler.run_in_background(ending)
        return ending

    async def _let_go(self, owner: str) -> None:
        await self.client.scheduler.end_owner((EXTENSION, owner))
        await self.jobs.close_of(owner)
        await self.desk.close_of(owner)

    async def reload(self, settings: LuaSettings | None = None) -> None:
        """Withdraw all extensions and load them again from disk; running tasks of the old ones are cancelled.

        `settings`: what the config says by now (None: `renewed` is asked).
        """
        if settings is None and self.renewed is not None:
            settings = await self.renewed()
        async with self._reloading:
            self.listeners.hold()
            try:
                await self._load_again(settings)
            finally:
                self.listeners.release()

    async def _load_again(self, settings: LuaSettings | None) -> None:
        if ending := [self.withdraw(owner) for owner in self.loaded]:
            await asyncio.wait(ending, timeout=ENDING_S)
        if settings is not None:
            self.settings = settings
            self._set_places()
        self.loaded.clear()
        await self._end_workers()
        self.listeners.started = False
        await self.load()

    async def switch(self, name: str, on: bool) -> None:
        """Switch one off or on for this session. Raises KeyError for an unknown name."""
        if name not in self.loaded:
            raise KeyError(name)
        if on:
            self._off.discard(name)
            if self.renewed is not None and (now := await self.renewed()) != self.settings:
                return await self.reload(now)
        else:
            self._off.add(name)
        async with self._reloading:  # what is loaded again meanwhile knows it already
            mine = self.loaded.get(name)
            if mine is not None and on and mine.state != "active":
                await self._activate(mine.source)
            elif mine is not None and not on and mine.state != "off":
                self.withdraw(name)
                mine.state = "off"
            await self._end_workers()  # the next ones are made with what there is now

    def rows(self) -> tuple[ExtensionRow, ...]:
        """Extensions in load order, each with what it holds and has cost."""
        return tuple(self._row(name, one) for name, one in self.loaded.items())

    def _row(self, name: str, one: Loaded) -> ExtensionRow:
        tasks = [task for task in self.driver.tasks.values() if task.owner == name]
        programs = sum(task.op == "exec" and task.waiting is not None for task in tasks)
        responses = sum(body.owner.owner == name for body in self.requests.bodies.values())
        wakes = sum(slot.wakes and slot.owner == name for slot in self.jobs.slots.values())
        spent = self.driver.spent[name]
        return ExtensionRow(
            name, one.source.place, one.state, round(one.cost_ms, 1), one.problem, len(tasks),
            self.host.function("coroutines_of")(name), self.registrations.references(name),
            programs + responses + wakes, round(spent.seconds * 1000, 1), plain_text(spent.error),
        )  # fmt: skip

    async def close(self) -> None:
        """End everything: registered protocols hear of it, tasks are closed, the watchdog ends."""
        for owner in tuple(self.loaded):
            self.withdraw(owner)
        for number in tuple(self.jobs.slots):
            await self.jobs.close(number)
        await self._end_workers()
        self.driver.close_all()
        self.uv.close()
        self.listeners.detach()
        self.guard.close()


def _from_thread(loop: asyncio.AbstractEventLoop, call: Callable[[str], None], owner: str) -> None:
    log.error("extension %s runs code that cannot be interrupted", owner)
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, owner)
