"""The configuration: read in layers, checked line by line, handed down and never pulled.

Shipped defaults (settings.py), user config, project config (only if trusted), environment, command line: later wins.
A wrong key or type is one error that names file, line and the nearest valid name; everything else still counts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Literal, get_args, get_origin

import msgspec

from panto.app.argv import nearest
from panto.app.settings import ADDING, Config, Price, Settings
from panto.app.toml_places import Path, Place, places
from panto.schema.errors import ConfigError
from panto.schema.queries import SettingRow
from panto.tools import regular

_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_BEGINS = re.compile(r"\s*([\w-]+(\s*\.\s*[\w-]+)*\s*=|\[{1,2}\s*[A-Za-z_][^\[\],]*\]{1,2}\s*(#.*)?$)")
"""A line that begins a key or a table."""
SECRET = re.compile(r"key|token|secret|password|auth|cookie|credential", re.IGNORECASE)
"""Names whose values are nobody's to see."""
_PLAIN_NAMES = {"api_key_env", "key_command"}
ENVIRONMENT = {"PANTO_MODEL": "model", "PANTO_REASONING": "reasoning", "PANTO_MODE": "mode"}


LARGEST = 1 << 20
"""Bytes of a config file that are read: what a project brings is read before its person was asked."""


@dataclass
class Loaded:
    """`config` in force, `sources` of what is not a default (path of the key -> where), `problems` to be shown.

    `tree` is what the layers said, without defaults.
    """

    config: Config = field(default_factory=Config)
    tree: dict[str, Any] = field(default_factory=dict)
    added: list[tuple[Path, str, str]] = field(default_factory=list)
    """Entries of the lists to which layers add, in order: the key, the text, the layer's name."""
    sources: dict[Path, str] = field(default_factory=dict)
    problems: list[ConfigError] = field(default_factory=list)

    def rows(self) -> tuple[SettingRow, ...]:
        """What is in force and from where, values that could be secret masked."""
        tree = msgspec.to_builtins(self.config)
        return tuple(
            SettingRow(".".join(map(_bare, path)), _show(path, value), self.sources.get(path, "default"))
            for path, value in _leaves(tree, ())
        )


@dataclass(frozen=True)
class Layer:
    """One source of settings: a table as read, and where each key of it stands."""

    name: str
    table: Mapping[str, Any]
    places: Mapping[Path, Place]
    problems: tuple[ConfigError, ...] = ()

    def where(self, path: Path) -> str:
        line = self.line(path)
        return f"{self.name}:{line}" if line else self.name

    def line(self, path: Path) -> int:
        for n in range(len(path), 0, -1):
            if place := self.places.get(path[:n]):
                return place.line
        return 0


def load(layers: list[Layer]) -> Loaded:
    """The layers merged, later wins. Never raises: what is wrong is in `problems`."""
    out = Loaded()
    for layer in layers:
        out.problems += layer.problems
        good = _checked(Config, layer.table, (), layer, out.problems)
        _merge(out.tree, good, (), layer, out.sources)
        for table, key in sorted(ADDING):
            out.added += [((table, key), text, layer.name) for text in good.get(table, {}).get(key, ())]
    out.config = msgspec.convert(out.tree, Config)
    return out


def file_layer(file: FilePath | None) -> Layer:
    """A config file as a layer; an absent one is empty, a broken or unreadable one says so in its problems."""
    name = str(file or "config.toml")
    try:
        raw = regular.read(file, LARGEST) if file else b""
    except FileNotFoundError:
        raw = b""
    except OSError as e:
        return Layer(name, {}, {}, (ConfigError(f"{name}: cannot be read: {e.strerror}", name),))
    text, problems = _decode(raw, name)
    text, table = _parse(text, name, problems)
    return Layer(name, table, places(text), tuple(problems))


