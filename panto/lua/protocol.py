"""A wire protocol written in Lua, as a Provider: every request opens a stream of its own, and ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from panto.lua.bridge import plain_text
from panto.lua.driver import Driver, Outcome, log
from panto.providers.http import Http
from panto.providers.model import ProviderSettings
from panto.schema.errors import ProviderError, ProviderErrorKind
from panto.schema.messages import Request
from panto.schema.stream import FinishPart, ReasoningDelta, StreamPart, TextDelta

PULL_S = 0.06
"""Least time between two pulls of a stream that has nothing ready: under 20 in a second."""
FAIR_S = 0.01
KINDS = frozenset(get_args(ProviderErrorKind))


class Registration(Struct, frozen=True):
    """A protocol as registered: references of its functions (0: none)."""

    owner: str
    name: str
    open: int
    cancel_turn: int = 0
    close: int = 0


class Endpoint(Struct, frozen=True):
    """What a protocol's http may use without seeing it."""

    settings: ProviderSettings
    http: Http


class Streams:
    """The open streams of all Lua protocols; `handle:wake()` arrives here."""

    def __init__(self, driver: Driver, primary: Callable[[], str]) -> None:
        self.driver, self.primary = driver, primary
        self.endpoints: dict[int, Endpoint] = {}
        self.wakes: dict[int, Callable[[], None]] = {}
        self.registered: dict[str, Registration] = {}
        self._last = 0
        driver.messages["stream_wake"] = self._wake

    def next_id(self) -> int:
        """A number for a new stream; its endpoint goes by the same one."""
        self._last += 1
        return self._last

    def _wake(self, id: int) -> None:
        wake = self.wakes.get(id)
        if wake is not None:
            wake()


class LuaProvider:
    """See providers.provider.Provider."""

    def __init__(self, streams: Streams, protocol: str, settings: ProviderSettings, http: Http) -> None:
        self.settings = settings
        self._streams, self._protocol, self._http = streams, protocol, http

    @property
    def name(self) -> str:
        """The provider's name in the config."""
        return self.settings.name

    @property
    def protocol(self) -> str:
        """The registered protocol's name."""
        return self._protocol

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        """See Provider.stream."""
        registration = self._streams.registered.get(self._protocol)  # a reload may have brought another one
        if registration is None:
            raise ProviderError(
                "invalid_request", f"the protocol {self._protocol} is not there any more", hint="/extensions lists all"
            )
        open_stream = _Stream(self._streams, registration, self.settings, self._http)
        finished = False
        try:
            open_stream.open(request)
            async for part in open_stream.parts(self._http.settings.idle_s):
                finished = isinstance(part, FinishPart)
                yield part
                if finished:  # the last part: whatever the stream would still give is not asked for
                    return
            if not finished:
                raise ProviderError("malformed", f"protocol {self.protocol} ended its stream without a finish")
        finally:
            open_stream.end(finished)


