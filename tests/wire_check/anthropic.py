"""What Anthropic's Messages refuses, as its newest models do (no prefill, no sampling)."""

from __future__ import annotations

import json
from typing import Any

from tests.wire_check.rules import (
    NAME,
    Body,
    Pairs,
    Refused,
    check_image,
    check_names,
    check_schema,
    expect,
    filled,
    only,
    sealed,
)

FIELDS = """model messages max_tokens system tools tool_choice stop_sequences metadata service_tier stream thinking
 output_config cache_control inference_geo speed diagnostics"""
BINDING = "thinking-binding-controls-2026-08-01"


def check(body: Body, headers: dict[str, str], image_limit: int = 10 << 20) -> None:
    """Raise Refused for the first thing that the vendor would refuse."""
    expect(headers.get("anthropic-version") in ("2023-06-01", "2026-10-21"), "anthropic-version: header is required")
    only(body, FIELDS, "body")
    expect(filled(body.get("model")), "model: Field required")
    limit = body.get("max_tokens")
    expect(isinstance(limit, int) and limit > 0, "max_tokens: Field required")
    _thinking(body, headers)
    _tools(body)
    marks = json.dumps(body).count('"cache_control"')
    expect(marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    for block in body["system"] if isinstance(body.get("system"), list) else ():
        only(block, "type text cache_control", "system")
        expect(filled(block.get("text")), "system: text content blocks must be non-empty")
    messages = body.get("messages")
    expect(isinstance(messages, list) and messages, "messages: at least one message is required")
    assert isinstance(messages, list)
    expect(messages[0].get("role") == "user", 'messages: first message must use the "user" role')
    expect(messages[-1].get("role") == "user", "This model does not support assistant message prefill.")
    pairs = Pairs(r"[a-zA-Z0-9_-]{1,64}")
    for at, message in enumerate(messages):
        _message(message, f"messages.{at}", pairs, image_limit)
    pairs.other("messages")
    for one, two in zip(messages, messages[1:], strict=False):
        expect(one["role"] != two["role"], "messages: roles must alternate (stricter than the vendor, who merges)")


def _thinking(body: Body, headers: dict[str, str]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type")
    expect(kind in ("adaptive", "enabled", "disabled", "between_tools"), f"thinking.type: {kind!r}")
    if kind == "enabled":
        budget = thinking.get("budget_tokens", 0)
        expect(
            1024 <= budget < body["max_tokens"],
            "thinking.enabled.budget_tokens: must be 1024 or more, below max_tokens",
        )
        choice = body.get("tool_choice", {}).get("type", "auto")
        expect(choice in ("auto", "none"), "Thinking may not be enabled when tool_choice forces tool use.")
    if "block_binding" in thinking:
        betas = headers.get("anthropic-beta", "").split(",")
        expect(BINDING in betas, "thinking.adaptive.block_binding: Extra inputs are not permitted")


def _tools(body: Body) -> None:
    tools = body.get("tools")
    if not tools:
        expect("tool_choice" not in body, "tool_choice may only be specified while providing tools")
        return
    for tool in tools:
        only(tool, "name description input_schema strict cache_control eager_input_streaming type", "tools")
        check_schema(tool.get("input_schema"), f"tools.{tool.get('name')}.input_schema")
    names = [tool.get("name") for tool in tools]
    check_names(names)
    choice = body.get("tool_choice", {"type": "auto"})
    expect(choice.get("type") in ("auto", "any", "none", "tool"), "tool_choice: unknown type")
    if choice["type"] == "tool":
        expect(choice.get("name") in names, "tool_choice names a tool that is not there")


def _message(message: Any, place: str, pairs: Pairs, image_limit: int) -> None:
    only(message, "role content", place)
    role, content = message.get("role"), message.get("content")
    expect(role in ("user", "assistant"), f"{place}: unknown role {role!r}")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    expect(isinstance(content, list) and content, f"{place}: all messages must have non-empty content")
    before = ""
    for index, block in enumerate(content):
        kind, where = block.get("type"), f"{place}.content.{index}"
        if kind == "tool_result":
            expect(role == "user" and before in ("", "tool_result"), f"{where}: tool_result blocks must come first")
            _result(block, where, pairs, image_limit)
        else:
            if role == "user":
                pairs.other(place)
            _block(block, role, where, pairs, image_limit)
        before = kind


def _block(block: Any, role: str, place: str, pairs: Pairs, image_limit: int) -> None:
    match block.get("type"):
        case "text":
            only(block, "type text cache_control citations", place)
            expect(filled(block.get("text")), f"{place}: text content blocks must contain non-whitespace text")
        case "image":
            expect(role == "user", f"{place}: images may only be in user messages")
            only(block, "type source cache_control", place)
            check_image(block["source"].get("media_type"), block["source"].get("data"), place, image_limit)
        case "thinking":
            expect(role == "assistant", f"{place}: thinking blocks may only be in assistant messages")
            only(block, "type thinking signature", place)
            expect(
                sealed(block.get("signature"), block.get("thinking", "")),
                f"{place}: Invalid signature in thinking block",
            )
        case "redacted_thinking":
            expect(role == "assistant", f"{place}: thinking blocks may only be in assistant messages")
            expect(sealed(block.get("data"), "redacted"), f"{place}: Invalid data in redacted_thinking block")
        case "tool_use":
            expect(role == "assistant", f"{place}: tool_use outside an assistant message")
            only(block, "type id name input cache_control caller", place)
            expect(isinstance(block.get("input"), dict), f"{place}.input: Input should be a valid dictionary")
            expect(NAME.fullmatch(str(block.get("name"))), f"{place}.name: String should match pattern")
            pairs.call(block.get("id"), place)
        case "server_tool_use" | "web_search_tool_result":
            expect(role == "assistant", f"{place}: {block['type']} outside an assistant message")
        case kind:
            raise Refused(f"{place}: Input tag {kind!r} does not match any of the expected tags")


def _result(block: Any, place: str, pairs: Pairs, image_limit: int) -> None:
    only(block, "type tool_use_id content is_error cache_control", place)
    pairs.result(block.get("tool_use_id"), place)
    content = block.get("content", "x")
    if isinstance(content, str):
        return
    for part in content:
        expect(part.get("type") in ("text", "image"), f"{place}: unknown part {part.get('type')!r}")
        if part["type"] == "text":
            expect(filled(part.get("text")), f"{place}: text content blocks must be non-empty")
        else:
            expect(not block.get("is_error"), f'{place}: all content must be type "text" if "is_error" is true')
            check_image(part["source"].get("media_type"), part["source"].get("data"), place, image_limit)
