"""glob: files by name pattern, ignored ones left out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import aclosing

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools import globs, paths, ripgrep
from panto.tools.builtin import Builtin
from panto.tools.grep import place
from panto.tools.processes import Spawner
from panto.tools.text import MODEL_LIMIT, count, shown
from panto.tools.tool import Approval, ToolContext, ToolReply

_LIMIT = 200


class Glob(Builtin):
    name = "glob"
    subject = "pattern"
    schema = (
        '{"type":"object","properties":{"pattern":{"type":"string","minLength":1},"path":{"type":"string"},'
        '"limit":{"type":"integer","minimum":1}},"required":["pattern"],"additionalProperties":false}'
    )
    mutates = False
    replay = True
    approval: Approval = "read"

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return paths.touched(_parts(arguments)[0], cwd)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        start, pattern = _parts(arguments)
        where = await asyncio.to_thread(place, {"path": start}, context.cwd)
        if not os.path.isdir(where):
            raise ToolFailure(f"path: {shown(start)} is not a directory")
        limit = arguments.get("limit", _LIMIT)
        assert isinstance(limit, int)
        base = os.path.realpath(context.cwd)
        prefix = "" if where == base else paths.relative(where, context.cwd).rstrip("/") + "/"
        found: list[str] = []
        total = 0
        options = [*ripgrep.COMMON, "--files", "-0", "--sort=path"]
        records = ripgrep.run(options, where, self._spawner, context.cancelled)
        async with aclosing(records):
            async for record in records:
                name = os.fsdecode(record)
                if globs.matches(pattern, name):
                    total += 1
                    if total <= limit:
                        found.append(prefix + shown(name))
        text = _bounded(found, total)
        view = TextView(text)
        return ToolReply(ToolOutcome((Text(text),), title=self.title(arguments), fact=count(total, "file"), view=view))


def _parts(arguments: Mapping[str, object]) -> tuple[str, str]:
    """Where the search begins and the pattern below it: the directories that a pattern spells out are gone into."""
    start, rest = str(arguments.get("path") or "."), str(arguments["pattern"]).split("/")
    fixed: list[str] = []
    while len(rest) > 1 and not any(char in rest[0] for char in "*?[{\\"):
        fixed.append(rest.pop(0))
    if not fixed:
        return start, "/".join(rest)
    folder = "/".join(fixed) or "/"
    if not folder.startswith(("/", "~")):
        folder = f"{start.rstrip('/') or '/'}/{folder}"
    return folder, "./" + "/".join(rest)


def _bounded(found: list[str], total: int) -> str:
    if not found:
        return "no file matches"
    room = MODEL_LIMIT
    for index, name in enumerate(found):
        room -= len(name) + 1
        if room < 0:
            found = found[:index]
            break
    more = [f"({total - len(found):,} more: narrow the pattern, or set limit)"] if total > len(found) else []
    return "\n".join(found + more)
