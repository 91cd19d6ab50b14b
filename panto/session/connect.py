"""How the database is opened: durable, checked, and with a plain word where that is not possible."""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import TYPE_CHECKING

from panto.schema.errors import StorageFailed
from panto.session import tables

if TYPE_CHECKING:
    import sqlite3

FILE = "sessions.db"
ASIDE = f"{FILE}.aside-"
"""How the name of a damaged file begins that was put aside and of which nothing was carried over yet."""
BRING_BACK = "panto session repair store brings back all that can be read of it"

PATIENCE = 10.0
"""Seconds to wait for another process's transaction."""

MEMORY = 256 * 1024 * 1024
"""Bytes of a store that cannot be written which are taken into memory at most."""

_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "fuse.sshfs", "ceph", "lustre", "glusterfs")


class Found:
    """What was found when opening, for the person."""

    notice = ""


def for_writing(root: pathlib.Path, found: Found) -> sqlite3.Connection:
    """The writer's connection; creates folder, file and tables. Raises sqlite3.Error or OSError."""
    import sqlite3

    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(root / FILE, timeout=PATIENCE, isolation_level=None, cached_statements=256)
    try:
        configure(db, root, found)
    except BaseException:
        db.close()
        raise
    return db


def configure(db: sqlite3.Connection, root: pathlib.Path, found: Found) -> None:
    """Make a connection durable, bring its tables up to date, and prove that it can be written."""
    if _journal(db, root) != "wal":
        db.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        found.notice = (
            f"{root} cannot hold a write-ahead log (a network file system?): sessions are as safe, but slower, "
            "and a reader may have to wait"
        )
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA fullfsync = ON")  # on a Mac a plain fsync stops at the disk's own memory
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA journal_size_limit = {32 * 1024 * 1024}")
    tables.prepare(db)
    db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")


def _journal(db: sqlite3.Connection, root: pathlib.Path) -> str:
    import sqlite3

    if network(os.path.realpath(root), _mounts()):
        return "none"
    try:
        mode = str(db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if "full" in str(error) or "locked" in str(error) or not os.access(root, os.W_OK):
            raise
        return "none"
    return mode


def _mounts() -> str:
    try:
        return pathlib.Path("/proc/self/mounts").read_text(errors="replace")
    except OSError:
        return ""


def network(path: str, mounts: str) -> bool:
    """Whether a path lies on a network file system, by the lines of /proc/self/mounts."""
    best, kind = "", ""
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind.startswith(_NETWORK)


def for_reading(path: pathlib.Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises sqlite3.Error."""
    import sqlite3

    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE, isolation_level=None)
    db.execute("PRAGMA query_only = ON")
    return db


def in_memory(root: pathlib.Path) -> sqlite3.Connection:
    """A database that is gone with the process. It begins with what can be read of the root's, if that is small."""
    import sqlite3

    db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)
    try:
        if 0 < (root / FILE).stat().st_size <= MEMORY:
            uri = f"{(root / FILE).absolute().as_uri()}?immutable=1"
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as stored:
                stored.backup(db)
            tables.prepare(db)
            db.execute("UPDATE session SET lease = NULL")
            db.execute("DELETE FROM lease")
    except (OSError, sqlite3.Error, StorageFailed):
        db.close()
        db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)
    tables.prepare(db)
    db.execute("PRAGMA foreign_keys = ON")
    return db
