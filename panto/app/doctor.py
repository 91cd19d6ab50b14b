"""`panto doctor`: what is configured, what works, what is missing, each with the way to mend it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panto.app.ground import Ground, notices, withheld
from panto.app.paths import shipped_extensions, shipped_rocks
from panto.schema.errors import PantoError

if TYPE_CHECKING:
    from panto.app.build import House
    from panto.app.catalog import Models
    from panto.schema.contributions import ExtensionRow
    from panto.tools.builtins import ToolSettings

State = Literal["ok", "note", "wrong"]
MARK = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}


@dataclass(frozen=True)
class Finding:
    """One line; `fix` is the way out, below it."""

    state: State
    text: str
    fix: str = ""


def run(ground: Ground) -> int:
    """Prints all findings; returns 1 if something is wrong, else 0."""
    findings = asyncio.run(_examine(ground))
    print(_text(findings))
    return 1 if any(finding.state == "wrong" for finding in findings) else 0


async def report(house: House) -> str:
    """All findings as lines."""
    return _text([finding async for finding in examine(house)])


def _text(findings: Iterable[Finding]) -> str:
    return "\n".join(f"{MARK[f.state]} {f.text}" + (f"\n      fix: {f.fix}" if f.fix else "") for f in findings)


async def _examine(ground: Ground) -> list[Finding]:
    from panto.app import quiet

    async with quiet.opened(ground) as house:
        return [finding async for finding in examine(house)]


async def examine(house: House) -> AsyncIterator[Finding]:
    """Everything that can be said about this installation and this folder; asks the chosen model a word."""
    from panto import __version__

    ground = house.models.ground
    yield Finding("ok", f"panto {__version__}, Python {platform.python_version()}, {platform.system()}")
    for finding in (*_places(ground), *_extensions(house)):
        yield finding
    async for finding in _models(house.models):
        yield finding
    for finding in _programs():
        yield finding
    yield await _sandbox(house.hands)
    for finding in _terminal():
        yield finding
    for folder in (shipped_extensions(), shipped_rocks()):
        if not folder.is_dir():
            yield Finding("wrong", f"what ships with panto is missing: {folder}", "install panto again")


def _places(ground: Ground) -> Iterator[Finding]:
    paths = ground.paths
    for said, hint in notices(ground):
        yield Finding("wrong", said, hint)
    if paths.user_config is None:
        yield Finding("wrong", "there is no home folder", "set HOME, or PANTO_CONFIG_DIR and PANTO_SESSION_DIR")
    elif paths.user_config.exists():
        yield Finding("ok", f"settings in {paths.user_config}")
    else:
        yield Finding("ok", f"no settings yet; they would be in {paths.user_config}")
    if said := withheld(ground):
        yield Finding("note", said, "panto trust shows what it brings, and asks")
    elif ground.trust.items:
        yield Finding("ok", f"{ground.trust.folder} is trusted")
    if paths.sessions is None:
        yield Finding("wrong", "no place for sessions: they live in memory only", "set PANTO_SESSION_DIR")
    elif place := _unwritable(paths.sessions):
        yield Finding("wrong", f"{place} cannot be written: sessions live in memory only", "set PANTO_SESSION_DIR")
    else:
        yield Finding("ok", f"sessions in {paths.sessions}")
    if paths.log_file:
        yield Finding("ok", f"log in {paths.log_file}")


def _unwritable(folder: Path) -> str:
    """The nearest existing folder at or above this one, if it cannot be written; else ""."""
    there = next((f for f in (folder, *folder.parents) if f.exists()), folder)
    return "" if os.access(there, os.W_OK | os.X_OK) and there.is_dir() else str(there)


def _extensions(house: House) -> Iterator[Finding]:
    """Each extension, those that do not work first, and names and files in the settings that nothing has."""
    from panto.app import rooms

    rows = house.extensions()
    for row in rows:
        if row.state == "broken" or row.problem:
            yield Finding("wrong", f"extension {row.name} ({row.place}): {row.problem or 'it is broken'}", _mend(row))
    if house.loaded is None:
        yield Finding("note", "no extension is loaded")
    elif working := ", ".join(row.name for row in rows if row.state == "active" and not row.problem):
        yield Finding("ok", f"extensions: {working}")
    unusable: rooms.Notices = []
    rooms.rules(house.models.ground, unusable)
    rooms.replaced_parts(house.models.ground, unusable)
    for said, hint in (*unusable, *house.unknown_names()):
        yield Finding("wrong", said, hint)


def _mend(row: ExtensionRow) -> str:
    if row.place.startswith("rock ") and "not found" in row.problem:
        return f"panto rock install {row.name}, or take it out of extensions.rocks"
    return "mend it, or take it out of the settings or its folder"


async def _models(models: Models) -> AsyncIterator[Finding]:
    from panto.app import login

    for name, table in models.catalog.tables.items():
        key = models.key(name, table)
        if key.source:
            yield Finding("ok", f"key for {name} from {key.source}")
        elif key.missing and name in models.ground.config.providers:
            fix = f"panto login {name}, or set {table['api_key_env']}"
            yield Finding("wrong", f"provider {name}: {key.missing}", fix)
    await models.look_around()
    for name in models.found:
        yield Finding("ok", f"local server {name} at {models.tables[name]['base_url']}")
    label = models.default()
    if not label:
        yield Finding("note", "no model is configured", "panto login PROVIDER, or a local server; /tour works without")
        return
    try:
        found = await login.check(models, models.catalog.resolve(label))
    except PantoError as e:
        found = login.Checked(False, why=e.message, hint=e.hint)
    if found.works:
        yield Finding("ok", f"model {label} answers")
    else:
        yield Finding("wrong", f"model {label} does not answer: {found.why}", found.hint)


def _programs() -> Iterator[Finding]:
    wanted = {
        "rg": ("grep and file search", "install ripgrep"),
        "git": ("the branch in the status line", "install git"),
        "bash": ("the bash tool", "install bash"),
    }
    if sys.platform == "linux":
        wanted["bwrap"] = ("the sandbox for commands (they run without it)", "install bubblewrap")
    beside = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    for program, (purpose, fix) in wanted.items():
        if found := shutil.which(program, path=beside):
            yield Finding("ok", f"{program}: {found}")
        else:
            yield Finding("note", f"{program} is missing, for {purpose}", fix)


async def _sandbox(hands: ToolSettings) -> Finding:
    """What is in force around commands; tries it."""
    box = hands.sandbox
    if box.setting == "off":
        return Finding("note", "commands run without a sandbox (tools.sandbox is off)", 'set tools.sandbox = "auto"')
    try:
        works = await box.in_force(hands.spawner)
    except PantoError:
        works = False
    if works:
        return Finding("ok", f"commands run in a {box.words()} (the workspace and the temporary directory)")
    lacking = "bubblewrap is not installed or does not work here"
    if box.setting == "require":
        return Finding("wrong", f"no command runs: tools.sandbox requires one, and {lacking}", "install bubblewrap")
    if not box.network:
        said = f"no command runs: the settings keep commands from the network, and {lacking}"
        return Finding("wrong", said, "install bubblewrap")
    return Finding("note", f"commands run without a sandbox: {lacking}", "install bubblewrap")


def _terminal() -> Iterator[Finding]:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return
    if term in ("", "dumb"):
        yield Finding("note", f"TERM is {term or 'not set'}: panto runs line by line", "set TERM, e.g. xterm-256color")
    else:
        yield Finding("ok", f"terminal {term}, {os.environ.get('COLORTERM') or 'no COLORTERM'}")
