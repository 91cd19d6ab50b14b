"""What sessions and read-only views have in common: the fold as it is, its bodies, its history, who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from panto.schema.bodies import Body
from panto.schema.codec import Digest
from panto.schema.queries import History
from panto.schema.signals import Fact
from panto.session.bodies import thaw
from panto.session.cache import Recent
from panto.session.command import Position
from panto.session.ledger import Recorded
from panto.session.page import fact, page
from panto.session.projection import Projection
from panto.session.read import Lineage
from panto.session.state import State
from panto.session.view import View

if TYPE_CHECKING:
    from panto.session.store import Store


class Reader:
    """A session's folds and how to read its bodies and history. All methods belong to the loop's thread."""

    def __init__(self, store: Store, id: str, line: Lineage, live: Projection) -> None:
        self.id = id
        self._store = store
        self._line = line
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._recent = Recent()
        self._observers: list[Callable[[Fact], None]] = []

    @property
    def state(self) -> State:
        """The machines, as of the last durable commit. Frozen: may be kept."""
        return self._live.state

    @property
    def view(self) -> View:
        """Context, turns, files, sums as of the last durable commit. Alive: look, never change, do not keep."""
        return self._live.view

    @property
    def head(self) -> Position:
        """(seq of the last commit, number of its events); (-1, 0) before the first."""
        return (self._live.seq, self._live.count)

    def subscribe(self, observer: Callable[[Fact], None]) -> Callable[[], None]:
        """Be told each fact once, in commit order, after its commit is durable. Returns how to stop.

        An observer that raises is reported by the loop's exception handler and disturbs nobody.
        """
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop

    async def body(self, digest: Digest) -> Body:
        """A body by its digest. Raises Missing (names the digest) or Corrupt."""
        value = self._recent.get(digest)
        if value is None:
            data = await self.raw(digest)
            value = thaw(digest, data)
            self._recent.put(digest, value, len(data))
        return value

    async def raw(self, digest: Digest) -> bytes:
        """The bytes of a body, as stored. Raises Missing or Corrupt."""
        bodies = self._store.bodies
        return await self._store.reader.run(lambda db: bodies.read(db, digest), plain=True)

    async def history(self, before: Position | None = None, limit: int = 400) -> History:
        """The newest page of facts before a position (None: of all), whole turns where that fits.

        `start` of the answer is where the page before it ends, None at the beginning. Bodies that are gone are None.
        """
        id, line, bodies = self.id, self._line, self._store.bodies
        return await self._store.reader.run(lambda db: page(db, bodies, id, line, before, limit), plain=True)

    def _tell(self, found: tuple[Recorded, ...], values: dict[Digest, Body]) -> tuple[Fact, ...]:
        made = tuple(each for each in (fact(self.id, record, values) for record in found) if each is not None)
        for observer in self._observers:
            for each in made:
                self._loop.call_soon(observer, each)
        return made
