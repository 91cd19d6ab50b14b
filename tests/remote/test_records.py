"""Records for programs: what a turn looks like from outside, and what a program may say back."""

import json
from collections.abc import Mapping

import pytest

from panto.remote.jsonl import Teller, line
from panto.remote.requests import BadRequest, read_request
from panto.schema import events as ev
from panto.schema import ops
from panto.schema.bodies import Body, MessageBody, ResultBody, TextBody, ToolOutcome
from panto.schema.messages import BadJson, Finish, Json, Message, ModelResult, Text, ToolCall, Usage
from panto.schema.records import Record
from panto.schema.signals import Fact, InputReturned, Left, TextStreamed, Update

ME, CHILD = "a" * 32, "b" * 32


def fact(event: ev.AnyEvent, body: Body | None = None, agent: str = ME) -> Fact:
    return Fact(agent, 0, 0, 0.0, event, body)


def said(role: str, text: str, *calls: ToolCall) -> Message:
    return Message("user" if role == "user" else "assistant", ((Text(text),) if text else ()) + calls)


def step(text: str, *calls: ToolCall, cost: float | None = 0.5) -> Fact:
    result = ModelResult(said("assistant", text, *calls), Finish("stop"))
    return fact(ev.ModelStepCompleted("r", 1, "e", "d", Usage(10, 2, 3, 1, 1), cost), ResultBody(result))


def begun() -> list[Update]:
    return [fact(ev.TurnStarted("t", "r")), fact(ev.InputAccepted("r", "i", "d"), MessageBody(said("user", "hi")))]


def tell(*updates: Update, teller: Teller | None = None) -> tuple[list[Record], Teller]:
    teller = teller or Teller(ME)
    return [record for update in updates for record in teller.read(update)], teller


def of(records: list[Record], kind: str) -> list[Record]:
    return [record for record in records if record["type"] == kind]


def test_a_turn_with_calls_is_told_in_order_and_closed_by_its_sums() -> None:
    calls = (ToolCall("read", Json('{"path": "a"}')), ToolCall("grep", BadJson("{oops", "expected a key")))
    bindings = (ev.CallBinding("c1", 0, "read"), ev.CallBinding("c2", 1, "grep"))
    records, teller = tell(
        *begun(),
        step("let me see", *calls),
        fact(ev.ToolStepOpened("r", 1, bindings)),
        fact(ev.ToolCallCompleted("r", "c1", "e", "d", 12), ToolOutcome((Text("one"),))),
        fact(ev.ToolCallFailed("r", "c2", "known", "invalid_input", "no JSON")),
        TextStreamed(ME, 2, "do"), TextStreamed(ME, 2, "ne"),
        step("done"),
        fact(ev.RunEnded("r", "completed")),
        fact(ev.TurnSettled("t", "completed")),
    )  # fmt: skip
    kinds = [record["type"] for record in records if record["type"] not in ("step_started", "step_ended")]
    assert kinds == ["turn_started", "message", "message", "tool_call", "tool_call", "tool_result", "tool_result",
                     "text_delta", "text_delta", "message", "turn_ended"]  # fmt: skip
    assert [c["arguments"] for c in of(records, "tool_call")] == [{"path": "a"}, "{oops"]
    assert [(r["id"], r["status"]) for r in of(records, "tool_result")] == [("c1", "ok"), ("c2", "error")]
    assert teller.end == records[-1] == {
        "type": "turn_ended", "status": "completed", "text": "done", "cost": 1.0, "error": None, "session": ME,
        "usage": {"input": 20, "output": 4, "cache_read": 6, "cache_write": 2, "reasoning": 2},
    }  # fmt: skip
    assert teller.code == 0
    assert not teller.active


@pytest.mark.parametrize(
    ("ending", "status", "code", "kind"),
    [
        ([ev.RunEnded("r", "stopped", "cancelled"), ev.TurnStopped("t", "cancelled")], "interrupted", 130, "cancelled"),
        ([ev.RunEnded("r", "stopped", "steps"), ev.TurnStopped("t", "steps")], "limited", 1, "steps"),
        ([ev.RunEnded("r", "failed", failed="provider", error_kind="auth", message="bad key"),
          ev.TurnSettled("t", "failed")], "failed", 4, "auth"),
        ([ev.RunEnded("r", "failed", failed="storage", message="disk full"), ev.TurnSettled("t", "failed")],
         "failed", 1, "storage"),
        ([ev.RunEnded("r", "failed", failed="malformed", message="?"), ev.TurnSettled("t", "failed")],
         "failed", 1, "malformed"),
        ([ev.RunEnded("r", "completed"), ev.TurnSettled("t", "refused")], "refused", 3, "permission"),
    ],
)  # fmt: skip
def test_every_ending_has_its_status_exit_code_and_error(
    ending: list[ev.AnyEvent], status: str, code: int, kind: str
) -> None:
    records, teller = tell(*begun(), step("kept"), *map(fact, ending))
    assert (records[-1]["status"], teller.code, records[-1]["text"]) == (status, code, "kept")
    error = records[-1]["error"]
    assert isinstance(error, Mapping)
    assert error["kind"] == kind
    assert error["message"]


def test_a_parked_turn_is_interrupted_and_keeps_what_was_streamed_only_if_it_is_recorded() -> None:
    records, teller = tell(*begun(), TextStreamed(ME, 1, "half"), Left(ME))
    assert (records[-1]["type"], records[-1]["status"], teller.code) == ("turn_ended", "interrupted", 130)
    records, _ = tell(*begun(), fact(ev.RunEnded("r", "stopped", "cancelled", text="d"), TextBody("half")),
                      fact(ev.TurnStopped("t", "cancelled")))  # fmt: skip
    assert records[-1]["text"] == "half"


