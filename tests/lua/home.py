"""A whole house with extensions in it, for tests: real store, scripted or Lua models, one client."""

from __future__ import annotations

import contextlib
import os
import textwrap
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from panto.lua import Listeners, LuaSettings, open_extensions
from panto.lua.driver import Outcome
from panto.lua.extensions import Extensions
from panto.schema.signals import Noticed
from panto.tools.processes import Spawner
from tests.scheduler.house import House, house


class Home:
    """A house and its extensions."""

    def __init__(self, house: House, extensions: Extensions, folder: Path) -> None:
        self.house, self.extensions, self.folder = house, extensions, folder

    @property
    def driver(self) -> Any:
        return self.extensions.driver

    def write(self, name: str, code: str) -> None:
        """Write an extension of the user."""
        place = self.folder / name / "init.lua"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(code))

    async def run(self, code: str, *args: Any, owner: str = "test") -> Outcome:
        """Run Lua code as a task of an extension, in the primary's lane."""
        scope = self.driver.extension_scope(owner, self.house.client.primary)
        task = self.driver.start("code", textwrap.dedent(code), "@/test.lua", *args, scope=scope, what="a test")
        outcome: Outcome = await task.done
        return outcome

    async def value(self, code: str, *args: Any) -> Any:
        outcome = await self.run(code, *args)
        assert outcome.ok, (outcome.message, outcome.traceback)
        return outcome.values[0] if outcome.values else None

    def notices(self) -> list[str]:
        return [u.text for u in self.house.seen if isinstance(u, Noticed)] + self.shown

    shown: list[str]


@contextlib.asynccontextmanager
async def home(
    root: Path,
    tables: Mapping[str, Mapping[str, Any]],
    extensions: Mapping[str, str] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Home]:
    """Open a house with these extensions (name -> code of its init.lua) of the user."""
    folder = root / "extensions"
    folder.mkdir(exist_ok=True)
    for name, code in (extensions or {}).items():
        place = folder / name / "init.lua"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(code))
    listeners, spawner, providers = Listeners(), Spawner(), dict(tables)
    async with house(root, providers, hooks=listeners, observer=listeners, **options) as opened:
        shown: list[str] = []
        feed = opened.client.subscribe()
        opened.client._hear = _heard(opened.client._hear, shown)  # type: ignore[method-assign]

        def take(name: str, table: Mapping[str, Any]) -> None:
            providers.setdefault(name, table)

        lua = LuaSettings(user=folder, env={"PATH": os.environ["PATH"]}, **(settings or {}))
        loaded = await open_extensions(lua, opened.client, listeners, spawner, take)
        at = Home(opened, loaded, folder)
        at.shown = shown
        try:
            yield at
        finally:
            await loaded.close()
            spawner.close()
            await feed.aclose()  # type: ignore[attr-defined]


def _heard(hear: Any, shown: list[str]) -> Any:
    def both(update: Any) -> None:
        if isinstance(update, Noticed):
            shown.append(update.text)
        hear(update)

    return both
