"""Giving back space: commits that no session reaches, bodies that no commit names, files that no row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from panto.schema.codec import Digest
from panto.schema.errors import Corrupt
from panto.schema.events import ModelStepPrepared
from panto.session import lease
from panto.session.bodies import Bodies
from panto.session.catalog import sweep
from panto.session.digests import needed
from panto.session.ledger import Commit, Unknown, records
from panto.session.read import COLUMNS, commit_of
from panto.session.recovery import Settlement
from panto.session.run_commands import SubmitCallResult
from panto.session.verify import manifest_parts

if TYPE_CHECKING:
    import sqlite3


class Collected(Struct, frozen=True):
    """What a collection removed. `bytes`: the bodies' sizes together."""

    commits: int
    bodies: int
    files: int
    bytes: int


def collect(db: sqlite3.Connection, bodies: Bodies) -> Collected:
    """Remove what nothing reaches. Runs in one transaction, so that no writer can be between body and commit.

    Raises Corrupt where a commit cannot be read: then nothing is removed, since it may name anything.
    """
    living = lease.living(db)
    for (holder,) in db.execute("SELECT DISTINCT lease FROM claim").fetchall():
        if holder not in living:
            bodies.release(db, holder)
    commits = sweep(db)
    db.execute("CREATE TEMP TABLE IF NOT EXISTS reached(digest BLOB PRIMARY KEY) WITHOUT ROWID")
    db.execute("DELETE FROM reached")
    for row in db.execute(f"SELECT {COLUMNS} FROM commits").fetchall():
        _reach(db, bodies, commit_of(row))
    for (data,) in db.execute("SELECT command FROM outcome").fetchall():
        kept = msgspec.json.decode(data, type=Settlement)
        name = kept.outcome if isinstance(kept, SubmitCallResult) else kept.outcome_digest
        if name is not None:
            db.execute("INSERT OR IGNORE INTO reached VALUES(?)", (bytes.fromhex(name),))
    # What a kept body is a difference from is kept with it.
    db.execute(
        "WITH RECURSIVE ground(id) AS (SELECT base FROM body JOIN reached USING (digest) WHERE base IS NOT NULL"
        " UNION SELECT body.base FROM body JOIN ground USING (id) WHERE body.base IS NOT NULL)"
        " INSERT OR IGNORE INTO reached SELECT digest FROM body JOIN ground USING (id)"
    )
    keep = "digest IN (SELECT digest FROM reached) OR digest IN (SELECT digest FROM claim)"
    gone = db.execute(f"SELECT digest, size FROM body WHERE NOT ({keep}) ORDER BY depth DESC").fetchall()
    db.executemany("DELETE FROM body WHERE digest = ?", [(digest,) for digest, _ in gone])
    files = _files(db, bodies)
    return Collected(commits, len(gone), files, sum(size for _, size in gone))


def _reach(db: sqlite3.Connection, bodies: Bodies, commit: Commit) -> None:
    if not commit.proven():
        raise Corrupt(f"commit {commit.seq} of {commit.segment[:8]} is damaged", commit.segment, commit.seq)
    names: list[Digest] = []
    for record in records(commit):
        if not isinstance(record.event, Unknown):
            names += needed(record.event)
            if isinstance(record.event, ModelStepPrepared):
                names += manifest_parts(db, bodies, record.event.request)
    db.executemany("INSERT OR IGNORE INTO reached VALUES(?)", [(bytes.fromhex(name),) for name in names])


def _files(db: sqlite3.Connection, bodies: Bodies) -> int:
    """Remove files that no row and no claim names."""
    if not bodies.writes or not bodies.folder.is_dir():
        return 0
    removed = 0
    for path in bodies.folder.glob("??/*"):
        name = path.name.partition(".")[0]
        query = "SELECT 1 FROM body WHERE digest = ?1 AND data IS NULL UNION SELECT 1 FROM claim WHERE digest = ?1"
        if len(name) != 64 or db.execute(query, (bytes.fromhex(name),)).fetchone() is None:
            path.unlink(missing_ok=True)
            removed += 1
    return removed
