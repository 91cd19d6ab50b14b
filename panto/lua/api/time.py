"""sleep and the wait for several things at once."""

from __future__ import annotations

import asyncio
from typing import Any

from panto.lua.driver import Driver, LuaTask
from panto.schema.errors import UsageError

LONGEST_MS = 1000 * 3600 * 24 * 365


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def install(driver: Driver) -> None:
    """Add the op `sleep`."""
    loop = driver.loop

    def sleep(task: LuaTask, ms: float) -> asyncio.Future[None]:
        if not 0 <= ms <= LONGEST_MS:
            raise UsageError(f"sleep: {ms} is not a number of milliseconds")
        future: asyncio.Future[None] = loop.create_future()
        if ms == 0:
            loop.call_soon(_settle, future)
            return future
        timer = loop.call_later(ms / 1000, _settle, future)
        future.add_done_callback(lambda done: timer.cancel())
        return future

    driver.ops["sleep"] = sleep


def first_of(
    futures: list[asyncio.Future[Any]], loop: asyncio.AbstractEventLoop, ms: float | None
) -> asyncio.Future[int]:
    """A future of the index (from 1) of the first that is done; 0 after `ms`. The others are left as they are."""
    found: asyncio.Future[int] = loop.create_future()

    def tell(index: int) -> None:
        if not found.done():
            found.set_result(index)

    calls = [lambda done, i=i: tell(i + 1) for i in range(len(futures))]
    timer = loop.call_later(max(ms, 0) / 1000, tell, 0) if ms is not None else None

    def cleared(done: asyncio.Future[int]) -> None:
        if timer is not None:
            timer.cancel()
        for future, call in zip(futures, calls, strict=True):
            future.remove_done_callback(call)

    found.add_done_callback(cleared)
    for future, call in zip(futures, calls, strict=True):
        future.add_done_callback(call)
    return found
