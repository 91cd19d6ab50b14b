"""What OpenAI's Responses refuses (store: false)."""

from __future__ import annotations

import json
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
    sealed,
)

FIELDS = """model input instructions tools tool_choice parallel_tool_calls max_output_tokens temperature top_p reasoning
 text include store prompt_cache_key prompt_cache_options service_tier safety_identifier metadata truncation stream
 stream_options background context_management"""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def check(body: Body, image_limit: int = 50 << 20) -> None:
    """Raise Refused for the first thing that the vendor would refuse."""
    only(body, FIELDS, "body")
    expect(filled(body.get("model")), "Missing required parameter: 'model'")
    expect(body.get("store") is False, "store must be false here: nothing is kept on the server")
    expect(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': below minimum value 16")
    expect(len(body.get("prompt_cache_key", "")) <= 64, "Invalid 'prompt_cache_key': string too long")
    reasoning = body.get("reasoning", {})
    only(reasoning, "effort summary context mode", "reasoning")
    expect(reasoning.get("effort", "low") in EFFORTS, f"reasoning.effort: {reasoning.get('effort')!r}")
    _tools(body)
    _format(body.get("text", {}))
    items = body.get("input")
    expect(isinstance(items, list) and items, "Missing required parameter: 'input'")
    assert isinstance(items, list)
    pairs, seen = Pairs(r"[A-Za-z0-9_-]{1,64}"), set[str]()
    thought = False  # a reasoning item stands before, in the same reply
    for at, item in enumerate(items):
        place, kind = f"input[{at}]", item.get("type", "message")
        if ident := item.get("id"):
            expect(ident not in seen, f"Duplicate item found with id {ident}")
            seen.add(ident)
        if kind == "reasoning":
            pairs.other(place)
            _reasoning(item, place, items[at + 1 :])
            thought = True
            continue
        _item(item, kind, place, pairs, image_limit)
        if kind == "function_call_output" or item.get("role") in ("user", "system", "developer"):
            thought = False
        elif item.get("id"):
            text = f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item"
            expect(thought, f"{place}: {text}")
    pairs.other("input")


def _reasoning(item: Any, place: str, after: list[Any]) -> None:
    only(item, "type id summary encrypted_content content status", place)
    expect(str(item.get("id", "")).startswith("rs_"), f"{place}.id: expected an ID that begins with 'rs'")
    expect(isinstance(item.get("summary"), list), f"{place}: missing summary")
    whole = item["id"] + json.dumps(item["summary"])
    expect(sealed(item.get("encrypted_content"), whole), "The encrypted content could not be verified")
    follower: dict[str, Any] = next((x for x in after if x.get("type") != "reasoning"), {})
    own = follower.get("type") == "function_call" or follower.get("role") == "assistant"
    text = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item"
    expect(own, f"{place}: {text}")


def _item(item: Any, kind: str, place: str, pairs: Pairs, image_limit: int) -> None:
    match kind:
        case "message":
            _message(item, place, pairs, image_limit)
        case "function_call":
            only(item, "type call_id name arguments id status", place)
            json_object(item.get("arguments"), place)
            expect(filled(item.get("name")), f"{place}: call without a name")
            expect(str(item.get("id", "fc")).startswith("fc"), f"{place}.id: expected an ID that begins with 'fc'")
            pairs.call(item.get("call_id"), place)
        case "function_call_output":
            only(item, "type call_id output id status", place)
            pairs.result(item.get("call_id"), place)
            output = item.get("output")
            expect(isinstance(output, list | str) and output, f"{place}: empty output")
            for part in output if isinstance(output, list) else ():
                _part(part, ("input_text", "input_image"), place, image_limit)
        case "web_search_call":
            pairs.other(place)
        case _:
            raise Refused(f"{place}: unknown item type {kind!r}")


def _message(item: Any, place: str, pairs: Pairs, image_limit: int) -> None:
    only(item, "type id role status content phase", place)
    role, content = item.get("role"), item.get("content")
    expect(role in ("user", "assistant", "system", "developer"), f"{place}: unknown role {role!r}")
    expect(str(item.get("id", "msg")).startswith("msg"), f"{place}.id: expected an ID that begins with 'msg'")
    pairs.other(place)
    if isinstance(content, str):
        expect(content.strip(), f"{place}: empty content")
        return
    expect(isinstance(content, list) and content, f"{place}: empty content")
    known = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image")
    for part in content:
        _part(part, known, place, image_limit)


def _part(part: Any, known: tuple[str, ...], place: str, image_limit: int) -> None:
    kind = part.get("type")
    expect(kind in known, f"{place}: Invalid value: {kind!r}. Supported values are: {known}")
    if kind == "input_image":
        data_url(part.get("image_url"), place, image_limit)
    else:
        expect(filled(part.get("refusal" if kind == "refusal" else "text")), f"{place}: empty text part")


def _tools(body: Body) -> None:
    tools = body.get("tools")
    if tools is None:
        for word in ("tool_choice", "parallel_tool_calls"):
            expect(word not in body, f"{word} without tools")
        return
    expect(isinstance(tools, list) and tools, "tools: empty array")
    for tool in tools:
        only(tool, "type name description parameters strict", "tools")
        expect(tool.get("strict") is False, f"tools.{tool.get('name')}: strict is on where it is not switched off")
        check_schema(tool.get("parameters"), f"Invalid schema for function {tool.get('name')!r}")
    names = [tool.get("name") for tool in tools]
    check_names(names)
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        expect(choice.get("type") == "function" and choice.get("name") in names, "tool_choice names no tool")
    else:
        expect(choice in ("auto", "none", "required"), f"tool_choice: {choice!r}")


def _format(text: Any) -> None:
    only(text, "format verbosity", "text")
    shape = text.get("format", {"type": "text"})
    if shape.get("type") == "json_schema":
        only(shape, "type name schema strict description", "text.format")
        expect(filled(shape.get("name")) and isinstance(shape.get("schema"), dict), "text.format: name and schema")
