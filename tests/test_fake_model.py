"""The fake model server: it answers as scripted and refuses what vendors refuse."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.fake_model import FakeModel, Reply

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "x"}


def post(fake: FakeModel, path: str, **body: Any) -> tuple[int, str]:
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    body = {"model": "fake", "stream": True, **({"max_tokens": 100} if path == "/messages" else {}), **body}
    request = urllib.request.Request(fake.url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
def test_replies_are_streamed_in_the_order_given(fake_model: FakeModel, path: str) -> None:
    fake_model.replies += [Reply(["a", "b"], reasoning="why", calls=[("read", {"path": "f"})]), Reply("end")]
    first, second = (post(fake_model, path, messages=[user("hi")]) for _ in range(2))
    assert first[0] == second[0] == 200
    assert all(part in first[1] for part in ("why", '"a"', '"b"', "read", r"{\"path"))
    assert '"end"' in second[1]
    assert [r.status for r in fake_model.requests] == [200, 200]


def test_a_marker_in_the_newest_user_message_names_the_scenario(fake_model: FakeModel) -> None:
    status, text = post(fake_model, "/chat/completions", messages=[user("FAKE(flood:200)")])
    assert status == 200
    assert text.count('"content":') == 201
    assert post(fake_model, "/chat/completions", messages=[user("FAKE(http429:1)")])[0] == 429
    assert post(fake_model, "/chat/completions", messages=[user("FAKE(http429:1)")])[0] == 200


def test_rounds_of_tools_are_counted_by_results_since_the_marker(fake_model: FakeModel) -> None:
    messages: list[dict[str, Any]] = [user("FAKE(tools:2;file=a.txt)")]
    answers = []
    for number in range(3):
        answers.append(post(fake_model, "/chat/completions", messages=messages)[1])
        call = {**CALL, "id": f"c{number}"}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "x"},
        ]
    assert ["a-0.t" in answers[0], "a-1.t" in answers[1], "TOOLS-DONE" in answers[2]] == [True] * 3


@pytest.mark.parametrize(
    "reason, messages",
    [
        ("without results", [user("a"), {"role": "assistant", "tool_calls": [CALL]}]),
        ("without results", [user("a"), {"role": "assistant", "tool_calls": [CALL]}, user("b")]),
        ("without its call", [user("a"), {"role": "tool", "tool_call_id": "c1", "content": "x"}]),
        ("empty assistant", [user("a"), {"role": "assistant", "content": ""}, user("b")]),
        ("id empty", [user("a"), {"role": "assistant", "tool_calls": [{**CALL, "id": ""}]}]),
        ("used twice", [user("a"), {"role": "assistant", "tool_calls": [CALL, CALL]}]),
        ("not a JSON object", [
            user("a"),
            {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "read", "arguments": "[1]"}}]},
        ]),
    ],
)  # fmt: skip
def test_chat_refuses_what_the_vendor_refuses(fake_model: FakeModel, reason: str, messages: list[Any]) -> None:
    status, text = post(fake_model, "/chat/completions", messages=messages)
    assert status == 400
    assert reason in text
    assert len(fake_model.refusals) == 1


@pytest.mark.parametrize(
    "reason, messages",
    [
        ("without results", [user("a"), {"role": "assistant", "content": [USE]}, user("b")]),
        ("without its call", [{"role": "user", "content": [RESULT]}]),
        ("non-empty", [user("a"), {"role": "assistant", "content": []}, user("b")]),
        ("non-empty", [user("a"), {"role": "assistant", "content": [{"type": "text", "text": " "}]}, user("b")]),
        ("prefill", [user("a"), {"role": "assistant", "content": "b"}]),
        ("first message", [{"role": "assistant", "content": "b"}, user("a")]),
        ("without results", [
            user("a"), {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [{"type": "text", "text": "t"}, RESULT]},
        ]),
    ],
)  # fmt: skip
def test_anthropic_refuses_what_the_vendor_refuses(fake_model: FakeModel, reason: str, messages: list[Any]) -> None:
    status, text = post(fake_model, "/messages", messages=messages)
    assert status == 400
    assert reason in text


def test_unknown_fields_and_bad_tools_are_refused(fake_model: FakeModel) -> None:
    one = [user("a")]
    bad_name = [{"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}]
    assert "unknown field: thread" in post(fake_model, "/chat/completions", messages=one, thread=1)[1]
    assert "name not allowed" in post(fake_model, "/chat/completions", messages=one, tools=bad_name)[1]
    assert "not an object" in post(fake_model, "/messages", messages=one, tools=[{"name": "a"}])[1]


def test_a_client_that_hangs_up_is_noticed_even_in_silence(fake_model: FakeModel) -> None:
    fake_model.replies.append(Reply(["a", "b"], stall_s=600))
    body = json.dumps({"model": "fake", "stream": True, "messages": [user("hi")]}).encode()
    with urllib.request.urlopen(f"{fake_model.url}/chat/completions", body, timeout=30) as answer:
        assert b"assistant" in answer.readline()
    deadline = time.monotonic() + 30
    while not fake_model.requests[0].gone and time.monotonic() < deadline:
        time.sleep(0.01)
    assert fake_model.requests[0].gone


def test_a_paired_history_is_accepted_by_both(fake_model: FakeModel) -> None:
    chat = [
        user("a"), {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": ""}, user("b"),
    ]  # fmt: skip
    blocks = [RESULT, {"type": "text", "text": "and"}]
    anthropic = [user("a"), {"role": "assistant", "content": [USE]}, {"role": "user", "content": blocks}]
    assert post(fake_model, "/chat/completions", messages=chat)[0] == 200
    assert post(fake_model, "/messages", messages=anthropic)[0] == 200
    assert fake_model.refusals == []
