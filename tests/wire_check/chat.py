"""What Chat Completions servers refuse. `dialect`: openai (default), mistral, deepseek, kimi, zai."""

from __future__ import annotations

from typing import Any

from tests.wire_check.rules import (
    Body,
    Pairs,
    Refused,
    check_names,
    check_schema,
    data_url,
    expect,
    filled,
    json_object,
    only,
)

FIELDS = """model messages tools tool_choice parallel_tool_calls max_completion_tokens max_tokens stop temperature top_p
 seed reasoning_effort verbosity response_format prompt_cache_key prompt_cache_options store metadata service_tier user
 safety_identifier stream stream_options frequency_penalty presence_penalty logit_bias n"""
EXTRA = {"openai": "", "mistral": "", "deepseek": " thinking", "kimi": " thinking", "zai": " thinking tool_stream"}
IDS = {"mistral": "[A-Za-z0-9]{9}"}
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text", "reasoning_details")


def check(body: Body, dialect: str = "openai", image_limit: int = 20 << 20) -> None:
    """Raise Refused for the first thing that the server would refuse."""
    only(body, FIELDS + EXTRA[dialect], "body")
    expect(filled(body.get("model")), "you must provide a model parameter")
    messages = body.get("messages")
    expect(isinstance(messages, list) and messages, "[] is too short - 'messages': empty array")
    assert isinstance(messages, list)
    _tools(body)
    if "stream_options" in body:
        expect(body.get("stream") is True, "stream_options is only allowed when stream is enabled")
    if "response_format" in body:
        _format(body["response_format"])
    pairs = Pairs(IDS.get(dialect, r"\S.{0,39}"))
    for at, message in enumerate(messages):
        _message(message, at, pairs, dialect, image_limit)
    pairs.other("messages")
    last = messages[-1]["role"]
    if dialect == "mistral":
        expect(last in ("user", "tool"), f"Expected last role User or Tool but got {last}")


def _tools(body: Body) -> None:
    if "tools" not in body:
        for word in ("tool_choice", "parallel_tool_calls"):
            expect(word not in body, f"{word} is only allowed when tools are specified")
        return
    tools = body["tools"]
    expect(isinstance(tools, list) and tools, "tools: empty array")
    for tool in tools:
        only(tool, "type function", "tools")
        expect(tool.get("type") == "function", "tools: unknown type")
        only(tool["function"], "name description parameters strict", "tools.function")
        check_schema(
            tool["function"].get("parameters"), f"Invalid schema for function {tool['function'].get('name')!r}"
        )
    names = [tool["function"].get("name") for tool in tools]
    check_names(names)
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        expect(choice.get("function", {}).get("name") in names, "tool_choice names a tool that is not there")
    else:
        expect(choice in ("auto", "none", "required"), f"tool_choice: {choice!r}")


def _format(shape: Any) -> None:
    expect(shape.get("type") in ("text", "json_object", "json_schema"), "response_format: unknown type")
    if shape["type"] == "json_schema":
        only(shape["json_schema"], "name schema strict description", "response_format.json_schema")
        expect(filled(shape["json_schema"].get("name")), "response_format: missing name")
        expect(isinstance(shape["json_schema"].get("schema"), dict), "response_format: missing schema")


def _message(message: Any, at: int, pairs: Pairs, dialect: str, image_limit: int) -> None:
    place, role, content = f"messages[{at}]", message.get("role"), message.get("content")
    if role == "tool":
        only(message, "role content tool_call_id name", place)
        pairs.result(message.get("tool_call_id"), place)
        expect(filled(content) or isinstance(content, list), f"{place}: a tool message needs content")
        for part in content if isinstance(content, list) else ():
            expect(part.get("type") == "text", f"{place}: Image URLs are only allowed for messages with role 'user'")
        return
    pairs.other(place)
    calls = message.get("tool_calls")
    match role:
        case "system" | "developer":
            only(message, "role content name", place)
            expect(at == 0, f"{place}: System message must be at the beginning")
            expect(filled(content) or (isinstance(content, list) and content), f"{place}: empty system message")
        case "user":
            only(message, "role content name", place)
            _user(content, place, image_limit)
        case "assistant":
            only(message, f"role content tool_calls refusal name {' '.join(THOUGHTS)}", place)
            if calls is not None:
                expect(isinstance(calls, list) and calls, f"{place}.tool_calls: [] is too short, minimum length 1")
            expect(
                filled(content) or _list(content) or (content in (None, "") and calls),
                f"{place}: empty assistant message",
            )
            for call in calls or ():
                only(call, "id type function index", f"{place}.tool_calls")
                json_object(call["function"].get("arguments"), place)
                expect(filled(call["function"].get("name")), f"{place}: call without a name")
                pairs.call(call.get("id"), place)
            _thoughts(message, place, dialect, bool(calls))
        case _:
            raise Refused(f"{place}: unknown role {role!r}")


def _list(content: object) -> bool:
    return isinstance(content, list) and bool(content) and all(p.get("type") in ("text", "thinking") for p in content)


def _user(content: Any, place: str, image_limit: int) -> None:
    if isinstance(content, str):
        expect(content.strip(), f"{place}: empty user message")
        return
    expect(isinstance(content, list) and content, f"{place}: empty user message")
    for part in content:
        match part.get("type"):
            case "text":
                expect(filled(part.get("text")), f"{place}: empty text part")
            case "image_url":
                data_url(part["image_url"].get("url"), place, image_limit)
            case kind:
                raise Refused(f"{place}: unknown part {kind!r}")


def _thoughts(message: Any, place: str, dialect: str, calls: bool) -> None:
    given = message.get("reasoning_content")
    if dialect == "deepseek" and calls:
        text = "The reasoning_content in the thinking mode must be passed back to the API"
        expect(isinstance(given, str), f"{place}: {text}")
    if dialect == "kimi" and calls:
        text = "thinking is enabled but reasoning_content is missing in assistant tool call message at index"
        expect(filled(given), f"{place}: {text} {place}")
