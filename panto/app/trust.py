"""Folder trust: nothing of a project runs before its person agreed to a list of exactly what would.

The agreement names every file that counts by the digest of its content; it lies beside the user config, never in the
project, and one changed byte ends it. AGENTS.md is no part of it: it is text for the model, and nothing more.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from panto.app import brought
from panto.app.brought import Item
from panto.app.config_edit import toml, write_atomically
from panto.app.paths import Paths
from panto.schema.errors import ConfigError
from panto.schema.queries import ProjectTrust, TrustRow
from panto.tools.paths import storable


@dataclass(frozen=True, slots=True)
class Trust:
    """What the project in `folder` brings. `agreed`: its person has agreed to exactly these items.

    `changed`: paths that are new, other or gone since an earlier agreement. `why`: why it cannot be agreed to.
    """

    folder: Path
    items: tuple[Item, ...] = ()
    agreed: bool = False
    changed: tuple[str, ...] = ()
    why: str = ""

    @property
    def withheld(self) -> bool:
        """The project brings something, and it is not used."""
        return bool(self.items) and not self.agreed

    @property
    def seen(self) -> str:
        """The digest of the list; "" where it cannot be agreed to."""
        said = repr([(item.path, item.does, item.digest) for item in self.items])
        return "" if self.why else hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()

    def shown(self) -> ProjectTrust:
        """The list as it is shown: a line for each thing that would happen, nothing in it that moves a cursor."""
        gone = set(self.changed) - {item.path for item in self.items}
        rows = [TrustRow(path, "is gone", True) for path in sorted(gone)]
        rows += [TrustRow(item.path, does, item.path in self.changed) for item in self.items for does in item.does]
        clean = tuple(TrustRow(_one_line(row.path), _one_line(row.what), row.changed) for row in rows)
        folder = str(self.folder) if self.items else ""
        return ProjectTrust(folder, clean, self.agreed and bool(self.items), self.seen if self.items else "", self.why)


def look(paths: Paths) -> Trust:
    """What the project brings, and whether `trust.toml` holds an agreement to it. Reads only."""
    folder = paths.project_root
    if not paths.brought:
        return Trust(folder)
    try:
        items = brought.items(folder, paths.brought)
    except brought.TooMuch:
        everything = Item(".", ("more than can be looked through; it is not used",), "")
        return Trust(folder, (everything,), why="it is more than can be looked through, so it is not used")
    old = _read(paths.trust).get(_name(folder), {})
    now = {item.path: item.digest for item in items}
    if old == now or not items:
        return Trust(folder, items, agreed=True)
    changed = tuple(sorted(path for path in old.keys() | now.keys() if old.get(path) != now.get(path))) if old else ()
    why = "" if paths.trust else "there is no home folder to keep an agreement in"
    return Trust(folder, items, False, changed, why)


def agree(trust: Trust, file: Path | None) -> None:
    """Remembers the agreement to exactly the items that were shown. Raises ConfigError."""
    _change(trust, file, {item.path: item.digest for item in trust.items})


def withdraw(trust: Trust, file: Path | None) -> None:
    """Forgets the agreement. Raises ConfigError."""
    _change(trust, file, None)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _name(folder: Path) -> str:
    return storable(str(folder.resolve()))


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
    table = _read(file)
    table.pop(_name(trust.folder), None)
    if digests is not None:
        table[_name(trust.folder)] = digests
    lines = ["# Folders and what of them may be used, with the digests that were agreed to. `panto trust` writes it.\n"]
    for folder, entry in sorted(table.items()):
        lines.append(f"\n[{toml(folder)}]\n")
        lines += [f"{toml(path)} = {toml(entry[path])}\n" for path in sorted(entry)]
    write_atomically(file, "".join(lines).encode("utf-8"), 0o600)
