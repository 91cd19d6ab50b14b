"""Live views on cards: copied when set, and after a change at most once a frame."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from panto.lua.driver import Driver, log
from panto.lua.views import view
from panto.schema.errors import UsageError
from panto.schema.view import View
from panto.tools.tool import Progress

FRAME_S = 1 / 30


class _Card(Struct):
    progress: Progress
    ids: list[int] = field(default_factory=list)
    last: View | None = None


class Components:
    """The components of all running calls, by the key (a call's effect id) that Lua knows them under."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._cards: dict[str, _Card] = {}
        self._card_of: dict[int, str] = {}
        self._dirty: set[int] = set()
        self._copy = driver.host.function("copy_component")
        self._drop = driver.host.function("drop_component")
        driver.messages["component"] = self._set
        driver.messages["component_dirty"] = self._mark
        driver.messages["progress"] = self._progress

    def open(self, key: str, progress: Progress) -> None:
        """Views set under `key` go to `progress` from now on."""
        self._cards.setdefault(key, _Card(progress))

    def close(self, key: str) -> View | None:
        """The card is finished: its handles are no longer alive. The last view that was shown, if any."""
        card = self._cards.pop(key, None)
        if card is None:
            return None
        self._refresh([id for id in card.ids if id in self._dirty], card)
        for id in card.ids:
            self._card_of.pop(id, None)
            self._driver.enter_quietly(lambda id=id: self._drop(id), "component")
        return card.last

    def _set(self, id: int, key: str, value: Any) -> None:
        card = self._cards.get(key)
        if card is None:
            self._driver.loop.call_soon(self._drop_late, id)
            return
        card.ids.append(id)
        self._card_of[id] = key
        self._show(card, value)

    def _drop_late(self, id: int) -> None:
        self._driver.enter_quietly(lambda: self._drop(id), "component")

    def _show(self, card: _Card, value: Any) -> None:
        try:
            card.last = view(value)
        except UsageError as e:
            log.warning("a component is not shown: %s", e.message)
            return
        card.progress("", card.last)

    def _mark(self, id: int) -> None:
        if id in self._card_of:
            if not self._dirty:
                self._driver.loop.call_later(FRAME_S, self._frame)
            self._dirty.add(id)

    def _frame(self) -> None:
        for id in tuple(self._dirty):
            card = self._cards.get(self._card_of.get(id, ""))
            if card is not None:
                self._refresh([id], card)
        self._dirty.clear()

    def _refresh(self, ids: list[int], card: _Card) -> None:
        for id in ids:
            self._dirty.discard(id)
            outcome = self._driver.call("copy_component", id, owner="", lane="", what="a component")
            if not outcome.ok:
                log.warning("a component cannot be shown: %s", outcome.message)
            elif outcome.values and outcome.values[0] is not None:
                self._show(card, outcome.values[0])

    def _progress(self, key: str, what: Any) -> None:
        card = self._cards.get(key)
        if card is None:
            return
        if isinstance(what, str):
            card.progress(what, None)
        else:
            self._show(card, what)
