"""Builds the house, top to bottom: places, settings, memory, models, hands, agents, and the client at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from panto.agent.ports import Limits
from panto.app import rooms
from panto.app.catalog import Models
from panto.app.ground import Ground
from panto.app.log import Log
from panto.providers import complete
from panto.scheduler import Agent, AgentSettings, LocalClient, Scheduler, Shared
from panto.schema.client import Client
from panto.schema.errors import UsageError
from panto.schema.ops import SetMode
from panto.schema.signals import Update
from panto.session import Store
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.registry import Registry
from panto.tools.sandbox import Sandbox

NO_MODEL = "no model is configured, and no model server was found on this machine"
NO_MODEL_HINT = "panto login PROVIDER stores a key, --model names a model, panto doctor says what is missing"


@dataclass(frozen=True)
class Start:
    """How this run begins: which session, and who is there.

    `resume` an id or prefix, `last` the newest of this directory, `fork` an id; none: a new session. `attended`:
    somebody can answer questions. `asked`: settings that the command line named, which win over a session's own.
    """

    resume: str = ""
    last: bool = False
    fork: str = ""
    attended: bool = True
    extensions: bool = True
    asked: frozenset[str] = frozenset()


async def open_house(ground: Ground, start: Start, house: AsyncExitStack, log: Log) -> Client:
    """Everything that runs an agent, and the client of it; `house` closes it all again. Raises PantoError."""
    config = ground.config
    opening = asyncio.ensure_future(Store.open(ground.paths.sessions or rooms.NOWHERE))  # the disk is slow: it begins
    house.push_async_callback(rooms.close_store, opening)

    models = Models(ground)
    house.push_async_callback(models.http.aclose)
    default = models.default()
    found = await models.look_around() if not default else ()
    default = default or models.default()
    log.mask = models.secrets()

    hidden = tuple(str(path) for path in (ground.paths.credentials, ground.paths.trust) if path)
    hands = ToolSettings(sandbox=Sandbox(config.tools.sandbox, hidden=hidden), fetch_private=config.tools.fetch_private)
    house.push_async_callback(rooms.close_hands, hands)
    registry = Registry(builtin_tools(hands))

    store = await opening
    notices: rooms.Notices = []
    shared = _shared(ground, start, store, models, default, registry, notices, log)
    scheduler = Scheduler(shared, hands.jobs)
    agent = await _session(scheduler, ground, start, default)
    if not start.attended:
        _need_model(agent, models)
    client = House(scheduler, agent, files=rooms.Files(hands.spawner).search)
    client.notices = [*notices, *([(store.notice, "")] if store.notice else [])]
    client.notices += [(f"a model server runs on this machine: {name}", "/model picks a model") for name in found]
    for command in rooms.commands(client, ground):
        client.commands.register(command)
    if "mode" in start.asked and agent.mode != config.mode:
        await client.submit(SetMode(config.mode))
    return client


def _shared(
    ground: Ground,
    start: Start,
    store: Store,
    models: Models,
    default: str,
    registry: Registry,
    notices: rooms.Notices,
    log: Log,
) -> Shared:
    """What all agents share; what of the settings cannot be used is added to `notices`."""
    config, cwd = ground.config, str(ground.paths.cwd)
    return Shared(
        store=store,
        catalog=models.catalog,
        complete=complete,
        registry=registry,
        settings=AgentSettings(
            limits=Limits(steps=config.limits.steps, cost=config.limits.budget_usd),
            compact_at=config.compaction.threshold if config.compaction.auto else 0.0,
            repeat=config.limits.repeat,
            default_mode=config.mode,
            default_model=default,
            default_reasoning=config.reasoning,
        ),
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
        settings_rows=ground.loaded.rows,
        export=lambda session, path: rooms.export(store, session, path, cwd),
        log=log.write,
    )


class House(LocalClient):
    """The client, which tells its first reader what was found while everything was built."""

    notices: list[tuple[str, str]]

    def subscribe(self) -> AsyncIterator[Update]:
        updates = super().subscribe()
        for text, hint in self.notices:
            self.show(text, level="attention", hint=hint)
        self.notices = []
        return updates


async def _session(scheduler: Scheduler, ground: Ground, start: Start, default: str) -> Agent:
    """The session this run is about. Raises UsageError, Missing, Owned."""
    store, config, cwd = scheduler.shared.store, ground.config, str(ground.paths.cwd)
    if start.resume:
        agent = await scheduler.open(start.resume)
    elif start.last:
        rows = await store.list(cwd=cwd, limit=1)
        if not rows:
            raise UsageError("there is no session in this directory yet", "panto session list --all lists all others")
        agent = await scheduler.open(rows[0].id)
    elif start.fork:
        agent = await scheduler.fork(await store.resolve(start.fork))
    else:
        if default and (not start.attended or "model" in start.asked):
            scheduler.shared.catalog.resolve(default)  # an unknown model leaves no empty session behind
        mode = config.mode if "mode" in start.asked else ""
        return await scheduler.create(cwd=cwd, model=default, reasoning=config.reasoning, mode=mode)
    model = config.model if "model" in start.asked else None
    await agent.set_config(model=model, reasoning=config.reasoning if "reasoning" in start.asked else None)
    return agent


def _need_model(agent: Agent, models: Models) -> None:
    """Without a person nobody could choose one later."""
    if not agent.model:
        raise UsageError(NO_MODEL, NO_MODEL_HINT)
    models.catalog.resolve(agent.model)
