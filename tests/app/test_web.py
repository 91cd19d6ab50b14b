"""The `fetch` tool in the whole program: what it asks, whom it believes, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from panto.app.web import WebGet
from panto.providers.http import Http
from panto.providers.model import NetworkSettings
from panto.schema.errors import ToolFailure
from panto.tools.fetch import HttpReply
from tests.app.conftest import Panto
from tests.app.test_headless import fake, records  # noqa: F401 - a fixture
from tests.fake_model import FakeModel, Reply

DATA = Path(__file__).parents[1] / "providers" / "data"
"""A certificate for 127.0.0.1 and model.test, and its key."""


@asynccontextmanager
async def site(answer: bytes, *, secure: bool = False, seen: list[str] | None = None) -> AsyncIterator[int]:
    """A server that gives one answer to whatever is asked, and its port; without an answer it stays silent."""
    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / "local.pem", DATA / "local.key")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if seen is not None:
            seen.append(head.decode())
        if answer:
            writer.write(answer)
            writer.close()
        else:
            await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def get(url: str, *, limit: int = 1000, seconds: float = 20, ca_file: str = "") -> HttpReply:
    http = Http(NetworkSettings(ca_file=ca_file))
    try:
        return await WebGet(http)(url, address="127.0.0.1", headers={"accept": "*/*"}, limit=limit, seconds=seconds)
    finally:
        await http.aclose()


def test_the_checked_address_is_connected_to_and_the_name_is_proved() -> None:
    async def main() -> None:
        seen: list[str] = []
        async with site(b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nhello", secure=True, seen=seen) as port:
            trusted = str(DATA / "local.pem")
            reply = await get(f"https://model.test:{port}/a?b=c", ca_file=trusted)
            assert (reply.status, reply.headers["x-a"], reply.body, reply.cut) == (200, "b", b"hello", False)
            assert seen[0].startswith("GET /a?b=c HTTP/1.1\r\n")
            assert f"\r\nhost: model.test:{port}\r\n" in seen[0].lower()
            with pytest.raises(ToolFailure, match="other.test.*not trusted"):
                await get(f"https://other.test:{port}/", ca_file=trusted)

    asyncio.run(main())


def test_a_redirect_is_not_followed_and_a_flood_is_cut() -> None:
    async def main() -> None:
        async with site(b"HTTP/1.1 302 -\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n") as port:
            reply = await get(f"http://127.0.0.1:{port}/")
            assert (reply.status, reply.headers["location"]) == (302, "http://127.0.0.1:1/")
        async with site(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300_000) as port:
            reply = await get(f"http://127.0.0.1:{port}/", limit=100_000)
            assert (len(reply.body), reply.cut) == (100_000, True)

    asyncio.run(main())


def test_a_silent_and_an_absent_server_are_said_without_advice_about_models() -> None:
    async def main() -> None:
        async with site(b"") as port:
            with pytest.raises(ToolFailure) as silent:
                await get(f"http://127.0.0.1:{port}/", seconds=0.1)
        assert silent.value.cls == "timeout"
        with socket.socket() as taken, pytest.raises(ToolFailure) as absent:
            taken.bind(("127.0.0.1", 0))  # it listens to nobody
            port = taken.getsockname()[1]
            await get(f"http://127.0.0.1:{port}/")
        assert absent.value.cls == "unavailable"
        assert f"cannot reach 127.0.0.1:{port}" in absent.value.message
        assert "base_url" not in silent.value.message + absent.value.message

    asyncio.run(main())


def test_a_model_fetches_a_page_where_the_person_allows_it(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    page = fake.url.removesuffix("/v1") + "/_stats"
    for private, status in (("false", "denied"), ("true", "ok")):
        settings = panto.config.read_text().partition("[tools]")[0]
        panto.config.write_text(f"{settings}[tools]\nfetch_private = {private}")
        fake.replies += [Reply(calls=[("fetch", {"url": page})]), Reply("Done.")]
        done = panto("-p", "fetch it", "--mode", "yolo", "--output", "stream-json")
        (result,) = [r for r in records(done.stdout) if r["type"] == "tool_result"]
        assert result["status"] == status, result
    assert '"scn"' in result["text"]
