"""The cases: what every protocol must do, each asserted through the seam alone."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from panto.providers.assemble import Assembler
from panto.providers.conformance.fixture import Canned, CannedError, Capability, Fixture, Meaning
from panto.providers.conformance.server import Answer, LocalServer, Seen, json_answer
from panto.providers.provider import Provider
from panto.schema.errors import ProviderError
from panto.schema.messages import (
    Image,
    Json,
    Message,
    ModelResult,
    Origin,
    Reasoning,
    Request,
    SystemBlock,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c626001000000ffff03000006000557bf"
    "abd40000000049454e44ae426082"
)
_SCHEMA = '{"type":"object","properties":{"at":{"type":"string","description":"SCHEMA-MARK"}},"required":["at"]}'
TOOLS = (ToolSpec("look.up", "TOOL-MARK", _SCHEMA), ToolSpec("put", "Puts.", _SCHEMA))


class Mismatch(AssertionError):
    """A case failed; the text says what was expected and what came."""


def expect(good: object, why: str) -> None:
    """Raise Mismatch unless it holds."""
    if not good:
        raise Mismatch(why)


@dataclass
class Bench:
    """One protocol against one local server."""

    fixture: Fixture
    server: LocalServer
    answer: Answer = field(default_factory=Answer)
    plain: dict[bool, Provider] = field(default_factory=dict)
    """The providers without options, streamed or not: made once, since some cases ask thousands of times."""

    def provider(self, stream: bool, options: Mapping[str, object]) -> Provider:
        """A provider against the server."""
        if options:
            return self.fixture.provider(self.server.url, stream, options)
        if stream not in self.plain:
            self.plain[stream] = self.fixture.provider(self.server.url, stream, {})
        return self.plain[stream]

    def give(self, reply: Canned | CannedError | Answer, stream: bool) -> None:
        """What the next request gets."""
        if isinstance(reply, Answer):
            self.answer = reply
            return
        if self.fixture.play is not None:
            self.fixture.play(reply, stream)
        if isinstance(reply, CannedError):
            self.answer = json_answer(reply.body, reply.status)
        elif stream:
            self.answer = Answer(reply.stream, headers={"content-type": self.fixture.media})
        else:
            assert reply.whole is not None
            self.answer = json_answer(reply.whole)

    async def ask(
        self,
        reply: Canned | CannedError | Answer,
        stream: bool,
        request: Request | None = None,
        options: Mapping[str, object] | None = None,
    ) -> ModelResult:
        """One request through the seam and the one fold."""
        self.give(reply, stream)
        provider = self.provider(stream, options or {})
        fold = Assembler()
        parts = provider.stream(request or self.request())
        async with aclosing(parts):  # type: ignore[type-var] # a provider's stream is an async generator
            async for part in parts:
                fold.feed(part)
        return fold.result(Origin(provider.name, provider.protocol, self.fixture.model))

    def request(self, *messages: Message, **changes: Any) -> Request:
        """A plain request, or one with these messages."""
        return Request(
            model=self.fixture.model,
            system=(SystemBlock("base", "SYSTEM-MARK"),),
            messages=messages or (Message("user", (Text("USER-MARK"),)),),
            tools=() if "tools" in self.fixture.lacks else TOOLS,
            **changes,
        )

    def heard(self) -> str:
        """The last request: address, then body with its text readable."""
        if self.fixture.heard is not None:
            return self.fixture.heard()
        expect(self.server.seen, "no request reached the server")
        seen: Seen = self.server.seen[-1]
        return f"{seen.path}\n{json.dumps(seen.json, ensure_ascii=False)}"


def _history(*, images: bool, tools: bool) -> tuple[Message, ...]:
    """A conversation of another origin, with everything that can be in one."""
    other = Origin("elsewhere", "other_protocol", "other-model")
    said: list[Message] = [Message("user", (Text("EARLIER-MARK"),))]
    if tools:
        call = ToolCall(
            "look.up", Json('{"at":"ARGUMENT-MARK"}'), "call-of-ours", "id of theirs, not fit to be sent", {}
        )
        thought = Reasoning("FOREIGN-THOUGHT", {"other_protocol": {"signature": "FOREIGN-SIGNATURE"}})
        said.append(Message("assistant", (thought, Text("ANSWER-MARK"), call), origin=other))
        parts = (Text("RESULT-MARK"), Image("image/png", PIXEL, "dot.png")) if images else (Text("RESULT-MARK"),)
        said.append(Message("tool", (ToolResult("call-of-ours", "look.up", parts),)))
    last: list[Text | Image] = [Text("USER-MARK")]
    if images:
        last.append(Image("image/png", PIXEL, "dot.png"))
    return (*said, Message("user", tuple(last)))


async def request(bench: Bench, stream: bool) -> None:
    """Markers of every field reach the wire."""
    lacks = bench.fixture.lacks
    history = _history(images="images" not in lacks, tools="tools" not in lacks)
    await bench.ask(bench.fixture.text, stream, bench.request(*history))
    heard = bench.heard()
    marks = [bench.fixture.model, "SYSTEM-MARK", "USER-MARK", "EARLIER-MARK"]
    if "tools" not in lacks:
        marks += ["TOOL-MARK", "SCHEMA-MARK", "RESULT-MARK", "ANSWER-MARK", "ARGUMENT-MARK"]
        expect("look" in heard and "up" in heard, "the tool's name is not in the request")
    if "images" not in lacks:
        marks.append("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB")
    for mark in marks:
        expect(mark in heard, f"{mark} did not reach the wire")


async def _reply(bench: Bench, canned: Canned, stream: bool) -> None:
    got = Meaning.of(await bench.ask(canned, stream))
    expect(got == canned.meaning, f"expected {canned.meaning}\n     got {got}")


async def text(bench: Bench, stream: bool) -> None:
    """A plain reply means what was declared."""
    await _reply(bench, bench.fixture.text, stream)


async def calls(bench: Bench, stream: bool) -> None:
    """Parallel calls come in order, with their names and arguments."""
    assert bench.fixture.calls is not None
    await _reply(bench, bench.fixture.calls, stream)


async def reasoning(bench: Bench, stream: bool) -> None:
    """Reasoning is told from text."""
    assert bench.fixture.reasoning is not None
    await _reply(bench, bench.fixture.reasoning, stream)


async def error(bench: Bench, stream: bool) -> None:
    """The vendor's error becomes the declared kind, never an empty success."""
    canned = bench.fixture.error
    try:
        result = await bench.ask(canned, stream)
    except ProviderError as failure:
        expect(failure.kind == canned.kind, f"expected kind {canned.kind}, got {failure.kind}: {failure}")
        return
    raise Mismatch(f"an error became a result: {result}")


