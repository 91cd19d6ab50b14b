"""json and derive_id in Lua agree with Python's, byte for byte."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.lua.host import Host
from panto.schema import codec

HOST = Host(asks={})
LUA: Any = HOST.lua.eval(
    """function(H)
      local function try(f) return function(...)
        local ok, v = pcall(f, ...) if ok then return v end return false, v end end
      return try(function(s) return H.json_encode(H.json_decode(s)) end),
        try(function(s) return H.json_encode(H.json_decode(s), true) end),
        try(function(s) return H.derive_id(table.unpack(H.json_decode(s))) end),
        try(function(s) H.json_decode(s) return 'read' end),
        H.sha256
    end"""
)(HOST.private)
again, canonical, derived, read, sha256 = LUA

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_lua_reads_and_writes_means_the_same(value: object) -> None:
    assert json.loads(again(json.dumps(value))) == value
    assert json.loads(again(json.dumps(value, ensure_ascii=False, indent=1))) == value


@given(VALUES)
def test_the_canonical_form_is_pythons(value: object) -> None:
    assert canonical(json.dumps(value)).encode() == codec.canonical(value)


@given(st.lists(VALUES, max_size=4))
def test_derived_ids_are_pythons(parts: list[object]) -> None:
    assert derived(json.dumps(parts)) == codec.derive_id(*parts)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_written_in_their_shortest_form(value: float) -> None:
    assert canonical(json.dumps([value])).encode() == codec.canonical([value])


GOLDEN = [
    ([], "4f53cda18c2baa0c0354bb5f9a3ecbe5"),
    (["0f" * 16, 0], "bf79a126e3be6cb2db15ec4bd7c423db"),
    (["0f" * 16, 12, "turn"], "519ff1d6180af2cedd68ba13f5dfa36e"),
    ([True, None, 1.5, {"b": [], "a": {}}, "é\U0001f600\ue000"], "07a8678cadeafca2822d67872c2d654d"),
]


@pytest.mark.parametrize(("parts", "known"), GOLDEN)
def test_the_golden_ids_hold(parts: list[object], known: str) -> None:
    assert derived(json.dumps(parts)) == codec.derive_id(*parts) == known


@pytest.mark.parametrize("length", [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000])
def test_digests_are_right_at_every_edge_of_a_block(length: int) -> None:
    text = "a" * length
    assert sha256(text) == codec.digest(text.encode())


BAD = {
    '{"a":1,"a":2}': "duplicate key", "[1,]": "a value is missing", "[1": "',' or ']'", "{1:2}": "a key is missing",
    '{"a" 1}': "':' is missing", "NaN": "a value is missing", "[01]": "leading zero", '"\\x"': "bad escape",
    '"\\ud800"': "lone surrogate", '"\\udc00\\ud800"': "lone surrogate", '"a\nb"': "control character",
    '"a': "without end", "1 2": "text after", "": "ends too early", "tru": "unknown word", "1e999": "out of range",
    "[" * 300 + "]" * 300: "too deeply", "-": "a value is missing", "1.": "text after", ".5": "a value is missing",
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BAD.items())
def test_bad_text_is_refused_with_its_position(text: str, said: str) -> None:
    ok, message = read(text)
    assert ok is False
    assert said in message and " at position " in message


@given(st.text(alphabet='{}[],:"\\ntrue0123.e-+ ', max_size=12))
def test_lua_reads_exactly_what_python_reads(text: str) -> None:
    try:
        value = codec.loads(text)
    except codec.BadText:
        assert read(text)[0] is False
    else:
        assert canonical(text).encode() == codec.canonical(value)


def test_bytes_that_are_no_text_are_refused() -> None:
    ok, message = read('"\udcff"')
    assert ok is False and message == "not UTF-8 at position 2"


def test_keys_keep_their_order_and_new_ones_follow() -> None:
    keep: Callable[[], str] = HOST.lua.eval(
        """function(H) return function()
          local t = H.json_decode('{"z":1,"a":2,"m":3}') t.b, t.a = 4, nil
          return H.json_encode(t) end end"""
    )(HOST.private)
    assert keep() == '{"z":1,"m":3,"b":4}'


def test_tags_and_null_say_what_lua_cannot() -> None:
    text: str = HOST.lua.eval(
        """function(H) local j = H.json
          return j.encode({ j.array{}, j.object{}, {}, j.null, 1, 1.0, 'x' }) end"""
    )(HOST.private)
    assert text == '[[],{},{},null,1,1.0,"x"]'
