"""read: a text file's lines with their numbers, or an image."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from panto.schema.bodies import ToolOutcome
from panto.schema.codec import Digest
from panto.schema.errors import ToolFailure
from panto.schema.events import FileChange
from panto.schema.messages import Image, Text
from panto.schema.view import TextView
from panto.tools import contents, paths
from panto.tools.builtin import Builtin
from panto.tools.text import (
    LINE_LIMIT,
    MODEL_LIMIT,
    Encoding,
    count,
    cut_line,
    encoding_of,
    kind_of,
    shown,
    size,
    visible,
)
from panto.tools.tool import Approval, ToolContext, ToolReply

_LINES = 2_000
_VIEW = 16_000


class Read(Builtin):
    name = "read"
    subject = "path"
    schema = (
        '{"type":"object","properties":{"path":{"type":"string"},'
        '"offset":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1}},'
        '"required":["path"],"additionalProperties":false}'
    )
    mutates = False
    replay = True
    approval: Approval = "read"

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return paths.touched(str(arguments["path"]), cwd)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        name = str(arguments["path"])
        offset, limit = arguments.get("offset", 1), arguments.get("limit", _LINES)
        assert isinstance(offset, int) and isinstance(limit, int)
        return await asyncio.to_thread(_read, name, offset, limit, context.cwd)


def _read(name: str, offset: int, limit: int, cwd: str) -> ToolReply:
    path = paths.real(name, cwd)
    if not os.path.lexists(path):
        raise paths.missing(name, cwd)
    fd = contents.open_regular(path, name)
    with open(fd, "rb") as file:
        whole = os.fstat(fd).st_size
        try:
            head = file.read(contents.LARGEST + 1)
        except OSError as e:  # a broken disk, or a file of the system that is not for reading
            raise ToolFailure(f"{shown(name)} cannot be read: {e.strerror}", "unavailable") from None
        if len(head) > contents.LARGEST:
            return _window_of_huge(name, path, offset, limit, cwd, whole)
    content = contents.Content(head, os.stat(path))
    kind = kind_of(head)
    if kind.startswith("image/") and (encoding_of(head) is None or kind != "image/bmp"):
        return _image(name, path, content, cwd)
    encoding = encoding_of(head)
    if encoding is None:
        raise ToolFailure(f"{shown(name)} is a binary file ({kind or 'unknown kind'}, {size(len(head))}): not shown")
    lines = encoding.decode(head).split("\n")
    if lines[-1] == "":
        lines.pop()
    page = _page(lines, offset, limit, len(lines), encoding)
    return _reply(page, path, cwd, (contents.seen(path, content),))


@dataclass(frozen=True, slots=True)
class _Page:
    text: str
    lines: int


def _page(lines: list[str], offset: int, limit: int, total: int, encoding: Encoding, first: int = 1) -> _Page:
    """Numbered lines from `offset`; `lines` begins with line number `first`, the file has `total`."""
    if total == 0:
        return _Page("(the file is empty)", 0)
    if offset > total:
        raise ToolFailure(f"offset {offset} is after the last line: the file has {count(total, 'line')}")
    out: list[str] = []
    room = MODEL_LIMIT
    number = offset
    for line in lines[offset - first : offset - first + limit]:
        entry = f"{number}\t{cut_line(line.removesuffix(chr(13)), LINE_LIMIT)}"
        room -= len(entry) + 1
        if room < 0 and out:
            break
        out.append(entry)
        number += 1
    shown_lines = len(out)
    if number <= total:
        out.append(f"(lines {offset} to {number - 1} of {total}; the next: offset {number})")
    if encoding.name != "utf-8":
        out.append(f"(decoded from {encoding.name})")
    return _Page("\n".join(out), shown_lines)


def _reply(page: _Page, path: str, cwd: str, files: tuple[FileChange, ...]) -> ToolReply:
    outcome = ToolOutcome(
        parts=(Text(page.text),),
        title=paths.relative(path, cwd),
        fact=count(page.lines, "line"),
        view=TextView(visible(page.text[:_VIEW])),
    )
    return ToolReply(outcome, files)


def _image(name: str, path: str, content: contents.Content, cwd: str) -> ToolReply:
    from panto.tools.images import fit

    picture = fit(content.data, name)
    said = f"{shown(name)}: {picture.note}"
    image = Image(media_type=picture.media_type, data=picture.data, name=os.path.basename(shown(path)))
    outcome = ToolOutcome(
        parts=(Text(said), image), title=paths.relative(path, cwd), fact=picture.size, view=TextView(said)
    )
    return ToolReply(outcome, (contents.seen(path, content),))


def _window_of_huge(name: str, path: str, offset: int, limit: int, cwd: str, whole: int) -> ToolReply:
    """Some lines of a file too large to hold: read once in pieces, which also identifies it."""
    sha = hashlib.sha256()
    kept: list[str] = []
    total, pending = 0, ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with open(contents.open_regular(path, name), "rb") as file:
        while piece := file.read(1 << 20):
            sha.update(piece)
            if total == 0 and encoding_of(piece) is None:
                raise ToolFailure(f"{shown(name)} is a binary file ({kind_of(piece) or 'unknown kind'}, {size(whole)})")
            lines = (pending + decoder.decode(piece)).split("\n")
            pending = lines.pop()[: 2 * LINE_LIMIT]
            for line in lines:
                total += 1
                if offset <= total < offset + limit and len(kept) < _LINES:
                    kept.append(line[: 2 * LINE_LIMIT])
    if pending:
        total += 1
        if offset <= total < offset + limit and len(kept) < _LINES:
            kept.append(pending)
    known: Digest = sha.hexdigest()
    page = _page(kept, offset, limit, total, Encoding("utf-8"), first=offset)
    return _reply(page, path, cwd, (FileChange(path=paths.storable(path), before=known, after=known),))
