"""What came with a session from elsewhere and would let something run: nobody here has agreed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.schema.errors import Corrupt, ViewOnly
from panto.session.commands import AnyCommand, RevokeApproval
from panto.session.recovery import abandon

if TYPE_CHECKING:
    import sqlite3

    from panto.session.importing import Imported
    from panto.session.state import State
    from panto.session.store import Store


async def disown(store: Store, imported: Imported) -> None:
    """Revoke every approval in a session that was just read from a file, and end its unfinished calls: one of them may
    say that it was approved, or may run again by itself. A session that was here before keeps its own.
    """

    def job(db: sqlite3.Connection) -> bool:
        (epoch,) = db.execute("SELECT epoch FROM session WHERE id = ?", (imported.session,)).fetchone()
        return epoch == 0 or bool(imported.warnings)

    if not await store.reader.run(job, plain=True):
        return
    try:
        viewer = await store.view(imported.session)
        commands = _taken_back(viewer.state)
        await viewer.close()
        if not commands:
            return
        session = await store.open_session(imported.session)
    except (Corrupt, ViewOnly):
        return  # nobody can work in it
    try:
        await session.commit(*commands)
    finally:
        await session.close()


def _taken_back(state: State) -> tuple[AnyCommand, ...]:
    revoked = tuple(RevokeApproval(grant=grant) for grant in state.grants)
    unfinished = state.run is not None and state.run.unfinished
    return (*revoked, *abandon(state, ())) if unfinished else revoked