async def stream_error(bench: Bench, stream: bool) -> None:
    """An error inside a stream that began well becomes the declared kind."""
    assert bench.fixture.stream_error is not None
    pieces, kind = bench.fixture.stream_error
    try:
        result = await bench.ask(Answer(pieces, headers={"content-type": bench.fixture.media}), stream)
    except ProviderError as failure:
        expect(failure.kind == kind, f"expected kind {kind}, got {failure.kind}: {failure}")
        return
    raise Mismatch(f"an error became a result: {result}")


async def options(bench: Bench, stream: bool) -> None:
    """Every member of the options is in the body, whether the provider's or the request's."""
    for own in (True, False):
        wanted = bench.fixture.options
        request = bench.request(options={} if own else dict(wanted))
        await bench.ask(bench.fixture.text, stream, request, wanted if own else {})
        body = bench.server.seen[-1].json
        for name, value in wanted.items():
            expect(
                _holds(body, name, value), f"option {name} of the {'provider' if own else 'request'} is not in the body"
            )


def _holds(body: Any, name: str, value: object) -> bool:
    if not isinstance(body, dict) or name not in body:
        return False
    if isinstance(value, Mapping):
        return all(_holds(body[name], inner, one) for inner, one in value.items())
    return bool(body[name] == value)


async def options_unknown(bench: Bench, stream: bool) -> None:
    """A member that the protocol does not know is an error, never a silent drop."""
    request = bench.request(options={"no_such_member_of_any_body": 1})
    try:
        await bench.ask(bench.fixture.text, stream, request)
    except ProviderError as failure:
        expect(failure.kind == "invalid_request", f"expected kind invalid_request, got {failure.kind}")
        return
    raise Mismatch("an unknown option was dropped or sent without a word")


STRIDE = 53
"""Bytes between two cuts of one answer: so many answers have been cut at every byte."""


