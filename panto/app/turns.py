"""Turns as the library gives them: events, jobs that run by themselves, streams to be iterated."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast, get_args

from panto.app.resident import Pending, Resident, no_loop
from panto.lua.api.jobs import Slot
from panto.scheduler.job import JobResult
from panto.schema.errors import PantoError, ProviderError, ProviderErrorKind

KINDS = frozenset(get_args(ProviderErrorKind))


class Event(dict[str, Any]):
    """One event of a turn: the records of stream-json, readable as attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Job:
    """A turn that runs by itself. Its events are pulled; it ends when `wait` says so."""

    begun: Pending[None]

    def __init__(self, resident: Resident, slot: Slot) -> None:
        self._resident, self._slot = resident, slot
        self._changed = threading.Condition()

    def take(self) -> None:
        """On the engine's thread: something is new."""
        if self._slot.job is not None and self._slot.take(self._slot.job):
            with self._changed:
                self._changed.notify_all()

    def next_event(self) -> Event | None:
        """The next unread event, or None; never waits."""
        record = self._slot.pop()
        return None if record is None else Event(record)

    def result(self) -> JobResult | None:
        """The settled result, or None while it runs."""
        return self._slot.result

    def wait(self) -> Pending[JobResult]:
        """Its result."""

        async def settled() -> JobResult:
            await asyncio.wrap_future(self.begun._future)
            assert self._slot.job is not None
            return await self._slot.job.wait()

        return Pending(self._resident.submit(settled))

    def request_cancel(self) -> Pending[None]:
        """Ask it to stop; it settles within a second."""

        async def ask() -> None:
            await asyncio.wrap_future(self.begun._future)
            await self._slot.begun.wait()
            assert self._slot.job is not None
            self._slot.job.request_cancel()

        return Pending(self._resident.submit(ask))

    def close(self) -> Pending[None]:
        """End it where it runs. Idempotent."""

        async def end() -> None:
            await asyncio.wrap_future(self.begun._future)
            if self._slot.job is not None:
                await self._slot.begun.wait()
                await self._slot.job.close()
            self._slot.release()

        return Pending(self._resident.submit(end))

    def pull(self) -> Event | None:
        """Wait, on any thread but the agents' own, for the next event; None when all are read and it has settled."""
        if (problem := self.begun._future.exception()) is not None:
            raise problem
        with self._changed:
            while (event := self.next_event()) is None:
                if self._slot.result is not None and not self._slot.unread():
                    return None
                self._changed.wait(0.5)
        return event


class Stream:
    """A turn's events, to be iterated once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._ended = False

    def _checked(self, event: Event | None) -> Event | None:
        if event is None or event["type"] != "turn_ended":
            return event
        self._ended = True
        error = event.get("error")
        if event["status"] == "failed":
            kind = error.get("kind") if isinstance(error, dict) else ""
            message = str(error.get("message")) if isinstance(error, dict) else "the turn failed"
            if kind in KINDS:
                raise ProviderError(cast(ProviderErrorKind, kind), message)
            raise PantoError(message)
        return event

    def __iter__(self) -> Iterator[Event]:
        no_loop("async for")
        try:
            while not self._ended and (event := self._checked(self._job.pull())) is not None:
                yield event
        finally:
            self._job.close().result()

    async def __aiter__(self) -> AsyncIterator[Event]:
        try:
            while not self._ended:
                event = self._checked(await asyncio.to_thread(self._job.pull))
                if event is None:
                    return
                yield event
        finally:
            await self._job.close()

    def cancel(self) -> Pending[None]:
        """Ask the turn to stop; its last event still comes."""
        return self._job.request_cancel()

    def close(self) -> Pending[None]:
        """Stop the turn and let go of it."""
        self._ended = True
        return self._job.close()
