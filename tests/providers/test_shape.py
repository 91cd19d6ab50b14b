"""Conversations in the order that every vendor takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from panto.providers import ModelSpec, ProviderSettings
from panto.providers.openai_chat import OpenAIChat
from panto.providers.shape import wire_arguments
from panto.schema.messages import (
    BadJson,
    Image,
    Json,
    Message,
    Origin,
    Part,
    Reasoning,
    Request,
    SystemBlock,
    Text,
    ToolCall,
    ToolResult,
)

OWN = Origin("local", "openai_chat", "m")


def sent(*messages: Message, wire: OpenAIChat | None = None, system: str = "") -> list[tuple[str, Any]]:
    """Role and content of what goes out; calls as (id, name), results as (id, content)."""
    blocks = (SystemBlock("base", system),) if system else ()
    body = (wire or chat()).prepare(Request("m", blocks, messages), ModelSpec("m", images=True), stream=True).body
    out: list[tuple[str, Any]] = []
    for message in json.loads(body)["messages"]:
        content = message["content"]
        if message["role"] == "tool":
            content = (message["tool_call_id"], content)
        elif "tool_calls" in message:
            content = (content, [(c["id"], c["function"]["name"]) for c in message["tool_calls"]])
        out.append((message["role"], content))
    return out


def chat() -> OpenAIChat:
    return OpenAIChat(ProviderSettings("local", "openai_chat", "http://localhost/v1"))


def user(*parts: str | Part) -> Message:
    return Message("user", tuple(Text(p) if isinstance(p, str) else p for p in parts))


def said(*parts: str | Part, origin: Origin | None = OWN) -> Message:
    return Message("assistant", tuple(Text(p) if isinstance(p, str) else p for p in parts), origin=origin)


def call(number: int, ident: str = "") -> ToolCall:
    return ToolCall("read", Json("{}"), f"{number:032}", ident)


def result(number: int, text: str = "done", **more: Any) -> ToolResult:
    return ToolResult(f"{number:032}", "read", (Text(text),), **more)


def test_results_follow_their_calls_directly_in_call_order_whatever_stood_between() -> None:
    history = [user("go"), said(call(1, "a"), call(2, "b")), user("steer"), Message("tool", (result(2, "two"),)),
               Message("tool", (result(1, "one"),)), user("and")]  # fmt: skip
    assert sent(*history) == [
        ("user", "go"),
        ("assistant", (None, [("a", "read"), ("b", "read")])),
        ("tool", ("a", "one")),
        ("tool", ("b", "two")),
        ("user", "steer\n\nand"),
    ]


def test_a_missing_result_is_an_error_and_a_stray_one_goes() -> None:
    wire = chat()
    history = [user("go"), said(call(1, "a")), Message("tool", (result(9),)), user("on")]
    assert sent(*history, wire=wire)[2] == ("tool", ("a", "Error: No result was recorded for this call."))
    prepared = wire.prepare(Request("m", messages=tuple(history)), ModelSpec("m"), stream=True)
    assert prepared.notes == ["a tool result without its call was left out of the request"]


@pytest.mark.parametrize("parts", [(), ("",), (" \n",), (Reasoning("only thoughts"),)])
def test_what_is_empty_is_never_sent_first_in_the_middle_or_last(parts: tuple[str | Part, ...]) -> None:
    empty = said(*parts)
    assert sent(empty, user("a"), empty, empty, user("b"), empty) == [("user", "a\n\nb")]
    assert sent(user(""), user("a")) == [("user", "a")]
    assert sent() == sent(empty) == [("user", "Continue.")]


def test_a_conversation_begins_and_ends_with_a_user() -> None:
    assert sent(said("hello"), said("again")) == [
        ("user", "Continue."), ("assistant", "hello"),
        ("user", "Continue."), ("assistant", "again"), ("user", "Continue."),
    ]  # fmt: skip


def test_ids_that_are_empty_or_repeated_are_replaced_and_stay_the_same() -> None:
    history: list[Message] = [user("go")]
    for number in range(3):
        history += [said(call(number, "call_0")), Message("tool", (result(number),))]
    history += [
        said(call(7, ""), call(8, "x" * 80), call(9, "fine"), origin=None),
        Message("tool", (result(7), result(8), result(9))),
    ]
    ids = [i for role, content in sent(*history) if role == "assistant" for i, _ in content[1]]
    assert ids[0] == "call_0" and len(set(ids)) == 6 and all(0 < len(i) <= 40 for i in ids)
    assert "fine" not in ids, "a stranger's id is not echoed"
    again = [i for role, content in sent(*history, user("more")) if role == "assistant" for i, _ in content[1]]
    assert again == ids
    answered = [content[0] for role, content in sent(*history) if role == "tool"]
    assert answered == ids


def test_system_messages_at_the_front_join_the_prompt_and_later_ones_are_marked() -> None:
    rules, late = Message("system", (Text("rules"),)), Message("system", (Text("late"),))
    assert sent(rules, user("a"), said("b"), late, user("c"), system="base") == [
        ("system", "base\n\nrules"), ("user", "a"), ("assistant", "b"), ("user", "<system>\nlate\n</system>\n\nc"),
    ]  # fmt: skip


def test_images_of_results_follow_in_a_user_message() -> None:
    picture = Image("image/png", b"png", "a.png")
    shown = ToolResult(f"{1:032}", "read", (picture,))
    got = sent(user("go"), said(call(1, "a")), Message("tool", (shown,)), user("see?"))
    assert got[2] == ("tool", ("a", "(an image, see below)"))
    assert [p["type"] for p in got[3][1]] == ["text", "image_url"] and got[4] == ("user", "see?")


def test_errors_say_so_where_the_wire_has_no_flag() -> None:
    got = sent(user("go"), said(call(1, "a"), call(2, "b")), Message("tool", (result(1, "no file", is_error=True), result(2, "ERROR: x", is_error=True))))  # fmt: skip # noqa: E501
    assert [content[1] for role, content in got if role == "tool"] == ["Error: no file", "ERROR: x"]


@pytest.mark.parametrize(
    ("arguments", "wire"),
    [
        (Json('{"a": 1}'), '{"a": 1}'),
        (Json("[1]"), "{}"),
        (BadJson('{"a"', "cut"), "{}"),
        (Json(r'{"a":"\u0000\\u0000"}'), r'{"a":"\ufffd\\u0000"}'),
    ],
)
def test_arguments_go_out_as_an_object_always(arguments: Json | BadJson, wire: str) -> None:
    assert wire_arguments(ToolCall("x", arguments)) == wire


def test_a_user_in_the_place_of_an_assistant_is_seen() -> None:
    wire = chat()
    sent(user("a"), said("b"), user("c"), wire=wire)
    assert sent(user("a"), user("b"), said("c"), wire=wire) == [
        ("user", "a\n\nb"),
        ("assistant", "c"),
        ("user", "Continue."),
    ]
