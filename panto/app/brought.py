"""What a project brings: every file that would run or be read as instructions, what it would do, and its digest."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panto.app import config
from panto.app.paths import PROJECT_FOLDER, shipped_extensions
from panto.app.settings import ADDING

MOST_FILES, MOST_BYTES = 20_000, 256 << 20
"""A folder that brings more is not looked through, and not used: a link to `/` must not hold up the start."""

_RUNS = "Lua that runs inside panto"
_DOES = {
    "extensions": _RUNS,
    "rocks": _RUNS,
    "agents": "an agent's instructions",
    "prompts": "a command's text",
    "skills": "instructions for the model",
    "themes": "colours",
    "workflows": "steps that agents carry out",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing the project brings: its path below the project's folder, what it would do, its content's digest."""

    path: str
    does: tuple[str, ...]
    digest: str


class TooMuch(Exception):
    """There is more than can be looked through."""


def items(folder: Path, places: Iterable[Path]) -> tuple[Item, ...]:
    """Everything below `places`, and what the settings among it name elsewhere. Raises TooMuch."""
    reader = _Reader(folder)
    found = {item.path: item for place in places for item in reader.below(place)}
    own = folder / PROJECT_FOLDER / "config.toml"
    if own in reader.seen:
        for item in reader.named(_table(own), own.parent):
            found.setdefault(item.path, item)
    return tuple(found.values())


class _Reader:
    """Hashes files within bounds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: set[Path] = set()
        self._files, self._bytes = MOST_FILES, MOST_BYTES

    def below(self, place: Path) -> Iterator[Item]:
        """Every file of a folder, and every link in it with all it leads to."""
        for folder, names, files in os.walk(place):
            names.sort()
            links = [name for name in names if os.path.islink(os.path.join(folder, name))]
            for name in sorted([*files, *links]):
                path = Path(folder) / name
                self.seen.add(path)
                yield self._item(path, _does(path, path.relative_to(place).parts, place.name))

    def named(self, table: Mapping[str, Any], beside: Path) -> Iterator[Item]:
        """Files outside the project's own folders that its settings name: an agreement covers them, too."""
        for path, does in _named(table, beside, self.folder):
            if path.exists() and not path.resolve().is_relative_to(beside.resolve()):
                yield self._item(path, (does,))

    def _item(self, path: Path, does: tuple[str, ...]) -> Item:
        if path.is_symlink():
            does = tuple(f"{one} (a link to {os.path.realpath(path)})" for one in does)
        return Item(_printable(os.path.relpath(path, self.folder)), does, self._digest(path))

    def _digest(self, path: Path) -> str:
        """SHA-256 of the content; of a link also where it leads, since it could be exchanged."""
        self._files -= 1
        hashed = hashlib.sha256()
        try:
            if path.is_symlink():
                hashed.update(b"link " + os.fsencode(os.readlink(path)) + b"\0")
            if path.is_dir():
                for inner in sorted(path.iterdir()):
                    hashed.update(os.fsencode(inner.name) + b"\0" + self._digest(inner).encode())
            elif path.is_file():
                self._file(path, hashed)
            else:  # a pipe or device would never end
                return "no file"
        except OSError as e:
            return f"unreadable: {e.strerror}"
        if self._files < 0:
            raise TooMuch
        return hashed.hexdigest()

    def _file(self, path: Path, hashed: hashlib._Hash) -> None:
        with path.open("rb") as source:
            while piece := source.read(1 << 20):
                hashed.update(piece)
                self._bytes -= len(piece)
                if self._bytes < 0:
                    raise TooMuch


def _printable(path: str) -> str:
    """A path that is not UTF-8 in a form that TOML can hold, different for different bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


# ---------------------------------------------------------------- what it does, in words


def _does(path: Path, parts: tuple[str, ...], place: str) -> tuple[str, ...]:
    """`parts`: the path below its place (`.panto`, or a folder `agents` of another program)."""
    if place != PROJECT_FOLDER:
        return (_DOES.get(place, "a file"),)
    if parts == ("config.toml",):
        return tuple(_settings(_table(path))) or ("settings that change nothing",)
    if path.suffix in (".so", ".dylib") and parts[0] in ("extensions", "rocks"):
        return ("machine code that runs inside panto",)
    return (_DOES.get(parts[0], "a file"),)


def _table(file: Path) -> Mapping[str, Any]:
    """The settings as they would count: what can be read of a broken file does."""
    return config.file_layer(file).table


def _settings(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Each setting as what it does, with the exact text of whatever would be run."""
    for key, value in table.items():
        here = (*above, key)
        if isinstance(value, dict) and value:
            yield from _settings(value, here)
        elif isinstance(value, list) and len(here) == 2 and here in ADDING:
            yield from (_VERBS[here].format(entry) for entry in value)
        else:
            yield _setting(here, value)


_VERBS = {
    ("permissions", "allow"): "allows {}", ("permissions", "ask"): "asks for {}", ("permissions", "deny"): "denies {}",
    ("extensions", "rocks"): "loads the rock {}", ("extensions", "paths"): "loads the extension {}",
}  # fmt: skip


def _setting(path: tuple[str, ...], value: Any) -> str:
    match path:
        case ("providers", name, "key_command"):
            return f"runs `{value}` for the key of {name}"
        case ("providers", name, "base_url"):
            return f"sends {name} requests to {value}"
        case ("providers", name, "api_key_env"):
            return f"sends ${value} to {name} as its key"
        case ("prompt", "parts", name):
            return f"puts {value} in the place of the prompt's {name}"
        case ("mode",):
            return f"mode {value}"
        case _:
            return f"{'.'.join(path)} = {json.dumps(value, ensure_ascii=False, default=str)}"


def _named(table: Mapping[str, Any], beside: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Files and folders that settings name, and what they would do; paths are relative to the settings' folder."""
    for text in _texts(table, "extensions", "paths"):
        if "/" in text or "~" in text or not (shipped_extensions() / text).is_dir():
            yield beside / Path(text).expanduser(), _RUNS
    for name, text in _tables(_tables(table, "prompt"), "parts").items():
        if isinstance(text, str):
            yield beside / Path(text).expanduser(), f"the text of the prompt's {name}"
    for provider in _tables(table, "providers").values():
        if isinstance(provider, dict) and isinstance(command := provider.get("key_command"), str):
            yield from ((folder / word, "a command names it") for word in _words(command) if (folder / word).is_file())
        if isinstance(provider, dict) and isinstance(script := provider.get("script"), str):
            yield beside / Path(script).expanduser(), "what a scripted model says"
    if isinstance(authority := _tables(table, "network").get("ca_file"), str) and authority:
        yield folder / Path(authority).expanduser(), "whose certificates are believed"


def _words(command: str) -> list[str]:
    try:
        return [word for word in shlex.split(command) if word and "\0" not in word]
    except ValueError:
        return []


def _tables(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = table.get(key)
    return inner if isinstance(inner, dict) else {}


def _texts(table: Mapping[str, Any], key: str, inner: str) -> list[str]:
    found = _tables(table, key).get(inner)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []
