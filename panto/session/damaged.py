"""Reading a damaged database file: all that its tables still give, and what lies on pages that nothing leads to."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from panto.session import connect
from panto.session.carve import PAGE, Row, carve
from panto.session.ledger import Commit
from panto.session.read import COLUMNS, commit_of

if TYPE_CHECKING:
    import sqlite3

SEGMENT = "id, parent, parent_seq, parent_digest, created, under, opener, depth, seed"
SESSION = "id, epoch, under, head, digest, count, time, title, cwd, model, turns, tokens, cost, prompt"
_BODY = "id, digest, size, data, base, depth"

MOST_LOST = 1000
"""A file is believed to have been so many times longer at most: its first page may be wrong, too."""


class Damaged:
    """A damaged file, opened. `fresh` is a folder that is not there yet: a copy goes into it where one is needed.

    SQLite opens no file that is shorter than it should be: the copy has its length again. Where the first page is
    gone it has that of a new file: it holds the list of tables, which lie at the same places in every store of one
    format. Raises sqlite3.DatabaseError, OSError; so do its methods.
    """

    def __init__(self, path: Path, fresh: Path) -> None:
        self._file = path
        self._db = _opened(path) or self._copy(fresh)

    def close(self) -> None:
        """Let go of it."""
        self._db.close()

    def _copy(self, fresh: Path) -> sqlite3.Connection:
        import sqlite3

        fresh.mkdir(exist_ok=True)
        self._file = copy = Path(shutil.copyfile(self._file, fresh / "copy.db"))
        with copy.open("r+b") as file:
            head = file.read(PAGE)
            pages, size = int.from_bytes(head[28:32], "big"), copy.stat().st_size
            if head.startswith(b"SQLite format 3\0") and size >= PAGE and pages * PAGE > size:
                file.truncate(min(pages * PAGE, size * MOST_LOST))
        if (db := _opened(copy)) is not None:
            return db
        made = connect.for_writing(fresh, connect.Found())
        made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        made.close()
        with (fresh / connect.FILE).open("rb") as first, copy.open("r+b") as file:
            page = bytearray(first.read(PAGE))
            page[28:32] = (copy.stat().st_size // PAGE).to_bytes(4, "big")
            file.write(page)
        return sqlite3.connect(copy, isolation_level=None)

    def sessions(self) -> list[Row]:
        """Rows of SESSION, each once."""
        return self._rows(SESSION, "session", 16, (0, 1, *range(3, 15)))

    def segments(self) -> list[Row]:
        """Rows of SEGMENT, each once."""
        return self._rows(SEGMENT, "segment", 9, range(9))

    def commits(self, segment: str) -> Iterator[Commit]:
        """Every commit of a segment that can be found."""
        known, whole = self._ends("SELECT seq FROM commits WHERE segment = ? ORDER BY seq", segment)
        if not whole:
            known |= {seq for (seq,) in self._carved.execute("SELECT seq FROM commits WHERE segment = ?", (segment,))}
        query = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND seq = ?"
        for seq in sorted(known):
            if (row := self._one(query, segment, seq)) is not None:
                yield commit_of(row)

    def bodies(self) -> Iterator[Row]:
        """Every body: its columns, id first; one that another is a difference to comes before it."""
        known, whole = self._ends("SELECT id FROM body ORDER BY id")
        if not whole:
            known |= {id for (id,) in self._carved.execute("SELECT id FROM body")}
        for id in sorted(known):
            if (row := self._one(f"SELECT {_BODY} FROM body WHERE id = ?", id)) is not None:
                yield row

    def _rows(self, columns: str, table: str, width: int, wanted: Iterable[int]) -> list[Row]:
        import sqlite3

        places, found, broken = tuple(wanted), dict[object, Row](), False
        for order in ("ASC", "DESC"):
            try:
                for row in self._db.execute(f"SELECT {columns} FROM {table} ORDER BY id {order}"):
                    found[row[0]] = row
            except sqlite3.DatabaseError:
                broken = True  # what lies beyond is read from the other end
        if broken:
            for row in carve(self._file, width, rowid=False):
                if isinstance(row[0], str):
                    found.setdefault(row[0], tuple(row[place] for place in places))
        return list(found.values())

    def _ends(self, query: str, *values: object) -> tuple[set[int], bool]:
        """Numbers as far as they can be read from either end, and whether that is all of them."""
        import sqlite3

        found: set[int] = set()
        whole = True
        for order in ("ASC", "DESC"):
            try:
                for (number,) in self._db.execute(f"{query} {order}", values):
                    found.add(number)
                if whole:
                    break
            except sqlite3.DatabaseError:
                whole = False
        return found, whole

    def _one(self, query: str, *key: object) -> Row | None:
        """A row by its key: as its table gives it, else as its page does."""
        import sqlite3

        row: Row | None
        try:
            row = self._db.execute(query, key).fetchone()
        except sqlite3.DatabaseError:
            row = self._carved.execute(query, key).fetchone()
        return row

    @functools.cached_property
    def _carved(self) -> sqlite3.Connection:
        """Commits that prove and bodies as pages give them, in a file of SQLite's own that ends with its connection."""
        import sqlite3

        db = sqlite3.connect("", isolation_level=None)
        db.execute(f"CREATE TABLE commits({COLUMNS}, PRIMARY KEY(segment, seq)) WITHOUT ROWID")
        db.execute("CREATE TABLE body(id INTEGER PRIMARY KEY, digest, size, data, base, depth)")
        for row in carve(self._file, 7, rowid=False):
            if isinstance(row[0], str) and commit_of(row).proven():
                db.execute("INSERT OR IGNORE INTO commits VALUES(?, ?, ?, ?, ?, ?, ?)", row)
        for row in carve(self._file, 6, rowid=True):
            if isinstance(row[1], bytes) and len(row[1]) == 32:
                db.execute("INSERT OR IGNORE INTO body VALUES(?, ?, ?, ?, ?, ?)", row)
        return db


def _opened(path: Path) -> sqlite3.Connection | None:
    """A file in which SQLite finds its way at all."""
    import sqlite3

    db = sqlite3.connect(path, timeout=connect.PATIENCE, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db
    except sqlite3.DatabaseError:
        db.close()
        return None
