"""The one thread that writes, and the one that reads: SQLite never runs on the loop's thread.

A job is a function of the connection. Jobs that wait together share one durable transaction, each in a savepoint of
its own; if the transaction as a whole fails, each is tried once alone, so that one fault does not take others along.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from panto.schema.errors import PantoError, StorageFailed

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
Job = Callable[["sqlite3.Connection"], T]

MOST = 64
"""Jobs that share a transaction at most."""


class Failed(StorageFailed):
    """A storage error. `began`: writing had begun, so only storage knows whether the commit exists. `damaged`: what is
    stored is not as it was written."""

    def __init__(self, message: str, hint: str, began: bool, damaged: bool = False) -> None:
        super().__init__(message, hint)
        self.began = began
        self.damaged = damaged


class _Item(Generic[T]):
    __slots__ = ("error", "finished", "future", "job", "plain", "result")

    def __init__(self, job: Job[T], future: asyncio.Future[T], plain: bool) -> None:
        self.job = job
        self.future = future
        self.plain = plain
        self.result: T | None = None
        self.finished = False
        self.error: PantoError | None = None

    def give(self, result: T) -> None:
        self.result, self.error, self.finished = result, None, True


class Disk:
    """A thread with a connection of its own and a queue of jobs.

    `connect` opens the connection, in the thread. `writes`: jobs run in transactions; else each runs by itself.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], place: str, *, writes: bool) -> None:
        self._connect = connect
        self._place = place
        self._writes = writes
        self._queue: queue.SimpleQueue[_Item[object] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = self._start()

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="panto-disk", daemon=True)
        thread.start()
        return thread

    def run(self, job: Job[T], *, plain: bool = False) -> asyncio.Future[T]:
        """Queue a job. The future fails with what the job raised, or with `Failed`. `plain`: outside a transaction."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(Failed("the session store is closed", "", False))
            return future
        self._queue.put(_Item(job, future, plain or not self._writes))  # type: ignore[arg-type]
        return future

    async def close(self) -> None:
        """Finish the queue and close the connection."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.shield(self._ended)

    # --- below here: the thread ---

    def _work(self) -> None:
        db: sqlite3.Connection | None = None
        batch: list[_Item[object]] = []
        done = False
        try:
            while True:
                last = self._fill(batch)
                if batch:
                    db = self._serve(db, batch)
                    self._answer(batch)
                if last:
                    break
            done = True
        finally:
            if db is not None:
                db.close()
            if not done:  # a job is broken: whoever waits is answered, and another thread takes the next ones
                self._thread = self._start()
            self._answer(batch)
            if done:
                self._call(_end, self._ended)

    def _fill(self, batch: list[_Item[object]]) -> bool:
        """Wait for work and take what waits with it. True: nothing comes after it."""
        batch.clear()
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if item.plain or len(batch) == MOST:
                return False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return False
        return True

    def _answer(self, batch: list[_Item[object]]) -> None:
        answered = list(batch)
        batch.clear()
        self._call(_deliver, answered)

    def _call(self, function: Callable[[T], None], argument: T) -> None:
        try:
            self._loop.call_soon_threadsafe(function, argument)
        except RuntimeError:
            pass  # the loop is gone, and with it whoever waited

    def _serve(self, db: sqlite3.Connection | None, batch: list[_Item[object]]) -> sqlite3.Connection | None:
        import sqlite3

        try:
            db = db or self._connect()
        except (sqlite3.Error, OSError, PantoError) as error:
            for item in batch:
                item.error = self._translate(error, began=False)
            return None
        plain = [item for item in batch if item.plain]
        together = [item for item in batch if not item.plain]
        if together and not self._together(db, together):
            for item in together:
                self._together(db, [item])
        for item in plain:
            try:
                item.give(item.job(db))
            except (sqlite3.Error, OSError, PantoError) as error:
                item.error = self._translate(error, began=True)
        return db

    def _together(self, db: sqlite3.Connection, batch: list[_Item[object]]) -> bool:
        """Run jobs in one transaction. False: nothing is written and each should be tried alone."""
        import sqlite3

        began = False
        try:
            db.execute("BEGIN IMMEDIATE")
            began = True
            for item in batch:
                db.execute("SAVEPOINT job")
                try:
                    item.give(item.job(db))
                except PantoError as error:  # refused by the job: what it wrote goes, the others stay
                    item.error = error
                    db.execute("ROLLBACK TO job")
                db.execute("RELEASE job")
            db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            try:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # the database is in no transaction any more, which is what was wanted
            if len(batch) > 1:
                return False
            batch[0].error = self._translate(error, began=began)
        return True

    def _translate(self, error: Exception, *, began: bool) -> PantoError:
        if isinstance(error, PantoError):
            return error
        text, hint = explain(str(error), os.access(os.path.dirname(self._place), os.W_OK))
        damaged = text.startswith(DAMAGED)
        return Failed(f"cannot use the session store {self._place}: {text}", hint, began, damaged)


DAMAGED = "it is damaged"
ELSEWHERE = "or set PANTO_SESSION_DIR to another folder"
_KINDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("is full", "No space", "quota exceeded"), "the disk is full", f"free some space {ELSEWHERE}"),
    (("readonly", "read-only", "Permission denied"), "it is read-only", f"make it writable {ELSEWHERE}"),
    (("locked", "busy"), "another process keeps it locked", "try again; end the process that holds it"),
    (("malformed", "not a database", "vtable constructor"), DAMAGED + " ({})",
     "run: panto session repair store"),
    (("no such table", "no such column", "has no column", "values were supplied"),
     "its tables are of another panto ({})", f"update panto, {ELSEWHERE}"),
    (("I/O error", "Input/output", "File too large"), "the disk failed ({})", f"look after the disk {ELSEWHERE}"),
    (("unable to open", "Not a directory", "No such file"), "it cannot be opened ({})",
     f"see that its folder is there and yours, {ELSEWHERE}"),
)  # fmt: skip
"""Words of an error, what they mean to a person, and the way out."""


def explain(text: str, writable: bool) -> tuple[str, str]:
    """What a storage error means, and the way out. `writable`: whether the store's folder is."""
    for words, meaning, hint in _KINDS:
        if any(word.lower() in text.lower() for word in words):
            if meaning.startswith("it cannot be opened") and not writable:
                break
            return meaning.format(text), hint
    return (text, "the log says more") if writable else _KINDS[1][1:]


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _deliver(batch: list[_Item[object]]) -> None:
    for item in batch:
        if item.future.done():
            continue
        if item.error is not None:
            item.future.set_exception(item.error)
        elif item.finished:
            item.future.set_result(item.result)
        else:
            item.future.set_exception(Failed("a job of the session store broke", "see the log", True))
