"""The suite is worth something only if it fails: providers broken on purpose, and exactly the cases that notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from panto.providers.conformance import CASES, Fixture, check
from panto.providers.provider import Provider
from panto.schema.errors import ProviderError
from panto.schema.messages import Image, Message, Request, ToolResult
from panto.schema.stream import FinishPart, ReasoningDelta, StreamPart, TextDelta
from tests.providers.fixtures import fixture
from tests.wire_check import PROTOCOLS, Protocol

QUICK = [case for case in CASES if case.name not in ("bytes", "ended early")]


class Broken:
    """A provider with a fault: `ask` changes what goes out, `hear` what comes in (None: the part is lost)."""

    def __init__(
        self,
        inner: Provider,
        ask: Callable[[Request], Request] = lambda request: request,
        hear: Callable[[StreamPart], StreamPart | None] = lambda part: part,
    ) -> None:
        self._inner, self._ask, self._hear = inner, ask, hear
        self.name, self.protocol = inner.name, inner.protocol

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        async for part in self._inner.stream(self._ask(request)):
            if (heard := self._hear(part)) is not None:
                yield heard


def failed(broken: Fixture) -> set[str]:
    """The cases that notice; a skipped one would be a fault of this test."""
    outcomes = asyncio.run(check(broken, QUICK))
    assert not [o for o in outcomes if o.state == "skipped"]
    return {o.case for o in outcomes if o.state == "failed"}


def breaking(protocol: Protocol, **faults: Any) -> Fixture:
    """The protocol's fixture with a fault; `only`: "streamed" or "whole"."""
    good, only = fixture(protocol), faults.pop("only", "")

    def make(url: str, stream: bool, options: Any) -> Provider:
        inner = good.provider(url, stream, options)
        touched = not only or (only == "streamed") == stream
        return Broken(inner, **faults) if touched else inner

    return replace(good, provider=make)


def _no_system(request: Request) -> Request:
    return msgspec.structs.replace(request, system=())


def _no_tools(request: Request) -> Request:
    return msgspec.structs.replace(request, tools=())


def _messages(request: Request, change: Callable[[Any], Any]) -> Request:
    said = [
        msgspec.structs.replace(m, parts=tuple(p for x in m.parts if (p := change(x)) is not None))
        for m in request.messages
    ]
    return msgspec.structs.replace(request, messages=tuple(said))


def _forge(part: Any) -> Any:
    metadata = getattr(part, "metadata", None)
    if not metadata:
        return part
    forged = {space: {k: v.swapcase() for k, v in keys.items()} for space, keys in metadata.items()}
    return msgspec.structs.replace(part, metadata=forged)


