"""A reader's buffer: facts never dropped, deltas merged, signs of life dropped when the reader lags."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from panto.schema.signals import (
    CallDrafted,
    Left,
    ReasoningStreamed,
    StatusChanged,
    TextStreamed,
    ToolProgressed,
    Update,
)

LIMIT = 256
"""Signs of life a lagging reader may have waiting: the oldest go first."""

Delta = TextStreamed | ReasoningStreamed


class _Item:
    """One update that waits. `texts`: what was merged into a delta; `update` None: it was dropped, or said anew."""

    __slots__ = ("texts", "update")

    def __init__(self, update: Update) -> None:
        self.update: Update | None = update
        self.texts: list[str] = []

    def whole(self) -> Update | None:
        """The update as it is read."""
        match self.update:
            case TextStreamed(agent=agent, step=step, text=text) if self.texts:
                return TextStreamed(agent, step, "".join((text, *self.texts)))
            case ReasoningStreamed(agent=agent, step=step, text=text) if self.texts:
                return ReasoningStreamed(agent, step, "".join((text, *self.texts)))
            case update:
                return update


class Feed:
    """One reader of updates, on the owner loop. Iterate it; it ends after `Left` or `close`.

    What a lagging reader has waiting stays small: deltas of one step are one item, also where agents stream at the
    same time; of a status only the latest counts. `dropped` counts what it never sees.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._items: deque[_Item] = deque()
        self._deltas: dict[tuple[str, int], _Item] = {}
        self._status: dict[str, _Item] = {}
        self._live: deque[_Item] = deque()
        self._void = 0
        self._ready = asyncio.Event()
        self._limit = limit
        self.closed = False
        self.dropped = 0

    def put(self, update: Update) -> None:
        """Add an update; never blocks."""
        if self.closed:
            return
        match update:
            case TextStreamed() | ReasoningStreamed():
                self._merge(update)
            case StatusChanged():
                if (former := self._status.get(update.agent)) is not None:
                    self._drop(former)
                self._status[update.agent] = self._add(update)
            case CallDrafted() | ToolProgressed():
                self._live.append(self._add(update))
                if len(self._live) > self._limit:
                    self._drop(self._live.popleft())
                    self.dropped += 1
            case _:  # what follows must not be read before it
                self._deltas.clear()
                self._add(update)
                self.closed = isinstance(update, Left)

    def _merge(self, delta: Delta) -> None:
        key = (delta.agent, delta.step)
        waiting = self._deltas.get(key)
        if waiting is not None and type(waiting.update) is type(delta):
            waiting.texts.append(delta.text)
        else:
            self._deltas[key] = self._add(delta)

    def _drop(self, item: _Item) -> None:
        """Let an item go, and its place too once there are many of them."""
        item.update = None
        self._void += 1
        if self._void > max(self._limit, len(self._items) // 2):
            self._items = deque(each for each in self._items if each.update is not None)
            self._void = 0

    def _add(self, update: Update) -> _Item:
        item = _Item(update)
        self._items.append(item)
        self._ready.set()
        return item

    def close(self) -> None:
        """End the reader's iteration once it has read what is there."""
        self.closed = True
        self._ready.set()

    def _next(self) -> Update | None:
        """The next update that was not dropped."""
        while self._items:
            item = self._items.popleft()
            match item.update:
                case None:
                    self._void -= 1
                    continue
                case TextStreamed(agent=agent, step=step) | ReasoningStreamed(agent=agent, step=step):
                    if self._deltas.get((agent, step)) is item:
                        del self._deltas[agent, step]
                case StatusChanged(agent=agent):
                    del self._status[agent]
                case CallDrafted() | ToolProgressed():
                    self._live.popleft()
                case _:
                    pass
            return item.whole()
        return None

    async def __aiter__(self) -> AsyncIterator[Update]:
        while True:
            while (update := self._next()) is not None:
                yield update
            if self.closed:
                return
            self._ready.clear()
            await self._ready.wait()
