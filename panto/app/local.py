"""Model servers on this machine, found by knocking at their usual ports."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from panto.schema.errors import ProviderError

if TYPE_CHECKING:
    from panto.providers import Http

USUAL = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}
KNOCK_S, ANSWER_S = 0.25, 2.0
MOST_BYTES, MOST_MODELS = 1 << 20, 200


def servers(environ: Mapping[str, str]) -> dict[str, str]:
    """Name -> base URL of what is looked for. PANTO_LOCAL_SERVERS replaces it: `name=url ...`, or `none`."""
    said = environ.get("PANTO_LOCAL_SERVERS")
    if said is None:
        return USUAL
    pairs = (word.partition("=") for word in said.split())
    return {name: url for name, equals, url in pairs if equals}


async def find(http: Http, wanted: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Provider tables of the servers that are there and list models; takes a quarter of a second if none is."""
    tables = await asyncio.gather(*(_look(http, url) for url in wanted.values()))
    return {name: table for name, table in zip(wanted, tables, strict=True) if table}


async def _look(http: Http, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    try:
        # Cheaper than the HTTP client, which is not even loaded if nobody is there.
        async with asyncio.timeout(KNOCK_S):
            _, writer = await asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port or 80)
        writer.close()
    except (OSError, TimeoutError):
        return {}
    ids: list[str] = []
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(ANSWER_S):
            ids = await _list(http, url)
    models = {re.sub(r"[\s\"]", "_", name): {"id": name} for name in ids[:MOST_MODELS]}
    return {"protocol": "openai_chat", "base_url": url, "models": models} if models else {}


async def _list(http: Http, url: str) -> list[str]:
    import msgspec

    async with http.open("GET", f"{url}/models") as response:
        if response.status_code != 200:
            return []
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MOST_BYTES:
                return []
    try:
        listed = msgspec.json.decode(body)["data"]
        return [model["id"] for model in listed if isinstance(model["id"], str) and model["id"]]
    except (msgspec.DecodeError, KeyError, TypeError):  # something else that listens on that port
        return []
