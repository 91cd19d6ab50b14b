"""The reference page, made from the annotations: python -m panto.lua.reference writes reference.md beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ANNOTATIONS = HERE / "panto.d.lua"
PAGE = HERE / "reference.md"

HEAD = """\
# `require('panto')`: every name

Made from `panto.d.lua`, which editors read too; do not edit by hand.

**now** works anywhere: in tasks, observers, protocol bodies, `sort` and `gsub` callbacks, luv callbacks.
**await** waits, and works only in a task: a tool handler, a command, a hook, a function given to `spawn`, an
extension's main chunk and what it requires, the main chunk of `panto lua FILE`. Elsewhere it is an error with file and
line. Only the calling task waits; all others go on. Code that runs 100 ms without a wait, or takes more than 512 MB, is
stopped. `__gc` is not called: use `<close>` variables.

Failures are raised: a table `{ kind, message }` with a string form (`pcall` catches it), or, for a mistake in the
call, a message with file and line.
"""

PREFIX = {
    "Task": "task", "Agent": "agent", "Stream": "stream", "Job": "job", "Conversation": "conversation",
    "Store": "store",
    "Response": "response", "Context": "ctx", "Component": "component", "HookEvent": "event", "Handle": "handle",
    "json": "panto.json", "fs": "panto.fs", "ext": "panto.ext", "session": "panto.ext.session", "ui": "panto.ext.ui",
    "wire": "panto.ext.wire", "panto": "panto",
}  # fmt: skip


@dataclass
class Entry:
    """A function: how it is called, whether it waits, what is said of it, its parameters and results."""

    name: str
    arguments: str
    waits: bool
    text: str
    notes: list[str] = field(default_factory=list)


@dataclass
class Group:
    """A table or class with its fields and functions."""

    name: str
    text: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


def groups(text: str) -> list[Group]:
    """What the annotations say, in order. A class without functions is a table that others take or give."""
    out: list[Group] = []
    for comments, code in _blocks(text):
        said = _prose(line[3:] for line in comments if not line.startswith("---@"))
        tags = [line[4:] for line in comments if line.startswith("---@")]
        if found := re.match(r"function ([\w.]+)([.:])(\w+)\((.*)\) end", code):
            owner, dot, name, arguments = found.groups()
            entry = Entry(PREFIX[owner] + dot + name, arguments, "async" in tags, said)
            entry.notes = [_note(tag) for tag in tags if tag.startswith(("param ", "return "))]
            next(g for g in out if g.name == _class(out, owner)).entries.append(entry)
            continue
        for tag in tags:
            if tag.startswith("class "):
                name, _, more = tag.removeprefix("class ").partition(" ")
                out.append(Group(name, f"{said} {more}".strip()))
            elif tag.startswith("field "):
                name, _, kind = tag.removeprefix("field ").partition(" ")
                out[-1].fields.append((name, kind))
    return out


def _class(out: list[Group], owner: str) -> str:
    names = [g.name for g in out]
    for name in (f"panto.{owner}", f"panto.ext.{owner}", owner):
        if name in names:
            return name
    raise ValueError(f"no class for {owner}")


def _prose(lines: Iterable[str]) -> str:
    """One paragraph; a line that is indented is a point of a list after it, one indented more goes on with it."""
    out = ""
    for line in lines:
        point = line.startswith("  ") and not line.startswith("    ")
        out += f"\n- {line.strip()}" if point else f" {line.strip()}"
    return out.strip()


def _note(tag: str) -> str:
    kind, _, rest = tag.partition(" ")
    if kind == "return":
        return f"returns {_typed(rest)}"
    name, _, shape = rest.partition(" ")
    return f"`{name}`: {_typed(shape)}"


def _typed(text: str) -> str:
    """A type in code marks, and what is said of it: the type ends at the first space that is not within it."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "{(<[") - (letter in "})>]")
        if letter == " " and depth == 0 and text[at - 1] not in ":,|" and text[:at] != "async":
            return f"`{text[:at]}` {text[at + 1:]}"
    return f"`{text}`"


def _blocks(text: str) -> Iterator[tuple[list[str], str]]:
    comments: list[str] = []
    for line in text.splitlines():
        if line.startswith("---"):
            comments.append(line)
        else:
            if comments:
                yield comments, line
            comments = []


def page(text: str) -> str:
    """The page for these annotations."""
    out = [HEAD]
    for group in groups(text):
        title = group.name if group.name.startswith("panto") else f"panto.{group.name}"
        out.append(f"\n## {title}\n")
        if group.text:
            out.append(f"{group.text}\n")
        out += [f"- `{name}`: {_typed(kind)}" for name, kind in group.fields]
        for entry in group.entries:
            kind = "await" if entry.waits else "now"
            out.append(f"\n### `{entry.name}({entry.arguments})` — {kind}\n")
            out += [entry.text, ""] if entry.text else []
            out += [f"- {note}" for note in entry.notes]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(ANNOTATIONS.read_text(encoding="utf-8")), encoding="utf-8")
