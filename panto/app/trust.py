"""Folder trust: nothing of a project runs before its person agreed to a list of exactly what would.

The agreement names every file under `.panto` by the digest of its content; it lies beside the user config, never in
the project, and one changed byte ends it.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panto.app.config_edit import toml, write_atomically
from panto.schema.errors import ConfigError

MOST_FILES, MOST_BYTES = 20_000, 256 << 20
"""A folder that brings more is not looked through, and not used: a link to `/` must not hold up the start."""

_WHAT = {
    "extensions": "Lua that runs inside panto",
    "rocks": "Lua that runs inside panto",
    "agents": "an agent's instructions",
    "prompts": "a command's text",
    "skills": "instructions for the model",
    "themes": "colours",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing the project brings: its path below the folder, what it would do, and the digest of its content."""

    path: str
    what: str
    digest: str


@dataclass(frozen=True, slots=True)
class Trust:
    """`items`: everything a folder brings. `agreed`: its person has agreed to exactly these."""

    folder: Path | None
    items: tuple[Item, ...] = ()
    agreed: bool = False
    changed: tuple[str, ...] = ()
    too_much: bool = False

    @property
    def withheld(self) -> bool:
        """The project brings something, and it is not used."""
        return bool(self.items) and not self.agreed


def look(project: Path | None, file: Path | None) -> Trust:
    """What the `.panto` folder brings, and whether `trust.toml` holds an agreement to it. Reads only."""
    if project is None:
        return Trust(None)
    try:
        items = tuple(_Reader().items(project))
    except _TooMuch:
        return Trust(project, (Item(".", "more than can be looked through; it is not used", ""),), too_much=True)
    old = _read(file).get(str(project.resolve()), {})
    now = {item.path: item.digest for item in items}
    if old == now or not items:
        return Trust(project, items, agreed=True)
    changed = tuple(sorted(path for path in old.keys() | now.keys() if old.get(path) != now.get(path))) if old else ()
    return Trust(project, items, False, changed)


def agree(trust: Trust, file: Path | None) -> None:
    """Remembers the agreement to exactly the items that were shown. Raises ConfigError."""
    _change(trust, file, {item.path: item.digest for item in trust.items})


def withdraw(trust: Trust, file: Path | None) -> None:
    """Forgets the agreement. Raises ConfigError."""
    _change(trust, file, None)


class _TooMuch(Exception):
    pass


class _Reader:
    """Hashes what lies below a folder, within bounds."""

    def __init__(self) -> None:
        self.files, self.bytes = MOST_FILES, MOST_BYTES

    def items(self, project: Path) -> Iterator[Item]:
        for folder, names, files in os.walk(project):
            names.sort()
            links = [name for name in names if os.path.islink(os.path.join(folder, name))]
            for name in sorted([*files, *links]):
                path = Path(folder) / name
                below = path.relative_to(project).as_posix()
                yield Item(_printable(below), _what(path, below), self.digest(path))

    def digest(self, path: Path) -> str:
        """SHA-256 of the content; of a link also where it leads, since it could be exchanged."""
        self.files -= 1
        hashed = hashlib.sha256()
        try:
            if path.is_symlink():
                hashed.update(b"link " + os.fsencode(os.readlink(path)) + b"\0")
            if path.is_dir():
                for inner in sorted(path.iterdir()):
                    hashed.update(os.fsencode(inner.name) + b"\0" + self.digest(inner).encode())
            elif path.is_file():
                self._file(path, hashed)
            else:  # a pipe or device would never end
                return "no file"
        except OSError as e:
            return f"unreadable: {e.strerror}"
        if self.files < 0:
            raise _TooMuch
        return hashed.hexdigest()

    def _file(self, path: Path, hashed: hashlib._Hash) -> None:
        with path.open("rb") as source:
            while piece := source.read(1 << 20):
                hashed.update(piece)
                self.bytes -= len(piece)
                if self.bytes < 0:
                    raise _TooMuch


def _printable(path: str) -> str:
    """A path that is not UTF-8 in a form that TOML can hold, different for different bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _what(path: Path, below: str) -> str:
    if below != "config.toml":
        return _WHAT.get(below.split("/")[0], "a file")
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, tomllib.TOMLDecodeError):
        return "settings (broken)"
    runs = list(_commands(table))
    return "settings" + (": " + ", ".join(runs) if runs else "")


def _commands(table: dict[str, Any]) -> list[str]:
    """What settings would run or open up, in words that show the exact text."""
    out: list[str] = []
    providers = table.get("providers")
    for name, provider in providers.items() if isinstance(providers, dict) else ():
        if isinstance(provider, dict):
            out += [f"runs `{provider['key_command']}`"] if "key_command" in provider else []
            out += [f"sends {name} requests to {provider['base_url']}"] if "base_url" in provider else []
    extensions = table.get("extensions")
    if isinstance(extensions, dict):
        for kind in ("rocks", "paths"):
            out += [f"loads {entry}" for entry in extensions.get(kind) or () if isinstance(entry, str)]
    permissions = table.get("permissions")
    if isinstance(permissions, dict) and isinstance(permissions.get("allow"), list):
        out += [f"allows {rule}" for rule in permissions["allow"]]
    if isinstance(table.get("mode"), str):
        out.append(f"mode {table['mode']}")
    if isinstance(table.get("tools"), dict):
        out += [f"tools.{key} = {value}" for key, value in table["tools"].items()]
    return out


def _read(file: Path | None) -> dict[str, dict[str, str]]:
    """All agreements. A broken file holds none: asking again is safe."""
    try:
        table = tomllib.loads(file.read_bytes().decode("utf-8")) if file else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return {folder: entry for folder, entry in table.items() if isinstance(entry, dict)}


def _change(trust: Trust, file: Path | None, digests: dict[str, str] | None) -> None:
    if file is None:
        raise ConfigError("there is no home folder to keep trust in", "trust.toml", hint="set PANTO_CONFIG_DIR")
    assert trust.folder is not None
    table = _read(file)
    table.pop(str(trust.folder.resolve()), None)
    if digests is not None:
        table[str(trust.folder.resolve())] = digests
    lines = ["# Folders whose .panto may be used, with the digests that were agreed to. `panto trust` writes it.\n"]
    for folder, entry in sorted(table.items()):
        lines.append(f"\n[{toml(folder)}]\n")
        lines += [f"{toml(path)} = {toml(entry[path])}\n" for path in sorted(entry)]
    write_atomically(file, "".join(lines).encode("utf-8"), 0o600)
