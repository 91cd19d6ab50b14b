"""Jobs as Lua sees them: numbers, a buffer that is pulled without waiting, and who waits for what.

The buffer is filled on the owner loop and read on the Lua thread; inside panto both are one.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import select
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from panto.lua.api.time import first_of
from panto.lua.driver import Driver, LuaTask
from panto.scheduler.job import Job, JobResult
from panto.schema.errors import UsageError
from panto.schema.records import Record, usage_record

MERGED = frozenset({"text_delta", "reasoning_delta"})
DROPPED = frozenset({"text_delta", "reasoning_delta", "progress", "retry"})
BOUND = 4096


def wake_descriptor(fd: int) -> int:
    """A descriptor of one's own for the pipe or socket `fd`. Raises UsageError where nothing can be written to it."""
    try:
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    except (OSError, ValueError, OverflowError):
        raise UsageError(f"wake_fd {fd} is not an open descriptor") from None
    if flags & os.O_ACCMODE == os.O_RDONLY:
        raise UsageError(f"wake_fd {fd} is read-only")
    return os.dup(fd)


def _wake(fd: int) -> None:
    """One byte, if there is room; a full pipe drops it."""
    ready = select.poll()  # select() itself takes no descriptor beyond 1023
    ready.register(fd, select.POLLOUT)
    try:
        if any(event & select.POLLOUT for _, event in ready.poll(0)):
            os.write(fd, b".")
    except OSError:
        pass


class Slot:
    """One job: its unread records, its result, its waiters."""

    def __init__(self, number: int, wake_fd: int | None, owner: str = "") -> None:
        self.number, self.owner = number, owner
        self.job: Job | None = None
        self.result: JobResult | None = None
        self.result_text: str | None = None
        self.waiters: set[asyncio.Future[None]] = set()
        self.begun = asyncio.Event()
        self._records: deque[Record] = deque()
        self._more: list[str] = []  # deltas that belong to the last record: joined once, when it is read
        self._lock = threading.Lock()
        self._wake_fd = wake_fd

    def take(self, job: Job) -> bool:
        """Move what the job has put into this buffer; True where something is new to a reader."""
        new = False
        with self._lock:
            while (record := job.next_event()) is not None:
                new = self._put(record) or new
        if new or job.result is not None:
            self.begun.set()
        if job.result is not None and self.result is None:
            self.result_text = json.dumps(result_record(job.result), ensure_ascii=False)
            self.result = job.result
            if self._wake_fd is not None:
                _wake(self._wake_fd)
            return True
        return new

    def _put(self, record: Record) -> bool:
        last, kind = self._records[-1] if self._records else None, record["type"]
        if last is not None and kind in MERGED and last["type"] == kind and last.get("agent") == record.get("agent"):
            self._more.append(str(record["text"]))
            return False
        if len(self._records) >= BOUND and kind in DROPPED:
            return False
        self._join()
        self._records.append(record)
        if self._wake_fd is not None:
            _wake(self._wake_fd)
        return True

    def _join(self) -> None:
        if self._more:
            last = self._records[-1]
            last["text"] = f"{last['text']}{''.join(self._more)}"
            self._more.clear()

    def pop(self) -> Record | None:
        """The next unread record."""
        with self._lock:
            if len(self._records) == 1:
                self._join()
            return self._records.popleft() if self._records else None

    def unread(self) -> bool:
        """Whether a record waits."""
        return bool(self._records)

    @property
    def wakes(self) -> bool:
        """Whether it holds a descriptor."""
        return self._wake_fd is not None

    def release(self) -> None:
        """Give the descriptor and the buffer back."""
        if self._wake_fd is not None:
            os.close(self._wake_fd)
            self._wake_fd = None
        self._records.clear()
        self._more.clear()


def result_record(result: JobResult) -> dict[str, object]:
    """A result as Lua gets it."""
    out: dict[str, object] = {
        "id": result.id, "status": result.status, "text": result.text, "resumable": result.resumable,
        "usage": usage_record(result.usage), "limited": result.limited,
        "tool_calls": [{"id": id, "name": name, "input": text} for id, name, text in result.tool_calls],
    }  # fmt: skip
    usage = out["usage"]
    if result.cost is not None and isinstance(usage, dict):
        usage["cost"] = result.cost
    if result.error is not None:
        out["error"] = {k: v for k, v in result.error.items() if v is not None}
    return out


def flat(record: Record) -> tuple[object, ...]:
    """A record as name, value, …: nested values as JSON text under a name with a zero byte before it."""
    out: list[object] = []
    for name, value in record.items():
        match value:
            case None:
                continue
            case str() | bool() | float() | int():
                out += (name, value)
            case _:
                out += ("\0" + name, json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins))
    return tuple(out)


