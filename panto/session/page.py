"""Pages of history: the newest facts before a position, without reading what lies before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.schema.bodies import Body
from panto.schema.codec import Digest
from panto.schema.events import TurnStarted
from panto.schema.queries import History
from panto.schema.signals import Fact
from panto.session.bodies import Bodies
from panto.session.command import Position
from panto.session.digests import shown
from panto.session.ledger import Recorded, Unknown, records
from panto.session.read import ENDLESS, Lineage, commits_back

if TYPE_CHECKING:
    import sqlite3


def fact(session: str, record: Recorded, values: dict[Digest, Body]) -> Fact | None:
    """A recorded event as readers get it; None for one that this version does not know."""
    event = record.event
    if isinstance(event, Unknown):
        return None
    name = shown(event)
    body = values.get(name) if name is not None else None
    return Fact(session, record.position[0], record.position[1], record.time / 1000, event, body)


def facts(
    db: sqlite3.Connection, bodies: Bodies, session: str, found: list[Recorded], known: dict[Digest, Body]
) -> tuple[Fact, ...]:
    """Facts with their bodies read. A body that is missing or damaged is left out: a page is shown all the same."""
    values = dict(known)
    for record in found:
        name = None if isinstance(record.event, Unknown) else shown(record.event)
        if name is not None and name not in values:
            value = bodies.value(db, name)
            if value is not None:
                values[name] = value
    made = (fact(session, record, values) for record in found)
    return tuple(each for each in made if each is not None)


def page(
    db: sqlite3.Connection, bodies: Bodies, session: str, line: Lineage, before: Position | None, limit: int
) -> History:
    """The newest `limit` facts or so before a position (None: of all), beginning with a turn where that fits."""
    seq, index = before if before is not None else (ENDLESS, 0)
    found: list[Recorded] = []
    start: Position | None = None
    for commit in commits_back(db, line, seq + 1 if index else seq):
        every = [record for record in records(commit) if record.position < (seq, index)]
        found[:0] = every
        start = (commit.seq, 0)
        if len(found) >= limit:
            break
    else:
        start = None
    if start is not None:
        found = _from_turn(found)
        start = found[0].position if found else None
    return History(facts(db, bodies, session, found, {}), start)


def _from_turn(found: list[Recorded]) -> list[Recorded]:
    """Leave out the end of a turn that began earlier, unless it is most of the page."""
    for place, record in enumerate(found[: len(found) // 2]):
        if isinstance(record.event, TurnStarted):
            seq = record.position[0]  # what was said stands in the same commit, before the turn's start
            return found[next(i for i in range(place + 1) if found[i].position[0] == seq) :]
    return found