async def bytes_cut(bench: Bench, stream: bool) -> None:
    """The stream cut at every byte, and byte by byte, gives the same result."""
    fixture = bench.fixture
    for canned in (fixture.text, fixture.calls, fixture.reasoning):
        if canned is None:
            continue
        whole = b"".join(canned.stream)
        every: list[Sequence[bytes]] = [[whole[i : i + 1] for i in range(len(whole))]]
        for offset in range(STRIDE):
            places = [0, *range(offset or STRIDE, len(whole), STRIDE), len(whole)]
            every.append([whole[a:b] for a, b in zip(places, places[1:], strict=False)])
        for number, pieces in enumerate(every):
            got = Meaning.of(await bench.ask(Answer(pieces, headers={"content-type": fixture.media}), stream))
            cut = f"cut every {STRIDE} bytes from {number - 1}" if number else "cut at every byte"
            expect(got == canned.meaning, f"{cut}: expected {canned.meaning}\n     got {got}")


async def ended_early(bench: Bench, stream: bool) -> None:
    """A stream that ends early is an error or complete, never a shorter reply; also in the middle of a character."""
    fixture = bench.fixture
    whole = b"".join(fixture.text.stream)
    inside = [i for i, byte in enumerate(whole) if byte & 0xC0 == 0x80]
    for at in sorted({*range(0, len(whole), 5), *inside[:20]}):
        answer = Answer([whole[:at]], headers={"content-type": fixture.media})
        try:
            got = Meaning.of(await bench.ask(answer, stream))
        except ProviderError:
            continue
        same = (got.text, got.finish) == (fixture.text.meaning.text, fixture.text.meaning.finish)
        expect(same, f"cut off after {at} bytes of {len(whole)}, it passed for a reply: {got}")


async def round_trip(bench: Bench, stream: bool) -> None:
    """A reply's own signatures come back byte for byte; the same in a later turn."""
    canned = bench.fixture.reasoning
    assert canned is not None
    result = await bench.ask(canned, stream)
    answers = tuple(
        ToolResult(call.call_id, call.name, (Text("RESULT-MARK"),), provider_id=call.provider_id)
        for call in result.calls()
    )
    said: list[Message] = [Message("user", (Text("EARLIER-MARK"),)), result.message]
    if answers:
        said.append(Message("tool", answers))
    said.append(Message("user", (Text("USER-MARK"),)))
    await bench.ask(bench.fixture.text, stream, bench.request(*said))
    expect(canned.signature in bench.heard(), f"the signature {canned.signature!r} did not come back as it was")
    said += [Message("assistant", (Text("ANSWER-MARK"),), origin=result.message.origin)]
    said += [Message("user", (Text("LATER-MARK"),))]
    await bench.ask(bench.fixture.text, stream, bench.request(*said))
    expect(canned.signature in bench.heard(), "the signature was lost a turn later")


async def foreign(bench: Bench, stream: bool) -> None:
    """History of another protocol is accepted: its text goes, its signatures and ids do not."""
    await bench.ask(bench.fixture.text, stream, bench.request(*_history(images=False, tools=True)))
    heard = bench.heard()
    for mark in ("ANSWER-MARK", "RESULT-MARK", "ARGUMENT-MARK"):
        expect(mark in heard, f"{mark} of a foreign history did not reach the wire")
    for mark in ("FOREIGN-SIGNATURE", "id of theirs"):
        expect(mark not in heard, f"{mark} was handed to another protocol")


@dataclass(frozen=True, slots=True)
class Case:
    """A case: what it checks, on which path, and which capabilities it needs."""

    name: str
    run: Callable[[Bench, bool], Awaitable[None]]
    stream: bool
    needs: frozenset[Capability]


def _both(name: str, run: Callable[[Bench, bool], Awaitable[None]], *needs: Capability) -> list[Case]:
    return [
        Case(f"{name} streamed", run, True, frozenset(needs)),
        Case(f"{name} whole", run, False, frozenset((*needs, "whole"))),
    ]


CASES: tuple[Case, ...] = (
    *_both("request", request),
    *_both("text", text),
    *_both("calls", calls, "tools"),
    *_both("reasoning", reasoning, "reasoning"),
    *_both("error", error, "status"),
    Case("error in stream", stream_error, True, frozenset(("status",))),
    *_both("options", options, "options"),
    *_both("options unknown", options_unknown, "options"),
    Case("bytes", bytes_cut, True, frozenset(("bytes",))),
    Case("ended early", ended_early, True, frozenset(("bytes",))),
    *_both("round trip", round_trip, "reasoning", "signatures"),
    Case("foreign history", foreign, True, frozenset(("tools",))),
)
