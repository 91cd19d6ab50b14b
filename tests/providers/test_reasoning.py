"""Reasoning goes back to whoever made it, byte for byte, and to nobody else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from panto.providers import ModelSpec
from panto.providers.assemble import Assembler
from panto.providers.provider import Provider
from panto.schema import codec
from panto.schema.messages import Message, ModelResult, Origin, Request, Text, ToolCall, ToolResult, ToolSpec
from tests.providers.fixtures import MODEL, provider
from tests.wire_check import PROTOCOLS, Fault, Protocol, Reply, WireCheck

READ = ToolSpec("read", "Reads.", '{"type":"object","properties":{}}')
OTHER = "gemini-3-other"
HI = Message("user", (Text("hi"),))
THINKING = Reply("Let me look.", "I think\nabout ñ", calls=[("read", {"path": "a"})])


async def ask(one: Provider, *messages: Message, model: str = MODEL, under: str = "now") -> ModelResult:
    request = Request(model, messages=messages, tools=(READ,), reasoning="high", context_digest=under)
    fold = Assembler()
    async for part in one.stream(request):
        fold.feed(part)
    return fold.result(Origin(one.name, one.protocol, model), made_under=under)


def answered(result: ModelResult, number: int = 0) -> tuple[Message, Message]:
    """The reply as a session stores it (through bytes), with its results."""
    parts = []
    for index, part in enumerate(result.message.parts):
        if isinstance(part, ToolCall):
            part = ToolCall(part.name, part.arguments, f"{number}{index}", part.provider_id, part.metadata)
        parts.append(part)
    origin, under = result.message.origin, result.message.made_under
    message = codec.decode(
        codec.canonical(Message("assistant", tuple(parts), origin=origin, made_under=under)), Message
    )
    results = tuple(
        ToolResult(c.call_id, c.name, (Text("done"),), provider_id=c.provider_id)
        for c in parts
        if isinstance(c, ToolCall)
    )
    return message, Message("tool", results)


def marks(protocol: Protocol, result: ModelResult) -> list[str]:
    """What of a reply is the vendor's own, and must come back."""
    values = [v for p in result.message.parts for s in getattr(p, "metadata", {}).values() for k, v in s.items()]
    if protocol == "openai_responses":
        values = [json.loads(v)["encrypted_content"] if v.startswith("{") else v for v in values]
    if protocol == "openai_chat":
        return [THINKING.reasoning]
    return [v for v in values if v not in ("text", "reasoning_content")]


def holds(vendor: WireCheck, wanted: list[str]) -> list[bool]:
    body = json.dumps(vendor.requests[-1].body, ensure_ascii=False)
    return [json.dumps(mark, ensure_ascii=False)[1:-1] in body for mark in wanted]


