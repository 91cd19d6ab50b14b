"""Sessions as JSON lines: out in commit order, and in again, byte for byte what they were.

First a header with the segments, then for each commit the bodies it is the first to name and the commit itself, last
an end line. JSON bodies and events stand in the lines as plain JSON, so that the file can be read and searched.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from panto.schema.bodies import RequestManifest
from panto.schema.codec import BadText, Digest, canonical, decode_own, digest, loads
from panto.schema.errors import Corrupt, Missing, UsageError
from panto.schema.events import ModelStepPrepared
from panto.session.bodies import Bodies, Staged, thaw
from panto.session.digests import needed, parts
from panto.session.ids import is_digest, is_id
from panto.session.ledger import Commit, Unknown, records
from panto.session.projection import damaged
from panto.session.read import Lineage, commits, lineage

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1


class SegmentLine(Struct, frozen=True):
    """A segment's creation record."""

    id: str
    parent: str
    parent_seq: int
    parent_digest: str
    created: int
    under: str
    opener: str
    depth: int
    seed: str


class Header(Struct, frozen=True, tag="panto_session"):
    """The first line. `head` and `digest` name the last commit, so that a cut file is noticed."""

    id: str
    format: int
    head: int
    digest: str
    segments: tuple[SegmentLine, ...]


class BodyLine(Struct, frozen=True, tag="body", omit_defaults=True):
    """A body: as JSON where it is canonical JSON, else as text or base64."""

    digest: str
    json: msgspec.Raw = msgspec.Raw(b"")
    text: str | None = None
    base64: str | None = None


class CommitLine(Struct, frozen=True, tag="commit"):
    """A commit; `commands` is its body."""

    segment: str
    seq: int
    epoch: int
    time: int
    prev: str
    digest: str
    commands: msgspec.Raw


class EndLine(Struct, frozen=True, tag="end"):
    """The last line."""

    commits: int
    bodies: int


AnyLine = Header | BodyLine | CommitLine | EndLine


def begin(db: sqlite3.Connection, id: str) -> Header:
    """The header of a session's export. Raises Missing."""
    line = lineage(db, id)
    row = db.execute("SELECT head, digest FROM session WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise Missing(f"there is no session {id}")
    segments = []
    for segment, _ in line:
        r = db.execute(
            "SELECT id, parent, parent_seq, parent_digest, created, under, opener, depth, seed"
            " FROM segment WHERE id = ?",
            (segment,),
        ).fetchone()
        segments.append(
            SegmentLine(r[0], r[1] or "", r[2], (r[3] or b"").hex(), r[4], r[5], r[6], r[7], r[8].hex())
        )
    return Header(id, FORMAT, row[0], row[1].hex(), tuple(segments))


def lines(
    db: sqlite3.Connection, bodies: Bodies, line: Lineage, after: int, seen: set[Digest], most: int
) -> tuple[list[bytes], int]:
    """Up to `most` commits after a seq as lines, with the bodies not yet seen; the last seq (the same: the end).

    A body that is missing or damaged is left out; a commit that does not prove raises Corrupt.
    """
    out: list[bytes] = []
    last = after
    for commit in commits(db, line, after):
        if not commit.proven():
            raise damaged(commit.segment, commit.seq)
        for name in _named(db, bodies, commit):
            if name not in seen:
                seen.add(name)
                try:
                    out.append(body_line(name, bodies.read(db, name)))
                except (Missing, Corrupt):
                    continue
        whole = CommitLine(
            commit.segment, commit.seq, commit.epoch, commit.time, commit.prev, commit.digest, msgspec.Raw(commit.body)
        )
        out.append(msgspec.json.encode(whole) + b"\n")
        last = commit.seq
        most -= 1
        if most == 0:
            break
    return out, last


def _named(db: sqlite3.Connection, bodies: Bodies, commit: Commit) -> Iterator[Digest]:
    for record in records(commit):
        if isinstance(record.event, Unknown):
            continue
        if isinstance(record.event, ModelStepPrepared):
            try:
                body = thaw(record.event.request, bodies.read(db, record.event.request))
            except (Missing, Corrupt):
                continue
            yield from parts(body) if isinstance(body, RequestManifest) else ()
        yield from needed(record.event)


def body_line(name: Digest, data: bytes) -> bytes:
    """A body as a line."""
    line = BodyLine(name, base64=base64.b64encode(data).decode())
    try:
        text = data.decode("utf-8")
        line = BodyLine(name, text=text)
        if text[:1] in ("{", "[") and canonical(loads(text)) == data:
            line = BodyLine(name, json=msgspec.Raw(data))
    except (UnicodeDecodeError, BadText):
        pass  # not JSON, or not text: one of the other two forms stands
    return msgspec.json.encode(line) + b"\n"


def parse(data: bytes) -> Header | Staged | Commit | EndLine:
    """One line. Raises BadText for anything that is not whole or does not prove."""
    loads(data)  # strict: outside JSON
    line: AnyLine = decode_own(data, AnyLine)  # type: ignore[arg-type]
    match line:
        case BodyLine():
            return Staged(line.digest, _body(line))
        case CommitLine():
            commit = _commit(line)
            if not commit.proven():
                raise BadText(f"commit {commit.seq} does not prove")
            return commit
        case Header() if line.format > FORMAT:
            raise UsageError(f"the file was written by a newer panto (format {line.format})", "update panto")
        case _:
            return line


def _body(line: BodyLine) -> bytes:
    if line.base64 is not None:
        try:
            data = base64.b64decode(line.base64, validate=True)
        except ValueError as error:
            raise BadText(str(error)) from None
    elif line.text is not None:
        data = line.text.encode("utf-8")
    else:
        data = canonical(loads(bytes(line.json)))
    if digest(data) != line.digest:
        raise BadText(f"body {line.digest} does not prove")
    return data


def _commit(line: CommitLine) -> Commit:
    if not is_id(line.segment) or not is_digest(line.prev) or not is_digest(line.digest) or line.seq < 0:
        raise BadText("a commit with no proper coordinates")
    body = canonical(loads(bytes(line.commands)))
    return Commit(line.segment, line.seq, line.epoch, line.time, line.prev, line.digest, body)
