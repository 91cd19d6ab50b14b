"""Where each key of a TOML text stands: for the line number in a message, and to change one value and nothing else.

`tomllib` says what a text means and not where. This walk trusts that it has already been found correct.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """`line` counts from 1; the value is `text[start:end]`. A table header has an empty value after its line."""

    line: int
    start: int
    end: int


class Malformed(ValueError):
    """The walk lost its way; whoever asked goes on without places."""


def places(text: str) -> dict[Path, Place]:
    """Every header and key of the text, keys of inline tables included, by its full path."""
    found: dict[Path, Place] = {}
    try:
        _walk(text, found)
    except (IndexError, ValueError):
        pass  # what was found so far is right; a message without a line number is better than none
    return found


def _walk(text: str, found: dict[Path, Place]) -> None:
    at, table = _blank(text, 0), ()  # type: tuple[int, Path]
    while at < len(text):
        if text[at] == "[":
            double = text.startswith("[[", at)
            path, at = _key(text, at + 1 + double)
            at = _line_end(text, at + 1 + double)
            table = path
            for n in range(1, len(path) + 1):
                found.setdefault(path[:n], Place(_line(text, at), at, at))
        else:
            at = _pair(text, at, table, found)
        at = _blank(text, at)


def _pair(text: str, at: int, table: Path, found: dict[Path, Place]) -> int:
    """`key = value` at `at`; returns where the value ends."""
    begin = at
    key, at = _key(text, at)
    if text[at] != "=":
        raise Malformed
    start = _space(text, at + 1)
    path = table + key
    for n in range(len(table) + 1, len(path)):
        found.setdefault(path[:n], Place(_line(text, begin), start, start))
    end = _inline(text, start, path, found) if text[start] == "{" else _value(text, start)
    found[path] = Place(_line(text, begin), start, end)
    return end


def _inline(text: str, at: int, path: Path, found: dict[Path, Place]) -> int:
    at = _space(text, at + 1)
    while text[at] != "}":
        at = _space(text, _pair(text, at, path, found))
        if text[at] == ",":
            at = _space(text, at + 1)
        elif text[at] != "}":
            raise Malformed
    return at + 1


def _key(text: str, at: int) -> tuple[Path, int]:
    """A dotted key; returns it and the place after it and its white space."""
    parts: list[str] = []
    while True:
        at = _space(text, at)
        if text[at] in "\"'":
            end = _string(text, at)
            parts.append(next(iter(tomllib.loads(text[at:end] + " = 0"))))
        else:
            end = at
            while text[end] not in " \t.=]\r\n":
                end += 1
            parts.append(text[at:end])
        at = _space(text, end)
        if text[at] != ".":
            return tuple(parts), at
        at += 1


def _value(text: str, at: int) -> int:
    """Where the value that begins at `at` ends."""
    if text[at] in "\"'":
        return _string(text, at)
    if text[at] not in "[{":
        end = at
        while end < len(text) and text[end] not in ",]}#\r\n":
            end += 1
        return at + len(text[at:end].rstrip())
    depth = 0
    while True:
        if text[at] in "\"'":
            at = _string(text, at)
            continue
        if text[at] == "#":
            at = _line_end(text, at)
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        at += 1
        if depth == 0:
            return at


def _string(text: str, at: int) -> int:
    quote = text[at]
    if text.startswith(quote * 3, at):
        end = at + 3
        while not text.startswith(quote * 3, end):
            end += 2 if quote == '"' and text[end] == "\\" else 1
        end += 3
        while end < len(text) and text[end] == quote:  # up to two quotes may touch the closing three
            end += 1
        return end
    end = at + 1
    while text[end] != quote:
        end += 2 if quote == '"' and text[end] == "\\" else 1
    return end + 1


def _space(text: str, at: int) -> int:
    while text[at] in " \t":
        at += 1
    return at


def _blank(text: str, at: int) -> int:
    """The next place that is neither white space nor comment."""
    while at < len(text):
        if text[at] == "#":
            at = _line_end(text, at)
        elif text[at] in " \t\r\n":
            at += 1
        else:
            break
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
