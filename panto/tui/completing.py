"""What may follow: the pure part of completion. Finds what is being typed and orders what matches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from panto.schema.queries import CommandRow

ROWS = 8
_FILE = re.compile(r"(?:^|(?<=\s)|(?<=[(\[{\"'`]))@(\"[^\"\n]*|\S*)$")
_COMMAND = re.compile(r"/([\w:.-]*)$")
_ARGUMENT = re.compile(r"/([\w:.-]+)[ \t]+(.*)$", re.DOTALL)


class Wanted(NamedTuple):
    """What is being typed: `text` from position `start` to the cursor."""

    kind: Literal["command", "argument", "file"]
    text: str
    start: int
    command: str = ""


class Choice(NamedTuple):
    """One row of the list. `insert` takes the place of what was typed."""

    insert: str
    name: str
    meaning: str = ""
    value: str = ""
    usage: str = ""


def wanted(text: str, cursor: int) -> Wanted | None:
    """What could be completed at the cursor, None when nothing."""
    head = text[:cursor]
    found = _COMMAND.fullmatch(head)
    if found:
        return Wanted("command", found[1], 1)
    found = _ARGUMENT.fullmatch(head)
    if found and "\n" not in head:
        return Wanted("argument", found[2], found.start(2), found[1])
    found = _FILE.search(head)
    if found:
        return Wanted("file", found[1].lstrip('"'), found.start() + 1)
    return None


def rank(name: str, typed: str) -> int | None:
    """How well a name matches: 0 exact, 1 prefix, 2 inside, 3 letters in order; None not at all."""
    name, typed = name.lower(), typed.lower()
    if name == typed:
        return 0
    if name.startswith(typed):
        return 1
    if typed in name:
        return 2
    letters = iter(name)
    return 3 if len(typed) > 2 and all(letter in letters for letter in typed) else None


def fits(choice: Choice, want: Wanted) -> bool:
    """Whether a row is one for what is being typed now; it may be of an earlier moment."""
    return rank(choice.insert.strip().removeprefix("@").strip('"'), want.text.strip()) is not None


def commands(rows: Iterable[CommandRow], typed: str) -> list[Choice]:
    """Commands that match, best first; letters in order only where nothing better is there."""
    ranked = sorted((place, row.name, row) for row in rows if (place := rank(row.name.lstrip("/"), typed)) is not None)
    if ranked and ranked[0][0] < 3:
        ranked = [one for one in ranked if one[0] < 3]
    return [Choice(f"/{name}" + (" " if row.usage else ""), f"/{name}", row.description, row.value, shown(row.usage))
            for _, _, row in ranked for name in [row.name.lstrip("/")]]  # fmt: skip


def shown(usage: str) -> str:
    """Arguments as people write them: <needed> [optional]; a word with neither is needed."""
    parts = re.findall(r"\[[^]]*\]|<[^>]*>|\S+", usage)
    return " ".join(part if part[0] in "[<" else f"<{part}>" for part in parts)


def file_choice(path: str) -> Choice:
    """A path as a row: its name first, its folder behind."""
    folder, _, name = path.rstrip("/").rpartition("/")
    name += "/" if path.endswith("/") else ""
    quoted = f'"{path}"' if re.search(r"\s", path) else path
    return Choice("@" + quoted + ("" if path.endswith("/") else " "), name, folder + "/" if folder else "")
