"""The store: all sessions under one root, one database, one writer."""

from __future__ import annotations

import asyncio
import pathlib
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from panto.schema.codec import derive_id
from panto.schema.errors import Corrupt, Refused, ViewOnly
from panto.schema.queries import History, SessionRow
from panto.session import born, catalog, children, connect, kept, lease, ownership
from panto.session.append import Entry, Handle
from panto.session.bodies import Bodies, Staged
from panto.session.commands import (
    ChangeCwd,
    ChangeMode,
    ChangeModel,
    ChangeReasoning,
    ChangeTitle,
    RevokeApproval,
    SubmitInput,
)
from panto.session.disk import Disk, Failed
from panto.session.ids import is_id, new_id
from panto.session.ledger import Commit
from panto.session.ownership import Birth, Taken
from panto.session.page import page
from panto.session.projection import Projection, save, whole
from panto.session.read import commits, lineage
from panto.session.session import Session
from panto.session.upkeep import Upkeep
from panto.session.writer import writer_of

if TYPE_CHECKING:
    import sqlite3

    from panto.session.catalog import Hit
    from panto.session.children import Spent
    from panto.session.command import Command, Position
    from panto.session.viewer import Viewer


T = TypeVar("T")


class Store(Upkeep):
    """All sessions under one root. All methods belong to the loop's thread; none waits for the disk on it.

    `notice`: what a person must know about this store ("" nothing): in memory only, or a weaker journal.
    """

    def __init__(
        self, root: pathlib.Path, writer: Disk, bodies: Bodies, notice: str, damage: Failed | None = None
    ) -> None:
        """Use `Store.open`."""
        self.root = root
        self.notice = notice
        self.bodies = bodies
        self.writer = writer
        self._damage = damage
        self._reader: Disk | None = None
        self._lease = new_id()
        self._open: dict[str, Session] = {}
        self._opening: set[str] = set()
        self._beat: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, root: pathlib.Path) -> Store:
        """Open or create the store. Where nothing can be written it lives in memory and `notice` says so."""
        return cls(root, *await writer_of(root))

    @property
    def damage(self) -> Failed | None:
        """The damage for which the sessions there are cannot be read; None: there is none."""
        return self._damage

    @property
    def memory(self) -> bool:
        """Whether everything here is gone with the process."""
        return not self.bodies.writes

    @property
    def reader(self) -> Disk:
        """The thread that reads. In memory it is the writer's."""
        if self.memory:
            return self.writer
        if self._reader is None:
            path = self.root / connect.FILE
            self._reader = Disk(lambda: connect.for_reading(path), str(path), writes=False)
        return self._reader

    # --- opening for writing ---

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
        """A new session, open for writing. `under`: the primary's id, `opener`: the session that asked for it.

        Raises Conflict where `id` is taken, Refused where it is no id, StorageFailed.
        """
        name = id if id is not None else new_id()
        if not is_id(name):
            raise Refused("id", f"{name!r} is not a session id")
        given: list[Command] = [ChangeCwd(cwd=cwd)]
        given += [ChangeModel(model=model)] if model else []
        given += [ChangeReasoning(reasoning=reasoning)] if reasoning else []
        given += [ChangeMode(mode=mode)] if mode else []  # type: ignore[arg-type]
        given += [ChangeTitle(title=title)] if title else []
        return await self._begin(Birth(name, under or "", opener or "", depth), tuple(given))

    async def _begin(self, birth: Birth, given: tuple[Command, ...]) -> Session:
        """Create a root segment with its first commit, in one transaction; where the file is damaged, in a new one."""
        entry = born.first(birth, given)
        if self._damage is None or self._open:
            try:
                return self._adopt(*await self._born(birth, entry))
            except Failed as error:
                if not error.damaged or self._open:
                    raise
                self._damage = error
        await self.begin_anew(self._damage)
        return self._adopt(*await self._born(birth, entry))

    def _born(self, birth: Birth, entry: Entry) -> asyncio.Future[tuple[Taken, Projection]]:
        holder, bodies = self.holder(), self.bodies
        return self.writer.run(lambda db: born.begin(db, birth, holder, bodies, entry))

    async def open_session(self, name: str, *, take_over: bool = False) -> Session:
        """Open for writing, by id or unique prefix. Nothing is written but the ownership: see `recovery`.

        Raises Owned (who, where), Missing, UsageError (ambiguous: candidates), ViewOnly, Corrupt.
        """
        id = await self.resolve(name)
        if id in self._open or id in self._opening:
            raise ownership.owned(id, self.holder(), self._title(id))
        self._opening.add(id)
        try:
            holder = self.holder()
            taken = await self.writer.run(lambda db: ownership.take(db, id, holder, take_over=take_over))
            return self._adopt(taken, await self._load(taken))
        finally:
            self._opening.discard(id)

    async def _load(self, taken: Taken) -> Projection:
        """The fold of a session just taken; it is let go again where it cannot be written."""
        handle = taken.handle
        try:
            live = await self.reader.run(lambda db: whole(db, handle.id, handle.lineage), plain=True)
            if live.state.unknown:
                raise ViewOnly(f"session {handle.id[:8]} can only be read: {live.state.unknown}", "update panto")
            return live
        except (Corrupt, ViewOnly) as error:
            broken = error.message if isinstance(error, Corrupt) else ""

            def job(db: sqlite3.Connection) -> None:
                ownership.let_go(db, handle)
                db.execute("UPDATE session SET broken = ? WHERE id = ?", (broken, handle.id))

            await self.writer.run(job)
            raise

    def _adopt(self, taken: Taken, live: Projection) -> Session:
        session = Session(self, taken.handle, live, under=taken.under, opener=taken.opener, depth=taken.depth)
        self._open[session.id] = session
        if self._beat is None:
            self._beat = self._loop.call_later(lease.DURATION / 3, self._renew)
            self.writer.run(lambda db: catalog.tidy(db, self.bodies)).add_done_callback(_read)
        return session

    def _title(self, id: str) -> str:
        return self._open[id].state.settings.title if id in self._open else ""

    def holder(self) -> lease.Holder:
        """This store's lease, fresh."""
        return lease.own(self._lease, time.time())

    async def fork(self, name: str, before_turn: str | None = None, *, settled: bool = False) -> Session:
        """A new session that shares the history up to just before a turn (None: up to the head). Copies nothing.

        Before a turn: what the turn began with is submitted again in the fork, and waits there: deliver it to
        regenerate, withdraw it and say something else to edit. Raises Refused where a turn is active there; with
        `settled` the head is then just before that turn, which goes on where it is.
        """
        id = await self.resolve(name)
        if id in self._open:
            await self._open[id].settled()
        new = new_id()

        def job(db: sqlite3.Connection) -> tuple[Birth, tuple[str, ...]]:
            from panto.session.fork import point

            return point(db, new, id, before_turn, settled=settled)

        birth, said = await self.reader.run(job, plain=True)
        holder = self.holder()
        taken = await self.writer.run(lambda db: ownership.create(db, birth, holder))
        live = await self._load(taken)
        view = live.view
        sums = (len(view.turns), view.usage.input + view.usage.output, view.cost, new)
        await self.writer.run(
            lambda db: db.execute("UPDATE session SET turns = ?, tokens = ?, cost = ? WHERE id = ?", sums) and None
        )
        session = self._adopt(taken, live)
        more: list[Command] = [SubmitInput(input=derive_id("again", new, i), body=body) for i, body in enumerate(said)]
        settings, granted = session.state.settings, session.state.grants
        if granted:  # what was taken back since stays taken back
            now = await self.reader.run(lambda db: whole(db, id, lineage(db, id)).state.grants, plain=True)
            more += (RevokeApproval(grant=grant) for grant in granted if grant not in now)
        await session.commit(ChangeTitle(title=settings.title), *more)
        return session

    async def view(self, name: str) -> Viewer:
        """A read-only view that follows a session, also one that is live elsewhere. Needs no ownership."""
        from panto.session.viewer import Viewer

        return await Viewer.begin(self, await self.resolve(name))

    # --- the list ---

    async def resolve(self, prefix: str) -> str:
        """The full id of a unique prefix. Raises Missing, or UsageError with the candidates."""
        return await self.reader.run(lambda db: catalog.resolve(db, prefix), plain=True)

    async def list(
        self, *, cwd: str = "", words: str = "", limit: int = 200, all: bool = False, under: str | None = None
    ) -> tuple[SessionRow, ...]:
        """Sessions, newest first, without reading a body. `all`: children too; `under`: only those of one primary.

        `words`: only those whose title or messages have them all.
        """
        return await self.reader.run(
            lambda db: catalog.rows(db, cwd=cwd, words=words, limit=limit, all=all, under=under), plain=True
        )

    async def spent(self, primary: str) -> dict[str, Spent]:
        """What each session under a primary used."""
        return await self.reader.run(lambda db: children.spent(db, primary), plain=True)

    async def endings(self, ids: Sequence[str]) -> dict[str, str]:
        """How the last turn of each of these sessions ended; see `children.endings`."""
        return await self.reader.run(lambda db: children.endings(db, ids), plain=True)

    async def history(self, name: str, before: Position | None = None, limit: int = 400) -> History:
        """The newest page of a session's facts, without opening or folding it: what a screen can show at once."""
        bodies = self.bodies

        def job(db: sqlite3.Connection) -> History:
            id = catalog.resolve(db, name)
            return page(db, bodies, id, lineage(db, id), before, limit)

        return await self.reader.run(job, plain=True)

    async def prompts(self, cwd: str = "", limit: int = 500) -> tuple[str, ...]:
        """What people said in sessions of this directory ("" any), newest first, each text once."""
        return await self.reader.run(lambda db: catalog.prompts(db, cwd, limit), plain=True)

    async def rename(self, name: str, title: str) -> None:
        """Give a session a title. Raises Owned where another live process has it."""
        id = await self.resolve(name)
        mine = self._open.get(id)
        session = mine or await self.open_session(id)
        try:
            await session.commit(ChangeTitle(title=title))
        finally:
            if mine is None:
                await session.close()

    async def delete(self, names: Iterable[str]) -> None:
        """Delete sessions and those under them. What a fork still needs stays. Raises Owned where one is open."""
        ids = tuple([await self.resolve(name) for name in names])
        for id in ids:
            if id in self._open or id in self._opening:
                raise ownership.owned(id, self.holder(), self._title(id))
        mine = self._lease
        await self.writer.run(lambda db: catalog.delete(db, ids, mine))

    async def search(self, words: str, limit: int = 50) -> tuple[Hit, ...]:
        """Messages that have all these words (beginnings count), newest first, with the session of each."""
        return await self.reader.run(lambda db: catalog.search(db, words, limit), plain=True)

    # --- the file as a whole ---

    async def disconnect(self) -> str:
        """Close the file; the id of this process's lease. No session may be open here. Raises Owned."""
        if self._open:
            raise ownership.owned(next(iter(self._open)), self.holder())
        for disk in (self._reader, self.writer):
            if disk is not None:
                await disk.close()
        self._reader = None
        return self._lease

    async def connect(self, *, memory: bool = False) -> None:
        """Open it again (`memory`: an empty one that is gone with the process)."""
        self.writer, self.bodies, self.notice, self._damage = await writer_of(self.root, memory=memory)

    # --- for sessions ---

    async def place(self, large: tuple[Staged, ...]) -> None:
        """Make large bodies durable as files, claimed before they are written."""
        names = tuple(staged.digest for staged in large)
        holder = self.holder()

        def claim(db: sqlite3.Connection) -> None:
            lease.put(db, holder)
            self.bodies.claim(db, holder.id, names)

        await self.writer.run(claim)
        for staged in large:
            await self.writer.run(lambda db, each=staged: self.bodies.write_file(each), plain=True)  # type: ignore[misc]

    def save(self, id: str, live: Projection) -> asyncio.Future[None]:
        """Keep a projection for the next opening."""
        data, seq, digest = msgspec.msgpack.encode(live), live.seq, live.digest
        return self.writer.run(lambda db: save(db, id, seq, digest, data))

    async def retake(self, handle: Handle, live: Projection) -> tuple[Handle, tuple[Commit, ...]]:
        """Own a session anew after a failed write; the commits that storage has beyond the projection."""
        holder, seq = self.holder(), live.seq

        def job(db: sqlite3.Connection) -> tuple[Handle, tuple[Commit, ...]]:
            return ownership.retake(db, handle, holder), tuple(commits(db, handle.lineage, seq))

        return await self.writer.run(job)

    async def let_go(self, session: Session, handle: Handle, live: Projection | None) -> None:
        """Own a session no longer; its projection is kept where there is one."""
        if self._open.get(session.id) is session:
            del self._open[session.id]
            self._opening.add(session.id)
        data = msgspec.msgpack.encode(live) if live is not None else b""

        def job(db: sqlite3.Connection) -> None:
            if ownership.let_go(db, handle) and live is not None:
                save(db, session.id, live.seq, live.digest, data)
                if live.state.run is None:
                    kept.drop(db, session.id)
                catalog.forget_empty(db, session.id)

        try:
            await self.writer.run(job)
        except Failed:
            pass  # the lease runs out by itself, the cache is made anew
        finally:
            self._opening.discard(session.id)

    def forget(self, session: Session) -> None:
        """A session that another process has taken over is open here no longer."""
        if self._open.get(session.id) is session:
            del self._open[session.id]

    def _renew(self) -> None:
        handles = tuple(session.handle for session in self._open.values())
        self._beat = self._loop.call_later(lease.DURATION / 3, self._renew) if handles else None
        if handles:
            holder = self.holder()
            self.writer.run(lambda db: ownership.renew(db, holder, handles)).add_done_callback(self._renewed)

    def _renewed(self, renewing: asyncio.Future[tuple[str, ...]]) -> None:
        if not _read(renewing):
            return  # tried again at the next beat
        for id in renewing.result():
            if id in self._open:
                self._open[id].lose()

    async def close(self) -> None:
        """Close every session and the database."""
        for session in list(self._open.values()):
            await session.close()
        if self._beat is not None:
            self._beat.cancel()
        mine = self._lease
        try:
            await self.writer.run(lambda db: db.execute("DELETE FROM lease WHERE id = ?", (mine,)) and None)
        except Failed:
            pass
        for disk in (self._reader, self.writer):
            if disk is not None:
                await disk.close()


def _read(done: asyncio.Future[T]) -> bool:
    """Whether it succeeded; for work that nobody waits for."""
    return not done.cancelled() and done.exception() is None
