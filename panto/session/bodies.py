"""Bodies: large values named by digest. Up to 256 KiB they are rows; beyond that, files that are durable before
the row that names them.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from panto.schema.bodies import Body
from panto.schema.codec import Digest, canonical, digest
from panto.schema.errors import Corrupt, Missing
from panto.session import delta

if TYPE_CHECKING:
    import sqlite3

INLINE = 256 * 1024
"""The largest body that is stored as a row, in bytes."""


DEEPEST = 64
"""Differences that stand on each other at most: what reading such a body costs."""

MANIFEST = b'"type":"request_manifest"}'
"""How the canonical form of a request's manifest ends."""


class Staged(Struct, frozen=True):
    """A body ready to be stored: its digest, its bytes, and the value where it is one of `Body`."""

    digest: Digest
    data: bytes
    value: Body | None = None


def stage(body: Struct | bytes) -> Staged:
    """Freeze a body: a Body, a part of a request (Message, SystemBlock, ToolSpec), or raw bytes. Pure."""
    if isinstance(body, bytes):
        return Staged(digest(body), body)
    data = canonical(body)
    return Staged(digest(data), data, body if isinstance(body, Body) else None)


@functools.cache
def _reader() -> msgspec.json.Decoder[Body]:
    return msgspec.json.Decoder(Body)


def thaw(name: Digest, data: bytes) -> Body:
    """The value of a stored body. Raises Corrupt where these bytes are none."""
    try:
        return _reader().decode(data)
    except msgspec.DecodeError as error:
        raise Corrupt(f"body {name} is not a value panto knows: {error}", "", -1) from None


class Bodies:
    """The content store. `folder` holds the large ones; `writes` False: new ones are rows too, whatever their size.

    Used in the disk's threads.
    """

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.folder = folder
        self.writes = writes

    def large(self, staged: Staged) -> bool:
        """Whether this body becomes a file."""
        return self.writes and len(staged.data) > INLINE

    def path(self, name: Digest) -> Path:
        """Where the file of a large body is."""
        return self.folder / name[:2] / name

    def claim(self, db: sqlite3.Connection, lease: str, names: Iterable[Digest]) -> None:
        """Say, durably, that files with these names are about to be written and not yet named by a commit."""
        rows = [(bytes.fromhex(name), lease) for name in names]
        db.executemany("INSERT OR IGNORE INTO claim VALUES(?, ?)", rows)

    def write_file(self, staged: Staged) -> None:
        """Put a large body on the disk, whole and durable, or not at all."""
        path = self.path(staged.digest)
        if path.exists() and path.stat().st_size == len(staged.data):
            return
        made = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        with open(draft, "wb") as file:
            file.write(staged.data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        for folder in (path.parent, *((path.parent.parent,) if made else ())):
            _sync(folder)

    def put(self, db: sqlite3.Connection, staged: Staged, lease: str, base: Staged | None = None) -> None:
        """Store a body once; the same bytes again change nothing. Large ones are files already.

        (A writer that was stopped for long may find its file collected: then the body becomes a row after all.)
        `base`: a stored body that this one mostly repeats, so that only the difference needs to be kept.
        """
        key = bytes.fromhex(staged.digest)
        if self.large(staged) and self.path(staged.digest).exists():
            db.execute("INSERT OR IGNORE INTO body(digest, size) VALUES(?, ?)", (key, len(staged.data)))
            db.execute("DELETE FROM claim WHERE digest = ? AND lease = ?", (key, lease))
            return
        data, ground, depth = staged.data, None, 0
        if base is not None and base.digest != staged.digest:
            query = "SELECT id, depth FROM body WHERE digest = ? AND data IS NOT NULL AND depth < ?"
            row = db.execute(query, (bytes.fromhex(base.digest), DEEPEST)).fetchone()
            difference = delta.between(base.data, staged.data)
            if row is not None and len(difference) < len(data) // 2:
                data, ground, depth = difference, row[0], row[1] + 1
        db.execute(
            "INSERT OR IGNORE INTO body(digest, size, data, base, depth) VALUES(?, ?, ?, ?, ?)",
            (key, len(staged.data), data, ground, depth),
        )

    def put_row(self, db: sqlite3.Connection, staged: Staged) -> None:
        """Store a body as a row, whatever its size."""
        row = (bytes.fromhex(staged.digest), len(staged.data), staged.data)
        db.execute("INSERT OR IGNORE INTO body(digest, size, data) VALUES(?, ?, ?)", row)

    def has(self, db: sqlite3.Connection, name: Digest) -> bool:
        """Whether a body is stored (not whether it is intact)."""
        row = db.execute("SELECT 1 FROM body WHERE digest = ?", (bytes.fromhex(name),)).fetchone()
        return row is not None

    def read(self, db: sqlite3.Connection, name: Digest) -> bytes:
        """The bytes of a body, proven. Raises Missing or Corrupt; both name the digest."""
        row = db.execute("SELECT data, base FROM body WHERE digest = ?", (bytes.fromhex(name),)).fetchone()
        if row is None:
            raise Missing(f"body {name} is not in the store")
        data: bytes = row[0]
        if row[0] is None:
            try:
                data = self.path(name).read_bytes()
            except FileNotFoundError:
                raise Missing(f"body {name} is not in the store: its file {self.path(name)} is gone") from None
        elif row[1] is not None:
            data = self._onto(db, row[1], data)
        if hashlib.sha256(data).hexdigest() != name:
            raise Corrupt(f"body {name} is damaged", "", -1, "run: panto session verify")
        return data

    def _onto(self, db: sqlite3.Connection, base: int | None, data: bytes) -> bytes:
        """The bytes that a difference means; b"" where what it stands on is gone or damaged."""
        differences = [data]
        while base is not None and len(differences) <= DEEPEST + 1:
            row = db.execute("SELECT data, base FROM body WHERE id = ?", (base,)).fetchone()
            if row is None or row[0] is None:
                return b""
            differences.append(row[0])
            base = row[1]
        whole = differences.pop()
        while differences:
            whole = delta.apply(whole, differences.pop())
        return whole

    def value(self, db: sqlite3.Connection, name: Digest) -> Body | None:
        """A body as a value; None where it is missing, damaged, or not one of `Body`. For showing."""
        try:
            return thaw(name, self.read(db, name))
        except (Missing, Corrupt):
            return None

    def release(self, db: sqlite3.Connection, lease: str) -> None:
        """Drop a dead writer's claims, and the files that no commit came to name."""
        for (key,) in db.execute("SELECT digest FROM claim WHERE lease = ?", (lease,)).fetchall():
            row = db.execute("SELECT 1 FROM body WHERE digest = ?", (key,)).fetchone()
            others = db.execute("SELECT 1 FROM claim WHERE digest = ? AND lease <> ?", (key, lease)).fetchone()
            if row is None and others is None and self.writes:
                self.path(key.hex()).unlink(missing_ok=True)
        db.execute("DELETE FROM claim WHERE lease = ?", (lease,))


def _sync(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

