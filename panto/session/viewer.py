"""A read-only view of a session, also one that is live in another process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from panto.session.disk import Failed
from panto.session.ledger import Commit, records
from panto.session.page import facts
from panto.session.projection import Projection, load
from panto.session.read import commits, lineage
from panto.session.reader import Reader

if TYPE_CHECKING:
    import sqlite3

    from panto.schema.signals import Fact
    from panto.session.read import Lineage
    from panto.session.store import Store

BEAT = 0.2
"""Seconds between looks at a session that another process may write."""


class Viewer(Reader):
    """Follows a session without owning it. `close` it when done."""

    def __init__(self, store: Store, id: str, line: Lineage, live: Projection) -> None:
        super().__init__(store, id, line, live)
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._looking: asyncio.Task[None] | None = None

    @classmethod
    async def begin(cls, store: Store, id: str) -> Viewer:
        """Load the session and follow it. Raises Missing, Corrupt."""

        def job(db: sqlite3.Connection) -> tuple[Lineage, Projection]:
            line = lineage(db, id)
            return line, load(db, id, line)

        viewer = cls(store, id, *await store.reader.run(job, plain=True))
        viewer._wait()
        return viewer

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
        self._wait()

    async def look(self) -> None:
        """Take in what was committed since the last look. Raises Corrupt."""
        line, seq, id, bodies = self._line, self._live.seq, self.id, self._store.bodies

        def job(db: sqlite3.Connection) -> list[Commit]:
            row = db.execute("SELECT head FROM session WHERE id = ?", (id,)).fetchone()
            return list(commits(db, line, seq)) if row is not None and row[0] > seq else []

        found = await self._store.reader.run(job, plain=True)
        for commit in found:
            self._live.step(commit)
            recorded = records(commit)
            told: tuple[Fact, ...] = await self._store.reader.run(
                lambda db, each=recorded: facts(db, bodies, id, list(each), {}), plain=True  # type: ignore[misc]
            )
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
