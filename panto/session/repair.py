"""Mending a session: what proves is kept in a new segment, the rest is put aside in a file. The old one stays."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from panto.schema.errors import Corrupt
from panto.session import lease, ownership
from panto.session.append import index_words
from panto.session.bodies import Bodies
from panto.session.catalog import refresh
from panto.session.ids import new_id
from panto.session.ledger import Commit, Unknown, records, seal
from panto.session.ownership import Birth
from panto.session.read import Lineage, lineage
from panto.session.verify import Finding, chain, scan

if TYPE_CHECKING:
    import sqlite3


class Salvage(Struct, frozen=True):
    """What can be kept of a session: the proven beginning shared as it is, later commits that prove by themselves.

    `aside`: lines for the file of what could not be kept.
    """

    line: Lineage
    shared: Commit | None
    later: tuple[Commit, ...]
    findings: tuple[Finding, ...]
    aside: tuple[bytes, ...]


class Repaired(Struct, frozen=True):
    """What repairing did.

    intact: there was nothing to do. mended: in place, what was wrong with `session` could be made anew (its index, the
    file it lies in), or is a body that is gone. replaced: `session` is a new one with all that proves, `old` the
    damaged one. `kept` commits; `lost` what was wrong, `aside` the file of what could not be kept ("" none).
    """

    session: str
    outcome: Literal["intact", "mended", "replaced"]
    kept: int
    lost: tuple[Finding, ...] = ()
    aside: str = ""
    old: str = ""


def salvage(db: sqlite3.Connection, id: str) -> Salvage:
    """Look what proves. Raises Missing."""
    line = lineage(db, id)
    good, findings = chain(db, line)
    first = min((f.seq for f in findings), default=good[-1].seq + 1 if good else 0)
    shared = [commit for commit in good if commit.seq < first]
    later = tuple(commit for commit in good if commit.seq >= first)
    proven = {(commit.segment, commit.seq) for commit in good}
    aside = []
    for segment, last in line:
        for seq, commit in scan(db, segment, last):
            if (segment, seq) not in proven:
                aside.append(_line(segment, seq, commit))
    return Salvage(line, shared[-1] if shared else None, later, tuple(findings), tuple(aside))


def _line(segment: str, seq: int, commit: Commit | None) -> bytes:
    body = "" if commit is None else base64.b64encode(commit.body).decode()
    return msgspec.json.encode({"segment": segment, "seq": seq, "readable": commit is not None, "body": body}) + b"\n"


def record(db: sqlite3.Connection, bodies: Bodies, id: str, kept: Salvage, holder: lease.Holder) -> str:
    """Write the new segment: a fork at the last shared commit, then the later ones anew. The old session says so."""
    row = db.execute("SELECT under, opener, depth FROM segment WHERE id = ?", (id,)).fetchone()
    new = begin(db, bodies, Birth(new_id(), row[0], row[1], row[2]), kept.shared, kept.later, holder)
    db.execute("UPDATE session SET broken = ?, lease = NULL WHERE id = ?", (f"damaged; repaired as {new}", id))
    return new


def begin(
    db: sqlite3.Connection,
    bodies: Bodies,
    birth: Birth,
    shared: Commit | None,
    later: tuple[Commit, ...],
    holder: lease.Holder,
) -> str:
    """A session that stands on the last shared commit and records the later ones anew; its id. Nobody owns it."""
    if shared is not None:
        birth = replace(birth, parent=shared.segment, parent_seq=shared.seq, parent_digest=shared.digest)
    ownership.create(db, birth, holder)
    digest = db.execute("SELECT digest FROM session WHERE id = ?", (birth.id,)).fetchone()[0].hex()
    for number, commit in enumerate(later, birth.parent_seq + 1):
        digest = again(db, bodies, birth.id, number, digest, commit)
    db.execute("UPDATE session SET lease = NULL WHERE id = ?", (birth.id,))
    refresh(db, birth.id)
    return birth.id


def again(db: sqlite3.Connection, bodies: Bodies, segment: str, seq: int, prev: str, commit: Commit) -> str:
    """Record a commit's groups anew in another segment, with their time; the new digest."""
    digest = seal(segment, seq, 1, commit.time, prev, commit.body)
    store(db, bodies, Commit(segment, seq, 1, commit.time, prev, digest, commit.body))
    return digest


def store(db: sqlite3.Connection, bodies: Bodies, commit: Commit) -> None:
    """Write a commit that was made elsewhere, its index and its words. Its bodies are stored already."""
    db.execute(
        "INSERT INTO commits VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            commit.segment, commit.seq, commit.epoch, commit.time, bytes.fromhex(commit.prev),
            bytes.fromhex(commit.digest), commit.body,
        ),
    )  # fmt: skip
    index(db, commit.segment, commit.seq, commit)
    events = [record.event for record in records(commit) if not isinstance(record.event, Unknown)]
    index_words(db, bodies, commit.segment, commit.seq, events)


def index(db: sqlite3.Connection, segment: str, seq: int, commit: Commit) -> None:
    """Put a commit's commands into the index."""
    rows = [(segment, bytes.fromhex(g.id), seq, bytes.fromhex(g.intent)) for g in commit.groups()]
    db.executemany("INSERT OR IGNORE INTO command VALUES(?, ?, ?, ?)", rows)


def reindex(db: sqlite3.Connection, id: str) -> None:
    """Make the index of commands anew from the commits, and drop the cached fold. Raises Corrupt."""
    line = lineage(db, id)
    good, findings = chain(db, line)
    if findings:
        raise Corrupt(findings[0].text, findings[0].segment, findings[0].seq)
    db.execute("INSERT INTO removed VALUES(?, -1)", (id,))
    db.execute("DELETE FROM command WHERE segment = ?", (id,))
    db.execute("DELETE FROM removed WHERE segment = ?", (id,))
    for commit in good:
        if commit.segment == id:
            index(db, id, commit.seq, commit)
    db.execute("DELETE FROM projection WHERE segment = ?", (id,))
    db.execute("UPDATE session SET broken = '' WHERE id = ?", (id,))
    refresh(db, id)
