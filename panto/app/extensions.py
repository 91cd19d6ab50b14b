"""Which extensions there are to load: from the settings, the person's folders, and a trusted project's.

The Lua room is imported only where there is one: it costs more than the rest of a start without a screen.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panto.app import ground as ground_
from panto.app.ground import Ground
from panto.app.paths import shipped_extensions, shipped_rocks
from panto.schema.errors import PantoError

if TYPE_CHECKING:
    from panto.app.catalog import Models
    from panto.lua import Listeners, LuaSettings
    from panto.lua.extensions import Extensions
    from panto.scheduler import LocalClient
    from panto.tools.builtins import ToolSettings


DEFAULT_ROCKS = ("panto-subagents",)
"""Rocks that are loaded unless the config takes them out."""
TOUR = "tour"
"""The shipped extension that is always among those loaded: the first run of somebody without a model."""


def rocks(ground: Ground) -> tuple[tuple[str, str], ...]:
    """The rocks to load: (module, version wish). An entry `-NAME` takes one out, also one that is loaded by default."""
    named = [text.partition(" ") for text in (*DEFAULT_ROCKS, *ground.config.extensions.rocks)]
    gone = {name[1:] for name, _, _ in named if name.startswith("-")}
    wanted = {name: version.strip() for name, _, version in named if not name.startswith("-") and name not in gone}
    return tuple(wanted.items())


def anything(ground: Ground, attended: bool) -> bool:
    """Whether there may be something to load. `attended`: somebody may want the tour."""
    if attended or ground.config.model.startswith(f"{TOUR}:"):
        return True
    project = ground.paths.project if ground.trust.agreed else None
    folders = (ground.paths.config_dir, project)
    return bool(rocks(ground) or ground.config.extensions.paths) or any(
        _filled(folder / "extensions") for folder in folders if folder
    )


def _filled(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def settings(ground: Ground, hidden: frozenset[str]) -> LuaSettings:
    """What the Lua room is told. `hidden`: variables that no extension may see."""
    from panto.lua import LuaSettings

    config, paths = ground.config, ground.paths
    project = paths.project if ground.trust.agreed else None
    named = [_place(text, layer) for key, text, layer in ground.loaded.added if key == ("extensions", "paths")]
    places = {"config_dir": paths.config_dir, "project": paths.project_root if ground.trust.agreed else None}
    trees = [paths.data_dir / "rocks" if paths.data_dir else None, project / "rocks" if project else None]
    return LuaSettings(
        shipped=shipped_extensions(),
        active=tuple(dict.fromkeys((TOUR, *(place for place in named if isinstance(place, str))))),
        rocks=rocks(ground),
        shipped_rocks={folder.name: _sources(folder) for folder in _folders(shipped_rocks())},
        paths=tuple(place for place in named if isinstance(place, Path)),
        user=paths.config_dir / "extensions" if paths.config_dir else None,
        project=project / "extensions" if project else None,
        trees=tuple(tree for tree in trees if tree is not None),
        tables=config.extension,
        env={name: value for name, value in paths.environ.items() if name not in hidden},
        places={name: str(place) for name, place in places.items() if place is not None},
        isolate=config.tools.isolate,
    )


def _place(text: str, layer: str) -> Path | str:
    """A shipped extension's name as it is; else a folder, relative to the file that names it."""
    if "/" not in text and "~" not in text and (shipped_extensions() / text).is_dir():
        return text
    return Path(layer).parent / Path(text).expanduser()


def _sources(rock: Path) -> Path:
    """Where a rock's Lua files are: in `src` as checked out, else in its folder."""
    return rock / "src" if (rock / "src").is_dir() else rock


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path for path in root.iterdir() if path.is_dir())
    except OSError:
        return []


def listeners() -> Listeners:
    """What agents hold of extensions before there are any."""
    from panto.lua import Listeners

    return Listeners()


async def load(
    ground: Ground, client: LocalClient, listeners: Listeners, hands: ToolSettings, models: Models
) -> Extensions | None:
    """Loads all there are; `close()` them before the scheduler. None, and it is told, where there can be no Lua."""
    from panto.lua import open_extensions

    def add_provider(name: str, table: Mapping[str, Any]) -> None:
        models.tables.setdefault(name, dict(table))

    async def renewed() -> LuaSettings:
        now = await asyncio.to_thread(ground_.read, ground.paths, ground.options)
        if said := ground_.withheld(now):
            client.show(said, level="attention", hint="/trust shows what it brings", key="trust")
        return settings(now, models.variables())

    wanted = settings(ground, models.variables())
    try:
        made = await open_extensions(wanted, client, listeners, hands.spawner, add_provider, hands.sandbox)
    except PantoError as e:
        client.show(f"no extension is loaded: {e.message}", level="attention", hint=e.hint, key="lua")
        return None
    made.renewed, client.on_reload = renewed, made.reload
    return made