def switches(protocol: Protocol) -> dict[str, Any]:
    wire = {"thinking": "adaptive"} if protocol == "anthropic_messages" else {}
    return {"specs": {m: ModelSpec(m, reasoning=("low", "high"), wire=wire) for m in (MODEL, OTHER)}}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_signed_reasoning_survives_a_resume_leaves_with_the_model_and_comes_back_with_it(protocol: Protocol) -> None:
    async def main() -> None:
        async with WireCheck(protocol) as vendor:
            one = provider(protocol, vendor.base_url, **switches(protocol))
            vendor.replies += [THINKING]
            first = await ask(one, HI)
            wanted = marks(protocol, first)
            assert wanted
            history = (HI, *answered(first))
            await ask(one, *history)
            assert all(holds(vendor, wanted))
            fresh = provider(protocol, vendor.base_url, **switches(protocol))  # as after a restart
            await ask(fresh, *history, HI)
            assert all(holds(vendor, wanted))
            await ask(one, *history, HI, model=OTHER)
            same_vendor_reads_it = protocol == "anthropic_messages"
            assert holds(vendor, wanted) == [same_vendor_reads_it] * len(wanted)
            second = await ask(one, *history, HI, model=OTHER)
            await ask(one, *history, HI, second.message, HI)
            assert all(holds(vendor, wanted))
            assert not vendor.refusals

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("target", PROTOCOLS)
def test_reasoning_of_one_vendor_never_reaches_another(protocol: Protocol, target: Protocol) -> None:
    async def main() -> None:
        if target == protocol:
            return
        async with WireCheck(protocol) as vendor, WireCheck(target) as other:
            vendor.replies += [THINKING]
            first = await ask(provider(protocol, vendor.base_url, **switches(protocol)), HI)
            await ask(provider(target, other.base_url, **switches(target)), HI, *answered(first))
            assert not any(holds(other, [*marks(protocol, first), THINKING.reasoning]))
            assert "Let me look." in json.dumps(other.requests[-1].body)
            assert not other.refusals

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["anthropic_messages", "openai_responses"])
def test_reasoning_of_finished_turns_goes_once_the_prompt_has_changed(protocol: Protocol) -> None:
    async def main() -> None:
        async with WireCheck(protocol) as vendor:
            one = provider(protocol, vendor.base_url, **switches(protocol))
            vendor.replies += [THINKING, THINKING]
            first = await ask(one, HI, under="before")
            second = await ask(one, HI, *answered(first), HI, under="now")
            history = (HI, *answered(first), HI, *answered(second, 1))
            await ask(one, *history, HI, under="now")
            old, new = marks(protocol, first)[0], marks(protocol, second)[0]
            body = json.dumps(vendor.requests[-1].body)
            # The seals of both are alike where the text is; their number tells.
            expected = 1 if protocol == "anthropic_messages" else 0
            assert body.count(old) == expected or old != new
            assert new in body
            await ask(one, *history, HI, under="later")
            assert new not in json.dumps(vendor.requests[-1].body)
            assert not vendor.refusals

    asyncio.run(main())


def test_the_turn_in_progress_asks_claude_to_drop_what_is_no_longer_bound() -> None:
    async def main() -> None:
        async with WireCheck("anthropic_messages") as vendor:
            one = provider("anthropic_messages", vendor.base_url, **switches("anthropic_messages"))
            vendor.replies += [THINKING]
            first = await ask(one, HI, under="before")
            message, results = answered(first)
            running = Message(
                "assistant", message.parts, origin=message.origin, made_under=message.made_under, in_progress=True
            )
            await ask(one, HI, running, results, under="now")
            body, headers = vendor.requests[-1].body, vendor.requests[-1].headers
            assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
            assert "thinking-binding-controls-2026-08-01" in headers["anthropic-beta"]
            assert all(holds(vendor, marks("anthropic_messages", first))) and not vendor.refusals

    asyncio.run(main())


def test_an_unsigned_thought_is_not_replayed_to_claude() -> None:
    async def main() -> None:
        async with WireCheck("anthropic_messages") as vendor:
            one = provider("anthropic_messages", vendor.base_url)
            vendor.replies += [Reply("Hm.", "unsigned thought", signed=False)]
            first = await ask(one, HI)
            await ask(one, HI, first.message, HI)
            assert "unsigned thought" not in json.dumps(vendor.requests[-1].body) and not vendor.refusals

    asyncio.run(main())


def test_gemini_gets_a_stand_in_on_the_first_call_of_others_and_never_over_a_signature() -> None:
    async def main() -> None:
        async with WireCheck("openai_chat") as chat, WireCheck("google_generate") as vendor:
            chat.replies += [Reply(calls=[("read", {}), ("read", {"n": 2})])]
            vendor.replies += [Reply(calls=[("read", {"own": 1}), ("read", {})])]
            foreign = await ask(provider("openai_chat", chat.base_url), HI)
            gemini = provider("google_generate", vendor.base_url)
            own = await ask(gemini, HI, *answered(foreign))
            await ask(gemini, HI, *answered(foreign), *answered(own, 1))
            turns = [c for c in vendor.requests[-1].body["contents"] if c["role"] == "model"]
            signatures = [[p.get("thoughtSignature") for p in turn["parts"]] for turn in turns]
            assert signatures[0] == ["skip_thought_signature_validator", None]
            assert signatures[1] == [marks("google_generate", own)[0], None]
            assert not vendor.refusals

    asyncio.run(main())


