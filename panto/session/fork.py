"""Where a fork begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.schema.codec import Digest
from panto.schema.errors import Refused
from panto.schema.events import InputAccepted, TurnStarted
from panto.session.ledger import records
from panto.session.ownership import Birth
from panto.session.projection import load
from panto.session.read import Lineage, commits, lineage

if TYPE_CHECKING:
    import sqlite3


def point(
    db: sqlite3.Connection, new: str, parent: str, before_turn: str | None, *, settled: bool = False
) -> tuple[Birth, tuple[Digest, ...]]:
    """The creation record of a fork, and the bodies of what the turn it forks before began with.

    `settled`: where a turn is active at the head, from before it. Raises Refused where a turn is active there, or there
    is no such turn.
    """
    line, again = lineage(db, parent), True
    if settled and not before_turn and (run := load(db, parent, line).state.run) is not None:
        before_turn, again = run.turn, False  # what runs there goes on there
    row = db.execute("SELECT under, opener, depth FROM segment WHERE id = ?", (parent,)).fetchone()
    seq, said = _before(db, line, parent, before_turn) if before_turn else (_head(db, line, parent), ())
    segment, digest = _stands_on(db, line, seq)
    return Birth(new, row[0], row[1], row[2], segment, seq, digest), said if again else ()


def _head(db: sqlite3.Connection, line: Lineage, parent: str) -> int:
    live = load(db, parent, line)
    if live.state.run is not None:
        raise Refused("active", "a turn is active: let it end, or fork before it")
    return live.seq


def _before(db: sqlite3.Connection, line: Lineage, parent: str, turn: str) -> tuple[int, tuple[Digest, ...]]:
    """The last commit before a turn's start, and what the turn began with."""
    view = load(db, parent, line).view.turn(turn)
    if view is None:
        raise Refused("unknown_turn", f"session {parent[:8]} has no turn {turn[:8]}")
    seq = view.seq
    started = next(commits(db, line, seq - 1))
    events = [record.event for record in records(started)]
    said = tuple(event.body for event in events if isinstance(event, InputAccepted))
    first = events.index(next(e for e in events if isinstance(e, TurnStarted) and e.turn == turn))
    if any(getattr(event, "machine", "") == "run" for event in events[:first]):
        raise Refused("active", f"another turn ended in the commit that started turn {turn[:8]}")
    return seq - 1, said


def _stands_on(db: sqlite3.Connection, line: Lineage, seq: int) -> tuple[str, str]:
    """The segment that holds a commit of the lineage, and the commit's digest."""
    for segment, last in line:
        if seq <= last:
            row = db.execute("SELECT digest FROM commits WHERE segment = ? AND seq = ?", (segment, seq)).fetchone()
            if row is not None:
                return segment, row[0].hex()
    raise Refused("empty", "there is nothing before it to share: start a new session")