def test_a_failed_attempt_is_told_once_and_a_retry_begins_anew() -> None:
    failed = [fact(ev.RunEnded("r", "failed", failed="provider", error_kind="server", message="500")),
              fact(ev.TurnAttemptFailed("t", "r"))]  # fmt: skip
    records, teller = tell(*begun(), *failed)
    assert (records[-1]["status"], teller.code) == ("failed", 4)
    records, _ = tell(fact(ev.TurnSettled("t", "failed")), teller=teller)
    assert records == []
    records, _ = tell(fact(ev.TurnRetried("t", "r2", 2)), step("good"), fact(ev.TurnSettled("t", "completed")),
                      teller=teller)  # fmt: skip
    assert [r["type"] for r in records if r["type"] != "step_ended"] == ["turn_started", "message", "turn_ended"]
    assert teller.code == 0


def test_a_childs_records_carry_its_name_and_its_turns_end_as_agent_records() -> None:
    records, teller = tell(
        *begun(), fact(ev.TurnStarted("t2", "r2"), agent=CHILD), TextStreamed(CHILD, 1, "x"),
        fact(ev.TurnSettled("t2", "refused"), agent=CHILD),
    )  # fmt: skip
    assert [(r["type"], r.get("id"), r.get("status"), r.get("agent")) for r in records[2:]] == [
        ("agent", CHILD, "running", None), ("text_delta", None, None, CHILD), ("agent", CHILD, "completed", None),
    ]  # fmt: skip
    assert teller.active


def test_a_childs_records_say_what_it_is_called_and_who_opened_it() -> None:
    grandchild = "c" * 32
    job, deeper = ev.JobStarted(CHILD, "child", "explore", "c1"), ev.JobStarted(grandchild, "child", "worker")
    begins, ends = ev.TurnStarted("t2", "r2"), ev.TurnStopped("t2", "cancelled")
    records, _ = tell(
        *begun(), fact(ev.JobStarted("j", "command", "make")),
        fact(begins, agent=CHILD), fact(job), fact(deeper, agent=CHILD), fact(begins, agent=grandchild),
        fact(ev.TurnSettled("t2", "failed"), agent=grandchild), fact(ends, agent=CHILD),
        fact(job), fact(begins, agent=CHILD),
    )  # fmt: skip
    assert [(r["id"], r["parent"], r["name"], r["status"]) for r in of(records, "agent")] == [
        (CHILD, ME, "explore", "running"), (grandchild, CHILD, "worker", "running"),
        (grandchild, CHILD, "worker", "failed"), (CHILD, ME, "explore", "cancelled"), (CHILD, ME, "explore", "running"),
    ]  # fmt: skip


def test_unknown_effects_and_denials_are_said() -> None:
    records, _ = tell(
        *begun(),
        fact(ev.ToolCallFailed("r", "c1", "unknown", "internal", "lost", cause="crash", effects="unknown")),
        fact(ev.ToolCallFailed("r", "c2", "known", "permission_denied", "a rule says no")),
        fact(ev.ToolCallFailed("r", "c3", "unknown", "cancelled", "by you", cause="interrupted", effects="unknown")),
    )
    assert [(r["status"], r.get("effects")) for r in of(records, "tool_result")] == [
        ("unknown", "unknown"), ("denied", None), ("cancelled", "unknown"),
    ]  # fmt: skip


def test_what_escape_takes_back_is_a_notice() -> None:
    assert tell(InputReturned(ME, "later"))[0] == [{"type": "notice", "text": "not sent: later"}]


def test_a_record_is_one_line_whatever_it_holds() -> None:
    data = line({"type": "notice", "text": "a\nb\u2028\ud800é漢", "arguments": {"n": 2**70}})
    assert data.count(b"\n") == 1
    assert json.loads(data)["arguments"]["n"] == 2**70


# ---------------------------------------------------------------- what a program may say


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ('{"type":"prompt","text":"hi","later":1}', ops.Prompt("hi")),
        ('{"type":"steer","text":"hi"}', ops.Prompt("hi")),
        ('{"type":"queue","text":"hi"}', ops.Prompt("hi", when="turn")),
        ('{"type":"interrupt"}', ops.Interrupt()),
        ('{"type":"answer","id":"q","decision":"once"}', ops.Decide("q", "once")),
        ('{"type":"answer","id":"q","decision":"no","reason":"never"}', ops.Decide("q", "no", reason="never")),
        ('{"type":"answer","id":"q","decision":"once","arguments":{"b":1,"a":2}}',
         ops.Decide("q", "once", arguments='{"a":2,"b":1}')),
        ('{"type":"reply","id":"q","text":"blue"}', ops.Answer("q", "blue")),
        ('{"type":"reply","id":"q","choices":["a","b"]}', ops.Answer("q", choices=("a", "b"))),
    ],
)  # fmt: skip
def test_each_request_becomes_its_op(text: str, op: ops.Op) -> None:
    assert read_request(text.encode(), {"q": "approval"}) == op


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"type":"prmpt"}', "none of prompt, steer"),
        ('{"type":"prompt"}', "text is missing"),
        ('{"type":"prompt","text":" "}', "text is empty"),
        ('{"type":"prompt","text":3}', "text is no text"),
        ('{"type":"prompt","text":"a","text":"b"}', "duplicate"),
        ('{"type":"prompt","text":"\\ud800"}', "surrogate"),
        ('{"type":"answer","id":"x","decision":"once"}', "no question 'x' is open"),
        ('{"type":"answer","id":"q","decision":"always"}', "none of once, session, no"),
        ('{"type":"reply","id":"q","choices":[1]}', "no list of texts"),
    ],
)
def test_what_is_no_request_is_said_and_nothing_happens(text: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_request(text.encode(), {"q": "approval"})
