"""Builds the house, top to bottom: places, settings, memory, models, hands, agents, and the client at the end."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from panto.app import extensions, prompts, rooms, trust
from panto.app import ground as ground_
from panto.app import hands as hands_
from panto.app.catalog import Models
from panto.app.checks import unknown_names
from panto.app.ground import Ground, withheld
from panto.app.log import Log
from panto.scheduler import Agent, LocalClient, Scheduler, Shared
from panto.schema.errors import Owned, PantoError, UsageError
from panto.schema.ops import Login, Op, SetModel, SetTrust, Shutdown
from panto.schema.queries import AskTrust, Query
from panto.schema.signals import Noticed, Update
from panto.session import Store
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.paths import storable
from panto.tools.registry import Registry

Level = Literal["info", "attention", "wrong"]
if TYPE_CHECKING:
    from panto.lua.extensions import Extensions

A = TypeVar("A")
MEASURE_S = 0.5
"""A server is asked for its window this long after the start, so that the first request goes first."""
OWNED_HINT = "look on, fork it or take it over"
NO_MODEL = "no model is configured, and no model server was found on this machine"
NO_MODEL_HINT = "panto login PROVIDER stores a key, --model names a model, panto doctor says what is missing"


@dataclass(frozen=True)
class Start:
    """How this run begins: which session, and who is there.

    `resume` an id or prefix, `last` the newest of this directory, `fork` an id; none: a new session. `attended`:
    somebody can answer questions. `asked`: settings that the command line named, which win over a session's own.
    `offer`: a session that another process holds is offered to be viewed, forked or taken over, beside an empty one.
    """

    resume: str = ""
    last: bool = False
    fork: str = ""
    attended: bool = True
    extensions: bool = True
    asked: frozenset[str] = frozenset()
    offer: bool = False
    keep: bool = True


async def open_house(ground: Ground, start: Start, house: AsyncExitStack, log: Log) -> House:
    """Everything that runs an agent, and the client of it; `house` closes it all again. Raises PantoError."""
    config = ground.config
    place = ground.paths.sessions if start.keep else None
    opening = asyncio.ensure_future(Store.open(place or rooms.NOWHERE))  # the disk is slow: it begins
    house.push_async_callback(rooms.close_store, opening)

    models = Models(ground)
    house.push_async_callback(models.http.aclose)
    default = models.default()
    found = await models.look_around() if not default else ()
    default = default or models.default()
    log.mask = models.secrets()

    hands = hands_.made(ground, models.http)
    house.push_async_callback(rooms.close_hands, hands)

    listeners = extensions.listeners() if start.extensions and extensions.anything(ground, start.attended) else None
    store = await asyncio.shield(opening)  # who leaves before it is open leaves it to be closed
    notices: rooms.Notices = []
    shared = _shared(ground, start, store, models, default, hands, notices, log)
    shared.run_mode = config.mode if "mode" in start.asked else ""
    if listeners:
        shared.hooks = shared.observer = listeners
    scheduler = Scheduler(shared, hands.jobs)
    held: Owned | None = None
    try:
        agent = await _session(scheduler, ground, start, default, check=not listeners)
    except Owned as error:
        if not start.offer:
            raise
        held, agent = error, await _session(scheduler, ground, Start(asked=start.asked), default, check=not listeners)
    if not start.attended and not listeners:
        _need_model(agent, models)
    client = House(scheduler, agent, files=rooms.Files(hands.spawner).search)
    client.models, client.hands, client.log, client.unheard = models, hands, log, []
    house.push_async_callback(client.rest)
    shared.save_rule = client.save_rule
    notices += [(store.notice, "")] if store.notice else []
    _tell(client, start, notices, found, held)
    client.measure(agent.model)
    for command in rooms.commands(client, models):
        client.commands.register(command)
    if listeners:
        client.loaded = await extensions.load(ground, client, listeners, hands, models)
        if not start.attended or "model" in start.asked:
            _need_model(agent, models)  # only now: an extension may bring the protocol it speaks
    client.written_prompts(ground)
    client.check_names()
    return client


def _tell(client: House, start: Start, notices: rooms.Notices, found: tuple[str, ...], held: Owned | None) -> None:
    """What the person should know before anything else."""
    for text, hint in notices:
        client.show(text, level="attention", hint=hint)
    if start.attended and (said := withheld(client.models.ground)):
        client.show(said, level="attention", hint="/trust shows what it brings", key="trust")
    for name in found:
        client.show(f"a model server runs on this machine: {name}", hint="/model picks a model")
    if held is not None:
        client.tell(Noticed(client.primary, held.message, "attention", OWNED_HINT, "owned", held.owner))


def _shared(
    ground: Ground,
    start: Start,
    store: Store,
    models: Models,
    default: str,
    hands: ToolSettings,
    notices: rooms.Notices,
    log: Log,
) -> Shared:
    """What all agents share; what of the settings cannot be used is added to `notices`."""
    config, cwd = ground.config, str(ground.paths.cwd)
    return Shared(
        store=store,
        catalog=models.catalog,
        complete=hands_.warming(hands),
        registry=Registry(builtin_tools(hands)),
        settings=rooms.agent_settings(ground, default),
        rules=rooms.rules(ground, notices),
        spool=rooms.spool(store),
        cwd=cwd,
        platform=rooms.platform(),
        attended=start.attended,
        instructions=rooms.instructions,
        replaced_parts=rooms.replaced_parts(ground, notices),
        save_rule=lambda rule: rooms.save_rule(ground, rule),
        save_model=lambda label, reasoning: rooms.save_model(ground, label, reasoning),
        env_drop=models.variables(),
        env_pass=frozenset(config.tools.env_pass),
        mask=models.secrets,
        settings_rows=lambda: hands_.rows(ground.loaded.rows(), hands.sandbox),
        export=lambda session, path: rooms.export(store, session, path, cwd),
        log=log.write,
    )


class House(LocalClient):
    """The client, which keeps what is said while everything is built for its first reader, and ends extensions."""

    models: Models
    hands: ToolSettings
    log: Log
    loaded: Extensions | None = None
    unheard: list[Update] | None = None

    def __init__(self, *args: Any, **more: Any) -> None:
        self._tasks: set[asyncio.Future[None]] = set()
        super().__init__(*args, **more)

    def show(self, text: str, *, level: Level = "info", hint: str = "", key: str = "") -> None:
        self.tell(Noticed(self.primary, text, level, hint, key))

    def tell(self, update: Update) -> None:
        """Tell readers, also the first one, who is not there yet."""
        self._hear(update) if self.unheard is None else self.unheard.append(update)

    def subscribe(self) -> AsyncIterator[Update]:
        updates = super().subscribe()
        unheard, self.unheard = self.unheard, None
        for update in unheard or ():
            self._hear(update)
        return updates

    async def submit(self, op: Op) -> None:
        if isinstance(op, Shutdown) and self.loaded is not None:
            await self.scheduler.park()  # turns and children stop where they are, not as calls that failed
            await self.loaded.close()  # while there are still agents for its last words
        if isinstance(op, Login):
            from panto.app import signing_in  # seldom

            self._beside(signing_in.sign_in(self, self.models, self.log, signing_in.check(self.models, op)))
            return
        if isinstance(op, SetTrust):
            from panto.app import trusting

            await trusting.set_trust(self, op)
            return
        await super().submit(op)
        if isinstance(op, SetModel):
            self.measure(op.model)

    async def ask(self, query: Query[A]) -> A:
        if isinstance(query, AskTrust):
            return cast(A, (await asyncio.to_thread(trust.look, self.models.ground.paths.anew())).shown())
        return await super().ask(query)

    def written_prompts(self, ground: Ground) -> None:
        """Commands that are written as Markdown, now and whenever /reload comes."""
        before, paths = self.on_reload, ground.paths
        prompts.register(self, ground)

        async def again() -> None:
            if before is not None:
                await before()
            prompts.register(self, await asyncio.to_thread(ground_.read, paths.anew(), ground.options))

        self.on_reload = again

    def check_names(self) -> None:
        """Tell of names in the settings that nothing has."""
        for text, hint in self.unknown_names():
            self.show(text, level="attention", hint=hint)

    def unknown_names(self) -> rooms.Notices:
        """Names in the settings that nothing has, extensions included."""
        tools, themes = self.scheduler.shared.registry.names(), (t.name for t in self.contributions.themes)
        return unknown_names(self.models.ground, tools, themes)

    def save_rule(self, rule: str) -> None:
        """Adds an allow rule to the person's config, and says where. Raises ConfigError."""
        rooms.save_rule(self.models.ground, rule)
        self.show(f"saved in {self.models.ground.paths.user_config}: allow {rule}")

    def measure(self, label: str) -> None:
        """Ask the model's server for the window it really has, beside everything else."""
        if label:
            self._beside(self._measure(label))

    async def _measure(self, label: str) -> None:
        await asyncio.sleep(MEASURE_S)
        with contextlib.suppress(UsageError):  # an unknown model is said where it is used
            said = self.models.catalog.resolve(label).spec.context
            model = await self.models.catalog.measured(label)
            if model.spec.context != said:
                self._hear(self.agent.status())
            if said and model.spec.context < said:
                how = model.window_setting or "its server"
                text = f"{label} runs with a window of {model.spec.context} tokens, not {said}"
                self.show(text, level="attention", hint=f"{how} sets it", key="window")

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Future[None]) -> None:
        """Nobody waits for what was done beside: the person hears of its failure, the log of panto's own."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, PantoError):
            self.show(error.message, level="attention", hint=error.hint)
        elif error is not None:
            self.log.write("".join(traceback.format_exception(error)))

    async def rest(self) -> None:
        """Ends what is still done beside."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _session(scheduler: Scheduler, ground: Ground, start: Start, default: str, *, check: bool) -> Agent:
    """The session this run is about; `check` a new one's model first.

    Raises UsageError, Missing, Owned, StorageFailed.
    """
    store, config, cwd = scheduler.shared.store, ground.config, str(ground.paths.cwd)
    if store.damage is not None and (start.resume or start.last or start.fork):
        raise store.damage  # "no such session" would be no answer: nobody can say
    if start.resume:
        agent = await scheduler.open(start.resume)
    elif start.last:
        rows = await store.list(cwd=storable(cwd), limit=50)
        if not rows:
            hint = store.notice or "panto session list --all lists all others"
            raise UsageError("there is no session in this directory yet", hint)
        agent = await scheduler.open(next((row.id for row in rows if row.turns), rows[0].id))
    elif start.fork:
        agent = await scheduler.fork(await store.resolve(start.fork), settled=True)
    else:
        if check and default and (not start.attended or "model" in start.asked):
            scheduler.shared.catalog.resolve(default)  # an unknown model leaves no empty session behind
        return await scheduler.create(cwd=cwd, model=default, reasoning=config.reasoning)
    model = config.model if "model" in start.asked else None
    await agent.set_config(model=model, reasoning=config.reasoning if "reasoning" in start.asked else None)
    return agent


def _need_model(agent: Agent, models: Models) -> None:
    """Without a person nobody could choose one later."""
    if not agent.model:
        raise UsageError(NO_MODEL, NO_MODEL_HINT)
    models.catalog.resolve(agent.model)
