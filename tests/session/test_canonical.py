"""Canonical JSON, strict decoding, and values that nobody can change behind the ledger's back."""

from __future__ import annotations

import json
import struct
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.schema.codec import BadText, canonical, decode, derive_id, digest, loads
from panto.schema.events import AnyEvent, RunEnded, TitleChanged, ToolCallFailed
from panto.schema.messages import ToolSpec
from panto.session import commands as c
from panto.session import stage
from panto.session.ledger import thaw
from tests.session.world import number, opened, play, said, turn

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.randoms())
def test_equal_values_with_other_key_order_or_white_space_have_equal_bytes(value: Any, chance: Any) -> None:
    def shuffled(item: Any) -> Any:
        if isinstance(item, dict):
            keys = list(item)
            chance.shuffle(keys)
            return {key: shuffled(item[key]) for key in keys}
        return [shuffled(each) for each in item] if isinstance(item, list) else item

    once = canonical(value)
    assert canonical(shuffled(value)) == once
    assert canonical(loads(json.dumps(shuffled(value), indent=2))) == once
    assert digest(canonical(loads(once))) == digest(once)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b"{} {}", b"[1,]", b"", b"\xff", b'"\\ud800"', b'{"\\udfff":1}',
        b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b"[" * 100_000, b'"\xed\xa0\x80"', b"{'a':1}", b"01",
    ],
)  # fmt: skip
def test_what_is_ambiguous_or_no_json_is_refused_never_merged(data: bytes) -> None:
    with pytest.raises(BadText):
        loads(data)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63) - 1, 2**64, 10**400])
def test_large_integers_keep_their_digits(value: int) -> None:
    assert canonical({"n": value}) == b'{"n":%d}' % value
    assert loads(canonical([value])) == [value]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (-0.0, "0"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-6, "0.000001"), (1e-7, "1e-7"),
        (4.5, "4.5"), (333333333.33333329, "333333333.3333333"), (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (0.1 + 0.2, "0.30000000000000004"), (1e23, "1e+23"), (9007199254740993.0, "9007199254740992"),
    ],
)  # fmt: skip
def test_floats_have_the_shortest_form_that_scripts_use(value: float, text: str) -> None:
    assert canonical(value).decode() == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_as_they_were(value: float) -> None:
    back = float(json.loads(canonical(value)))
    assert struct.pack("d", back) == struct.pack("d", value) or value == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\udc00": 1}])
def test_what_json_cannot_hold_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(BadText):
        canonical(value)


TITLE = {"type": "title_changed", "session": number(5), "title": "t", "v": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {**TITLE, "more": 1}, {**TITLE, "type": "title_teleported"}, {k: v for k, v in TITLE.items() if k != "type"},
        {k: v for k, v in TITLE.items() if k != "title"}, {**TITLE, "title": 5}, {**TITLE, "title": None},
        {**TITLE, "v": True}, [TITLE], "x",
        {"type": "run_ended", "run": "r", "status": "completed", "v": 1, "failed": None, "uncertain": None},
    ],
)  # fmt: skip
def test_a_fact_with_unknown_or_missing_parts_is_refused(wrong: Any) -> None:
    with pytest.raises(BadText):
        decode(canonical(wrong), AnyEvent)  # type: ignore[arg-type]


def test_two_keys_of_a_union_are_refused() -> None:
    with pytest.raises(BadText):
        decode(b'{"type":"title_changed","type":"model_changed","session":"s","title":"t","v":1}', AnyEvent)  # type: ignore[arg-type]


GOLDEN = {
    type(event).__name__: event
    for line in (Path(__file__).parent / "golden/v1-session.jsonl").read_text(encoding="utf-8").splitlines()
    if '"type":"commit"' in line[:20]
    for group in thaw(canonical(json.loads(line)["commands"]))
    for event in group.events()
}


@pytest.mark.parametrize("name", sorted(kind.__name__ for kind in typing.get_args(AnyEvent)))
def test_encoding_decoding_and_encoding_a_fact_gives_equal_bytes(name: str) -> None:
    event = GOLDEN[name]
    once = canonical(event)
    again: Any = decode(once, AnyEvent)  # type: ignore[arg-type]
    assert again == event
    assert canonical(again) == once
    assert loads(once)["v"] == 1  # type: ignore[index]


def test_changing_what_was_handed_in_or_got_out_changes_no_state(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session)
            before = session.state
            with pytest.raises(AttributeError):
                before.settings = before.settings  # type: ignore[misc]
            body = said("x")
            command = c.SubmitInput(input=number(1), body=body.digest)
            (fact,) = await session.commit(command, bodies=(body,))
            with pytest.raises(AttributeError):
                fact.event.input = number(2)  # type: ignore[union-attr,misc]
            preview = session.preview(c.ChangeTitle(title="t"))
            preview.view.context.order.clear()
            preview.view.turns.clear()
            assert len(session.view.turns) == 1 and len(session.view.context) == 2
            assert before.inputs == {} and list(session.state.inputs) == [number(1)]

    play(script)


def test_a_tool_schemas_bytes_survive_unchanged() -> None:
    text = '{ "type":"object", "properties": {"a": true, "x-own": {"$ref":"#/d"}}, "a":1e2 }'
    spec = ToolSpec(name="t", description="d", schema=text)
    assert msgspec.json.decode(stage(spec).data, type=ToolSpec).schema == text


def test_defaults_are_left_out_and_versions_always_written() -> None:
    assert canonical(TitleChanged(session="s", title="")) == b'{"session":"s","title":"","type":"title_changed","v":1}'
    assert b'"uncertain"' not in canonical(RunEnded(run="r", status="completed"))
    assert b'"class":"timeout"' in canonical(
        ToolCallFailed(run="r", call="c", outcome="known", cls="timeout", message="")
    )


def test_derived_ids_are_the_first_half_of_a_digest_over_a_canonical_array() -> None:
    assert derive_id("a", 1, "é") == digest('["a",1,"é"]'.encode())[:32]
