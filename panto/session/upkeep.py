"""What can be done to sessions as a whole. The work is loaded when it is first asked for: a start needs none of it."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from panto.session.collect import Collected
    from panto.session.disk import Failed
    from panto.session.importing import Imported
    from panto.session.repair import Repaired
    from panto.session.rescue import Rescued
    from panto.session.store import Store
    from panto.session.verify import Report


class Upkeep:
    """The part of the store that looks after what is stored."""

    def export(self, name: str) -> AsyncIterator[bytes]:
        """A session as JSON lines, in pieces. Raises Missing, Corrupt."""
        from panto.session import whole

        return whole.export(cast("Store", self), name)

    async def import_(self, path: pathlib.Path) -> Imported:
        """Read a session back from JSON lines. What cannot be used is put aside and told. `disown` it before use."""
        from panto.session import whole

        return await whole.import_(cast("Store", self), path)

    async def disown(self, imported: Imported) -> None:
        """Take back its approvals and end its unfinished calls: what a file says is nobody's agreement here."""
        from panto.session import grants

        await grants.disown(cast("Store", self), imported)

    async def verify(self, name: str) -> Report:
        """Prove a session: chain, index, bodies, folds. The first finding names the first bad commit."""
        from panto.session import whole

        return await whole.verify(cast("Store", self), name)

    async def repair(self, name: str) -> Repaired:
        """Keep all of a session that proves, in a new one where the chain is broken, and say what was lost.

        Where the file is damaged, or an older one lies aside, that is mended first; the name "store" means only that.
        """
        from panto.session import whole

        return await whole.repair(cast("Store", self), name)

    async def begin_anew(self, damage: Failed) -> None:
        """Put a damaged file aside and go on with a new one, or in memory where another process still uses it."""
        from panto.session import whole

        await whole.begin_anew(cast("Store", self), damage)

    async def rescue(self) -> Rescued:
        """Make a damaged database file anew from what can be read of it, and bring back what lies aside.

        No session may be open here. Raises UsageError.
        """
        from panto.session import whole

        return await whole.rescue(cast("Store", self))

    async def collect(self) -> Collected:
        """Give back the space of what no session reaches."""
        from panto.session import whole

        return await whole.collect(cast("Store", self))
