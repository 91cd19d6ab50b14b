"""Tool and reply schemas as each vendor takes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.providers.schemas import for_reply, for_tool, is_strict
from tests.wire_check import PROTOCOLS
from tests.wire_check.rules import check_schema

PLAIN = '{"type": "object", "properties": {"a": {"type": "string", "x-own": true}}, "additionalProperties": false}'


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_schema_that_every_vendor_takes_keeps_its_bytes(protocol: str) -> None:
    assert for_tool(PLAIN, protocol) == PLAIN
    assert for_tool('{"type":"object","properties":{},"minimum":1.0}', protocol).endswith('"minimum":1.0}')


def fitted(schema: Any, protocol: str = "openai_chat") -> Any:
    return json.loads(for_tool(json.dumps(schema), protocol))


def test_references_are_inlined_also_nested_ones_and_with_siblings() -> None:
    schema = {
        "type": "object",
        "properties": {
            "p": {"$ref": "#/$defs/P", "description": "mine"},
            "q": {"type": "array", "items": {"$ref": "#/$defs/Q~1r"}},
        },
        "$defs": {"P": {"type": "object", "properties": {"q": {"$ref": "#/$defs/Q~1r"}}}, "Q/r": {"enum": ["$ref"]}},
    }
    q = {"enum": ["$ref"]}
    p = {"type": "object", "properties": {"q": q}, "description": "mine"}
    assert fitted(schema) == {"type": "object", "properties": {"p": p, "q": {"type": "array", "items": q}}}


def test_a_recursive_reference_ends_in_an_open_object() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}
    made = fitted({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert made["properties"]["n"]["properties"]["next"] == {"type": "object"}


def test_alternatives_at_the_root_become_one_object_with_what_all_require() -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "k"]}
    two = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["k"]}
    made = fitted({"anyOf": [one, two], "properties": {"k": {"type": "string"}}})
    assert set(made["properties"]) == {"a", "b", "k"} and made["required"] == ["k"] and made["type"] == "object"
    assert fitted({"allOf": [one, two]})["required"] == ["a", "k"]


def test_a_property_named_like_a_keyword_is_left_alone() -> None:
    schema = {
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "definitions": {"type": "string"}, "const": {}},
    }
    for protocol in PROTOCOLS:
        assert fitted(schema, protocol) == schema


def test_gemini_gets_constants_as_enums_of_one() -> None:
    schema = {"type": "object", "properties": {"k": {"const": "x"}, "const": {"type": "string"}}}
    made = fitted(schema, "google_generate")
    assert made["properties"] == {"k": {"enum": ["x"]}, "const": {"type": "string"}}


@pytest.mark.parametrize(
    "schema", ["true", "false", "{}", "[]", "{", "", '{"type":["object","null"]}', '{"type":"string"}']
)
def test_whatever_is_no_object_becomes_one(schema: str) -> None:
    for protocol in PROTOCOLS:
        check_schema(json.loads(for_tool(schema, protocol)), "tool")


leaves = st.sampled_from(
    [True, {}, {"type": "string"}, {"const": 1}, {"$ref": "#/$defs/D"}, {"$ref": "#"}, {"$ref": "http://x/"}]
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda p: {"type": "object", "properties": p}, st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        ),
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda a: {"anyOf": a}, st.lists(inner, min_size=1, max_size=2)),
        st.just({"type": "array"}),
    ),
    max_leaves=6,
)


@given(schemas, schemas, st.sampled_from(PROTOCOLS))
def test_any_schema_becomes_acceptable(schema: Any, definition: Any, protocol: str) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {"D": definition}}
    made = json.loads(for_tool(json.dumps(schema), protocol))
    check_schema(made, "tool", "const" if protocol == "google_generate" else "")


def test_claude_gets_closed_objects_without_the_words_it_refuses() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "s": {"type": "string", "format": "color"}},
    }
    made = json.loads(for_reply(json.dumps(schema), "anthropic_messages"))
    assert made == {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
        "additionalProperties": False,
    }


def test_strictness_is_claimed_only_where_the_schema_allows_it() -> None:
    strict = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert is_strict(json.dumps(strict))
    assert not is_strict(json.dumps({**strict, "required": []}))
    assert not is_strict(json.dumps({**strict, "properties": {"a": {}}}))
    assert not is_strict(PLAIN)
