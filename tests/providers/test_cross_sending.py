"""A conversation from anywhere can be sent anywhere: random histories against the vendors' own refusals."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from panto.providers import ModelSpec, ProviderSettings
from panto.providers.anthropic_messages import AnthropicMessages
from panto.providers.google_generate import GoogleGenerate
from panto.providers.openai_chat import OpenAIChat
from panto.providers.openai_responses import OpenAIResponses
from panto.providers.wire import Wire
from panto.schema.messages import Message, Request, Text, ToolChoice
from tests.conftest import PROFILE
from tests.providers.histories import MODELS, conversations, protocols, requests
from tests.wire_check import Protocol, refusal

WIRES: dict[Protocol, type[Wire]] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
    "google_generate": GoogleGenerate,
}
LIST = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "anthropic_messages": "messages",
    "google_generate": "contents",
}
MANY = 10_000 if PROFILE == "long" else 400


def wire(protocol: Protocol, **switches: Any) -> Wire:
    return WIRES[protocol](ProviderSettings("local", protocol, "http://localhost/v1", wire=switches))


def spec(model: str, images: bool = True, forced: bool = True, **switches: Any) -> ModelSpec:
    return ModelSpec(
        model, max_output=4096, images=images, reasoning=("low", "high", "max"), forced_tool=forced, wire=switches
    )


def refused(protocol: Protocol, made: Any, dialect: str = "openai") -> str | None:
    body = json.loads(made.body)
    return refusal(protocol, body, made.headers, path=made.path, dialect=dialect)


@settings(max_examples=MANY)
@given(
    protocols, requests(), st.booleans(), st.booleans(), st.sampled_from(["adaptive", "adaptive_off", "budget", "none"])
)
def test_every_history_is_accepted_by_every_vendor(
    protocol: Protocol, request: Request, images: bool, forced: bool, thinking: str
) -> None:
    switches = {"thinking": thinking} if protocol == "anthropic_messages" else {}
    for stream in (True, False):
        made = wire(protocol).prepare(request, spec(request.model, images, forced, **switches), stream=stream)
        assert refused(protocol, made) is None


@settings(max_examples=MANY // 4)
@given(requests())
def test_every_history_is_accepted_by_the_strict_dialects_of_chat(request: Request) -> None:
    dialects: dict[str, dict[str, object]] = {
        "mistral": {"ids": "nine"},
        "deepseek": {"reasoning_field": "reasoning_content", "reasoning_blank": "", "effort": "thinking"},
        "kimi": {"reasoning_field": "reasoning_content", "reasoning_blank": " . ", "effort": "thinking"},
    }
    for dialect, switches in dialects.items():
        made = wire("openai_chat", **switches).prepare(request, spec(request.model, effort="none"), stream=True)
        assert refused("openai_chat", made, dialect) is None, dialect


def _items(protocol: Protocol, body: bytes) -> list[Any]:
    """The conversation in a body, without the marks that move."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k != "cache_control"}
        return [bare(v) for v in value] if isinstance(value, list) else value

    items: list[Any] = bare(json.loads(body)[LIST[protocol]])
    return items


@settings(max_examples=MANY // 4)
@given(protocols, requests(), conversations(3, 20))
def test_what_was_sent_stays_the_beginning_of_what_is_sent_next(
    protocol: Protocol, request: Request, more: tuple[Message, ...]
) -> None:
    """Prompt caches and signatures live by it. Only the last turn may still grow, and a stand-in at the end go away."""
    said = tuple(replace(m, made_under="now") for m in request.messages)
    later = (*said, Message("user", (Text("And?"),)), *(replace(m, made_under="now") for m in more))
    one = wire(protocol)
    first = Request(request.model, request.system, said, request.tools, context_digest="now")
    second = replace(first, messages=later)
    before = _items(protocol, one.prepare(first, spec(request.model), stream=True).body)
    after = _items(protocol, one.prepare(second, spec(request.model), stream=True).body)
    assert after[: len(before) - 1] == before[:-1]
    fresh = wire(protocol).prepare(second, spec(request.model), stream=True).body
    assert fresh == one.prepare(second, spec(request.model), stream=True).body, "what was spelt before changes bytes"


@settings(max_examples=MANY // 8)
@given(protocols, requests())
def test_a_conversation_with_two_models_in_turn_keeps_to_the_rules(protocol: Protocol, request: Request) -> None:
    one = wire(protocol)
    for model in (*MODELS, MODELS[0]):
        made = one.prepare(Request(model, request.system, request.messages, request.tools), spec(model), stream=True)
        assert refused(protocol, made) is None


@settings(max_examples=MANY // 4)
@given(protocols, requests(), st.lists(st.tuples(st.integers(0, 30), conversations(3, 20), st.booleans()), max_size=4))
def test_a_wire_that_has_seen_other_conversations_spells_as_a_fresh_one(
    protocol: Protocol, request: Request, edits: list[tuple[int, tuple[Message, ...], bool]]
) -> None:
    """Cut, continued elsewhere, compacted, with other tools: what is remembered never shows."""
    one = wire(protocol)
    one.prepare(request, spec(request.model), stream=True)
    for at, more, fewer in edits:
        running = tuple(replace(m, in_progress=True) for m in request.messages[at:]) if fewer else ()
        request = replace(request, messages=(*request.messages[:at], *running, *more))
        if fewer:
            request = replace(request, tools=request.tools[1:], tool_choice=ToolChoice())
        fresh = wire(protocol).prepare(request, spec(request.model), stream=True)
        again = one.prepare(request, spec(request.model), stream=True)
        assert (again.body, again.notes) == (fresh.body, fresh.notes)
