"""The vendors of the wire check refuse what they must, and nothing else: what stands on them is as good as they are."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from panto.providers import ModelSpec
from panto.schema.messages import (
    Image,
    Json,
    Message,
    Origin,
    Reasoning,
    Request,
    SystemBlock,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from tests.providers.histories import _reasoning
from tests.providers.test_cross_sending import wire
from tests.wire_check import PROTOCOLS, Protocol, refusal

MODEL = "gemini-3-a"
PIXEL = Image("image/png", b"\x89PNG....", "a.png")
READ = ToolSpec("read", "Reads.", '{"type":"object","properties":{"a":{"type":"string"}}}')
Change = Callable[[Any], object]


def good(protocol: Protocol) -> tuple[Any, dict[str, str], str]:
    """A request with everything in it, which the vendor takes."""
    thought: Reasoning = _reasoning(protocol, MODEL, "I think", 1)
    call = ToolCall(
        "read", Json('{"a":"x"}'), "c" * 32, "call_1", {protocol: {"id": "fc_1"}} if "responses" in protocol else {}
    )
    reply = Message("assistant", (thought, Text("Well."), call), origin=Origin("local", protocol, MODEL))
    result = Message("tool", (ToolResult("c" * 32, "read", (Text("done"),), provider_id="call_1"),))
    said = Message("user", (Text("look"), PIXEL))
    request = Request(
        MODEL, (SystemBlock("s", "Be good.", True),), (said, reply, result, said), (READ,), max_output=4096
    )
    made = wire(protocol).prepare(request, ModelSpec(MODEL, images=True, reasoning=("low",)), stream=True)
    body = json.loads(made.body)
    assert refusal(protocol, body, made.headers, path=made.path) is None
    return body, made.headers, made.path


def turns(body: Any) -> list[Any]:
    found: list[Any] = body.get("messages") or body.get("input") or body.get("contents")
    return found


def drop(*path: Any) -> Change:
    """Takes the thing at the path away."""

    def change(body: Any) -> None:
        at = body
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def put(value: Any, *path: Any) -> Change:
    """Puts a value at the path."""

    def change(body: Any) -> None:
        at = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def each(*changes: Change) -> Change:
    """One change after the other."""
    return lambda body: [change(body) for change in changes]


def again(*path: Any) -> Change:
    """Puts a copy of the thing at the path behind it."""

    def change(body: Any) -> None:
        at = body
        for step in path[:-1]:
            at = at[step]
        at.append(copy.deepcopy(at[path[-1]]))

    return change


def swap(key: str, one: int, two: int) -> Change:
    def change(body: Any) -> None:
        items = body[key]
        items[one], items[two] = items[two], items[one]

    return change


CHANGES: dict[Protocol, dict[str, Change]] = {
    "openai_chat": {
        "an unknown member": put(1, "no_such"),
        "no result": drop("messages", 3),
        "no call": drop("messages", 2, "tool_calls"),
        "another id": put("other", "messages", 3, "tool_call_id"),
        "a long id": each(
            put("x" * 41, "messages", 2, "tool_calls", 0, "id"), put("x" * 41, "messages", 3, "tool_call_id")
        ),
        "no list of calls": put([], "messages", 2, "tool_calls"),
        "broken arguments": put("{", "messages", 2, "tool_calls", 0, "function", "arguments"),
        "arguments as a list": put("[1]", "messages", 2, "tool_calls", 0, "function", "arguments"),
        "an empty message": put("", "messages", 4, "content"),
        "a late system message": swap("messages", 0, 1),
        "an image in a result": put([{"type": "image_url"}], "messages", 3, "content"),
        "no tools": put([], "tools"),
        "a name with a dot": put("a.b", "tools", 0, "function", "name"),
        "a schema with a reference": put({"$ref": "#"}, "tools", 0, "function", "parameters", "properties", "a"),
        "a schema without object": put("string", "tools", 0, "function", "parameters", "type"),
        "stream_options without stream": drop("stream"),
        "a NUL": put("a\0", "messages", 4, "content"),
        "half a surrogate": put("\ud83d", "messages", 4, "content"),
    },
    "openai_responses": {
        "an unknown member": put(1, "no_such"),
        "storing": put(True, "store"),
        "no result": drop("input", 5),
        "no call": drop("input", 4),
        "a result before its call": swap("input", 4, 5),
        "reasoning without follower": each(drop("input", 5), drop("input", 4), drop("input", 3)),
        "an id without its reasoning": drop("input", 2),
        "an altered blob": put("AAAA", "input", 2, "encrypted_content"),
        "an altered summary": put([], "input", 2, "summary"),
        "an id of another kind": put("call_1", "input", 4, "id"),
        "the same id twice": put("fc_1", "input", 3, "id"),
        "too small a limit": put(15, "max_output_tokens"),
        "strict by default": drop("tools", 0, "strict"),
        "an output part from a user": put([{"type": "output_text", "text": "x"}], "input", 1, "content"),
        "empty text": put([{"type": "input_text", "text": " "}], "input", 1, "content"),
    },
    "anthropic_messages": {
        "an unknown member": put(1, "no_such"),
        "no limit": drop("max_tokens"),
        "no result": drop("messages", 2, "content", 0),
        "a result too many": again("messages", 2, "content", 0),
        "text before a result": lambda b: b["messages"][2]["content"].insert(0, {"type": "text", "text": "x"}),
        "another id": put("other", "messages", 2, "content", 0, "tool_use_id"),
        "an id that is not allowed": each(
            put("a b", "messages", 1, "content", 2, "id"), put("a b", "messages", 2, "content", 0, "tool_use_id")
        ),
        "input as text": put("{}", "messages", 1, "content", 2, "input"),
        "an altered thought": put("I thought", "messages", 1, "content", 0, "thinking"),
        "an altered signature": put("AAAA", "messages", 1, "content", 0, "signature"),
        "a thought of a user": lambda b: b["messages"][0]["content"].append(b["messages"][1]["content"][0]),
        "blank text": put(" ", "messages", 1, "content", 1, "text"),
        "no content": put([], "messages", 1, "content"),
        "an assistant at the end": drop("messages", 2),
        "an assistant at the start": drop("messages", 0),
        "five breakpoints": lambda b: [x.__setitem__("cache_control", {}) for m in b["messages"] for x in m["content"]],
        "an image in an error": each(
            put(True, "messages", 2, "content", 0, "is_error"),
            put([{"type": "image"}], "messages", 2, "content", 0, "content"),
        ),
        "a forced tool without tools": each(drop("tools"), put({"type": "any"}, "tool_choice")),
        "alternatives at a schema's root": put([], "tools", 0, "input_schema", "anyOf"),
    },
    "google_generate": {
        "an unknown member": put(1, "no_such"),
        "no result": drop("contents", 2),
        "a result too many": again("contents", 2, "parts", 0),
        "another name": put("other", "contents", 2, "parts", 0, "functionResponse", "name"),
        "another id": put("other", "contents", 2, "parts", 0, "functionResponse", "id"),
        "a response as text": put("x", "contents", 2, "parts", 0, "functionResponse", "response"),
        "no parts": put([], "contents", 0, "parts"),
        "an empty text": put({"text": ""}, "contents", 0, "parts", 0),
        "a model at the end": each(drop("contents", 3), drop("contents", 2)),
        "an altered signature": put("AAAA", "contents", 1, "parts", 2, "thoughtSignature"),
        "a signature that is no base64": put("?", "contents", 1, "parts", 2, "thoughtSignature"),
        "no signature in the turn": each(
            drop("contents", 3), drop("contents", 1, "parts", 2, "thoughtSignature")
        ),
        "a constant in a schema": put(
            {"const": 1}, "tools", 0, "functionDeclarations", 0, "parametersJsonSchema", "properties", "a"
        ),
        "names without force": put({"functionCallingConfig": {"allowedFunctionNames": ["read"]}}, "toolConfig"),
        "level and budget": put({"thinkingBudget": 1, "thinkingLevel": "LOW"}, "generationConfig", "thinkingConfig"),
    },
}  # fmt: skip


@pytest.mark.parametrize(("protocol", "fault"), [(p, fault) for p in PROTOCOLS for fault in CHANGES[p]])
def test_each_fault_is_refused(protocol: Protocol, fault: str) -> None:
    body, headers, path = good(protocol)
    CHANGES[protocol][fault](body)
    assert refusal(protocol, body, headers, path=path) is not None


def test_headers_and_dialects_count() -> None:
    body, headers, _ = good("anthropic_messages")
    assert "anthropic-version" in str(refusal("anthropic_messages", body, {}))
    body["thinking"] = {"type": "adaptive", "block_binding": {}}
    assert "block_binding" in str(refusal("anthropic_messages", body, headers))
    body, _, _ = good("openai_chat")
    for dialect in ("mistral", "deepseek", "kimi"):
        changed = copy.deepcopy(body)
        changed["messages"][2].pop("reasoning_content")
        assert refusal("openai_chat", changed, dialect=dialect) is not None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_image_over_the_limit_is_refused(protocol: Protocol) -> None:
    body, headers, path = good(protocol)
    assert "image exceeds" in str(refusal(protocol, body, headers, path=path, image_limit=4))
