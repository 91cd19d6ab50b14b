"""How a session begins: a root segment with its first commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.schema.events import AnyEvent
from panto.session import lease, ownership
from panto.session.append import Entry, append
from panto.session.bodies import Bodies
from panto.session.evolve import evolve
from panto.session.machine import decide
from panto.session.ownership import Birth, Taken
from panto.session.projection import Projection, empty

if TYPE_CHECKING:
    import sqlite3

    from panto.session.command import Command


def first(birth: Birth, given: tuple[Command, ...]) -> Entry:
    """The first commit, decided. Raises Refused."""
    nothing = empty(birth.id, "")
    state = nothing.state
    events: list[tuple[AnyEvent, ...]] = []
    for command in given:
        decided = decide(state, nothing.view, command)  # type: ignore[arg-type]
        state = evolve(state, decided[0], (0, len(events)))
        events.append(decided)
    return Entry(tuple((c.id, c.intent) for c in given), tuple(events), None, (), state.settings)


def begin(
    db: sqlite3.Connection, birth: Birth, holder: lease.Holder, bodies: Bodies, entry: Entry
) -> tuple[Taken, Projection]:
    """Write the segment and its first commit. Raises Conflict where the id is taken."""
    taken = ownership.create(db, birth, holder)
    seed = db.execute("SELECT seed FROM segment WHERE id = ?", (birth.id,)).fetchone()[0]
    landing = append(db, taken.handle, bodies, (entry,))[0]
    if landing.error is not None:
        raise landing.error
    live = empty(birth.id, seed.hex())
    live.apply([record.event for record in landing.records], landing.seq, landing.records[0].time)
    live.digest = landing.digest
    return taken, live
