"""The whole fold of a session, how it is replayed, and the cache that saves replaying it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from panto.schema.errors import Corrupt
from panto.session.context import Context
from panto.session.evolve import evolve
from panto.session.fold import fold
from panto.session.ledger import CORE, AnyRecord, Commit, Unknown, events
from panto.session.read import Lineage, birth, commits
from panto.session.state import State
from panto.session.view import View

if TYPE_CHECKING:
    import sqlite3

FOLD = 2
"""Raised whenever a fold gives another result or another shape: older caches are then not used."""


class Projection(Struct):
    """State and view at `seq` (-1: before the first commit); `digest` is that commit's, `count` its events.

    `folded`: events folded since the last cache was taken.
    """

    state: State
    view: View
    seq: int
    digest: str
    count: int = 0
    folded: int = 0

    def apply(self, events: Sequence[AnyRecord], seq: int, time: int) -> None:
        """Fold the events of commit `seq`, written at `time` (UTC milliseconds)."""
        state, view = self.state, self.view
        for index, event in enumerate(events):
            if isinstance(event, Unknown):
                state = _unknown(state, event)
            else:
                state = evolve(state, event, (seq, index))
                fold(view, event, seq, time / 1000)
        self.state = state
        self.seq, self.count = seq, len(events)
        self.folded += len(events)

    def step(self, commit: Commit) -> None:
        """Fold a whole commit, having proven that it is the next one. Raises Corrupt."""
        if commit.seq != self.seq + 1 or commit.prev != self.digest or not commit.proven():
            raise damaged(commit.segment, self.seq + 1)
        self.apply(events(commit), commit.seq, commit.time)
        self.digest = commit.digest

    def copy(self) -> Projection:
        """A projection of its own that starts out equal."""
        return Projection(self.state, self.view.copy(), self.seq, self.digest, self.count, self.folded)


def damaged(segment: str, seq: int) -> Corrupt:
    """The error for a commit that does not prove."""
    return Corrupt(
        f"session {segment[:8]} is damaged from commit {seq} on",
        segment,
        seq,
        f"see: panto session verify {segment[:8]}; keep what is intact: panto session repair {segment[:8]}",
    )


def _unknown(state: State, event: Unknown) -> State:
    if event.machine not in CORE or state.unknown:
        return state
    why = f"it holds a {event.machine} fact {event.type!r} (version {event.v}) that this panto does not know"
    return msgspec.structs.replace(state, unknown=why)


def empty(session: str, seed: str, seq: int = -1) -> Projection:
    """The projection before the first commit."""
    return Projection(State(session), View(Context()), seq, seed)


def load(db: sqlite3.Connection, session: str, line: Lineage, *, cached: bool = True) -> Projection:
    """The projection at the head, from a cache where one proves, else from the start. Raises Corrupt."""
    places = reversed(range(len(line))) if cached else ()
    found = next(filter(None, (_cached(db, line, place) for place in places)), None)
    if found is None:
        seed, _, proves = birth(db, line[0][0])
        if not proves:
            raise damaged(line[0][0], 0)
        found = (0, empty(session, seed))
    first, projection = found
    for place in range(first, len(line)):
        if place > first:
            _enter(db, projection, line[place][0])
        for commit in commits(db, (line[place],), projection.seq):
            projection.step(commit)
    if projection.state.session != session:
        projection.state = msgspec.structs.replace(projection.state, session=session)
    return projection


def whole(db: sqlite3.Connection, session: str, line: Lineage) -> Projection:
    """`load`, and proof that no commit is gone from the end: the session's row knows the last. Raises Corrupt."""
    projection = load(db, session, line)
    head, digest = db.execute("SELECT head, digest FROM session WHERE id = ?", (session,)).fetchone()
    if (head, digest.hex()) != (projection.seq, projection.digest):
        raise damaged(session, min(head, projection.seq) + 1)
    return projection


def _enter(db: sqlite3.Connection, projection: Projection, segment: str) -> None:
    """Step from a parent's last shared commit into a fork, whose seed stands for it from here on."""
    seed, stands_on, proves = birth(db, segment)
    if not proves or stands_on != projection.digest:
        raise damaged(segment, projection.seq + 1)
    projection.digest = seed


def _cached(db: sqlite3.Connection, line: Lineage, place: int) -> tuple[int, Projection] | None:
    """The cache of one segment of the lineage, if it stands on one of that segment's own commits."""
    segment, last = line[place]
    row = db.execute("SELECT seq, digest, fold, data FROM projection WHERE segment = ?", (segment,)).fetchone()
    if row is None or row[2] != FOLD or row[0] > last:
        return None
    marked = next(commits(db, ((segment, row[0]),), row[0] - 1), None)
    if marked is None or marked.digest != row[1].hex():
        return None
    if not marked.proven():
        raise damaged(marked.segment, marked.seq)
    try:
        projection = msgspec.msgpack.decode(row[3], type=Projection)
    except msgspec.DecodeError:
        return None
    projection.folded = 0
    return (place, projection) if (projection.seq, projection.digest) == (row[0], row[1].hex()) else None


def save(db: sqlite3.Connection, session: str, seq: int, digest: str, data: bytes) -> None:
    """Keep a projection for the next opening."""
    db.execute(
        "INSERT OR REPLACE INTO projection VALUES(?, ?, ?, ?, ?)", (session, seq, bytes.fromhex(digest), FOLD, data)
    )
