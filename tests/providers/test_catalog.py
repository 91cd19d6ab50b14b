"""Models as data: the shipped file, labels, layers, and what servers say of themselves."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import panto.providers
from panto.providers import Catalog, Protocols, ProviderSettings, Scripted, layered
from panto.providers.conformance import Answer, LocalServer, Seen, json_answer
from panto.providers.http import Http
from panto.providers.model import Price, Tier
from panto.providers.provider import Provider
from panto.schema.errors import UsageError
from panto.schema.messages import Usage

SHIPPED = Path(panto.providers.__file__).with_name("models.toml")
LOCAL: dict[str, Any] = {
    "one": {"base_url": "http://127.0.0.1:1/v1", "models": {"small": {"id": "small-1", "aliases": ["s"]}, "big": {}}},
    "two": {"base_url": "http://127.0.0.1:2/v1", "models": {"big": {"context": 5}}},
    "open": {"base_url": "http://127.0.0.1:3/v1"},
}


def shipped() -> dict[str, Any]:
    tables: dict[str, Any] = tomllib.loads(SHIPPED.read_text("utf-8"))["providers"]
    return tables


def test_every_shipped_model_is_whole_and_can_be_resolved() -> None:
    catalog = Catalog(shipped())
    rows = catalog.rows()
    assert len(rows) >= 40
    known = {"id", "aliases", "context", "max_output", "price", "images", "reasoning", "forced_tool", "wire", "tools"}
    for row in rows:
        model = catalog.resolve(row.label)
        table = shipped()[row.provider]["models"][row.label.partition(":")[2]]
        assert set(table) <= known and set(shipped()[row.provider]) <= {
            "protocol", "base_url", "api_key_env", "wire", "options", "models", "headers",
        }  # fmt: skip
        assert model.spec.context >= 100_000 and 0 < model.spec.max_output <= model.spec.context
        assert model.spec.price is not None and 0 < model.spec.price.input < model.spec.price.output
        assert model.provider.protocol in Protocols().names()


def test_a_label_names_a_provider_and_a_model_and_an_alias_alone_will_do_if_it_is_the_only_one() -> None:
    catalog = Catalog(LOCAL)
    assert catalog.resolve("one:small").spec.id == "small-1"
    assert [catalog.resolve(label).label for label in ("one:s", "one:small-1")] == ["one:s", "one:small-1"]
    assert catalog.resolve("s").spec.id == catalog.resolve("small").spec.id == "small-1"
    assert catalog.resolve("open:any/thing:7b").spec.id == "any/thing:7b"
    assert catalog.provider("one") is catalog.resolve("one:big").provider


@pytest.mark.parametrize(
    ("label", "says"),
    [("one:smal", "one:small"), ("big", "one:big, two:big"), ("nothing", "panto models"), ("", "panto models")],
)
def test_an_unknown_or_ambiguous_label_is_an_error_with_what_is_near(label: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Catalog(LOCAL).resolve(label)
    assert says in caught.value.hint


def test_a_person_s_tables_lie_over_the_shipped_ones_member_by_member() -> None:
    mine = {"anthropic": {"base_url": "http://127.0.0.1:9", "models": {"opus": {"context": 7}, "own": {"id": "x"}}}}
    catalog = Catalog(layered(shipped(), mine))
    assert catalog.resolve("anthropic:opus").spec.context == 7
    assert catalog.resolve("anthropic:opus").spec.id == "claude-opus-5-5"
    assert catalog.resolve("anthropic:own").spec.id == "x"


def test_rows_are_filtered_by_words_and_usable_ones_come_first() -> None:
    catalog = Catalog(LOCAL, usable=lambda name, table: "no key" if name == "one" else "")
    assert [row.label for row in catalog.rows()] == ["two:big", "one:small", "one:big"]
    assert [row.label for row in catalog.rows("BIG one")] == ["one:big"]
    assert len(catalog.rows(limit=1)) == 1


def test_an_added_protocol_is_used_and_a_built_in_one_cannot_be_replaced() -> None:
    def make(settings: ProviderSettings, http: Http) -> Provider:
        return Scripted([{"text": "hi"}], name=settings.name)

    protocols = Protocols()
    protocols.register("mine", make)
    catalog = Catalog({"p": {"protocol": "mine", "models": {"m": {}}}}, protocols=protocols)
    assert catalog.resolve("p:m").provider.name == "p"
    with pytest.raises(UsageError):
        protocols.register("openai_chat", make)
    protocols.withdraw("mine")
    with pytest.raises(UsageError, match="mine"):
        Catalog({"p": {"protocol": "mine"}}, protocols=protocols).provider("p")


def test_a_script_comes_from_the_config_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"pick": "turn", "replies": [{"text": "one"}]}))
    tables: dict[str, Any] = {
        "a": {"protocol": "scripted", "replies": [{"text": "x"}]},
        "b": {"protocol": "scripted", "script": str(path)},
    }
    assert Catalog(tables).provider("a").protocol == Catalog(tables).provider("b").protocol == "scripted"
    path.write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        Catalog(tables).provider("b")
    with pytest.raises(UsageError, match="cannot be read"):
        Catalog({"c": {"protocol": "scripted", "script": str(tmp_path / "none")}}).provider("c")
    with pytest.raises(UsageError, match="reply 0"):
        Catalog({"d": {"protocol": "scripted", "replies": [{"texts": "x"}]}}).provider("d")


def test_the_cost_counts_what_was_cached_and_the_tier_of_the_whole_prompt() -> None:
    price = Price(2, 10, 0.2, 2.5, (Tier(100, 4, 20, 0.4, 5),))
    assert price.cost(Usage(100, 10, 40, 20)) == pytest.approx((40 * 2 + 40 * 0.2 + 20 * 2.5 + 100) / 1e6)
    assert price.cost(Usage(101, 10, 0, 0)) == pytest.approx((101 * 4 + 200) / 1e6)
    assert Price(1, 2).cost(Usage(10, 0, 5, 5)) == pytest.approx(10e-6)


# ---------------------------------------------------------------- what servers say

LISTED = {"data": [{"id": "m"}, {"id": "n", "meta": {"n_ctx": 4096}}]}
SERVERS: dict[str, tuple[dict[str, Any], int]] = {
    "llama.cpp": ({"/v1/models": LISTED, "/props": {"default_generation_settings": {"n_ctx": 2048}}}, 2048),
    "vLLM": ({"/v1/models": {"data": [{"id": "m", "max_model_len": 8192}]}}, 8192),
    "Ollama running": ({"/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}]}}, 4096),
    "Ollama asleep": (
        {"/api/ps": {"models": []}, "/api/show": {"parameters": "stop x\nnum_ctx    16384"}},
        16384,
    ),
    "Ollama silent": ({"/api/ps": {"models": []}, "/api/show": {"model_info": {"l.context_length": 131072}}}, 0),
    "LM Studio": ({"/api/v0/models/m": {"loaded_context_length": 6000, "max_context_length": 99999}}, 6000),
    "nobody": ({}, 0),
}  # fmt: skip


@pytest.mark.parametrize("server", SERVERS)
def test_the_real_window_is_asked_of_a_local_server_once(server: str) -> None:
    pages, window = SERVERS[server]

    def answer(seen: Seen) -> Answer:
        page = pages.get(seen.path)
        return json_answer(json.dumps(page).encode()) if page is not None else json_answer(b"<html>", 404)

    async def main() -> None:
        async with LocalServer(answer) as local:
            catalog = Catalog({"here": {"base_url": f"{local.url}/v1"}})
            assert (await catalog.measured("here:m")).spec.context == window
            asked = len(local.seen)
            assert (await catalog.measured("here:m")).spec.context == window and len(local.seen) == asked
            assert catalog.resolve("here:m").spec.context == window
            told = {"here": {"base_url": f"{local.url}/v1", "models": {"m": {"context": 100_000}}}}
            assert (await Catalog(told).measured("here:m")).spec.context == (window or 100_000)

    asyncio.run(main())


def test_openrouter_tells_sizes_and_prices() -> None:
    row = {
        "id": "v/m",
        "context_length": 200000,
        "top_provider": {"context_length": 128000, "max_completion_tokens": 9000},
        "pricing": {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000002"},
        "architecture": {"input_modalities": ["text", "image"]},
    }

    async def main() -> None:
        async with LocalServer(lambda seen: json_answer(json.dumps({"data": [row]}).encode())) as server:
            catalog = Catalog({"router": {"base_url": f"{server.url}/api/v1"}}, keys=lambda name, table: lambda: "sk-1")
            spec = (await catalog.measured("router:v/m")).spec
            assert (spec.context, spec.max_output, spec.images) == (128000, 9000, True)
            assert spec.price is not None and (spec.price.input, spec.price.output) == (
                pytest.approx(2),
                pytest.approx(10),
            )
            assert server.seen[0].headers["authorization"] == "Bearer sk-1"

    asyncio.run(main())


def test_a_server_that_does_not_answer_costs_nothing() -> None:
    async def main() -> None:
        async with LocalServer(lambda seen: Answer()) as server:
            url = server.url
        assert (await Catalog({"gone": {"base_url": f"{url}/v1"}}).measured("gone:m")).spec.context == 0

    asyncio.run(main())


def test_the_setting_to_change_is_named_by_port_for_local_servers_only() -> None:
    def setting(url: str) -> str:
        return Catalog({"p": {"base_url": url}}).resolve("p:m").window_setting

    assert "OLLAMA_CONTEXT_LENGTH" in setting("http://localhost:11434/v1")
    assert "--ctx-size" in setting("http://127.0.0.1:8080/v1")
    assert setting("http://127.0.0.1:9999/v1") == setting("http://localhost/v1") == "the server's context size"
    assert setting("https://api.example.com/v1") == setting("http://10.0.0.1:8080/v1") == ""
