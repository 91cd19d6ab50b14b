"""What servers that speak Chat Completions really send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from panto.providers.assemble import Assembler
from panto.providers.failure import Place
from panto.providers.names import Names
from panto.providers.openai_chat_reply import ChatReader
from panto.schema.errors import ProviderError
from panto.schema.messages import BadJson, Json, ModelResult, Opaque, Origin, Reasoning, Text, Usage
from panto.schema.stream import StreamPart

Delta = dict[str, Any]


def chunk(delta: Delta | None = None, finish: str | None = None, **more: Any) -> Delta:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call(**members: Any) -> Delta:
    return chunk({"tool_calls": [members]})


def function(name: str | None = None, arguments: Any = None) -> Delta:
    return {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}


def read(*chunks: Delta | bytes, done: bool = True, opened: bool = False) -> ModelResult:
    reader, fold = ChatReader(Names(["look.up"]), Place("p", "host"), opened), Assembler()
    out: list[StreamPart] = []
    events = [(b"", c if isinstance(c, bytes) else json.dumps(c).encode()) for c in chunks]
    reader.feed([*events, *([(b"", b"[DONE]")] if done else [])], out)
    reader.end(out)
    for part in out:
        fold.feed(part)
    return fold.result(Origin("p", "openai_chat", "m"))


def calls(result: ModelResult) -> list[tuple[str, str, str]]:
    return [(c.name, c.arguments.text, c.provider_id) for c in result.calls()]


def test_ids_that_are_empty_or_null_stay_empty_and_calls_stay_apart() -> None:
    result = read(
        call(index=0, id="", function=function("a", "")),
        call(index=0, function=function(arguments='{"x":1}')),
        call(index=1, id=None, function=function("b", '{"y"')),
        call(index=1, function=function(arguments=":2}")),
        chunk(finish="tool_calls"),
    )
    assert calls(result) == [("a", '{"x":1}', ""), ("b", '{"y":2}', "")]


def test_one_index_with_two_ids_is_two_calls() -> None:
    result = read(
        call(index=0, id="c1", function=function("a", "{}")),
        call(index=0, id="c2", function=function("a", '{"n":')),
        call(index=0, id="c2", function=function(arguments="1}")),
        chunk(finish="stop"),
    )
    assert calls(result) == [("a", "{}", "c1"), ("a", '{"n":1}', "c2")]
    assert result.finish.reason == "tool_calls" and result.finish.raw == "stop"


def test_id_and_name_repeated_in_every_piece_are_one_call() -> None:
    pieces = ['{"path"', ': "a', '.txt"}']
    result = read(*[call(index=0, id="c1", function=function("read", p)) for p in pieces], chunk(finish="tool_calls"))
    assert calls(result) == [("read", '{"path": "a.txt"}', "c1")]
    result = read(*[call(index=0, function=function("read", p)) for p in pieces], chunk(finish="tool_calls"))
    assert calls(result) == [("read", '{"path": "a.txt"}', "")]


def test_whole_calls_without_index_or_id_are_told_apart() -> None:
    both = {"tool_calls": [{"function": function("a", '{"n":1}')}, {"function": function("a", {"n": 2})}]}
    assert calls(read(chunk(both), chunk(finish="tool_calls"))) == [("a", '{"n":1}', ""), ("a", '{"n":2}', "")]


def test_the_last_shared_index_zero_without_ids_still_makes_two_calls() -> None:
    result = read(
        call(index=0, function=function("a", '{"n":1}')),
        call(index=0, function=function("b", "{}")),
        chunk(finish="stop"),
    )
    assert calls(result) == [("a", '{"n":1}', ""), ("b", "{}", "")]


def test_a_name_that_comes_after_its_arguments_is_waited_for() -> None:
    result = read(
        call(index=0, id="c", function=function(arguments='{"a"')),
        call(index=0, function=function("look_up", ":1}")),
        chunk(finish="tool_calls"),
    )
    assert calls(result) == [("look.up", '{"a":1}', "c")]


@pytest.mark.parametrize(
    "arguments", ['{"command": "ls", description": 1}', "[1]", "null", '"x"', '{"a":"\\u00"}', '{"a":1,"a":2}']
)
def test_arguments_that_are_no_object_are_kept_and_said(arguments: str) -> None:
    (one,) = read(call(index=0, function=function("a", arguments)), chunk(finish="tool_calls")).calls()
    assert isinstance(one.arguments, BadJson) and one.arguments.text == arguments and one.arguments.problem


@pytest.mark.parametrize("arguments", ["", " ", None])
def test_no_arguments_are_an_empty_object(arguments: str | None) -> None:
    (one,) = read(call(index=0, id="c", function=function("a", arguments)), chunk(finish="tool_calls")).calls()
    assert one.arguments == Json("{}")


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("eos", "stop"), ("length", "length"), ("model_length", "length"),
     ("sensitive", "content_filter"), ("tool_calls", "stop"), ("something_new", "other")],
)  # fmt: skip
def test_finish_words_are_understood_and_kept(finish: str, reason: str) -> None:
    result = read(chunk({"content": "x"}), chunk(finish=finish))
    assert (result.finish.reason, result.finish.raw) == (reason, finish)


def test_an_end_without_done_or_without_finish_is_an_end_but_not_without_both() -> None:
    assert read(chunk({"content": "x"}), chunk(finish="stop"), done=False).text() == "x"
    assert read(chunk({"content": "x"})).finish.reason == "stop"
    assert read(call(index=0, function=function("a", "{}"))).finish.reason == "tool_calls"
    for nothing in ((chunk({"content": "x"}),), ()):
        with pytest.raises(ProviderError):
            read(*nothing, done=False)
    with pytest.raises(ProviderError):
        read()


@pytest.mark.parametrize("word", ["error", "network_error"])
def test_a_reply_that_ends_in_error_is_one(word: str) -> None:
    with pytest.raises(ProviderError) as caught:
        read(chunk({"content": "x"}), chunk(finish=word))
    assert caught.value.kind == "server"


def test_usage_is_found_wherever_it_is_and_may_be_missing() -> None:
    plain = {"prompt_tokens": 9, "completion_tokens": 2}
    end = chunk(finish="stop")
    assert read(chunk({"content": "x"}), end).usage == Usage()
    assert read(end, {"choices": [], "usage": plain}).usage == Usage(9, 2)
    assert read({"choices": [{"delta": {}, "finish_reason": "stop", "usage": plain}]}).usage == Usage(9, 2)
    assert read(chunk({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": None}), chunk(finish="stop", usage=plain)).usage == Usage(9, 2)  # fmt: skip # noqa: E501
    assert read(chunk(finish="stop", usage={**plain, "prompt_cache_hit_tokens": 4})).usage == Usage(9, 2, 4)
    assert read(chunk(finish="stop", usage={**plain, "cached_tokens": 4})).usage == Usage(9, 2, 4)
    assert read(chunk(finish="stop", x_groq={"usage": plain})).usage == Usage(9, 2)


@pytest.mark.parametrize("count", [b"-5", b"1e300", b"1" + b"0" * 30, b"true", b'"many"'])
def test_a_count_of_tokens_that_cannot_be_is_not_believed(count: bytes) -> None:
    end = b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": %b}}' % count
    assert read(chunk({"content": "x"}), end).usage == Usage()


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_is_found_in_any_of_its_fields(field: str) -> None:
    result = read(chunk({field: "I "}), chunk({field: "see", "content": "Hi"}), chunk(finish="stop"))
    metadata = {"openai_chat": {"field": field}}
    assert result.message.parts == (Reasoning("I see", metadata), Text("Hi"))


def test_reasoning_sent_twice_is_not_doubled() -> None:
    result = read(
        chunk({"reasoning": "hm", "reasoning_content": "hm"}), chunk({"content": "<think>x"}), chunk(finish="stop")
    )
    assert [getattr(p, "text", "") for p in result.message.parts] == ["hm", "<think>x"]


def test_reasoning_in_think_tags_is_reasoning() -> None:
    result = read(chunk({"content": "<thi"}), chunk({"content": "nk>hm</think>\n\nHi"}), chunk(finish="stop"))
    assert result.message.parts == (Reasoning("hm", {"openai_chat": {"field": "think"}}), Text("Hi"))
    result = read(chunk({"content": "hm</think>Hi"}), chunk(finish="stop"), opened=True)
    assert [getattr(p, "text", "") for p in result.message.parts] == ["hm", "Hi"]


def test_content_as_a_list_is_read() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    result = read(
        chunk({"content": [thinking]}), chunk({"content": [{"type": "text", "text": "Hi"}]}), chunk(finish="stop")
    )
    assert result.message.parts == (Reasoning("hm", {"openai_chat": {"field": "content"}}), Text("Hi"))


def test_reasoning_details_are_joined_by_index_and_kept_whole() -> None:
    details = [
        {"type": "reasoning.text", "index": 0, "text": "a"},
        {"type": "reasoning.text", "index": 0, "text": "b", "signature": "s1"},
        {"type": "reasoning.encrypted", "index": 1, "data": "zz9", "id": "r"},
        {"type": "reasoning.encrypted", "index": 1, "data": "zz8"},
    ]
    result = read(*[chunk({"reasoning_details": [d]}) for d in details], chunk({"content": "Hi"}), chunk(finish="stop"))
    (opaque,) = [p for p in result.message.parts if isinstance(p, Opaque)]
    joined = {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s1"}
    assert json.loads(opaque.value) == {"reasoning_details": [joined, *details[2:]]}


def test_half_a_surrogate_pair_does_not_lose_the_reply() -> None:
    data = b'{"choices":[{"delta":{"content":"a\\ud83d b \\ud83d\\ude00 \\\\ud83d"},"finish_reason":"stop"}]}'
    assert read(data).text() == "a\ufffd b 😀 \\ud83d"


def test_an_error_line_in_the_stream_is_an_error() -> None:
    with pytest.raises(ProviderError) as caught:
        read(chunk({"content": "x"}), {"error": {"message": "Overloaded", "code": 503}, "choices": []})
    assert caught.value.kind == "overloaded"


@pytest.mark.parametrize(
    "data",
    [b"{", b"hello", b'{"choices":[{"delta":{"content":5}}]}', b"\xff\xfe", b'{"choices":[{"delta":{"content":"\xc3'],
)
def test_what_cannot_be_read_is_malformed(data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read(data)
    assert caught.value.kind == "malformed" and "host" in caught.value.message


def test_a_refusal_is_text_and_a_filter() -> None:
    result = read(chunk({"refusal": "I cannot."}), chunk(finish="stop"))
    assert (result.text(), result.finish.reason) == ("I cannot.", "content_filter")
