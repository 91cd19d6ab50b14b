"""A read-only view of a session, also one that is live in another process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from panto.schema.errors import Corrupt, ViewOnly
from panto.session import lease
from panto.session.append import Handle
from panto.session.disk import Failed
from panto.session.ledger import Commit, records
from panto.session.ownership import Taken
from panto.session.page import facts
from panto.session.projection import Projection, load
from panto.session.read import commits, lineage
from panto.session.session import Session

if TYPE_CHECKING:
    import sqlite3

    from panto.schema.signals import Fact
    from panto.session.store import Store

BEAT = 0.2
"""Seconds between looks at a session that another process may write."""


class Viewer(Session):
    """Follows a session without owning it. `close` it when done.

    Whatever would write raises ViewOnly, which says who holds the session; so do `reopen` and all that stands on it.
    """

    def __init__(self, store: Store, taken: Taken, live: Projection, holder: lease.Holder | None) -> None:
        super().__init__(store, taken.handle, live, under=taken.under, opener=taken.opener, depth=taken.depth)
        self.holder = holder
        """Who writes it now, None: nobody."""
        self.on_holder: Callable[[], None] = lambda: None
        """Called when that has changed, or nothing more is followed."""
        self.problem: Corrupt | None = None
        """Why nothing more is followed."""
        self._gone = self.refusal()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._looking: asyncio.Task[None] | None = None

    @classmethod
    async def begin(cls, store: Store, id: str) -> Viewer:
        """Load the session and follow it. Raises Missing, Corrupt."""

        def job(db: sqlite3.Connection) -> tuple[Taken, Projection, lease.Holder | None]:
            line = lineage(db, id)
            under, opener, depth = db.execute("SELECT under, opener, depth FROM segment WHERE id = ?", (id,)).fetchone()
            return Taken(Handle(id, line, 0, ""), under, opener, depth), load(db, id, line), _holder(db, id)

        viewer = cls(store, *await store.reader.run(job, plain=True))
        viewer._wait()
        return viewer

    def refusal(self) -> ViewOnly:
        """Why nothing can be written: who holds the session, and the ways out."""
        if self._live.state.unknown:
            return ViewOnly(f"this session can only be read: {self._live.state.unknown}", "update panto")
        if self.holder is None:
            return ViewOnly("this session is viewed; nobody holds it any more", "open it to work in it, or fork it")
        where = f"process {self.holder.pid} on {self.holder.host}"
        return ViewOnly(f"this session is viewed; it is held by {where}", "fork it, or take it over")

    def _wait(self) -> None:
        if not self._closed:
            self._timer = self._loop.call_later(BEAT, self._look)

    def _look(self) -> None:
        self._looking = self._loop.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            await self.look()
        except Failed:
            pass  # looked at again at the next beat
        except Corrupt as error:  # what follows would not be true: it is not shown
            self._gone = self.problem = error
            self._loop.call_soon(self.on_holder)
            return
        self._wait()

    async def look(self) -> None:
        """Take in what was committed since the last look. Raises Corrupt."""
        line, seq, id, bodies = self.handle.lineage, self._live.seq, self.id, self._store.bodies

        def job(db: sqlite3.Connection) -> tuple[list[Commit], lease.Holder | None]:
            row = db.execute("SELECT head FROM session WHERE id = ?", (id,)).fetchone()
            return list(commits(db, line, seq)) if row is not None and row[0] > seq else [], _holder(db, id)

        found, holder = await self._store.reader.run(job, plain=True)
        before, self.holder = self.holder, holder
        if (before and before.id) != (holder and holder.id):
            self._gone = self.refusal()
            self._loop.call_soon(self.on_holder)
        for commit in found:
            recorded = records(commit)
            told: tuple[Fact, ...] = await self._store.reader.run(
                lambda db, each=recorded: facts(db, bodies, id, list(each), {}), plain=True  # type: ignore[misc]
            )
            self._live.step(commit)
            for fact in told:
                for observer in self._observers:
                    self._loop.call_soon(observer, fact)

    async def close(self) -> None:
        """Follow no longer."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None and not self._looking.done():
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)


def _holder(db: sqlite3.Connection, id: str) -> lease.Holder | None:
    """Who writes a session now."""
    row = db.execute("SELECT lease FROM session WHERE id = ?", (id,)).fetchone()
    holder = lease.get(db, row[0]) if row is not None else None
    return holder if holder is not None and lease.alive(holder, time.time()) else None
