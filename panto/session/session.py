"""One open session: append = decide, write, fold, tell. The only way a fact comes to be."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.bodies import RequestManifest
from panto.schema.errors import OwnershipLost, PantoError, Refused, StorageFailed, ViewOnly
from panto.schema.events import AnyEvent, CheckpointMade, ModelStepCompleted
from panto.schema.signals import Fact
from panto.session import kept
from panto.session.append import Entry, Handle, Landing, append, lost
from panto.session.bodies import Staged
from panto.session.command import Command
from panto.session.disk import Failed
from panto.session.evolve import evolve
from panto.session.ids import is_id
from panto.session.ledger import records
from panto.session.machine import WIDE, decide
from panto.session.page import fact
from panto.session.projection import Projection
from panto.session.reader import Reader
from panto.session.state import State
from panto.session.view import View

if TYPE_CHECKING:
    from panto.session.commands import AnyCommand
    from panto.session.recovery import Settlement
    from panto.session.store import Store

Observer = Callable[[Fact], None]

INTERVAL = 500
"""Events after which the cache is renewed (more in a long session: a quarter of its context)."""

GROUP = 32
"""Commits that travel to the disk together at most."""


class Preview(Struct, frozen=True):
    """What a session would be in if some commands were committed now. A copy: it never changes."""

    state: State
    view: View


class _Proposal:
    """One call of `commit` on its way."""

    def __init__(self, commands: tuple[AnyCommand, ...], staged: tuple[Staged, ...]) -> None:
        self.commands = commands
        self.staged = staged
        self.names = tuple((command.id, command.intent) for command in commands)
        self.future: asyncio.Future[tuple[Fact, ...]] = asyncio.get_running_loop().create_future()
        self.future.add_done_callback(_retrieve)


def _retrieve(future: asyncio.Future[tuple[Fact, ...]]) -> None:
    if not future.cancelled():
        future.exception()  # the caller may be gone: an unread error is no accident then


class Session(Reader):
    """A session open for writing. All methods belong to the loop's thread.

    `parked`: opened with an active run that nobody has continued yet; the scheduler sets it to False when it does.
    """

    def __init__(self, store: Store, handle: Handle, live: Projection, *, under: str, opener: str, depth: int) -> None:
        super().__init__(store, handle.id, handle.lineage, live)
        self.under = under
        self.opener = opener
        self.depth = depth
        self.parked = live.state.run is not None
        self.handle = handle
        self._queue: deque[_Proposal] = deque()
        self._flight: list[tuple[_Proposal, Entry]] = []
        self._placing: set[asyncio.Future[tuple[Fact, ...]]] = set()
        self._poison: StorageFailed | None = None
        self._gone: PantoError | None = None
        self._on_lost: list[Callable[[], None]] = []
        self._drained: list[asyncio.Future[None]] = []
        self._saving = False
        self._manifest: Staged | None = None

    # --- writing ---

    async def commit(self, *commands: Command, bodies: tuple[Staged, ...] = ()) -> tuple[Fact, ...]:
        """Decide the commands in order, each on the state the one before leaves, and write them as one commit.

        Durable when it returns. All known with equal intent: the original facts, nothing written. Cancelling the
        caller does not take the commit back. Raises Refused, Conflict (nothing written), OwnershipLost, ViewOnly,
        StorageFailed (where writing had begun the session is poisoned until `reopen`).
        """
        proposal = self._propose(commands, bodies)
        large = tuple(staged for staged in bodies if self._store.bodies.large(staged))
        if large:
            placing = asyncio.ensure_future(self._place(proposal, large))
            self._placing.add(placing)
            placing.add_done_callback(self._placing.discard)
            return await asyncio.shield(placing)
        self._queue.append(proposal)
        self._pump()
        return await asyncio.shield(proposal.future)

    def preview(self, *commands: Command) -> Preview:
        """What these commands would lead to, commits on their way included. Raises Refused. Nothing is written.

        `preview.state.run.position` is then the position to plan a PrepareStep at that follows them in one commit.
        """
        ahead = self._live.copy()
        for _, entry in self._flight:
            if entry.events is not None:
                _ahead(ahead, entry.events)
        for waiting in self._queue:
            try:
                _ahead(ahead, _decide_all(ahead.state, ahead.view, waiting.commands, ahead.seq + 1)[0])
            except Refused:
                continue
        if commands:
            events, _ = _decide_all(ahead.state, ahead.view, self._checked(commands), ahead.seq + 1)
            _ahead(ahead, events)
        return Preview(ahead.state, ahead.view)

    async def keep(self, settlement: Settlement, *bodies: Staged) -> None:
        """Store what a call came to, outside the ledger, where its commit cannot be made now: recovery settles it."""
        store, id = self._store.bodies, self.id
        await self._store.writer.run(lambda db: kept.put(db, store, id, settlement, bodies))

    async def kept(self) -> Mapping[str, Settlement]:
        """Settlements that were stored and not committed, by effect: what `recovery` takes."""
        id = self.id
        return await self._store.reader.run(lambda db: kept.get(db, id), plain=True)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Be told, once, when another process has taken this session over."""
        self._on_lost.append(callback)

    @property
    def poisoned(self) -> bool:
        """Whether a write failed midway, so that only storage knows what exists: `reopen` asks it."""
        return self._poison is not None

    async def reopen(self) -> None:
        """After StorageFailed: read from storage what is there, and write again. Raises as `commit`."""
        if self._gone is not None:
            raise self._gone
        await self._drain()
        handle, found = await self._store.retake(self.handle, self._live)
        self.handle = handle
        for commit in found:
            self._live.step(commit)
            self._tell(records(commit), {})
        self._poison = None

    async def settled(self) -> None:
        """Wait until nothing is on its way to the disk."""
        await self._drain()

    async def close(self) -> None:
        """Finish what is on its way and let the session go. Idempotent."""
        await self._drain()
        if self._gone is None:
            self._gone = Refused("closed", f"session {self.id[:8]} is closed")
            await self._store.let_go(self, self.handle, None if self._poison else self._live)
        self._store.forget(self)

    # --- on the way to the disk ---

    def _checked(self, commands: tuple[Command, ...]) -> tuple[AnyCommand, ...]:
        if not commands:
            raise Refused("empty", "a commit needs at least one command")
        for command in commands:
            if command.command_id and command.command_id != command.id:
                raise Refused("misnamed", f"{command.command_id[:8]} is not the id of this {type(command).__name__}")
            run = getattr(command, "run", None)
            if run is not None and not is_id(run):
                raise Refused("id", f"{run!r} is not the id of a run")
        if len({command.id for command in commands}) != len(commands):
            raise Refused("repeated", "a commit names a command twice")
        return commands  # type: ignore[return-value]

    def _propose(self, commands: tuple[Command, ...], staged: tuple[Staged, ...]) -> _Proposal:
        checked = self._checked(commands)
        self._refuse()
        if self._live.state.unknown:
            raise ViewOnly(f"session {self.id[:8]} can only be read: {self._live.state.unknown}", "update panto")
        return _Proposal(checked, staged)

    def _refuse(self) -> None:
        """Raise what stands in the way of any writing."""
        if self._gone is not None:
            raise self._gone
        if self._poison is not None:
            raise self._poison

    async def _place(self, proposal: _Proposal, large: tuple[Staged, ...]) -> tuple[Fact, ...]:
        await self._store.place(large)
        self._refuse()  # storage may be ahead of the fold since: nothing can be decided then
        self._queue.append(proposal)
        self._pump()
        return await proposal.future

    def _pump(self) -> None:
        if self._flight or not self._queue:
            if not self._flight:
                self._release_waiters()
            return
        state, seq = self._live.state, self._live.seq
        while self._queue and len(self._flight) < GROUP:
            proposal = self._queue[0]
            if self._flight and any(isinstance(command, WIDE) for command in proposal.commands):
                break  # it looks at the views, which are not ahead
            self._queue.popleft()
            entry, state = self._decide(proposal, state, seq + 1)
            seq += entry.events is not None
            self._flight.append((proposal, entry))
        handle, bodies = self.handle, self._store.bodies
        entries = tuple(entry for _, entry in self._flight)
        writing = self._store.writer.run(lambda db: append(db, handle, bodies, entries))
        writing.add_done_callback(self._landed)

    def _decide(self, proposal: _Proposal, state: State, seq: int) -> tuple[Entry, State]:
        try:
            events, after = _decide_all(state, self._live.view, proposal.commands, seq)
        except Refused as refusal:
            return Entry(proposal.names, None, refusal, proposal.staged, state.settings), state
        tokens, cost = _spent(events)
        entry = Entry(proposal.names, events, None, proposal.staged, after.settings, tokens, cost, self._manifest)
        return entry, after

    def _landed(self, writing: asyncio.Future[tuple[Landing, ...]]) -> None:
        flight, self._flight = self._flight, []
        again: list[_Proposal] = []
        try:
            error = writing.exception()
            if error is not None:
                self._not_written(flight, error)
                return
            for (proposal, entry), landing in zip(flight, writing.result(), strict=True):
                if landing.status == "again":
                    again.append(proposal)
                else:
                    self._land(proposal, entry, landing)
            self._queue.extendleft(reversed(again))
        finally:  # a broken fold must not leave anyone waiting
            for proposal, _ in flight:
                if not proposal.future.done() and proposal not in again:
                    self._poison = StorageFailed("the session's fold broke", "open the session again")
                    proposal.future.set_exception(self._poison)
            self._pump()
        self._save()

    def _land(self, proposal: _Proposal, entry: Entry, landing: Landing) -> None:
        if landing.error is not None:
            proposal.future.set_exception(landing.error)
            return
        values = dict(landing.values)
        for staged in entry.staged:
            if isinstance(staged.value, RequestManifest):
                self._manifest = staged  # the next one will mostly repeat it
            elif staged.value is not None:
                values[staged.digest] = staged.value
                self._recent.put(staged.digest, staged.value, len(staged.data))
        if landing.status == "written":
            self._live.apply([record.event for record in landing.records], landing.seq, landing.records[0].time)
            self._live.digest = landing.digest
            proposal.future.set_result(self._tell(landing.records, values))
        else:
            made = (fact(self.id, record, values) for record in landing.records)
            proposal.future.set_result(tuple(each for each in made if each is not None))

    def _not_written(self, flight: list[tuple[_Proposal, Entry]], error: BaseException) -> None:
        failed = [proposal for proposal, _ in flight]
        if isinstance(error, OwnershipLost):
            self.lose()
        elif not isinstance(error, Failed) or error.began:
            poison = error if isinstance(error, StorageFailed) else StorageFailed(str(error))
            self._poison = poison
            failed += self._queue
            self._queue.clear()
        for proposal in failed:
            if not proposal.future.done():
                proposal.future.set_exception(error)

    def lose(self) -> None:
        """Another process has the session: nothing more is written here, everyone who waits is told."""
        if self._gone is not None:
            return
        self._gone = error = lost(self.id)
        waiting = [*self._queue]
        self._queue.clear()
        for proposal in waiting:
            proposal.future.set_exception(error)
        for callback in self._on_lost:
            self._loop.call_soon(callback)

    async def _drain(self) -> None:
        while self._placing or self._flight or self._queue:
            if self._placing:
                await asyncio.wait(self._placing)
                continue
            waiter = self._loop.create_future()
            self._drained.append(waiter)
            await waiter

    def _release_waiters(self) -> None:
        waiters, self._drained = self._drained, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _save(self) -> None:
        """Renew the cache now and then. Nobody waits for it, and its failure changes nothing."""
        live = self._live
        if live.folded < max(INTERVAL, len(live.view.context.entries) // 4) or self._saving or self._poison:
            return
        live.folded = 0
        self._saving = True
        saving = self._store.save(self.id, live)
        saving.add_done_callback(self._saved)

    def _saved(self, saving: asyncio.Future[None]) -> None:
        self._saving = False
        if not saving.cancelled():
            saving.exception()


def _decide_all(
    state: State, view: View, commands: tuple[AnyCommand, ...], seq: int
) -> tuple[tuple[tuple[AnyEvent, ...], ...], State]:
    """The events of each command, and the state after all of them. Raises Refused."""
    decided: list[tuple[AnyEvent, ...]] = []
    index = 0
    for command in commands:
        if isinstance(command, WIDE) and decided:
            raise Refused("order", f"{type(command).__name__} must be the first command of its commit")
        events = decide(state, view, command)
        for event in events:
            state = evolve(state, event, (seq, index))
            index += 1
        decided.append(events)
    return tuple(decided), state


def _ahead(projection: Projection, events: tuple[tuple[AnyEvent, ...], ...]) -> None:
    """Fold a commit that is not written yet into a copy."""
    projection.apply([event for each in events for event in each], projection.seq + 1, 0)


def _spent(events: tuple[tuple[AnyEvent, ...], ...]) -> tuple[int, float | None]:
    tokens, cost = 0, None
    for each in events:
        for event in each:
            if isinstance(event, ModelStepCompleted | CheckpointMade):
                tokens += event.usage.input + event.usage.output
                if event.cost is not None:
                    cost = (cost or 0.0) + event.cost
    return tokens, cost
