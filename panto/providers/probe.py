"""What a server says of its models: which there are, and how large their windows really are.

A model's training size is a trap: local servers mostly run far below it. Only what is allocated counts here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from panto.providers.http import Http
from panto.providers.model import Price
from panto.schema.errors import ProviderError

ANSWER_S = 3.0
LARGEST = 8 << 20
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A model that a server lists. Sizes in tokens, 0 where it does not say; `images` None where it does not say."""

    id: str
    context: int = 0
    max_output: int = 0
    price: Price | None = None
    images: bool | None = None


async def get(
    http: Http, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> Json | list[Any] | None:
    """A JSON document, or None for whatever else comes: asking is free, nobody has to answer."""
    method = "GET" if body is None else "POST"
    try:
        async with asyncio.timeout(ANSWER_S), http.open(method, url, headers=headers, body=body) as response:
            if response.status_code != 200:
                return None
            data = b""
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > LARGEST:
                    return None
        value = msgspec.json.decode(data)
    except (ProviderError, TimeoutError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict | list) else None


async def models(http: Http, base_url: str, headers: Mapping[str, str] | None = None) -> list[Found]:
    """The models that `GET {base_url}/models` lists, in its order; [] if it lists none."""
    listed = await get(http, f"{base_url.rstrip('/')}/models", headers)
    rows = listed if isinstance(listed, list) else []
    if isinstance(listed, dict):
        rows = listed.get("data") or listed.get("models") or []
    return [found for row in rows if isinstance(row, dict) and (found := _found(row)) is not None]


def _found(row: Json) -> Found | None:
    ident = row.get("id") or str(row.get("name") or "").removeprefix("models/")
    if not isinstance(ident, str) or not ident:
        return None
    meta, top = _dict(row, "meta"), _dict(row, "top_provider")
    context = _least(
        meta.get("n_ctx"), row.get("max_model_len"), row.get("context_length"), top.get("context_length"),
        row.get("max_input_tokens"), row.get("inputTokenLimit"), row.get("loaded_context_length"),
    )  # fmt: skip
    output = _least(top.get("max_completion_tokens"), row.get("max_tokens"), row.get("outputTokenLimit"))
    inputs = _dict(row, "architecture").get("input_modalities")
    images = "image" in inputs if isinstance(inputs, list) else None
    return Found(ident, context, output, _price(_dict(row, "pricing")), images)


def _dict(row: Json, name: str) -> Json:
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def _least(*values: object) -> int:
    known = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0]
    return min(known, default=0)


def _price(table: Json) -> Price | None:
    """OpenRouter's prices: USD per token, as text."""

    def number(name: str) -> float | None:
        try:
            return float(table[name]) * 1e6
        except (KeyError, TypeError, ValueError):
            return None

    sent, made = number("prompt"), number("completion")
    if sent is None or made is None:
        return None
    return Price(sent, made, number("input_cache_read"), number("input_cache_write"))


async def window(http: Http, base_url: str, model: str, headers: Mapping[str, str] | None = None) -> int:
    """The tokens that a local server has allocated for a model; 0 where it does not say."""
    parts = urlsplit(base_url)
    root = f"{parts.scheme}://{parts.netloc}"
    for ask in (_llama_cpp, _ollama, _lm_studio):
        if size := await ask(http, root, model, headers or {}):
            return size
    return 0


async def _llama_cpp(http: Http, root: str, model: str, headers: Mapping[str, str]) -> int:
    """Per slot: what one conversation can use."""
    props = await get(http, f"{root}/props", headers)
    if not isinstance(props, dict):
        return 0
    return _least(_dict(props, "default_generation_settings").get("n_ctx"))


async def _ollama(http: Http, root: str, model: str, headers: Mapping[str, str]) -> int:
    running = await get(http, f"{root}/api/ps", headers)
    rows = running.get("models") if isinstance(running, dict) else None
    if not isinstance(rows, list):
        return 0
    for row in rows:
        if isinstance(row, dict) and model in (
            row.get("name"),
            row.get("model"),
            str(row.get("name")).removesuffix(":latest"),
        ):
            return _least(row.get("context_length"))
    shown = await get(http, f"{root}/api/show", headers, msgspec.json.encode({"model": model}))
    if not isinstance(shown, dict):
        return 0
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdigit():
            return int(value)
    return 0


async def _lm_studio(http: Http, root: str, model: str, headers: Mapping[str, str]) -> int:
    row = await get(http, f"{root}/api/v0/models/{quote(model, safe='/')}", headers)
    return _least(row.get("loaded_context_length")) if isinstance(row, dict) else 0
