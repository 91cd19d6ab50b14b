"""What calls came to, stored outside the ledger while their commit cannot be made; recovery settles them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from panto.session.bodies import Bodies, Staged
from panto.session.recovery import Settlement

if TYPE_CHECKING:
    import sqlite3


def put(
    db: sqlite3.Connection, bodies: Bodies, segment: str, settlement: Settlement, staged: tuple[Staged, ...]
) -> None:
    """Store a settlement with its bodies (as rows, whatever their size); the first one of an effect counts."""
    for each in staged:
        bodies.put_row(db, each)
    data = msgspec.json.encode(settlement)
    db.execute("INSERT OR IGNORE INTO outcome VALUES(?, ?, ?)", (segment, settlement.effect, data))


def get(db: sqlite3.Connection, segment: str) -> dict[str, Settlement]:
    """A session's stored settlements by effect."""
    rows = db.execute("SELECT effect, command FROM outcome WHERE segment = ?", (segment,)).fetchall()
    return {effect: msgspec.json.decode(data, type=Settlement) for effect, data in rows}


def drop(db: sqlite3.Connection, segment: str) -> None:
    """None of them is waited for any more."""
    db.execute("DELETE FROM outcome WHERE segment = ?", (segment,))