def test_responses_send_ids_only_with_the_reasoning_they_followed() -> None:
    async def main() -> None:
        async with WireCheck("openai_responses") as vendor:
            one = provider("openai_responses", vendor.base_url, **switches("openai_responses"))
            vendor.replies += [THINKING]
            first = await ask(one, HI)
            message, results = answered(first)
            await ask(one, HI, message, results)
            kinds = [(i.get("type", "message"), i.get("id", "")[:3]) for i in vendor.requests[-1].body["input"]]
            assert kinds[1:] == [
                ("reasoning", "rs_"), ("message", "msg"), ("function_call", "fc_"), ("function_call_output", ""),
            ]  # fmt: skip
            thoughtless = Message("assistant", message.parts[1:], origin=message.origin, made_under="now")
            await ask(one, HI, thoughtless, results)
            items = vendor.requests[-1].body["input"]
            assert not [i for i in items if "id" in i] and items[1]["phase"] == "commentary"
            orphan = Message(
                "assistant", (*message.parts[1:2], message.parts[0]), origin=message.origin, made_under="now"
            )
            await ask(one, HI, orphan, HI)
            assert "rs_" not in json.dumps(vendor.requests[-1].body)
            assert not vendor.refusals

    asyncio.run(main())


def test_a_server_that_insists_on_reasoning_gets_its_blank() -> None:
    async def main() -> None:
        switched = {"reasoning_field": "reasoning_content", "reasoning_blank": " . "}
        async with WireCheck("openai_chat") as chat, WireCheck("openai_chat", dialect="kimi") as kimi:
            chat.replies += [Reply(calls=[("read", {})])]
            foreign = await ask(provider("openai_chat", chat.base_url), HI)
            await ask(provider("openai_chat", kimi.base_url, wire=switched, specs={}), HI, *answered(foreign))
            assert not kimi.refusals

    asyncio.run(main())


def test_thinking_parts_of_mistral_go_back_as_parts() -> None:
    async def main() -> None:
        async with WireCheck("openai_chat") as vendor:
            one = provider("openai_chat", vendor.base_url, wire={"reasoning_field": "content"}, specs={})
            vendor.replies += [Reply("Hi.", "I think")]
            first = await ask(one, HI)
            await ask(one, HI, first.message, HI)
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "I think"}]}
            assert vendor.requests[-1].body["messages"][1]["content"] == [thinking, {"type": "text", "text": "Hi."}]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("protocol", "message", "status"),
    [
        ("anthropic_messages", "messages.1.content.0: Invalid `signature` in `thinking` block", 400),
        ("anthropic_messages", "messages.1.content.0: The block is bound to a different conversation", 400),
        ("openai_responses", "The encrypted content gAAA could not be verified.", 400),
        ("openai_responses", "Item with id 'rs_1' not found. Items are not persisted when `store` is false.", 404),
        ("google_generate", "Corrupted thought signature.", 400),
    ],
)
def test_a_conversation_whose_signatures_are_refused_goes_on_without_them(
    protocol: Protocol, message: str, status: int
) -> None:
    async def main() -> None:
        async with WireCheck(protocol) as vendor:
            one = provider(protocol, vendor.base_url, **switches(protocol))
            vendor.replies += [THINKING]
            first = await ask(one, HI)
            history = (HI, *answered(first))
            vendor.replies += [Fault(status, message), THINKING]
            second = await ask(one, *history)
            assert "earlier reasoning is left out" in second.notes[0]
            assert not any(holds(vendor, marks(protocol, first)))
            await ask(one, *history, *answered(second, 1))  # what came since is kept
            assert vendor.requests[-1].body is not None and marks(protocol, second)
            assert any(holds(vendor, marks(protocol, second))) and not vendor.refusals
            assert len(vendor.requests) == 4

    asyncio.run(main())
