"""How each protocol spells levels, limits, schemas, caching and choices."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import panto.providers
from panto.providers import Catalog, ModelSpec, ProviderSettings
from panto.providers.catalog import spec_of
from panto.providers.wire import level_for
from panto.schema.errors import ProviderError
from panto.schema.messages import Message, Origin, Request, SystemBlock, Text, ToolSpec
from tests.providers.test_cross_sending import WIRES
from tests.wire_check import PROTOCOLS, Protocol, refusal

READ = ToolSpec("read", "Reads.", '{"type":"object","properties":{}}')
HI = Message("user", (Text("hi"),))
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
SHIPPED = tomllib.loads(Path(panto.providers.__file__).with_name("models.toml").read_text("utf-8"))["providers"]


def body(protocol: Protocol, spec: ModelSpec, request: Request, **settings: Any) -> tuple[Any, dict[str, str]]:
    made = WIRES[protocol](ProviderSettings("p", protocol, "http://x/v1", **settings)).prepare(
        request, spec, stream=True
    )
    return json.loads(made.body), made.headers


def ask(model: str, **changes: Any) -> Request:
    return Request(model, messages=(HI,), **changes)


def shipped(label: str) -> tuple[Protocol, ModelSpec, dict[str, Any]]:
    name, _, alias = label.partition(":")
    table = SHIPPED[name]
    settings = {"wire": table.get("wire", {}), "options": table.get("options", {})}
    return table["protocol"], spec_of(alias, table["models"][alias]), settings


@pytest.mark.parametrize(
    ("label", "level", "expected"),
    [
        ("anthropic:opus", "", {"thinking": ADAPTIVE}),
        ("anthropic:opus", "high", {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}),
        ("anthropic:opus", "off", {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
        ("anthropic:sonnet", "off", {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}}),
        ("anthropic:haiku", "off", {"thinking": {"type": "disabled"}}),
        ("anthropic:haiku-4-5", "", {}),
        ("anthropic:haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 16384}}),
        ("anthropic:haiku-4-5", "off", {}),
        ("openai:gpt-6.2-sol", "medium", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("openai:gpt-6.2-sol", "off", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("openai:gpt-6-luna", "off", {"reasoning": {"effort": "none", "summary": "auto"}}),
        ("openai:gpt-6-luna", "", {"reasoning": {"summary": "auto"}}),
        ("google:argon", "high", {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}}),
        ("google:argon", "xhigh", {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}}),
        ("google:flash-2.5", "off", {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 0}}),
        ("google:flash-2.5", "low", {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}}),
        ("deepseek:flash", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek:flash", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("moonshot:kimi", "medium", {"reasoning_effort": "high"}),
        ("moonshot:kimi-code", "high", {}),
        ("groq:gpt-oss", "medium", {"reasoning_effort": "medium"}),
    ],
)  # fmt: skip
def test_reasoning_levels_are_spelt_as_each_vendor_wants_them(label: str, level: str, expected: dict[str, Any]) -> None:
    protocol, spec, settings = shipped(label)
    sent, _ = body(protocol, spec, ask(spec.id, reasoning=level), **settings)
    sent = {**sent, **sent.get("generationConfig", {})}
    keys = ("thinking", "output_config", "reasoning", "reasoning_effort", "thinkingConfig")
    assert {k: v for k, v in sent.items() if k in keys} == expected


@pytest.mark.parametrize("label", [row.label for row in Catalog(SHIPPED).rows()])
@pytest.mark.parametrize("level", ["", "off", "low", "max"])
def test_every_shipped_model_s_request_passes_its_vendor(label: str, level: str) -> None:
    protocol, spec, settings = shipped(label)
    dialect = {"deepseek": "deepseek", "moonshot": "kimi", "mistral": "mistral", "zai": "zai"}.get(
        label.partition(":")[0], "openai"
    )
    old = Message("assistant", (Text("I did."),), origin=Origin("q", "scripted", "x"))
    request = Request(spec.id, (SystemBlock("s", "Be good.", True),), (HI, old, HI), (READ,), reasoning=level)
    sent, headers = body(protocol, spec, request, **settings)
    path = f"/models/{spec.id}:streamGenerateContent"
    assert refusal(protocol, sent, headers, path=path, dialect=dialect) is None


@pytest.mark.parametrize(
    ("asked", "levels", "sent"),
    [
        ("", ("low",), ""), ("high", (), ""), ("off", ("off", "low"), "off"), ("none", ("off", "low"), "off"),
        ("off", ("none", "low"), "off"), ("off", ("low", "high"), "low"), ("medium", ("low", "high", "max"), "high"),
        ("max", ("low", "high"), "high"), ("own word", ("low",), "own word"), ("minimal", ("off", "low"), "low"),
    ],
)  # fmt: skip
def test_a_level_that_a_model_lacks_becomes_the_next_higher(asked: str, levels: tuple[str, ...], sent: str) -> None:
    assert level_for(asked, levels) == sent


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_schema_reaches_the_body_and_passes(protocol: Protocol) -> None:
    schema = (
        '{"type":"object","properties":{"title":{"type":"string"}},"required":["title"],"additionalProperties":false}'
    )
    sent, headers = body(protocol, ModelSpec("m", max_output=100), ask("m", schema=schema))
    assert '"title"' in json.dumps(sent) and refusal(protocol, sent, headers) is None
    if protocol.startswith("openai"):
        assert '"strict": true' in json.dumps(sent)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_limits_and_a_model_without_tools(protocol: Protocol) -> None:
    spec = ModelSpec("m", max_output=5000, tools=False)
    sent = json.dumps(body(protocol, spec, ask("m", tools=(READ,)))[0])
    assert "5000" in sent and "read" not in sent
    assert "77" in json.dumps(body(protocol, spec, ask("m", max_output=77))[0])


def test_responses_never_ask_for_less_than_the_vendor_s_least() -> None:
    assert body("openai_responses", ModelSpec("m"), ask("m", max_output=1))[0]["max_output_tokens"] == 16


def test_claude_gets_breakpoints_where_the_prefix_stands_still() -> None:
    system = (SystemBlock("a", "A" * 10, True), SystemBlock("b", "B", True), SystemBlock("c", "C"))
    said = [Message("assistant", (Text("ok"),)), HI]
    request = Request("m", system, (HI, *said, *said), (READ,))
    sent, headers = body("anthropic_messages", ModelSpec("m"), request)
    marked = [bool("cache_control" in b) for b in sent["system"]]
    assert marked == [True, False, True]
    turns = [["cache_control" in b for b in m["content"]] for m in sent["messages"] if m["role"] == "user"]
    assert turns == [[False], [True], [True]]
    assert refusal("anthropic_messages", sent, headers) is None
    plain, _ = body("anthropic_messages", ModelSpec("m", wire={"cache": False}), request)
    assert "cache_control" not in json.dumps(plain)


def test_a_cache_key_tells_nothing_and_stays_the_same_for_a_session() -> None:
    one = body("openai_responses", ModelSpec("m"), ask("m", session_id="secret"))[0]["prompt_cache_key"]
    two = body("openai_responses", ModelSpec("m"), ask("m", session_id="secret", reasoning="low"))[0][
        "prompt_cache_key"
    ]
    other = body("openai_responses", ModelSpec("m"), ask("m", session_id="other"))[0]["prompt_cache_key"]
    assert one == two != other and "secret" not in one and len(one) <= 64


def test_openrouter_gets_cache_marks_and_reasoning_as_an_object() -> None:
    wire = SHIPPED["openrouter"]["wire"]
    request = Request("v/m", (SystemBlock("s", "Be good."),), (HI,), reasoning="high")
    sent, _ = body("openai_chat", ModelSpec("v/m", reasoning=("high",)), request, wire=wire)
    assert sent["messages"][0]["content"][0]["cache_control"] and sent["reasoning"] == {"effort": "high"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_options_win_over_what_panto_sets_and_unknown_ones_are_named(protocol: Protocol) -> None:
    own = {"generationConfig": {"maxOutputTokens": 9}} if protocol == "google_generate" else {"metadata": {"a": "b"}}
    sent, _ = body(protocol, ModelSpec("m", max_output=100), ask("m", options=own), options={"metadata": {"c": "d"}} if "metadata" in own else {})  # fmt: skip # noqa: E501
    if protocol == "google_generate":
        assert sent["generationConfig"]["maxOutputTokens"] == 9
    else:
        assert sent["metadata"] == {"a": "b", "c": "d"}
    with pytest.raises(ProviderError, match="'temperatur'"):
        body(protocol, ModelSpec("m"), ask("m", options={"temperatur": 1}))
    with pytest.raises(ProviderError, match="sets it itself"):
        body(protocol, ModelSpec("m"), ask("m", options={"tools": []}))
    sent, _ = body(protocol, ModelSpec("m"), ask("m", options={"own": 1}), wire={"members": ["own"]})
    assert sent["own"] == 1


def test_a_template_that_wants_a_word_between_results_and_a_person_gets_it() -> None:
    from panto.schema.messages import Json, ToolCall, ToolResult

    call = Message("assistant", (ToolCall("read", Json("{}"), "c"),))
    results = Message("tool", (ToolResult("c", "read", (Text("x"),)),))
    request = Request("m", messages=(HI, call, results, HI))
    sent, _ = body("openai_chat", ModelSpec("m"), request, wire={"after_tools": "Understood.", "ids": "nine"})
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    assert len(sent["messages"][2]["tool_call_id"]) == 9


def test_a_template_without_a_system_role_finds_it_in_the_first_words() -> None:
    request = Request("m", (SystemBlock("s", "Be good."),), (HI,))
    sent, _ = body("openai_chat", ModelSpec("m"), request, wire={"system_inline": True})
    assert sent["messages"] == [{"role": "user", "content": "Be good.\n\nhi"}]
