"""Writing one thing into the person's config file: the bytes around it, comments included, stay as they are."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from pathlib import Path

from panto.app.toml_places import places
from panto.schema.errors import ConfigError


def toml(value: str | list[str]) -> str:
    """A text or a list of texts in TOML's spelling: JSON's, but for the one character that TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def set_value(file: Path, table: tuple[str, ...], key: str, value: str | list[str]) -> None:
    """Sets `key` of `table` (() for the top). Raises ConfigError when the file is broken or cannot be written."""
    text = _read(file)
    place = places(text).get((*table, key))
    new = toml(value)
    if place and place.end > place.start:
        text = text[: place.start] + new + text[place.end :]
    else:
        text = _insert(text, table, f"{key} = {new}")
    _write(file, text, (*table, key), value)


def add_rule(file: Path, kind: str, rule: str) -> None:
    """Adds `rule` to `[permissions] kind` (allow, ask or deny), once. Raises ConfigError."""
    text = _read(file)
    table = tomllib.loads(text).get("permissions", {})
    old = table.get(kind, []) if isinstance(table, dict) else []
    if not isinstance(old, list) or rule in old:
        return
    place = places(text).get(("permissions", kind))
    if not place or not old:
        set_value(file, ("permissions",), kind, [*old, rule])
        return
    # Before the closing bracket, so that a list over several lines keeps its shape and its comments.
    inside = text[place.start : place.end - 1].rstrip()
    comma = "" if _ends_with_comma(inside) else ","
    tail = text[place.start + len(inside) : place.end]
    indent = "\n    " if "\n" in inside else " "
    new = inside + comma + indent + toml(rule) + ("," + tail if "\n" in tail else tail)
    new = text[: place.start] + new + text[place.end :]
    if _says(new, ("permissions", kind), [*old, rule]):
        write_atomically(file, new.encode("utf-8"))
    else:  # a comment after the last element: that list is written anew
        set_value(file, ("permissions",), kind, [*old, rule])


def _ends_with_comma(inside: str) -> bool:
    """A list that may be closed as it stands already ends its last element, if `, ]` would be the same list."""
    try:
        tomllib.loads(f"x = {inside}\n, 'end']")
    except tomllib.TOMLDecodeError:
        return True
    return False


def _insert(text: str, table: tuple[str, ...], line: str) -> str:
    if not table:
        return f"{line}\n{text}"
    header = "[" + ".".join(table) + "]"
    lines = text.splitlines(keepends=True)
    for n, old in enumerate(lines):
        if old.split("#")[0].strip() == header:
            if not old.endswith("\n"):
                lines[n] += "\n"
            return "".join([*lines[: n + 1], f"{line}\n", *lines[n + 1 :]])
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{header}\n{line}\n"


def _read(file: Path) -> str:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        tomllib.loads(text)
    except FileNotFoundError:
        return ""
    except OSError as e:
        raise ConfigError(f"{file}: cannot be read: {e.strerror}", str(file)) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigError(f"{file} is not changed, it is broken: {e}", str(file), hint="mend it first") from None
    return text


def _write(file: Path, text: str, path: tuple[str, ...], value: object) -> None:
    """Atomically, and only if the new text says exactly what was meant."""
    if not _says(text, path, value):
        raise ConfigError(f"{file} is not changed: no place was found for {'.'.join(path)}", str(file), hint="edit it")
    write_atomically(file, text.encode("utf-8"))


def _says(text: str, path: tuple[str, ...], value: object) -> bool:
    try:
        said: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    for part in path:
        said = said.get(part) if isinstance(said, dict) else None
    return said == value


def write_atomically(file: Path, data: bytes, mode: int | None = None) -> None:
    """Replaces a file's content whole or not at all; a link is followed. `mode` None: as before. Raises ConfigError."""
    target = Path(os.path.realpath(file))
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if mode is None:
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as out:
            os.chmod(draft, mode)
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, target)
    except OSError as e:
        with contextlib.suppress(OSError):  # a folder that is read-only says so again
            draft.unlink()
        raise ConfigError(f"{file}: cannot be written: {e.strerror}", str(file)) from None
