"""ls: what is in a directory, as a tree where asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools import paths
from panto.tools.builtin import Builtin
from panto.tools.text import count, shown
from panto.tools.tool import Approval, ToolContext, ToolReply

_ENTRIES = 500
_SKIPPED = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv"})
"""Directories that a tree names but does not enter."""


class Ls(Builtin):
    name = "ls"
    subject = "path"
    schema = (
        '{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer","minimum":1,"maximum":8}},'
        '"additionalProperties":false}'
    )
    mutates = False
    replay = True
    approval: Approval = "read"

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return paths.touched(str(arguments.get("path") or "."), cwd)

    def title(self, arguments: Mapping[str, object]) -> str:
        return super().title({"path": arguments.get("path") or "."})

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        depth = arguments.get("depth", 1)
        assert isinstance(depth, int)
        return await asyncio.to_thread(_ls, str(arguments.get("path") or "."), depth, context.cwd)


def _ls(name: str, depth: int, cwd: str) -> ToolReply:
    path = paths.real(name, cwd)
    if not os.path.lexists(path):
        raise paths.missing(name, cwd)
    if not os.path.isdir(path):
        raise ToolFailure(f"{shown(name)} is not a directory: use read")
    lines: list[str] = []
    try:
        total = _list(path, depth, "", lines)
    except OSError as e:
        raise ToolFailure(f"{shown(name)}: {e.strerror}", "permission_denied") from None
    if total > len(lines):
        lines.append(f"({total - len(lines):,} more)")
    text = "\n".join(lines) or "(empty)"
    fact = count(total, "entry")
    return ToolReply(ToolOutcome((Text(text),), title=paths.relative(path, cwd), fact=fact, view=TextView(text)))


def _list(path: str, depth: int, indent: str, lines: list[str]) -> int:
    """Adds the entries below `path` and returns how many there are; links are named, not followed."""
    with os.scandir(path) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    total = len(listed)
    for entry in listed:
        folder = entry.is_dir(follow_symlinks=False)
        if len(lines) < _ENTRIES:
            lines.append(indent + shown(entry.name) + _suffix(entry, folder))
        if folder and depth > 1 and entry.name not in _SKIPPED and len(lines) < _ENTRIES:
            try:
                total += _list(entry.path, depth - 1, indent + "  ", lines)
            except OSError:
                lines.append(f"{indent}  (not readable)")
    return total


def _suffix(entry: os.DirEntry[str], folder: bool) -> str:
    if folder:
        return "/"
    if entry.is_symlink():
        try:
            return f" -> {shown(os.readlink(entry.path))}"
        except OSError:
            return " -> ?"
    return "" if entry.is_file(follow_symlinks=False) else " (not a file)"