def environment_layer(environ: Mapping[str, str]) -> list[Layer]:
    """One layer for each variable that says something."""
    return [Layer(name, {key: environ[name]}, {}) for name, key in ENVIRONMENT.items() if environ.get(name)]


def option_layer(options: Mapping[str, str]) -> list[Layer]:
    """One layer for each option of the command line that is a setting."""
    return [
        Layer(f"--{key}", {key: options[f"--{key}"]}, {})
        for key in ("model", "reasoning", "mode")
        if options.get(f"--{key}")
    ]


# ---------------------------------------------------------------- reading


def _decode(raw: bytes, name: str) -> tuple[str, list[ConfigError]]:
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode("utf-8"), []
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        problem = ConfigError(f"{name}:{line}: not UTF-8; the bytes were replaced", name, line)
        return raw.decode("utf-8", "replace"), [problem]


def _parse(text: str, name: str, problems: list[ConfigError]) -> tuple[str, dict[str, Any]]:
    """The table, and the text it was read from: lines that are no TOML are left out, one problem for each."""
    lines = text.split("\n")
    while True:
        try:
            return "\n".join(lines), tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError as e:
            found = _LINE.search(str(e))
            line = int(found[1]) if found else len(lines)
            if open_value := _unclosed(lines, line):
                problems.append(_not_closed(name, lines, *open_value))
                continue
            line = line if found else _statement(lines)
            said = _LINE.sub("", str(e)).replace("(at end of document)", "").strip()
            problems.append(ConfigError(f"{name}:{line}: {said}; the line is ignored", name, line))
            _blank_out(lines, line - 1)
        except RecursionError:
            problems.append(ConfigError(f"{name}: nested too deeply; the file is ignored", name))
            return "", {}


def _statement(lines: list[str]) -> int:
    """The line of the first key that the walk did not come past."""
    reached = [place.line for place in places("\n".join(lines)).values()]
    full = (n for n, line in enumerate(lines, 1) if line.split("#")[0].strip() and n > max(reached, default=0))
    return next(full, len(lines))


def _unclosed(lines: list[str], line: int) -> tuple[int, int] | None:
    """The first and last line of a value that is not closed, where that is why `line` cannot be read."""
    first = _statement(lines[:line])
    if first == line < len(lines) or "=" not in lines[first - 1]:
        return None
    following = (n for n in range(first + 1, len(lines) + 1) if _BEGINS.match(lines[n - 1]))
    last = next(following, len(lines) + 1) - 1
    if places("\n".join(lines[first - 1 : last])):
        return None  # it is closed: something within it is wrong
    while last > first and not lines[last - 1].split("#")[0].strip():
        last -= 1
    return first, last


def _not_closed(name: str, lines: list[str], first: int, last: int) -> ConfigError:
    """What is said of such a value, whose lines go."""
    lines[first - 1 : last] = [""] * (last - first + 1)
    gone = "the line is ignored" if first == last else f"lines {first} to {last} are ignored"
    return ConfigError(f"{name}:{first}: the value that begins here is not closed; {gone}", name, first)


def _blank_out(lines: list[str], at: int) -> None:
    """A line that is no TOML goes. With a broken header go its keys: they would count for another table."""
    at = min(at, len(lines) - 1)
    while at > 0 and not lines[at].strip():
        at -= 1
    header = lines[at].lstrip().startswith("[")
    lines[at] = ""
    while header and at + 1 < len(lines) and not lines[at + 1].lstrip().startswith("["):
        at += 1
        lines[at] = ""


def _checked(
    kind: type[Settings], table: Mapping[str, Any], path: Path, layer: Layer, problems: list[ConfigError]
) -> dict[str, Any]:
    """What of `table` fits the struct `kind`; the rest becomes problems."""
    types = {f.name: f.type for f in msgspec.structs.fields(kind)}
    good: dict[str, Any] = {}
    for key, value in table.items():
        here = (*path, key)
        if key not in types:
            problems.append(_unknown(here, types, layer))
        elif (value := _fit(types[key], value, here, layer, problems)) is not None:
            good[key] = value
    return good