class JobTable:
    """The jobs of one Lua state by number. `on_owner` runs a coroutine function where the agents live."""

    def __init__(self, on_owner: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]) -> None:
        self.slots: dict[int, Slot] = {}
        self._on_owner = on_owner
        self._last = 0
        self._driver: Driver | None = None
        self._background: set[asyncio.Future[Any]] = set()

    @property
    def asks(self) -> dict[str, Callable[..., Any]]:
        """The synchronous questions that the prelude may ask."""
        return {
            "job_next": self._next, "job_result": self._result, "job_ready": self._is_ready,
            "job_cancel": self._request_cancel,
        }  # fmt: skip

    def install(self, driver: Driver) -> None:
        """Add the ops that wait for jobs."""
        self._driver = driver
        driver.ops |= {
            "job_event": self._wait_event, "job_wait": self._wait_result, "job_close": self._close,
            "job_detach": self._detach, "wait": self._wait_first,
        }  # fmt: skip
        driver.messages["job_close"] = lambda number: self._keep(self.close(number))

    def add(self, wake_fd: int | None, owner: str) -> Slot:
        """A new number."""
        self._last += 1
        slot = self.slots[self._last] = Slot(self._last, wake_fd, owner)
        return slot

    def follow(self, slot: Slot, job: Job) -> None:
        """On the owner loop: fill the slot from the job from now on."""
        slot.job = job
        job.on_ready(lambda settled: self._heard(slot, job))
        self._heard(slot, job)

    def _heard(self, slot: Slot, job: Job) -> None:
        if slot.take(job) and slot.waiters:
            assert self._driver is not None
            self._driver.loop.call_soon_threadsafe(self._tell, slot)

    def _tell(self, slot: Slot) -> None:
        for waiter in tuple(slot.waiters):
            if not waiter.done():
                waiter.set_result(None)

    def _keep(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # --- synchronous -------------------------------------------------------------------------------------------

    def _next(self, number: int) -> tuple[object, ...] | None:
        slot = self.slots.get(number)
        record = slot.pop() if slot else None
        return None if record is None else flat(record)

    def _result(self, number: int) -> str | None:
        slot = self.slots.get(number)
        return slot.result_text if slot else None

    def _is_ready(self, number: int) -> bool:
        slot = self.slots.get(number)
        return slot is not None and (slot.unread() or slot.result is not None)

    def _request_cancel(self, number: int) -> None:
        slot = self.slots.get(number)
        if slot is not None and slot.result is None:
            assert self._driver is not None
            self._driver.loop.call_soon_threadsafe(self._keep, self._cancel(slot))

    async def _cancel(self, slot: Slot) -> None:
        async def ask() -> None:
            await slot.begun.wait()  # a turn that is not recorded yet cannot be interrupted
            if slot.job is not None:
                slot.job.request_cancel()

        await self._on_owner(ask)

    # --- waiting -----------------------------------------------------------------------------------------------

    def _waiter(self, slot: Slot) -> asyncio.Future[None]:
        assert self._driver is not None
        waiter: asyncio.Future[None] = self._driver.loop.create_future()
        slot.waiters.add(waiter)
        waiter.add_done_callback(slot.waiters.discard)
        if slot.unread() or slot.result is not None:
            waiter.set_result(None)
        return waiter

    def _wait_event(self, task: LuaTask, number: int) -> asyncio.Future[None]:
        return self._waiter(self._slot(number))

    async def _wait_result(self, task: LuaTask, number: int) -> None:
        slot = self._slot(number)
        assert self._driver is not None
        while slot.result is None:
            waiter: asyncio.Future[None] = self._driver.loop.create_future()
            slot.waiters.add(waiter)
            waiter.add_done_callback(slot.waiters.discard)
            if slot.result is None:  # looked at again: it may have been settled on the agents' thread meanwhile
                await waiter

    def _slot(self, number: int) -> Slot:
        if number not in self.slots:
            raise UsageError("this job is closed")
        return self.slots[number]

    async def _detach(self, task: LuaTask, number: int) -> None:
        slot = self._slot(number)

        async def ask() -> None:
            if slot.job is not None:
                slot.job.detach()

        await self._on_owner(ask)

    async def _close(self, task: LuaTask, number: int) -> None:
        await asyncio.shield(self.close(number))

    async def close(self, number: int) -> None:
        """End a job and free it; returns when its pump has ended."""
        slot = self.slots.get(number)
        if slot is None:
            return
        job = slot.job

        async def end() -> None:
            await slot.begun.wait()
            if job is not None:
                await job.close()

        await self._on_owner(end)
        self.slots.pop(number, None)
        slot.release()

    async def close_of(self, owner: str) -> None:
        """End and free every job that an extension has left."""
        left = [number for number, slot in self.slots.items() if slot.owner == owner]
        await asyncio.gather(*map(self.close, left))

    async def _wait_first(self, task: LuaTask, ids: list[int], ms: float | None = None) -> int | None:
        assert self._driver is not None
        loop, mine = self._driver.loop, []
        futures: list[asyncio.Future[Any]] = []
        try:
            for number in ids:
                if number > 0:
                    mine.append(self._waiter(self._slot(number)))
                    futures.append(mine[-1])
                else:
                    other = self._driver.tasks.get(-number)
                    futures.append(other.done if other is not None else _done(loop))
            return await first_of(futures, loop, ms) or None
        finally:
            for waiter in mine:
                waiter.cancel()


def _done(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
    future: asyncio.Future[None] = loop.create_future()
    future.set_result(None)
    return future
