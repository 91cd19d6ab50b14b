"""edit: exact replacements in one file, all or none. What is searched is bytes; nothing is interpreted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import View
from panto.tools import contents, paths
from panto.tools.builtin import Builtin
from panto.tools.diff import diff, fact
from panto.tools.miss import explain
from panto.tools.text import Encoding, encoding_of, kind_of, shown, size
from panto.tools.tool import Approval, ToolContext, ToolReply
from panto.tools.write import old_text


class Edit(Builtin):
    name = "edit"
    subject = "path"
    schema = (
        '{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","minItems":1,"items":'
        '{"type":"object","properties":{"old":{"type":"string","minLength":1},"new":{"type":"string"},'
        '"all":{"type":"boolean"}},"required":["old","new"],"additionalProperties":false}}},'
        '"required":["path","edits"],"additionalProperties":false}'
    )
    approval: Approval = "edit"

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return paths.touched(str(arguments["path"]), cwd)

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        return await asyncio.to_thread(_preview, str(arguments["path"]), replacements(arguments), context.cwd)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        return await asyncio.to_thread(_edit, str(arguments["path"]), replacements(arguments), context)


@dataclass(frozen=True, slots=True)
class Replacement:
    """One exact replacement; `everywhere`: every occurrence, else the only one."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    new: bytes
    edit: int


def replacements(arguments: Mapping[str, object]) -> tuple[Replacement, ...]:
    """The `edits` of checked arguments."""
    edits = arguments["edits"]
    assert isinstance(edits, list)
    return tuple(Replacement(str(edit["old"]), str(edit["new"]), bool(edit.get("all"))) for edit in edits)


def _preview(name: str, edits: Sequence[Replacement], cwd: str) -> View | None:
    path = paths.real(name, cwd)
    before = contents.read(path, name)
    after = contents.Content(apply(before.data, edits, name), before.node)
    return diff(paths.relative(path, cwd), old_text(before), old_text(after))


def _edit(name: str, edits: Sequence[Replacement], context: ToolContext) -> ToolReply:
    path = paths.real(name, context.cwd)
    with contents.changing(path):
        before = contents.read_if_there(path, name)
        if before is None:
            raise paths.missing(name, context.cwd)
        contents.require_fresh(path, name, before, context.fresh, context.session, unread=True)
        data = apply(before.data, edits, name)
        contents.replace(path, name, data, before)
        change, bodies = contents.changed(path, before, data, context)
    view = diff(paths.relative(path, context.cwd), old_text(before), old_text(contents.Content(data, before.node)))
    where = ", ".join(str(hunk.new_start) for hunk in view.hunks[:8])
    said = f"edited {shown(name)} ({fact(view)}; near line {where})"
    title = paths.relative(path, context.cwd)
    return ToolReply(ToolOutcome(parts=(Text(said),), title=title, fact=fact(view), view=view), (change,), bodies)


def apply(data: bytes, edits: Sequence[Replacement], name: str = "the file") -> bytes:
    """The content after all replacements, each looked for in `data` as it is. Raises ToolFailure.

    A line feed in `old` also matches a carriage return and line feed where the exact bytes do not occur; new lines
    then end as those they replace, or as the line they are put into.
    """
    encoding = encoding_of(data)
    if encoding is None:
        raise ToolFailure(f"{shown(name)} is a binary file ({kind_of(data) or 'unknown kind'}, {size(len(data))})")
    spans: list[_Span] = []
    for number, edit in enumerate(edits):
        label = f"edits[{number}]" if len(edits) > 1 else "the edit"
        if edit.old == edit.new:
            raise ToolFailure(f"{label}: old and new are the same")
        spans.extend(_spans(data, edit, encoding, number, label, name))
    spans.sort(key=lambda span: span.start)
    for one, other in zip(spans, spans[1:], strict=False):
        if other.start < one.end:
            both = f"edits[{one.edit}] and edits[{other.edit}]"
            raise ToolFailure(f"{both} overlap: make them one (each is looked for in the file as it is)")
    out: list[bytes] = []
    at = 0
    for span in spans:
        out += (data[at : span.start], span.new)
        at = span.end
    return b"".join((*out, data[at:]))


def _spans(
    data: bytes, edit: Replacement, encoding: Encoding, number: int, label: str, name: str
) -> list[_Span]:
    try:
        old, new = encoding.encode(edit.old), encoding.encode(edit.new)
    except UnicodeEncodeError as e:
        text = edit.old + edit.new
        odd = next((c for c in text if not _has(encoding, c)), text[e.start : e.start + 1])
        raise ToolFailure(f"{label}: {shown(name)} is written in {encoding.name}, which has no {odd!r}") from None
    found = list(_occurrences(data, re.compile(re.escape(old)), encoding, overlapping=not edit.everywhere))
    feed, both = encoding.encode("\n"), encoding.encode("\r\n")
    if not found and "\n" in edit.old and "\r" not in edit.old:
        either = b"(?:" + re.escape(both) + b"|" + re.escape(feed) + b")"
        pattern = either.join(re.escape(line) for line in old_lines(old, feed, encoding))
        found = list(_occurrences(data, re.compile(pattern), encoding, overlapping=not edit.everywhere))
    if not found or (len(found) > 1 and not edit.everywhere):
        lines = [encoding.decode(data[:start]).count("\n") + 1 for start, _ in found[:8]]
        raise ToolFailure(f"{label}: {explain(encoding.decode(data), edit.old, lines, len(found))}")
    out = []
    for start, end in found:
        put = new
        if "\n" in edit.new and "\r" not in edit.new and _ends_with_return(data, start, end, encoding):
            put = encoding.encode(edit.new.replace("\n", "\r\n"))
        out.append(_Span(start, end, put, number))
    return out


def _has(encoding: Encoding, char: str) -> bool:
    try:
        encoding.encode(char)
        return True
    except UnicodeEncodeError:
        return False


def old_lines(old: bytes, feed: bytes, encoding: Encoding) -> list[bytes]:
    """The encoded lines of `old`, split at whole code units."""
    if encoding.unit == 1:
        return old.split(feed)
    return [encoding.encode(line) for line in old.decode(encoding.name).split("\n")]


def _occurrences(
    data: bytes, pattern: re.Pattern[bytes], encoding: Encoding, overlapping: bool
) -> Iterator[tuple[int, int]]:
    at = first = len(encoding.bom)
    while match := pattern.search(data, at):
        start, end = match.span()
        if (start - first) % encoding.unit:
            at = start + 1
            continue
        yield start, end
        at = start + encoding.unit if overlapping else end


def _ends_with_return(data: bytes, start: int, end: int, encoding: Encoding) -> bool:
    """Whether lines here end with CR LF: the first ending replaced, else the next one, else the one before."""
    feed = encoding.encode("\n")
    for found in (_find(data, feed, start, encoding), _find_last(data, feed, start, encoding)):
        if found >= 0:
            back = encoding.encode("\r")
            return found >= len(back) and data[found - len(back) : found] == back
    return False


def _find(data: bytes, feed: bytes, at: int, encoding: Encoding) -> int:
    found = data.find(feed, at)
    while found >= 0 and (found - len(encoding.bom)) % encoding.unit:
        found = data.find(feed, found + 1)
    return found


def _find_last(data: bytes, feed: bytes, at: int, encoding: Encoding) -> int:
    found = data.rfind(feed, 0, at)
    while found >= 0 and (found - len(encoding.bom)) % encoding.unit:
        found = data.rfind(feed, 0, found + len(feed) - 1)
    return found