def _fit(type_: Any, value: Any, path: Path, layer: Layer, problems: list[ConfigError]) -> Any:
    """`value` if it is of that type, else None and a problem. Tables are fitted key by key."""
    inner = get_args(type_)[1] if get_origin(type_) is dict else None
    if isinstance(value, dict):
        kinds = (type_,) if inner is not None else (type_, *get_args(type_))  # a struct, or a struct or None
        kind = next((k for k in kinds if isinstance(k, type) and issubclass(k, Settings)), None)
        if kind is not None:
            fitting = _checked(kind, value, path, layer, problems)
            if kind is Price and not fitting.keys() >= {"input", "output"}:
                problems.append(_problem(f"{'.'.join(path)}: a price needs input and output", path, layer))
                return None
            return fitting
        if inner is not None:
            fitted = {k: _fit(inner, v, (*path, k), layer, problems) for k, v in value.items()}
            return {k: v for k, v in fitted.items() if v is not None}
    try:
        msgspec.convert(value, type_)
        return value
    except msgspec.ValidationError as e:
        said = str(e)
        if get_origin(type_) is Literal:
            said = f"{value!r} is none of {', '.join(map(repr, get_args(type_)))}"
        said = re.sub(r"`([^`]*)`", _in_words, said)
        problems.append(_problem(f"{'.'.join(path)}: {said[0].lower() + said[1:]}", path, layer))
        return None


_KINDS = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list",
    "object": "a table",
}  # fmt: skip


def _in_words(kinds: re.Match[str]) -> str:
    """Kinds of values as people call them; that one may be left out goes without saying."""
    names = [name for name in kinds[1].split(" | ") if name != "null"]
    if "float" in names:
        names = [name for name in names if name != "int"]
    return " or ".join(_KINDS.get(name, name) for name in names)


def _unknown(path: Path, names: Mapping[str, Any], layer: Layer) -> ConfigError:
    key = path[-1]
    where = f" in [{'.'.join(path[:-1])}]" if path[:-1] else ""
    if key in ("api_key", "key") and path[0] == "providers":
        hint = f"a key does not belong here: panto login {path[1]}, or api_key_env, or key_command"
    else:
        near = nearest(key, names)
        hint = f"did you mean {near}?" if near else "known: " + ", ".join(names)
    return _problem(f"unknown key {key!r}{where}", path, layer, hint)


def _problem(said: str, path: Path, layer: Layer, hint: str = "") -> ConfigError:
    return ConfigError(f"{layer.where(path)}: {said}", layer.name, layer.line(path), hint)


def _merge(tree: dict[str, Any], table: Mapping[str, Any], path: Path, layer: Layer, sources: dict[Path, str]) -> None:
    for key, value in table.items():
        here = (*path, key)
        if isinstance(value, dict):
            _merge(tree.setdefault(key, {}), value, here, layer, sources)
        elif here in ADDING:
            old = tree.get(key, [])
            tree[key] = [*old, *(v for v in value if v not in old)]
            sources[here] = f"{sources[here]}, {layer.where(here)}" if here in sources else layer.where(here)
        else:
            tree[key] = value
            sources[here] = layer.where(here)


# ---------------------------------------------------------------- showing


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif value is not None and value != {}:
        yield path, value


def _bare(key: str) -> str:
    import json

    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _show(path: Path, value: Any) -> str:
    import json

    if len(path) > 2 and path[2] == "headers" and path[0] == "providers":
        return "(hidden)"
    if any(SECRET.search(part) for part in path[1:]) and path[-1] not in _PLAIN_NAMES and path[0] != "keys":
        return "(hidden)"
    if path[-1] == "base_url":
        value = re.sub(r"//[^/@]*@", "//(hidden)@", value)
    return json.dumps(value, ensure_ascii=False)
