"""grep: ripgrep's matches, by file and line."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from collections.abc import Mapping
from contextlib import aclosing

import msgspec

from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools import contents, paths, ripgrep
from panto.tools.builtin import Builtin
from panto.tools.masks import masked
from panto.tools.processes import Spawner
from panto.tools.text import MODEL_LIMIT, UTF8, count, encoding_of, shown, visible
from panto.tools.tool import Approval, ToolContext, ToolReply

_LIMIT = 100
_WIDTH = 400


class _Data(msgspec.Struct):
    """rg's text, or its bytes in base64 where they are not UTF-8."""

    text: str | None = None
    base64: str | None = msgspec.field(default=None, name="bytes")

    def raw(self) -> bytes:
        return b64decode(self.base64) if self.base64 is not None else (self.text or "").encode()


class _Place(msgspec.Struct):
    start: int
    end: int


class _Found(msgspec.Struct):
    path: _Data | None = None
    lines: _Data | None = None
    line_number: int | None = None
    submatches: list[_Place] = []
    binary_offset: int | None = None


class _Record(msgspec.Struct):
    type: str
    data: _Found


class Grep(Builtin):
    name = "grep"
    subject = "pattern"
    schema = (
        '{"type":"object","properties":{"pattern":{"type":"string","minLength":1},"path":{"type":"string"},'
        '"glob":{"type":"string"},"ignore_case":{"type":"boolean"},"context":{"type":"integer","minimum":0,"maximum":20},'
        '"limit":{"type":"integer","minimum":1}},"required":["pattern"],"additionalProperties":false}'
    )
    mutates = False
    replay = True
    approval: Approval = "read"

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return paths.touched(str(arguments.get("path") or "."), cwd)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        where = await asyncio.to_thread(place, arguments, context.cwd)
        options = [*ripgrep.COMMON, "--json", "--sort=path", "--max-columns=0"]
        if arguments.get("ignore_case"):
            options.append("--ignore-case")
        if arguments.get("context"):
            options.append(f"--context={arguments['context']}")
        if arguments.get("glob"):
            options.append(f"--glob={arguments['glob']}")
        limit = arguments.get("limit", _LIMIT)
        assert isinstance(limit, int)
        found = _Matches(limit, os.path.realpath(context.cwd), context.mask)
        options += [f"--regexp={arguments['pattern']}", "--", where]
        records = ripgrep.run(options, context.cwd, self._spawner, context.cancelled)
        async with aclosing(records):
            async for line in records:
                if not found.take(msgspec.json.decode(line, type=_Record)):
                    break
        text = found.text()
        fact = f"{count(found.matches, 'match')}{'+' if found.cut else ''} in {count(found.files, 'file')}"
        return ToolReply(
            ToolOutcome(parts=(Text(text),), title=self.title(arguments), fact=fact, view=TextView(text))
        )


def place(arguments: Mapping[str, object], cwd: str) -> str:
    """The real path a search begins at. Raises ToolFailure: not_found, or for a pipe or device, which may never end."""
    name = str(arguments.get("path") or ".")
    where = paths.real(name, cwd)
    if not os.path.exists(where):
        raise paths.missing(name, cwd)
    if not os.path.isdir(where):
        os.close(contents.open_regular(where, name))
    return where


class _Matches:
    """Collects lines until enough have come."""

    def __init__(self, limit: int, base: str, mask: tuple[str, ...]) -> None:
        self._limit = limit
        self._base = base
        self._mask = mask
        self._lines: list[str] = []
        self._room = MODEL_LIMIT
        self._file = ""
        self._new = False
        self.matches = 0
        self.files = 0
        self.cut = False

    def take(self, record: _Record) -> bool:
        """Add a record; False when no more is wanted."""
        data = record.data
        if record.type == "begin" and data.path is not None:
            path = os.fsdecode(data.path.raw())
            self._file = shown(os.path.relpath(path, self._base) if paths.inside(path, self._base) else path)
            self._new = True
        elif record.type in ("match", "context") and data.lines is not None:
            if record.type == "match":
                if self.matches == self._limit:
                    self.cut = True
                    return False
                self.matches += 1
            return self._add(record)
        elif record.type == "end" and data.binary_offset is not None and not self._new:
            self._lines.append(f"({self._file} is a binary file)")
        return True

    def _add(self, record: _Record) -> bool:
        data = record.data
        assert data.lines is not None
        if self._new:
            self._new = False
            self.files += 1
            self._lines.append(self._file)
        raw = data.lines.raw()
        if b"\0" in raw:
            return True  # the note at the file's end says that it is binary
        start = data.submatches[0].start if data.submatches else 0
        mark = ":" if record.type == "match" else "-"
        line = f"{data.line_number}{mark}{_around(raw, start)}"
        self._room -= len(line) + 1
        if self._room < 0:
            self.cut = True
            return False
        self._lines.append(line)
        return True

    def text(self) -> str:
        """All of it, for the model."""
        if not self._lines:
            return "no match"
        more = ["(there are more: narrow the pattern or path, or set limit)"] if self.cut else []
        return masked("\n".join(self._lines + more), self._mask)


def _around(raw: bytes, start: int) -> str:
    """A line, or of a very long one the part around the match."""
    line = raw.rstrip(b"\r\n")
    encoding = encoding_of(line) or UTF8
    if len(line) <= _WIDTH:
        return visible(encoding.decode(line))
    first = max(0, start - _WIDTH // 3)
    part = visible(encoding.decode(line[first : first + _WIDTH]))
    return f"{'…' if first else ''}{part}{'…' if first + _WIDTH < len(line) else ''}"
