"""Trust inside a session: the list is agreed to, and what it brings is in force at once where that can be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from panto.app import extensions, hands, prompts, rooms, trust
from panto.app import ground as ground_
from panto.schema.errors import ConfigError, Conflict, PantoError, UsageError
from panto.schema.ops import SetModel, SetTrust

if TYPE_CHECKING:
    from panto.app.build import House
    from panto.app.ground import Ground
    from panto.app.settings import Config


async def set_trust(house: House, op: SetTrust) -> None:
    """Agree to the list that was seen, or take that back; then use what it brings, or no longer.

    Raises Conflict where the list is another by now, UsageError where there is none, ConfigError.
    """
    paths, options = house.models.ground.paths.anew(), house.models.ground.options
    found = await asyncio.to_thread(trust.look, paths)
    if not found.items:
        raise UsageError("this project brings nothing that would run")
    if op.agreed:
        if found.why:
            raise ConfigError(found.why, str(found.folder))
        if op.seen != found.seen:
            raise Conflict("what the project brings has changed since the list was shown", "/trust shows it again")
        trust.agree(found, paths.trust)
    else:
        trust.withdraw(found, paths.trust)
    now = await asyncio.to_thread(ground_.read, paths, options)
    if op.agreed and not now.trust.agreed:
        raise Conflict("what the project brings has changed this moment", "/trust shows it again")
    later = await _in_force(house, now)
    said = f"{found.folder} is trusted until one byte of it changes" if op.agreed else f"{found.folder} is not trusted"
    hint = f"{', '.join(later)}: from the next start on" if later else ""
    house.show(said, hint=hint, key="trust")


async def _in_force(house: House, ground: Ground) -> list[str]:
    """Use other settings in this session from now on; what needs a new start."""
    before, shared, models = house.models.ground, house.scheduler.shared, house.models
    notices: rooms.Notices = [n for n in ground_.notices(ground) if n not in ground_.notices(before)]
    models.renew(ground)
    shared.rules = rooms.rules(ground, notices)
    shared.settings = rooms.agent_settings(ground, models.default())
    shared.replaced_parts = rooms.replaced_parts(ground, notices)
    shared.env_drop, shared.env_pass = models.variables(), frozenset(ground.config.tools.env_pass)
    shared.settings_rows = lambda: hands.rows(ground.loaded.rows(), house.hands.sandbox)
    house.log.mask = models.secrets()
    for text, hint in notices:
        house.show(text, level="attention", hint=hint)
    if house.loaded is not None:
        await house.loaded.reload(extensions.settings(ground, models.variables()))
    house.check_names()
    prompts.register(house, ground)
    for agent in house.scheduler.agents.values():
        agent.reload()
    await _model(house, before.config, ground.config)
    house._hear(house.agent.status())
    return _later(house, before.config, ground.config)


async def _model(house: House, before: Config, now: Config) -> None:
    """The project's model, where this session has not begun to speak with another."""
    if now.model and now.model != before.model and not house.agent.session.view.turns:
        try:
            await house.submit(SetModel(now.model))
        except PantoError as e:
            house.show(e.message, level="attention", hint=e.hint)


def _later(house: House, before: Config, now: Config) -> list[str]:
    """The settings that only a new start takes on, by name."""
    out = [name for name in ("network", "screen", "keys") if getattr(before, name) != getattr(now, name)]
    for name in ("sandbox", "fetch_private"):  # network by rule counts at once
        out += [f"tools.{name}"] if getattr(before.tools, name) != getattr(now.tools, name) else []
    if house.loaded is None and before.extensions != now.extensions:
        out.append("extensions")
    return out
