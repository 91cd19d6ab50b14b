"""Reading a segment's commits, through its ancestors. Used in the disk's threads; needs no ownership."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from panto.schema.errors import Corrupt, Missing
from panto.session.ledger import Commit, seed

if TYPE_CHECKING:
    import sqlite3

Lineage = tuple[tuple[str, int], ...]
"""Segments from the root to the one itself, each with the last seq that belongs (the own one: the largest integer)."""

ENDLESS = 2**63 - 1
COLUMNS = "segment, seq, epoch, time, prev, digest, body"


def lineage(db: sqlite3.Connection, segment: str) -> Lineage:
    """The segment and its ancestors. Raises Missing."""
    found: list[tuple[str, int]] = []
    current: str | None = segment
    last = ENDLESS
    while current is not None:
        row = db.execute("SELECT parent, parent_seq FROM segment WHERE id = ?", (current,)).fetchone()
        if row is None:
            raise Missing(f"session {current} is not in the store")
        found.append((current, last))
        current, last = row  # a fork's parent is the segment that holds the commit it stands on
    return tuple(reversed(found))


def commit_of(row: tuple[object, ...]) -> Commit:
    """A row of COLUMNS as a commit. What has not the type it was written with cannot prove, and does not raise."""
    segment, seq, epoch, time, prev, digest, body = row
    data = body if isinstance(body, bytes) else str(body).encode("utf-8", "surrogateescape")
    return Commit(str(segment), _int(seq), _int(epoch), _int(time), _hex(prev), _hex(digest), data)


def _int(value: object) -> int:
    return value if isinstance(value, int) else -1


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else ""


def birth(db: sqlite3.Connection, segment: str) -> tuple[str, str, bool]:
    """A segment's seed, the digest it stands on ("" a root), and whether its creation record proves."""
    row = db.execute(
        "SELECT parent, parent_seq, parent_digest, created, under, opener, depth, seed FROM segment WHERE id = ?",
        (segment,),
    ).fetchone()
    stands_on = _hex(row[2])
    start = seed(segment, row[0], row[1], stands_on, row[3], row[4], row[5], row[6])
    return _hex(row[7]), stands_on, start == _hex(row[7])


def commits(db: sqlite3.Connection, line: Lineage, after: int = -1) -> Iterator[Commit]:
    """Commits with seq above `after`, in order, through all segments of the lineage."""
    for segment, last in line:
        if after < last:
            query = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND seq > ? AND seq <= ? ORDER BY seq"
            yield from map(commit_of, db.execute(query, (segment, after, last)))


def commits_back(db: sqlite3.Connection, line: Lineage, before: int = ENDLESS) -> Iterator[Commit]:
    """Commits with seq below `before`, newest first."""
    for segment, last in reversed(line):
        query = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND seq < ? AND seq <= ? ORDER BY seq DESC"
        yield from map(commit_of, db.execute(query, (segment, min(before, ENDLESS), last)))


def commit_at(db: sqlite3.Connection, segment: str, seq: int) -> Commit:
    """One commit of a segment itself. Raises Corrupt where it is not there."""
    row = db.execute(f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND seq = ?", (segment, seq)).fetchone()
    if row is None:
        raise Corrupt(f"commit {seq} of session {segment[:8]} is gone", segment, seq)
    return commit_of(row)
