"""Jobs that begin and end the writing of a session: create, take, retake, let go, renew. All run in transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.errors import Conflict, Missing, Owned
from panto.schema.signals import SessionOwner
from panto.session import lease
from panto.session.append import Handle, lost
from panto.session.ledger import seed
from panto.session.read import ENDLESS, lineage

if TYPE_CHECKING:
    import sqlite3


class Birth(Struct, frozen=True):
    """A new segment's creation record. `parent` with the last shared commit's seq and digest, "" for a root."""

    id: str
    under: str = ""
    opener: str = ""
    depth: int = 0
    parent: str = ""
    parent_seq: int = -1
    parent_digest: str = ""


class Taken(Struct, frozen=True):
    """A session that was taken for writing."""

    handle: Handle
    under: str
    opener: str
    depth: int


def create(db: sqlite3.Connection, birth: Birth, holder: lease.Holder) -> Taken:
    """Make a segment and its session row, owned. Raises Conflict where the id is taken."""
    if db.execute("SELECT 1 FROM segment WHERE id = ?", (birth.id,)).fetchone() is not None:
        raise Conflict(f"there is a session {birth.id} already")
    now = time.time_ns() // 1_000_000
    b = birth
    start = seed(b.id, b.parent or None, b.parent_seq, b.parent_digest, now, b.under, b.opener, b.depth)
    parent_digest = bytes.fromhex(b.parent_digest) if b.parent else None
    db.execute(
        "INSERT INTO segment VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (b.id, b.parent or None, b.parent_seq, parent_digest, now, b.under, b.opener, b.depth, bytes.fromhex(start)),
    )
    lease.put(db, holder)
    db.execute(
        "INSERT INTO session VALUES(?, 1, ?, ?, ?, ?, 0, ?, '', '', '', 0, 0, NULL, '', '')",
        (b.id, holder.id, b.under, b.parent_seq, bytes.fromhex(start), now),
    )
    line = lineage(db, b.id) if b.parent else ((b.id, ENDLESS),)
    return Taken(Handle(b.id, line, 1, holder.id), b.under, b.opener, b.depth)


def take(db: sqlite3.Connection, id: str, holder: lease.Holder, *, take_over: bool) -> Taken:
    """Take a session for writing: its epoch rises by one. Raises Owned (who, where) or Missing."""
    row = db.execute(
        "SELECT session.lease, segment.under, segment.opener, segment.depth FROM session"
        " JOIN segment USING (id) WHERE id = ?",
        (id,),
    ).fetchone()
    if row is None:
        raise Missing(f"there is no session {id}")
    owner = lease.get(db, row[0])
    if owner is not None and not take_over and lease.alive(owner, time.time()):
        raise owned(id, owner, title(db, id))
    lease.put(db, holder)
    db.execute("UPDATE session SET epoch = epoch + 1, lease = ? WHERE id = ?", (holder.id, id))
    epoch = db.execute("SELECT epoch FROM session WHERE id = ?", (id,)).fetchone()[0]
    return Taken(Handle(id, lineage(db, id), epoch, holder.id), row[1], row[2], row[3])


def title(db: sqlite3.Connection, id: str) -> str:
    """A session's title, else what was last said in it ("" nothing)."""
    row = db.execute("SELECT title, prompt FROM session WHERE id = ?", (id,)).fetchone()
    return " ".join(str(row[0] or row[1]).split())[:72] if row is not None else ""


def owned(id: str, owner: lease.Holder, title: str = "") -> Owned:
    """The error for a session that a live process writes."""
    seen = owner.machine == lease.machine()
    return Owned(
        f"session {id[:8]} is open in process {owner.pid} on {owner.host}",
        SessionOwner(id, owner.pid, owner.host, seen, title),
        f"panto session show {id[:8]} reads it, panto --fork {id[:8]} goes on from a copy; "
        f"on a screen, panto --resume {id[:8]} can also follow it or take it over",
    )


def retake(db: sqlite3.Connection, handle: Handle, holder: lease.Holder) -> Handle:
    """Go on writing after a failed write. Raises OwnershipLost where somebody else took over meanwhile."""
    lease.put(db, holder)
    changed = db.execute(
        "UPDATE session SET epoch = epoch + 1, lease = ? WHERE id = ? AND epoch = ?",
        (holder.id, handle.id, handle.epoch),
    ).rowcount
    if changed == 0:
        raise lost(handle.id)
    return Handle(handle.id, handle.lineage, handle.epoch + 1, holder.id)


def let_go(db: sqlite3.Connection, handle: Handle) -> bool:
    """Own the session no longer. False where a newer owner has it, whose right is untouched."""
    mine = "UPDATE session SET lease = NULL WHERE id = ? AND epoch = ?"
    return db.execute(mine, (handle.id, handle.epoch)).rowcount > 0


def renew(db: sqlite3.Connection, holder: lease.Holder, handles: tuple[Handle, ...]) -> tuple[str, ...]:
    """Renew the lease; the ids of those sessions that somebody else has taken over."""
    lease.put(db, holder)
    gone = []
    for handle in handles:
        row = db.execute("SELECT epoch FROM session WHERE id = ?", (handle.id,)).fetchone()
        if row is None or row[0] != handle.epoch:
            gone.append(handle.id)
    return tuple(gone)
