"""What a vendor refuses is left out with a word, and the request goes again; the turn does not die of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from panto.providers.assemble import Assembler
from panto.providers.conformance import Answer, LocalServer, Seen, json_answer
from panto.providers.provider import Provider
from panto.schema.errors import ProviderError
from panto.schema.messages import (
    Image,
    Json,
    Message,
    ModelResult,
    Origin,
    Request,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from tests.providers.fixtures import MODEL, provider
from tests.wire_check import PROTOCOLS, Protocol, Reply, WireCheck, rendered

READ = ToolSpec("read", "Reads.", '{"type":"object","properties":{"path":{"type":"string"}}}')
REFERRING = ToolSpec(
    "refer.to", "Refers.", '{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"}}}'
)
LONG = ToolSpec("n" * 90, "Long.", '{"type":"object"}')
HI = Message("user", (Text("hi"),))


async def ask(one: Provider, *messages: Message, **changes: Any) -> ModelResult:
    request = Request(MODEL, messages=messages or (HI,), **changes)
    fold = Assembler()
    async for part in one.stream(request):
        fold.feed(part)
    return fold.result(Origin(one.name, one.protocol, MODEL))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_schema_with_references_and_a_name_too_long_go_through_and_come_back(protocol: Protocol) -> None:
    async def main() -> None:
        async with WireCheck(protocol) as vendor:
            one = provider(protocol, vendor.base_url)
            await ask(one, tools=(READ, REFERRING, LONG))
            declared = json.dumps(vendor.requests[0].body)
            long_name = next(n for n in _names(vendor.requests[0].body) if n.startswith("nnn"))
            assert "$ref" not in declared and len(long_name) <= 64
            vendor.replies += [Reply(calls=[("refer_to", {"p": "x"}), (long_name, {})])]
            result = await ask(one, tools=(READ, REFERRING, LONG))
        assert [call.name for call in result.calls()] == ["refer.to", LONG.name]
        assert not vendor.refusals

    asyncio.run(main())


def _names(body: Any) -> list[str]:
    if isinstance(body, dict):
        own = [body["name"]] if isinstance(body.get("name"), str) else []
        return own + [n for v in body.values() for n in _names(v)]
    return [n for v in body for n in _names(v)] if isinstance(body, list) else []


def refusing(protocol: Protocol, why: Callable[[str], str | None], asked: list[str]) -> Callable[[Seen], Answer]:
    """A vendor that answers 400 with what `why` says of a body."""

    def answer(seen: Seen) -> Answer:
        text = json.dumps(seen.json)
        asked.append(text)
        if message := why(text):
            return json_answer(
                json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode(), 400
            )
        return Answer(rendered(protocol, Reply("fine"), MODEL, stream=True))

    return answer


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("openai_chat", "Invalid schema for function 'refer_to': None is not of type 'array'."),
        ("openai_responses", "Invalid schema for function 'refer_to': bad."),
        ("anthropic_messages", "tools.1.custom.input_schema: JSON schema is invalid."),
        ("google_generate", "Invalid value at 'tools[0].function_declarations[1].parameters'"),
    ],
)
def test_a_tool_that_is_still_refused_is_switched_off_with_a_note(protocol: Protocol, message: str) -> None:
    async def main() -> None:
        asked: list[str] = []
        answer = refusing(protocol, lambda text: message if "refer_to" in text else None, asked)
        async with LocalServer(answer) as server:
            one = provider(protocol, server.url)
            result = await ask(one, tools=(READ, REFERRING, LONG))
            assert result.text() == "fine"
            (note,) = result.notes
            assert "refer.to" in note and "switched off" in note
            again = await ask(one, tools=(READ, REFERRING, LONG))
            assert again.text() == "fine" and again.notes == () and len(asked) == 3, "it was asked for again"
            assert '"read"' in asked[-1]
            changed = ToolSpec("refer.to", "Refers.", '{"type":"object","properties":{}}')
            await ask(one, tools=(READ, changed))
            assert len(asked) == 5, "a mended tool is tried again"

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_image_that_is_refused_becomes_text_and_the_session_lives(protocol: Protocol) -> None:
    async def main() -> None:
        asked: list[str] = []
        picture = Image("image/png", b"\x89PNG" + b"\0" * 300, "shot.png")
        mark = "iVBORwAA"

        def why(text: str) -> str | None:
            return "image exceeds 5 MB maximum: 5600000 bytes > 5242880 bytes" if mark in text else None

        async with LocalServer(refusing(protocol, why, asked)) as server:
            one = provider(protocol, server.url)
            said = Message("user", (Text("look"), picture))
            result = await ask(one, said)
            assert result.text() == "fine" and "shot.png" in result.notes[0]
            assert "shot.png is left out" in asked[-1]
            await ask(one, said, result.message, HI)
            assert len(asked) == 3 and mark not in asked[-1]

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_image_beyond_the_limit_is_never_sent(protocol: Protocol) -> None:
    async def main() -> None:
        async with WireCheck(protocol) as vendor:
            large = Image("image/png", bytes(40 << 20), "large.png")
            result = ToolResult("c1", "read", (large, Text("read it")))
            call = Message("assistant", (ToolCall("read", Json("{}"), "c1"),))
            await ask(provider(protocol, vendor.base_url), HI, call, Message("tool", (result,)), tools=(READ,))
            body = json.dumps(vendor.requests[0].body)
        assert "large.png is left out" in body and len(body) < 5000 and not vendor.refusals

    asyncio.run(main())


def test_a_model_without_eyes_gets_a_word_instead_of_an_image() -> None:
    async def main() -> None:
        async with WireCheck("openai_chat") as vendor:
            one = provider("openai_chat", vendor.base_url, specs={})
            await ask(one, Message("user", (Image("image/png", b"x", "a.png"),)))
            assert "takes no images" in json.dumps(vendor.requests[0].body)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("property 'stream_options' is unsupported", "stream_options"),
    ],
)
def test_a_member_that_a_server_does_not_know_is_left_out_for_good(message: str, gone: str) -> None:
    async def main() -> None:
        asked: list[str] = []
        async with LocalServer(refusing("openai_chat", lambda t: message if gone in t else None, asked)) as server:
            one = provider("openai_chat", server.url)
            assert (await ask(one)).notes == ()
            await ask(one)
            assert [gone in text for text in asked] == [True, False, False]

    asyncio.run(main())


def test_the_limit_member_is_corrected_when_the_server_names_the_other() -> None:
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."

    async def main() -> None:
        asked: list[str] = []
        async with LocalServer(
            refusing("openai_chat", lambda t: text if '"max_tokens"' in t else None, asked)
        ) as server:
            await ask(provider("openai_chat", server.url), max_output=77)
            assert '"max_completion_tokens": 77' in asked[-1]

    asyncio.run(main())


def test_a_refusal_that_nothing_explains_is_an_error_at_once() -> None:
    async def main() -> None:
        asked: list[str] = []
        async with LocalServer(refusing("openai_chat", lambda t: "no", asked)) as server:
            with pytest.raises(ProviderError):
                await ask(provider("openai_chat", server.url), tools=(READ,))
            assert len(asked) == 1

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["named", "required"])
def test_force_reaches_the_wire_or_is_asked_for_in_words(protocol: Protocol, kind: Any) -> None:
    async def main() -> None:
        from panto.providers import ModelSpec

        choice = ToolChoice(kind, "refer.to" if kind == "named" else "")
        async with WireCheck(protocol) as vendor:
            obeys = provider(protocol, vendor.base_url)
            assert (await ask(obeys, tools=(READ, REFERRING), tool_choice=choice)).notes == ()
            stubborn = provider(protocol, vendor.base_url, specs={MODEL: ModelSpec(MODEL, forced_tool=False)})
            result = await ask(stubborn, tools=(READ, REFERRING), tool_choice=choice)
            assert "cannot be forced" in result.notes[0]
            forced, worded = (json.dumps(r.body) for r in vendor.requests)
        key = "functionCallingConfig" if protocol == "google_generate" else '"tool_choice"'
        assert key in forced and key not in worded
        assert ("refer.to" if kind == "named" else "one of your tools") in worded and not vendor.refusals

    asyncio.run(main())