class _Stream:
    """One turn's stream."""

    def __init__(self, streams: Streams, registration: Registration, settings: ProviderSettings, http: Http) -> None:
        self._streams, self._registration, self._settings = streams, registration, settings
        self._driver = streams.driver
        self._id = streams.next_id()
        self._scope = self._driver.scope(registration.owner, streams.primary(), key=f"stream {self._id}")
        self._woken = False
        self._waiting: asyncio.Future[None] | None = None
        self._heard = 0.0
        self._idle: asyncio.TimerHandle | None = None
        self._cancels = self._closes = False
        self._opened = False
        streams.endpoints[self._id] = Endpoint(settings, http)
        streams.wakes[self._id] = self._wake

    def _call(self, entry: str, *args: Any, what: str) -> Outcome:
        what = f"{what} of protocol {self._registration.name}"
        owner, lane = self._registration.owner, self._scope.lane
        return self._driver.call(entry, *args, owner=owner, lane=lane, what=what, scope=self._scope.id)

    def open(self, request: Request) -> None:
        shape: dict[str, Any] = msgspec.to_builtins(request)
        shape |= {
            "agent": request.agent, "session_id": request.session_id, "stream": self._settings.stream,
            "protocol": self._registration.name,
            "options": {**self._settings.options, **request.options},
        }  # fmt: skip
        sent = self._driver.bridge.to_lua(shape)
        outcome = self._call("protocol_open", self._registration.open, self._id, sent, self._id, self._settings.name,
                             what="open")  # fmt: skip
        if not outcome.ok:
            raise self._error(outcome)
        self._cancels, self._closes = (bool(value) for value in (*outcome.values, False, False)[:2])
        self._opened = True

    async def parts(self, idle_s: float) -> AsyncIterator[StreamPart]:
        self._heard = self._driver.loop.time()
        fair = self._heard + FAIR_S
        while True:
            self._woken = False
            outcome = self._call("protocol_next", self._id, what="next")
            if not outcome.ok:
                raise self._error(outcome)
            first, text, after, ms = (*outcome.values, *[None] * 4)[:4]
            now = self._driver.loop.time()
            if first is not None:
                self._heard = now
                yield self._part(first, text)
            if after is None:
                return
            if after is False:
                if now - self._heard > idle_s:
                    raise ProviderError("timeout", f"protocol {self._registration.name} gave nothing for {idle_s:g} s")
                await self._pending(ms, idle_s)
            elif now > fair:
                await asyncio.sleep(0)
                fair = self._driver.loop.time() + FAIR_S

    async def _pending(self, ms: Any, idle_s: float) -> None:
        if self._woken:
            return
        loop = self._driver.loop
        self._waiting = loop.create_future()
        if self._idle is None:
            self._watch(idle_s)
        timer = None if ms is None else loop.call_later(max(float(ms) / 1000, PULL_S), self._wake)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    def _watch(self, idle_s: float) -> None:
        """Wake it where it is silent for so long: one timer for a stream, not one for each wait."""
        silent_at = self._heard + idle_s
        if self._driver.loop.time() > silent_at:
            self._wake()
            silent_at = self._driver.loop.time() + idle_s
        self._idle = self._driver.loop.call_at(silent_at + 0.001, self._watch, idle_s)

    def _wake(self) -> None:
        self._woken = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _part(self, first: Any, text: Any) -> StreamPart:
        if first == "text":
            return TextDelta(plain_text(text))
        if first == "reasoning":
            return ReasoningDelta(plain_text(text))
        if isinstance(first, dict) and first.get("type") == "error":
            status, after = first.get("status"), first.get("retry_after")
            raise self._error(Outcome(False, (), str(first.get("kind", "server")), str(first.get("message", "failed")),
                                      status=int(status or 0), retry_after=after))  # fmt: skip
        try:
            part: StreamPart = msgspec.convert(_cleaned(first), StreamPart)
        except msgspec.ValidationError as e:
            raise ProviderError("malformed", f"protocol {self._registration.name} gave what is no part: {e}") from None
        return part

    def _error(self, outcome: Outcome) -> ProviderError:
        if outcome.traceback:
            log.warning("protocol %s: %s\n%s", self._registration.name, outcome.message, outcome.traceback)
        message = plain_text(outcome.message)
        if outcome.kind in KINDS:
            kind: ProviderErrorKind = outcome.kind  # type: ignore[assignment]
            return ProviderError(kind, message, status=outcome.status, retry_after=outcome.retry_after)
        return ProviderError("server", f"protocol {self._registration.name}: {message}")

    def end(self, finished: bool) -> None:
        """Let go of the stream; where the turn was abandoned it is told so first."""
        if self._idle is not None:
            self._idle.cancel()
        if self._opened and not finished:
            if self._cancels:
                self._tell("protocol_method", self._id, "cancel_turn", what="cancel_turn")
            elif self._registration.cancel_turn:
                self._tell("protocol_plain", self._registration.cancel_turn, what="cancel_turn")
        if self._opened and self._closes:
            self._tell("protocol_method", self._id, "close", what="close")
        self._driver.close_scope(self._scope)
        self._driver.call("protocol_forget", self._id, owner="", lane="", what="a stream's end")
        self._streams.endpoints.pop(self._id, None)
        self._streams.wakes.pop(self._id, None)

    def _tell(self, entry: str, *args: Any, what: str) -> None:
        outcome = self._call(entry, *args, what=what)
        if not outcome.ok:
            log.warning("protocol %s: %s: %s", self._registration.name, what, outcome.message)


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return plain_text(value)
        case dict():
            return {key: _cleaned(item) for key, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
    return value
