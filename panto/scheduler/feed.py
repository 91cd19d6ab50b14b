"""A reader's buffer: facts never dropped, deltas merged, other signals dropped when the reader lags."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from panto.schema.signals import Fact, Left, ReasoningStreamed, TextStreamed, Update

LIMIT = 2048
"""Signals a lagging reader may have waiting; a screen draws from far fewer."""


class Feed:
    """One reader of updates, on the owner loop. Iterate it; it ends after `Left` or `close`."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._items: deque[Update] = deque()
        self._ready = asyncio.Event()
        self._limit = limit
        self.closed = False
        self.dropped = 0

    def put(self, update: Update) -> None:
        """Add an update; never blocks."""
        if self.closed:
            return
        last = self._items[-1] if self._items else None
        match update, last:
            case TextStreamed(), TextStreamed() if last.agent == update.agent and last.step == update.step:
                self._items[-1] = TextStreamed(update.agent, update.step, last.text + update.text)
                return
            case ReasoningStreamed(), ReasoningStreamed() if last.agent == update.agent and last.step == update.step:
                self._items[-1] = ReasoningStreamed(update.agent, update.step, last.text + update.text)
                return
            case (Fact() | TextStreamed() | ReasoningStreamed() | Left()), _:
                pass
            case _ if len(self._items) >= self._limit:
                self.dropped += 1
                return
        self._items.append(update)
        self._ready.set()
        if isinstance(update, Left):
            self.closed = True

    def close(self) -> None:
        """End the reader's iteration once it has read what is there."""
        self.closed = True
        self._ready.set()

    async def __aiter__(self) -> AsyncIterator[Update]:
        while True:
            while self._items:
                yield self._items.popleft()
            if self.closed:
                return
            self._ready.clear()
            await self._ready.wait()
