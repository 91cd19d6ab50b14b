"""When the database file itself is damaged: all that can be read goes into a new file, the old one is put aside."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.errors import Corrupt, PantoError, UsageError
from panto.session import connect, lease
from panto.session.append import index_words
from panto.session.bodies import Bodies
from panto.session.carve import Row
from panto.session.catalog import refresh
from panto.session.damaged import SEGMENT, SESSION, Damaged
from panto.session.ledger import Commit, Unknown, records
from panto.session.read import birth, lineage
from panto.session.repair import index
from panto.session.verify import chain

if TYPE_CHECKING:
    import sqlite3


class Rescued(Struct, frozen=True):
    """What was carried over: commits, sessions that prove, those that do not (mend each), where the old files are.

    `gone`: sessions that were there, and of which nothing can be read.
    """

    commits: int
    whole: tuple[str, ...]
    broken: tuple[str, ...]
    gone: tuple[str, ...]
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

    count, every, gone = 0, list[str](), list[str]()
    done: list[str] = []
    new = connect.for_writing(root, connect.Found())
    try:
        for path in aside(root):
            try:
                with contextlib.closing(Damaged(path, root / "rescue")) as old:
                    ids, commits, unread = _copy(old, new, Bodies(root / "blobs"))
                every += ids
                count += commits
                gone += unread
            except sqlite3.DatabaseError as error:
                raise UsageError(f"{path} cannot be read: {error}", "put it away and import exports") from None
            finally:
                shutil.rmtree(root / "rescue", ignore_errors=True)
            done.append(_move(root, path.name, path.name.replace(connect.ASIDE, f"{connect.FILE}.damaged-")))
        broken = tuple(id for id in every if not _sound(new, id))
        for id in broken:  # in the list also where its row is gone: nothing of it may pass for an empty session
            new.execute(
                "UPDATE session SET broken = 'parts of it are lost',"
                " title = CASE WHEN title || prompt = '' THEN 'recovered in part' ELSE title END WHERE id = ?", (id,)
            )  # fmt: skip
    finally:
        new.close()
    return Rescued(count, tuple(id for id in every if id not in broken), broken, tuple(gone), tuple(done))


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


def _copy(old: Damaged, new: sqlite3.Connection, bodies: Bodies) -> tuple[list[str], int, list[str]]:
    """Carry everything over in one transaction: the ids of sessions that can be found again, how many commits, and
    the ids of sessions of which nothing is left."""
    new.execute("PRAGMA foreign_keys = OFF")
    new.execute("BEGIN IMMEDIATE")
    sessions = old.sessions()
    heads = {row[0]: row[3] for row in sessions}
    segments = {segment[0]: segment for segment in old.segments()}
    left = {id for id in segments if next(old.commits(str(id)), None) is not None}
    lines = {id: _line(segments, id) for id in segments}
    gone = {id for id, line in lines.items() if not line & left}
    kept = [segments[id] for id in set[object]().union(*(line for id, line in lines.items() if id not in gone))]
    new.executemany(f"INSERT OR IGNORE INTO segment({SEGMENT}) VALUES({_marks(9)})", kept)
    _copy_bodies(old, new)
    count = 0
    for segment in kept:
        count += sum(_put(new, bodies, commit) for commit in old.commits(str(segment[0])))
    sessions = [row for row in sessions if row[0] in segments.keys() - gone]
    new.executemany(f"INSERT OR IGNORE INTO session({SESSION}) VALUES({_marks(14)})", sessions)
    rows = {row[0] for row in sessions}
    parents = {segment[1] for segment in kept}
    for segment in kept:  # a session whose row is gone, unless it only serves forks
        if segment[0] not in rows | parents | gone:
            new.execute(
                f"INSERT OR IGNORE INTO session({SESSION}) VALUES(?, 0, ?, -1, x'', 0, 0, '', '', '', 0, 0, NULL, '')",
                (segment[0], segment[5]),
            )
            rows.add(segment[0])
    new.execute("COMMIT")
    return sorted(str(id) for id in rows), count, sorted(str(id) for id in gone if heads.get(id) != -1)


def _line(segments: dict[object, Row], id: object) -> set[object]:
    """A segment and those it stands on, as far as they are known."""
    line: set[object] = set()
    while id in segments and id not in line:
        line.add(id)
        id = segments[id][1]
    return line


def _copy_bodies(old: Damaged, new: sqlite3.Connection) -> None:
    places: dict[object, int] = {}
    for number, digest, size, data, base, depth in old.bodies():
        new.execute(
            "INSERT OR IGNORE INTO body(digest, size, data, base, depth) VALUES(?, ?, ?, ?, ?)",
            (digest, size, data, places.get(base), depth),
        )
        places[number] = new.execute("SELECT id FROM body WHERE digest = ?", (digest,)).fetchone()[0]


def _marks(count: int) -> str:
    return ", ".join("?" * count)


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
        stands = line[-2][1] if len(line) > 1 else -1  # a fork in which nothing was done yet
        if (stands if last is None else last) < head:
            return False  # its end is gone
        new.execute("BEGIN IMMEDIATE")
        refresh(new, id)
        new.execute("COMMIT")
    except PantoError:
        return False
    return True
