"""When the database file itself is damaged: all that can be read goes into a new file, the old one is put aside."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.errors import Corrupt, PantoError, UsageError
from panto.session import connect, lease
from panto.session.append import index_words
from panto.session.bodies import Bodies
from panto.session.catalog import refresh
from panto.session.ledger import Commit, Unknown, records
from panto.session.read import COLUMNS, birth, commit_of, lineage
from panto.session.repair import index
from panto.session.verify import chain

if TYPE_CHECKING:
    import sqlite3

_SESSION = "id, epoch, under, head, digest, count, time, title, cwd, model, turns, tokens, cost, prompt"
_SEGMENT = "id, parent, parent_seq, parent_digest, created, under, opener, depth, seed"


PAGE = 4096
"""SQLite's page size, which panto never sets."""


class Rescued(Struct, frozen=True):
    """What was carried over: commits, sessions that prove, those that do not (mend each), where the old files are."""

    commits: int
    whole: tuple[str, ...]
    broken: tuple[str, ...]
    aside: tuple[str, ...]


def aside(root: Path) -> list[Path]:
    """Files that were put aside and not carried over yet."""
    return sorted(p for p in root.glob(f"{connect.ASIDE}*") if not p.name.endswith(("-wal", "-shm")))


def identity(root: Path) -> tuple[int, int]:
    """Which file the store's is."""
    try:
        found = (root / connect.FILE).stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def put_aside(root: Path, mine: str) -> None:
    """Put the store's file where nobody uses it. Raises UsageError where another process (not lease `mine`) does."""
    import sqlite3

    old = sqlite3.connect(root / connect.FILE, timeout=connect.PATIENCE, isolation_level=None)
    try:
        _alone(old, mine)
    finally:
        old.close()
    _move(root, connect.FILE, f"{connect.ASIDE}{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")


def _move(root: Path, name: str, to: str) -> str:
    for suffix in ("-wal", "-shm", ""):
        path = root / f"{name}{suffix}"
        if path.exists():
            os.replace(path, root / f"{to}{suffix}")
    return str(root / to)


def rescue(root: Path) -> Rescued:
    """Carry everything that can be read of files that lie aside into the store's. Raises UsageError where not even
    the list of tables can be read."""
    import sqlite3

    count, every = 0, list[str]()
    done: list[str] = []
    new = connect.for_writing(root, connect.Found())
    try:
        for path in aside(root):
            try:
                with contextlib.closing(_readable(path, root / "rescue")) as old:
                    ids, commits = _copy(old, new, Bodies(root / "blobs"))
                every += ids
                count += commits
            except sqlite3.DatabaseError as error:
                raise UsageError(f"{path} cannot be read: {error}", "put it away and import exports") from None
            finally:
                shutil.rmtree(root / "rescue", ignore_errors=True)
            done.append(_move(root, path.name, path.name.replace(connect.ASIDE, f"{connect.FILE}.damaged-")))
        broken = tuple(id for id in every if not _sound(new, id))
    finally:
        new.close()
    return Rescued(count, tuple(id for id in every if id not in broken), broken, tuple(done))


