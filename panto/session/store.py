"""The store: all sessions under one root, one database, one writer."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from panto.schema.queries import SessionRow
from panto.session.session import Session

if TYPE_CHECKING:
    from panto.session.viewer import Viewer


class Store:
    """All sessions under one root. All methods belong to the loop's thread; none waits for the disk on it."""

    root: pathlib.Path
    notice: str
    """What a person must know about this store ("" nothing): in memory only, or a weaker journal."""

    @classmethod
    async def open(cls, root: pathlib.Path) -> Store:
        """Open or create the store. Where nothing can be written it lives in memory and `notice` says so."""
        raise NotImplementedError

    async def create(
        self,
        *,
        cwd: str,
        model: str = "",
        reasoning: str = "",
        mode: str = "",
        id: str | None = None,
        under: str | None = None,
        opener: str | None = None,
        depth: int = 0,
        title: str = "",
    ) -> Session:
        """A new session, open for writing. `under`: the primary's id, `opener` who asked for it. Raises Conflict
        where `id` is taken."""
        raise NotImplementedError

    async def open_session(self, name: str, *, take_over: bool = False) -> Session:
        """Open for writing, by id or unique prefix. Nothing is written but the ownership: see `recovery`.

        Raises Owned (who, where), Missing, UsageError (ambiguous: candidates), ViewOnly, Corrupt.
        """
        raise NotImplementedError

    async def view(self, name: str) -> Viewer:
        """A read-only view that follows a session, also one that is live elsewhere. Needs no ownership."""
        raise NotImplementedError

    async def fork(self, name: str, before_turn: str | None = None) -> Session:
        """A new session that shares the history up to just before a turn (None: up to the head). Copies nothing.

        Raises Refused where a turn is active there.
        """
        raise NotImplementedError

    async def list(
        self, *, cwd: str = "", words: str = "", limit: int = 200, all: bool = False, under: str | None = None
    ) -> tuple[SessionRow, ...]:
        """Sessions, newest first, without reading a body. `all`: children too; `under`: only those of one primary."""
        raise NotImplementedError

    async def resolve(self, prefix: str) -> str:
        """The full id of a unique prefix (4 digits at least). Raises Missing or UsageError with the candidates."""
        raise NotImplementedError

    async def rename(self, name: str, title: str) -> None:
        """Give a session that is not open elsewhere a title."""
        raise NotImplementedError

    async def delete(self, names: Iterable[str]) -> None:
        """Delete sessions that nobody has open; what forks of them need stays until `collect` finds it unreached."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close every session and the database."""
        raise NotImplementedError
