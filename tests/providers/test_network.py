"""Proxies, private authorities, and what is said when they fail."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from panto.providers import NetworkSettings
from panto.providers.assemble import Assembler
from panto.providers.http import is_local, proxy_for
from panto.schema.errors import ProviderError
from panto.schema.messages import Message, ModelResult, Origin, Request, Text
from tests.providers.fixtures import MODEL, provider
from tests.wire_check import Reply, WireCheck, rendered

DATA = Path(__file__).parent / "data"
REQUEST = Request(MODEL, messages=(Message("user", (Text("hi"),)),))
HASHED = "1815b120.0"
"""The certificate's name in a directory of authorities."""
DEAD = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("url", "env", "proxy"),
    [
        ("https://api.x.com/v1", {}, None),
        ("https://api.x.com/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.x.com/v1", {"https_proxy": "p:1"}, "http://p:1"),
        ("http://api.x.com/v1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("http://api.x.com/v1", {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.x.com/v1", {"ALL_PROXY": "http://p:1", "NO_PROXY": "x.com"}, None),
        ("https://api.x.com/v1", {"ALL_PROXY": "http://p:1", "NO_PROXY": ".x.com , y.com"}, None),
        ("https://api.x.com/v1", {"ALL_PROXY": "http://p:1", "NO_PROXY": "*.x.com"}, None),
        ("https://apix.com/v1", {"ALL_PROXY": "http://p:1", "no_proxy": "x.com"}, "http://p:1"),
        ("https://x.com:8443/", {"ALL_PROXY": "http://p:1", "NO_PROXY": "x.com:443"}, "http://p:1"),
        ("https://x.com/", {"ALL_PROXY": "http://p:1", "NO_PROXY": "x.com:443"}, None),
        ("https://10.1.2.3/", {"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://11.1.2.3/", {"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://p:1"),
        ("https://x.com/", {"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("http://127.0.0.1:8080/v1", {"ALL_PROXY": "http://p:1"}, None),
        ("http://[::1]:8080/v1", {"ALL_PROXY": "http://p:1"}, None),
        ("http://localhost:8080/v1", {"ALL_PROXY": "http://p:1"}, None),
    ],
)
def test_the_proxy_for_a_url_follows_the_environment(url: str, env: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, env) == proxy


def test_only_this_machine_is_local() -> None:
    assert [h for h in ("localhost", "127.0.0.1", "127.9.9.9", "[::1]", "a.localhost") if not is_local(h)] == []
    assert [h for h in ("localhost.com", "128.0.0.1", "10.0.0.1", "", "0.0.0.0") if is_local(h)] == []


async def ask(url: str, settings: NetworkSettings | None = None) -> ModelResult:
    fold = Assembler()
    async for part in provider("openai_chat", url, network=settings or NetworkSettings(connect_s=5)).stream(REQUEST):
        fold.feed(part)
    return fold.result(Origin("local", "openai_chat", MODEL))


def test_a_local_server_is_reached_past_a_dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, DEAD)

    async def main() -> None:
        async with WireCheck("openai_chat") as vendor:
            assert (await ask(vendor.base_url)).text() == "ok"

    asyncio.run(main())


def test_a_proxy_is_used_for_what_is_not_local(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with WireCheck("openai_chat") as proxy:  # a proxy gets the whole address in its request line
            monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
            proxy.replies += [Reply("through the proxy")]
            assert (await ask("http://model.test/v1")).text() == "through the proxy"
            assert proxy.requests[0].path == "http://model.test/v1/chat/completions"
            monkeypatch.setenv("HTTP_PROXY", DEAD)
            with pytest.raises(ProviderError) as caught:
                await ask("http://model.test/v1")
            assert caught.value.kind == "connection"

    asyncio.run(main())


class Secure:
    """A server that speaks TLS with a certificate of nobody's."""

    async def __aenter__(self) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / "local.pem", DATA / "local.key")
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=context)
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            body = b"".join(rendered("openai_chat", Reply("safe"), MODEL, stream=True))
            head = f"HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def test_an_unknown_authority_is_refused_with_host_and_way_out() -> None:
    async def main() -> None:
        async with Secure() as url:
            with pytest.raises(ProviderError) as caught:
                await ask(url)
        error = caught.value
        assert error.kind == "connection" and url.split("/")[2] in error.message and "certificate" in error.message
        assert "ca_file" in error.hint and "SSL_CERT_FILE" in error.hint

    asyncio.run(main())


@pytest.mark.parametrize("way", ["ca_file", "SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_a_private_authority_is_trusted_when_named(way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = NetworkSettings(connect_s=5, ca_file=str(DATA / "local.pem") if way == "ca_file" else "")
    if way == "SSL_CERT_FILE":
        monkeypatch.setenv(way, str(DATA / "local.pem"))
    if way == "SSL_CERT_DIR":
        (tmp_path / HASHED).write_bytes((DATA / "local.pem").read_bytes())
        monkeypatch.setenv(way, str(tmp_path))

    async def main() -> None:
        async with Secure() as url:
            assert (await ask(url, settings)).text() == "safe"

    asyncio.run(main())


def test_a_ca_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ProviderError, match="nowhere.pem"):
        asyncio.run(ask("https://127.0.0.1:1/v1", NetworkSettings(ca_file="/nowhere.pem")))


def test_an_address_that_is_none_is_said() -> None:
    for url in ("ftp://x/v1", "nonsense", "http://[::1/v1", "https://"):
        with pytest.raises(ProviderError):
            asyncio.run(ask(url))


def test_one_client_serves_loop_after_loop() -> None:
    with WireCheck("openai_chat") as vendor:
        one = provider("openai_chat", vendor.base_url)

        async def main() -> int:
            return len([part async for part in one.stream(REQUEST)])

        assert asyncio.run(main()) == asyncio.run(main()) > 0