def _readable(path: Path, fresh: Path) -> sqlite3.Connection:
    """A damaged file, opened. Where its first page is gone, a copy of it with the first page of a new one.

    That page holds the list of tables, which lie at the same places in every store of one format.
    """
    import sqlite3

    db = sqlite3.connect(path, timeout=connect.PATIENCE, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM segment").fetchone()
        return db
    except sqlite3.DatabaseError:
        db.close()
    made = connect.for_writing(fresh, connect.Found())
    made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    made.close()
    copy = fresh / "copy.db"
    shutil.copyfile(path, copy)
    with open(fresh / connect.FILE, "rb") as first, open(copy, "r+b") as file:
        page = bytearray(first.read(PAGE))
        page[28:32] = (copy.stat().st_size // PAGE).to_bytes(4, "big")
        file.write(page)
    return sqlite3.connect(copy, isolation_level=None)


def _alone(old: sqlite3.Connection, mine: str) -> None:
    import sqlite3

    try:
        others = [holder for id, holder in lease.living(old).items() if id != mine]
    except sqlite3.DatabaseError:
        others = []  # who holds what cannot be read: the file is past that
    if others:
        raise UsageError(
            f"process {others[0].pid} on {others[0].host} uses the session store, whose file is damaged",
            "end it, then repair",
        )


def _rows(db: sqlite3.Connection, columns: str, table: str) -> list[tuple[object, ...]]:
    """A table's rows as far as they can be read from either end, each once."""
    import sqlite3

    found: dict[object, tuple[object, ...]] = {}
    for order in ("ASC", "DESC"):
        try:
            for row in db.execute(f"SELECT {columns} FROM {table} ORDER BY id {order}"):
                found[row[0]] = row
        except sqlite3.DatabaseError:
            continue  # what lies beyond is read from the other end
    return list(found.values())


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, bodies: Bodies) -> tuple[list[str], int]:
    """Carry everything over in one transaction; the ids of sessions that can be found again, and how many commits."""
    new.execute("PRAGMA foreign_keys = OFF")
    new.execute("BEGIN IMMEDIATE")
    segments = _rows(old, _SEGMENT, "segment")
    new.executemany(f"INSERT OR IGNORE INTO segment({_SEGMENT}) VALUES({_marks(9)})", segments)
    places: dict[object, int] = {}
    for number, digest, size, data, base, depth in _body_rows(old):
        new.execute(
            "INSERT OR IGNORE INTO body(digest, size, data, base, depth) VALUES(?, ?, ?, ?, ?)",
            (digest, size, data, places.get(base), depth),
        )
        places[number] = new.execute("SELECT id FROM body WHERE digest = ?", (digest,)).fetchone()[0]
    known = {segment[0] for segment in segments}
    sessions = [row for row in _rows(old, _SESSION, "session") if row[0] in known]
    heads = {row[0]: row[3] for row in sessions}
    count = 0
    for segment in segments:
        count += sum(_put(new, bodies, commit) for commit in _commits(old, str(segment[0]), heads.get(segment[0])))
    new.executemany(f"INSERT OR IGNORE INTO session({_SESSION}) VALUES({_marks(14)})", sessions)
    rows = {row[0] for row in sessions}
    parents = {segment[1] for segment in segments}
    for segment in segments:  # a session whose row is gone, unless it only serves forks
        if segment[0] not in rows and segment[0] not in parents:
            new.execute(
                f"INSERT OR IGNORE INTO session({_SESSION}) VALUES(?, 0, ?, -1, x'', 0, 0, '', '', '', 0, 0, NULL, '')",
                (segment[0], segment[5]),
            )
            rows.add(segment[0])
    new.execute("COMMIT")
    return sorted(str(id) for id in rows), count


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _body_rows(old: sqlite3.Connection) -> Iterator[tuple[object, ...]]:
    import sqlite3

    known = [row[0] for row in _rows(old, "id", "body")]
    last = max((n for n in known if isinstance(n, int)), default=0)
    for number in range(1, last + 1):
        try:
            row = old.execute("SELECT id, digest, size, data, base, depth FROM body WHERE id = ?", (number,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield row


def _commits(old: sqlite3.Connection, segment: str, head: object) -> Iterator[Commit]:
    """Every commit of a segment that can be read by its place."""
    import sqlite3

    ends = [head] if isinstance(head, int) else []
    starts: list[int] = []
    for order, found in (("ASC", starts), ("DESC", ends)):
        try:
            query = f"SELECT seq FROM commits WHERE segment = ? ORDER BY seq {order} LIMIT 1"
            found += [seq for (seq,) in old.execute(query, (segment,))]
        except sqlite3.DatabaseError:
            continue
    for seq in range(min(starts, default=0), max(ends, default=-1) + 1):
        try:
            row = old.execute(f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND seq = ?", (segment, seq)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield commit_of(row)


def _put(new: sqlite3.Connection, bodies: Bodies, commit: Commit) -> bool:
    put = new.execute(
        "INSERT OR IGNORE INTO commits VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            commit.segment, commit.seq, commit.epoch, commit.time, bytes.fromhex(commit.prev),
            bytes.fromhex(commit.digest), commit.body,
        ),
    )  # fmt: skip
    if not put.rowcount:
        return False  # it was carried over before
    try:
        index(new, commit.segment, commit.seq, commit)
        events = [record.event for record in records(commit) if not isinstance(record.event, Unknown)]
        index_words(new, bodies, commit.segment, commit.seq, events)
    except Corrupt:
        pass  # it does not prove, and is told when its session is mended
    return True


def _sound(new: sqlite3.Connection, id: str) -> bool:
    """Whether a carried session proves; then its row is set from its commits."""
    try:
        line = lineage(new, id)
        if chain(new, line)[1] or not birth(new, line[0][0])[2]:
            return False
        head = new.execute("SELECT head FROM session WHERE id = ?", (id,)).fetchone()[0]
        last = new.execute("SELECT max(seq) FROM commits WHERE segment = ?", (id,)).fetchone()[0]
        if head >= 0 and last is not None and last < head:
            return False  # its end is gone
        new.execute("BEGIN IMMEDIATE")
        refresh(new, id)
        new.execute("COMMIT")
    except PantoError:
        return False
    return True
