"""`panto doctor`: what is configured, what works, what is missing, each with the way to mend it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panto.app.ground import Ground, notices, withheld
from panto.app.paths import shipped_extensions, shipped_rocks
from panto.schema.errors import PantoError

if TYPE_CHECKING:
    from panto.tools.sandbox import Setting

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
    findings = list(examine(ground))
    print(_text(findings))
    return 1 if any(finding.state == "wrong" for finding in findings) else 0


def report(ground: Ground) -> str:
    """All findings as lines. Blocks."""
    return _text(examine(ground))


def _text(findings: Iterable[Finding]) -> str:
    return "\n".join(f"{MARK[f.state]} {f.text}" + (f"\n      fix: {f.fix}" if f.fix else "") for f in findings)


def examine(ground: Ground) -> Iterator[Finding]:
    """Everything that can be said about this installation and this folder; asks the chosen model a word."""
    from panto import __version__

    yield Finding("ok", f"panto {__version__}, Python {platform.python_version()}, {platform.system()}")
    yield from _places(ground)
    yield from _models(ground)
    yield from _programs()
    yield _sandbox(ground.config.tools.sandbox)
    yield from _terminal()
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


def _models(ground: Ground) -> Iterator[Finding]:
    from panto.app import login
    from panto.app.catalog import Models

    models = Models(ground)
    for name, table in models.catalog.tables.items():
        key = models.key(name, table)
        if key.source:
            yield Finding("ok", f"key for {name} from {key.source}")
        elif key.missing and name in ground.config.providers:
            fix = f"panto login {name}, or set {table['api_key_env']}"
            yield Finding("wrong", f"provider {name}: {key.missing}", fix)

    async def ask() -> tuple[tuple[str, ...], str, login.Checked]:
        servers = await models.look_around()
        label = models.default()
        try:
            nothing = login.Checked(False)
            return servers, label, await login.check(models, models.catalog.resolve(label)) if label else nothing
        except PantoError as e:
            return servers, label, login.Checked(False, why=e.message, hint=e.hint)
        finally:
            await models.http.aclose()

    servers, label, found = asyncio.run(ask())
    for name in servers:
        yield Finding("ok", f"local server {name} at {models.tables[name]['base_url']}")
    if not label:
        yield Finding("note", "no model is configured", "panto login PROVIDER, or a local server; /tour works without")
    elif found.works:
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


def _sandbox(setting: Setting) -> Finding:
    """What is in force around commands; tries it."""
    from panto.tools.processes import Spawner
    from panto.tools.sandbox import Sandbox

    if setting == "off":
        return Finding("note", "commands run without a sandbox (tools.sandbox is off)", 'set tools.sandbox = "auto"')
    spawner, box = Spawner(), Sandbox(setting)
    try:
        works = asyncio.run(box.in_force(spawner))
    except PantoError:
        works = False
    finally:
        spawner.close()
    if works:
        return Finding("ok", f"commands run in a {box.words()} (the workspace and the temporary directory)")
    lacking = "bubblewrap is not installed or does not work here"
    if setting == "require":
        return Finding("wrong", f"no command runs: tools.sandbox requires one, and {lacking}", "install bubblewrap")
    return Finding("note", f"commands run without a sandbox: {lacking}", "install bubblewrap")


def _terminal() -> Iterator[Finding]:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return
    if term in ("", "dumb"):
        yield Finding("note", f"TERM is {term or 'not set'}: panto runs line by line", "set TERM, e.g. xterm-256color")
    else:
        yield Finding("ok", f"terminal {term}, {os.environ.get('COLORTERM') or 'no COLORTERM'}")