def _no_image(part: Any) -> Any:
    if isinstance(part, ToolResult):
        return msgspec.structs.replace(part, parts=tuple(p for p in part.parts if not isinstance(p, Image)))
    return None if isinstance(part, Image) else part


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dropped_system_prompt_fails_both_request_cases(protocol: Protocol) -> None:
    assert failed(breaking(protocol, ask=_no_system)) == {"request streamed", "request whole"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_system_prompt_dropped_only_when_streaming_fails_that_one_case(protocol: Protocol) -> None:
    assert failed(breaking(protocol, ask=_no_system, only="streamed")) == {"request streamed"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_streamed_text_that_differs_fails_the_cases_with_text(protocol: Protocol) -> None:
    def shout(part: StreamPart) -> StreamPart:
        return TextDelta(part.text.upper()) if isinstance(part, TextDelta) else part

    assert failed(breaking(protocol, hear=shout, only="streamed")) == {"text streamed", "reasoning streamed"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_options_that_are_not_wired_fail_the_option_cases(protocol: Protocol) -> None:
    good = fixture(protocol)

    def make(url: str, stream: bool, options: Any) -> Provider:
        return Broken(good.provider(url, stream, {}), lambda request: msgspec.structs.replace(request, options={}))

    expected = {f"{name} {path}" for name in ("options", "options unknown") for path in ("streamed", "whole")}
    assert failed(replace(good, provider=make)) == expected


@pytest.mark.parametrize("protocol", ["openai_responses", "anthropic_messages", "google_generate"])
def test_an_altered_signature_fails_the_round_trips(protocol: Protocol) -> None:
    assert failed(breaking(protocol, ask=lambda r: _messages(r, _forge))) == {"round trip streamed", "round trip whole"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dropped_image_fails_the_request_cases(protocol: Protocol) -> None:
    assert failed(breaking(protocol, ask=lambda r: _messages(r, _no_image))) == {"request streamed", "request whole"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_undeclared_tools_fail_the_request_cases(protocol: Protocol) -> None:
    assert {"request streamed", "request whole"} <= failed(breaking(protocol, ask=_no_tools))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reasoning_taken_for_text_fails_the_reasoning_cases(protocol: Protocol) -> None:
    def mix(part: StreamPart) -> StreamPart:
        return TextDelta(part.text) if isinstance(part, ReasoningDelta) else part

    noticed = failed(breaking(protocol, hear=mix))
    assert {"reasoning streamed", "reasoning whole"} <= noticed <= {
        "reasoning streamed", "reasoning whole", "round trip streamed", "round trip whole",
    }  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_that_passes_for_an_empty_reply_fails_the_error_cases(protocol: Protocol) -> None:
    good = fixture(protocol)

    class Swallowing(Broken):
        async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
            try:
                async for part in self._inner.stream(request):
                    yield part
            except ProviderError:
                yield FinishPart("stop", "")

    def make(url: str, stream: bool, options: Any) -> Provider:
        return Swallowing(good.provider(url, stream, options))

    expected = {"error streamed", "error whole", "error in stream", "options unknown streamed", "options unknown whole"}
    assert failed(replace(good, provider=make)) == expected


def test_a_signature_handed_to_a_stranger_fails_the_foreign_case() -> None:
    good = fixture("openai_chat")

    def adopt(request: Request) -> Request:
        """Takes every message for its own, and puts its signature into the text."""
        said = []
        for message in request.messages:
            parts = [p for p in message.parts if getattr(p, "metadata", None)]
            text = "".join(str(p.metadata) for p in parts if hasattr(p, "metadata"))
            said.append(message)
            if text:
                said.insert(0, Message("user", message.parts[:0] + (type(request.messages[0].parts[0])(text),)))  # type: ignore[call-arg]
        return msgspec.structs.replace(request, messages=tuple(said))

    noticed = failed(replace(good, provider=lambda url, stream, o: Broken(good.provider(url, stream, o), adopt)))
    assert "foreign history" in noticed


def test_a_lacking_capability_is_skipped_and_an_undeclared_one_fails() -> None:
    good = fixture("openai_chat")
    lacking = replace(good, reasoning=None, lacks=frozenset(("reasoning",)))
    states = {o.case: o.state for o in asyncio.run(check(lacking, QUICK))}
    assert states["reasoning streamed"] == states["round trip whole"] == "skipped"
    assert {s for c, s in states.items() if "reasoning" not in c and "round trip" not in c} == {"passed"}
    silent = {o.case: o.state for o in asyncio.run(check(replace(good, reasoning=None), QUICK))}
    assert silent["reasoning streamed"] == silent["round trip whole"] == "failed"


def test_a_stream_cut_short_that_passes_for_a_reply_is_noticed() -> None:
    good = fixture("openai_chat")

    class Hasty(Broken):
        async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
            try:
                async for part in self._inner.stream(request):
                    yield part
            except ProviderError:
                yield FinishPart("stop", "stop")

    broken = replace(good, provider=lambda url, stream, options: Hasty(good.provider(url, stream, options)))
    (outcome,) = asyncio.run(check(broken, [case for case in CASES if case.name == "ended early"]))
    assert outcome.state == "failed"


def test_a_splitter_that_decodes_chunk_by_chunk_is_noticed() -> None:
    good = fixture("openai_chat")

    class Lossy(Broken):
        """Loses what is not ASCII, as decoding each chunk by itself does."""

        async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
            async for part in self._inner.stream(request):
                yield TextDelta(part.text.encode("ascii", "replace").decode()) if isinstance(part, TextDelta) else part

    broken = replace(good, provider=lambda url, stream, options: Lossy(good.provider(url, stream, options)))
    (outcome,) = asyncio.run(check(broken, [case for case in CASES if case.name == "bytes"]))
    assert outcome.state == "failed"
