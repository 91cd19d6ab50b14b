"""What extensions register: checked names go to the registries of panto; what an owner added is withdrawn with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from panto.lua.bridge import Ref, plain_text
from panto.lua.driver import Driver, Outcome, Scope, log
from panto.lua.hooks import Listener, Listeners
from panto.lua.protocol import LuaProvider, Registration, Streams
from panto.lua.tool import Workshop, tool_of, until_deadline
from panto.providers.http import Http
from panto.providers.model import ProviderSettings
from panto.providers.protocols import Protocols
from panto.scheduler.commands import Command, CommandContext, Commands
from panto.schema.contributions import Contributions, Shortcut, StatusItem, Theme
from panto.schema.errors import ExtensionError, UsageError
from panto.tools.registry import Registry

if TYPE_CHECKING:
    from panto.tools.worker import WorkerPool

COMPLETE_S = 1.0

Spec = dict[str, Any]


class Registries(Struct, frozen=True):
    """Where registrations go. `changed`: the contributions to the screen are others now; `cwd` of a lane;
    `add_provider(name, table)`: a provider that needs no config, unless there is one of that name. `pool`: workers.
    `isolated(name)`: whether the settings put a tool into one."""

    tools: Registry
    commands: Commands
    protocols: Protocols
    add_provider: Callable[[str, Mapping[str, Any]], None]
    changed: Callable[[Contributions], None]
    cwd: Callable[[str], str]
    pool: Callable[[], WorkerPool]
    isolated: Callable[[str], bool] = lambda name: False


class _Owned(Struct):
    """What one extension has registered."""

    refs: list[int] = field(default_factory=list)
    protocols: list[Registration] = field(default_factory=list)
    themes: dict[str, Theme] = field(default_factory=dict)
    shortcuts: dict[str, Shortcut] = field(default_factory=dict)
    statuses: dict[str, StatusItem] = field(default_factory=dict)


class Registrations:
    """All registrations of one Lua state, by owner."""

    def __init__(self, shop: Workshop, streams: Streams, listeners: Listeners, registries: Registries) -> None:
        self._shop, self._streams, self._listeners, self._to = shop, streams, listeners, registries
        self._driver: Driver = shop.driver
        self._owned: dict[str, _Owned] = {}
        self.on_problem: Callable[[str, str, str], None] = lambda owner, place, problem: None
        self._driver.messages["register"] = self._register
        self._driver.messages["status"] = self._status

    def _register(self, owner: str, kind: str, spec: Spec, place: str) -> None:
        mine = self._owned.setdefault(owner, _Owned())
        mine.refs += [value.id for value in spec.values() if isinstance(value, Ref)]
        try:
            getattr(self, f"_add_{kind}")(owner, mine, spec, place)
        except UsageError as e:
            self.on_problem(owner, place, e.message)

    # --- tools, hooks, observers -------------------------------------------------------------------------------

    def _add_tool(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        if self._to.isolated(spec["name"]) and not spec.get("external"):
            spec = {**spec, "isolate": True}
        tool = tool_of(self._shop, owner, spec, pool=self._to.pool)
        self._to.tools.add(tool, owner)

    def _add_hook(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        self._listeners.add("hook", spec["event"], Listener(owner, _ref(spec["handler"]), place))

    def _add_observer(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        self._listeners.add("observer", spec["event"], Listener(owner, _ref(spec["handler"]), place))

    # --- commands ----------------------------------------------------------------------------------------------

    def _add_command(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        handler, complete = _ref(spec["handler"]), _ref(spec.get("complete"))

        async def run(arguments: str, context: CommandContext) -> None:
            await self._run_command(owner, spec["name"], handler, arguments, context)

        async def values(text: str) -> tuple[str, ...]:
            return await self._complete(owner, spec["name"], complete, text)

        self._to.commands.register(
            Command(
                name=spec["name"],
                description=plain_text(spec["description"]),
                run=run,
                owner=owner,
                usage=plain_text(spec.get("args") or ""),
                complete=values if complete else None,
            )  # fmt: skip
        )
        self._tell()  # readers look at the commands again

    async def _run_command(self, owner: str, name: str, ref: int, arguments: str, context: CommandContext) -> None:
        scope = self._driver.scope(owner, context.agent, key=context.effect)
        self._shop.components.open(context.effect, context.progress)
        stopped: asyncio.Future[Any] = asyncio.ensure_future(context.cancelled.wait())
        try:
            task = self._driver.start(
                "command", ref, arguments, context.agent, context.effect, context.agent, self._to.cwd(context.agent),
                scope=scope, what=f"command /{name}",
            )  # fmt: skip
            both: set[asyncio.Future[Any]] = {task.done, stopped}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not task.done.done():
                self._driver.interrupt(scope)
                await until_deadline(task, context.deadline())
            outcome = task.done.result() if task.done.done() else Outcome(False, kind="cancelled", message="stopped")
        finally:
            stopped.cancel()
            self._end(scope, context.effect)
        if outcome.kind == "cancelled" and context.cancelled.is_set():
            context.show(f"/{name}: stopped")
            return
        if not outcome.ok:
            log.warning("/%s of %s: %s\n%s", name, owner, outcome.message, outcome.traceback)
            raise ExtensionError(f"/{name}: {plain_text(outcome.message)}", owner, outcome.place)
        if outcome.values and isinstance(outcome.values[0], str):
            context.show(plain_text(outcome.values[0]))

    def _end(self, scope: Scope, key: str) -> None:
        self._driver.close_scope(scope)
        self._shop.components.close(key)
        self._driver.keep(asyncio.ensure_future(self._shop.end_owner(key)))

    async def _complete(self, owner: str, name: str, ref: int, text: str) -> tuple[str, ...]:
        scope = self._driver.scope(owner, "")
        try:
            task = self._driver.start("complete", ref, text, scope=scope, what=f"completion of /{name}")
            await asyncio.wait({task.done}, timeout=COMPLETE_S)
            found = task.done.result() if task.done.done() else Outcome(False, message="too slow")
        finally:
            self._driver.close_scope(scope)
        if not found.ok:
            log.warning("completion of /%s of %s: %s", name, owner, found.message)
            return ()
        values = found.values[0] if found.values else []
        return tuple(plain_text(v) for v in values if isinstance(v, str)) if isinstance(values, list) else ()

    # --- protocols ---------------------------------------------------------------------------------------------

    def _add_protocol(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        registration = Registration(
            owner, spec["name"], _ref(spec["open"]), _ref(spec.get("cancel_turn")), _ref(spec.get("close"))
        )

        def make(settings: ProviderSettings, http: Http) -> LuaProvider:
            return LuaProvider(self._streams, registration.name, settings, http)

        self._to.protocols.register(registration.name, make)
        self._streams.registered[registration.name] = registration
        mine.protocols.append(registration)
        models = spec.get("models")
        if isinstance(models, dict) and models:
            self._to.add_provider(registration.name, {"protocol": registration.name, "models": models})

    # --- the screen --------------------------------------------------------------------------------------------

    def _add_theme(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        mine.themes[spec["name"]] = Theme(spec["name"], spec.get("dark", True), dict(spec["colors"]))
        self._tell()

    def _add_shortcut(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        command = spec.get("command")
        if command is None:
            command = f"{owner}:{spec['key'].replace('+', '-')}"
            self._add_command(
                owner, mine, {"name": command, "description": spec["description"], "handler": spec["handler"]}, place
            )
        text = command if command.startswith("/") else f"/{command}"
        mine.shortcuts[spec["key"]] = Shortcut(spec["key"], plain_text(spec["description"]), plain_text(text))
        self._tell()

    def _add_status(self, owner: str, mine: _Owned, spec: Spec, place: str) -> None:
        key = f"{owner}:{spec['key']}"
        mine.statuses[key] = StatusItem(key, plain_text(spec.get("text") or ""), int(spec.get("priority") or 0))
        self._tell()

    def _status(self, owner: str, key: str, text: str) -> None:
        mine, key = self._owned.get(owner), f"{owner}:{key}"
        item = mine.statuses.get(key) if mine else None
        if mine and item and item.text != plain_text(text):
            mine.statuses[key] = StatusItem(key, plain_text(text), item.priority)
            self._tell()

    def _tell(self) -> None:
        owned = self._owned.values()
        self._to.changed(
            Contributions(
                themes=tuple(t for mine in owned for t in mine.themes.values()),
                shortcuts=tuple(s for mine in owned for s in mine.shortcuts.values()),
                statuses=tuple(s for mine in owned for s in mine.statuses.values() if s.text),
            )
        )

    # --- the end -----------------------------------------------------------------------------------------------

    def references(self, owner: str) -> int:
        """How many functions of an extension are kept here."""
        mine = self._owned.get(owner)
        return len(mine.refs) if mine else 0

    def withdraw(self, owner: str) -> None:
        """Take away everything an extension has registered."""
        self._to.tools.remove(owner)
        self._to.commands.withdraw(owner)
        self._listeners.withdraw(owner)
        mine = self._owned.pop(owner, None)
        if mine is None:
            return
        for registration in mine.protocols:
            self._close_protocol(registration)
            self._to.protocols.withdraw(registration.name)
            if self._streams.registered.get(registration.name) is registration:
                del self._streams.registered[registration.name]
        for ref in mine.refs:
            self._driver.host.unref(ref)
        self._tell()

    def _close_protocol(self, registration: Registration) -> None:
        if not registration.close:
            return
        outcome = self._driver.call(
            "protocol_plain", registration.close, owner=registration.owner, lane="", what="close of a protocol"
        )
        if not outcome.ok:
            log.warning("protocol %s: close: %s", registration.name, outcome.message)


def _ref(value: object) -> int:
    return value.id if isinstance(value, Ref) else 0
