"""Waiting for several things at once, and ending what is no longer waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from panto.agent.ports import Control

T = TypeVar("T")


async def first(work: asyncio.Future[Any], stop: asyncio.Event) -> None:
    """Wait until the work is done or the stop came."""
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work gives; None where the stop came first, which cancels the work."""
    task = asyncio.ensure_future(work)
    try:
        await first(task, stop)
        return task.result() if task.done() else None
    finally:
        await ended(task)


async def any_of(control: Control) -> None:
    """Wait until a running call is done, something changed outside, or the time to end is over."""
    changed = asyncio.ensure_future(control.changed.wait())
    window = None if control.deadline is None else max(0.0, control.deadline - time.monotonic())
    try:
        await asyncio.wait((*control.running.values(), changed), timeout=window, return_when=asyncio.FIRST_COMPLETED)
    finally:
        changed.cancel()


async def ended(*tasks: asyncio.Future[Any], within: float = 0.1) -> None:
    """Cancel tasks that may still run and give them a moment (seconds, all together) to clean up.

    Those that do not end by then are left alone: nobody listens to them any more.
    """
    for task in tasks:
        task.cancel()
        task.add_done_callback(_unheard)
    left = [task for task in tasks if not task.done()]
    if left:
        await asyncio.wait(left, timeout=within)


def _unheard(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
