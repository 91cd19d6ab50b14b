"""Approvals that came with a session from elsewhere: nobody here has given them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.schema.errors import Corrupt, ViewOnly
from panto.session.commands import RevokeApproval

if TYPE_CHECKING:
    import sqlite3

    from panto.session.importing import Imported
    from panto.session.store import Store


async def disown(store: Store, imported: Imported) -> None:
    """Revoke every approval in a session that was just read from a file. One that was here before keeps its own."""

    def job(db: sqlite3.Connection) -> bool:
        (epoch,) = db.execute("SELECT epoch FROM session WHERE id = ?", (imported.session,)).fetchone()
        return epoch == 0 or bool(imported.warnings)

    if not await store.reader.run(job, plain=True):
        return
    try:
        viewer = await store.view(imported.session)
        granted = tuple(viewer.state.grants)
        await viewer.close()
        if not granted:
            return
        session = await store.open_session(imported.session)
    except (Corrupt, ViewOnly):
        return  # nobody can work in it
    try:
        await session.commit(*(RevokeApproval(grant=grant) for grant in granted))
    finally:
        await session.close()
