"""write: a whole file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import View
from panto.tools import contents, paths
from panto.tools.builtin import Builtin
from panto.tools.diff import diff, fact
from panto.tools.text import UTF8, count, encoding_of, shown
from panto.tools.tool import Approval, ToolContext, ToolReply


class Write(Builtin):
    name = "write"
    subject = "path"
    schema = (
        '{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},'
        '"required":["path","content"],"additionalProperties":false}'
    )
    approval: Approval = "edit"

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return paths.touched(str(arguments["path"]), cwd, new=True)

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        return await asyncio.to_thread(_preview, str(arguments["path"]), str(arguments["content"]), context.cwd)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        return await asyncio.to_thread(_write, str(arguments["path"]), str(arguments["content"]), context)


def _preview(name: str, text: str, cwd: str) -> View:
    path = paths.real(name, cwd, new=True)
    before = contents.read_if_there(path, name)
    return diff(paths.relative(path, cwd), old_text(before), text)


def old_text(content: contents.Content | None) -> str:
    """A file's former text for a diff; "" where there was none or it was not text."""
    if content is None:
        return ""
    encoding = encoding_of(content.data)
    return encoding.decode(content.data).replace("\r\n", "\n") if encoding else ""


def as_bytes(text: str, before: contents.Content | None, name: str) -> bytes:
    """A file's new text in the form of the old one: its byte order mark, encoding and line endings."""
    encoding = (encoding_of(before.data) if before and before.data else None) or UTF8
    if before and b"\n" in before.data and "\r" not in text:
        endings = before.data.count(encoding.encode("\r\n"))
        if endings and endings == before.data.count(encoding.encode("\n")):
            text = text.replace("\n", "\r\n")
    mark = encoding.bom if not text.startswith("\ufeff") else b""
    try:
        return mark + encoding.encode(text)
    except UnicodeEncodeError as e:
        odd = text[e.start : e.start + 1]
        if encoding.name == "latin-1":
            raise ToolFailure(f"{shown(name)} is written in {encoding.name}, which has no {odd!r}") from None
        raise ToolFailure(f"content holds half a character ({odd!r})") from None


def _write(name: str, text: str, context: ToolContext) -> ToolReply:
    path = paths.real(name, context.cwd, new=True)
    if os.path.isdir(path):
        raise ToolFailure(f"{shown(name)} is a directory")
    with contents.changing(path):
        before = contents.read_if_there(path, name)
        if before is not None:
            contents.require_fresh(path, name, before, context.fresh, context.session, unread=False)
        data = as_bytes(text, before, name)
        if before is None or data != before.data:
            contents.replace(path, name, data, before)
        change, bodies = contents.changed(path, before, data, context)
    view = diff(paths.relative(path, context.cwd), old_text(before), text)
    lines = count(text.count("\n") + (not text.endswith("\n") and text != ""), "line")
    said = f"{'wrote' if before else 'made'} {shown(name)}: {lines}"
    title = paths.relative(path, context.cwd)
    return ToolReply(ToolOutcome(parts=(Text(said),), title=title, fact=fact(view), view=view), (change,), bodies)
