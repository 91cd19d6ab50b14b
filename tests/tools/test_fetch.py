"""fetch against a real server on this machine, and the addresses it must not reach."""

from __future__ import annotations

import asyncio
import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from panto.schema.errors import ToolFailure
from panto.tools.builtins import ToolSettings
from panto.tools.fetch import HttpReply, is_public
from panto.tools.html import markdown, title_of
from tests.tools.lab import Lab, lab, run, text_of

PAGES: dict[str, tuple[int, Mapping[str, str], bytes]] = {
    "/page": (200, {"content-type": "text/html"}, b"<title>A &amp; B</title><h1>Hi</h1><p>one <b>two</b></p>"),
    "/plain": (200, {"content-type": "text/plain; charset=latin-1"}, "Gr\xfc\xdfe \x1b[2J\n".encode("latin-1")),
    "/json": (200, {"content-type": "application/json"}, b'{"a": 1}'),
    "/image": (200, {"content-type": "image/png"}, b"\x89PNG\r\n\x1a\n\0\0"),
    "/long": (200, {"content-type": "text/plain"}, b"".join(b"line %d\n" % n for n in range(20_000))),
    "/gone": (404, {"content-type": "text/html"}, b"<p>nothing here</p>"),
    "/there": (302, {"location": "/page"}, b""),
    "/round": (302, {"location": "/round"}, b""),
    "/inside": (302, {"location": "http://127.0.0.1:1/secret"}, b""),
    "/file": (302, {"location": "file:///etc/passwd"}, b""),
    "/secret": (200, {"content-type": "text/plain"}, b"key is canary-123456"),
}


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, headers, body = PAGES[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class _Plain(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


async def get(url: str, *, address: str | None, headers: Mapping[str, str], limit: int, seconds: float) -> HttpReply:
    def work() -> HttpReply:
        opener = urllib.request.build_opener(_Plain, urllib.request.ProxyHandler({}))
        try:
            reply = opener.open(urllib.request.Request(url, headers=dict(headers)), timeout=seconds)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            body = reply.read(limit + 1)
            found = {name.lower(): value for name, value in reply.headers.items()}
            return HttpReply(reply.status, found, body[:limit], len(body) > limit)

    return await asyncio.to_thread(work)


def fetching(tmp_path: Path, private: bool = True) -> ToolSettings:
    return ToolSettings(http_get=get, fetch_private=private)


def test_a_page_comes_as_markdown_and_text_as_it_is(tmp_path: Path, site: str) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=fetching(tmp_path)) as work:
            reply = await work.call("fetch", url=f"{site}/page")
            assert text_of(reply) == f"{site}/page — A & B\n\n# Hi\n\none **two**"
            assert reply.outcome.title == f"{site}/page" and reply.outcome.fact.endswith("bytes")
            assert (await work.text("fetch", url=f"{site}/plain")).endswith("\n\nGrüße")
            assert (await work.text("fetch", url=f"{site}/json")).endswith('{"a": 1}')
            assert (await work.text("fetch", url=f"{site}/there")).startswith(f"{site}/page")
            work.mask = ("canary-123456",)
            assert (await work.text("fetch", url=f"{site}/secret")).endswith("key is [secret]")

    run(check())


def test_a_long_answer_is_cut_and_all_of_it_kept_in_a_file(tmp_path: Path, site: str) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=fetching(tmp_path)) as work:
            reply = await work.call("fetch", url=f"{site}/long", limit=1_000)
            assert len(text_of(reply)) < 1_300 and "line 19999" in text_of(reply)
            assert Path(reply.outcome.file).read_text().count("\n") == 19_999

    run(check())


def test_failures_are_named(tmp_path: Path, site: str) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=fetching(tmp_path)) as work:
            gone = await work.failure("fetch", url=f"{site}/gone")
            assert gone.cls == "not_found" and "404" in gone.message and "nothing here" in gone.message
            assert "redirects" in (await work.failure("fetch", url=f"{site}/round")).message
            assert "image/png" in (await work.failure("fetch", url=f"{site}/image")).message
            assert "not an http" in (await work.failure("fetch", url=f"{site}/file")).message
            for url in ("file:///etc/passwd", "ftp://x.example/", "http://", "http://a:b@example.org/", "http://[::1/"):
                assert (await work.failure("fetch", url=url)).cls == "invalid_input"

    run(check())


def test_private_addresses_are_refused_also_by_name_by_form_and_after_a_redirect(tmp_path: Path, site: str) -> None:
    async def refused(work: Lab, url: str) -> None:
        failure = await work.failure("fetch", url=url)
        assert failure.cls == "permission_denied" and "fetch_private" in failure.message, url

    async def check() -> None:
        async with lab(tmp_path / "ws", settings=fetching(tmp_path, private=False)) as work:
            port = site.rpartition(":")[2]
            hosts = "127.0.0.1 localhost 127.1 0x7f000001 2130706433 [::1] [::ffff:127.0.0.1] 0.0.0.0 169.254.169.254"
            for host in (*hosts.split(), "10.0.0.1", "192.168.1.1", "[fe80::1]", "[fd00::1]"):
                await refused(work, f"http://{host}:{port}/page")

    run(check())

    async def redirected(url: str, **more: object) -> HttpReply:
        return HttpReply(302, {"location": f"{site}/secret"}, b"")

    async def again() -> None:
        settings = ToolSettings(http_get=redirected)
        async with lab(tmp_path / "ws", settings=settings) as work:
            await refused(work, "http://93.184.216.34/")

    run(again())


@pytest.mark.parametrize(
    ("url", "asked"),
    [("http://127.0.0.1:8/x", False), ("http://[::1]/", False), ("http://localhost/", False),
     ("http://10.0.0.1", False), ("https://example.org/x", True), ("http://93.184.216.34/", True),
     ("http://[", True), ("no address", True)],
)  # fmt: skip
def test_nobody_is_asked_about_what_is_refused_anyway(tmp_path: Path, url: str, asked: bool) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=fetching(tmp_path, private=False)) as work:
            context = work.context()
            if asked:
                assert await work.tool("fetch").preview({"url": url}, context) is None
            else:
                with pytest.raises(ToolFailure, match="is a private address"):
                    await work.tool("fetch").preview({"url": url}, context)
        async with lab(tmp_path / "other", settings=fetching(tmp_path, private=True)) as work:
            assert await work.tool("fetch").preview({"url": url}, work.context()) is None

    run(check())


def test_the_checked_address_is_the_one_connected_to(tmp_path: Path) -> None:
    seen: list[tuple[str, object]] = []

    async def record(url: str, **more: object) -> HttpReply:
        seen.append((url, more["address"]))
        return HttpReply(200, {"content-type": "text/plain"}, b"ok")

    async def check() -> None:
        async with lab(tmp_path / "ws", settings=ToolSettings(http_get=record)) as work:
            await work.call("fetch", url="http://93.184.216.34/x#part")
            assert seen == [("http://93.184.216.34/x", "93.184.216.34")]

    run(check())


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("127.0.0.1", False), ("::1", False),
        ("::ffff:10.0.0.1", False), ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False),
        ("169.254.169.254", False), ("100.64.0.1", False),
        ("224.0.0.1", False), ("0.0.0.0", False), ("fe80::1%eth0", False), ("nonsense", False), ("fc00::1", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


def test_html_becomes_markdown_in_reading_order() -> None:
    page = """<html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav><script>x()</script>
    <h2>Head</h2><p>One <em>two</em> <a href="/x">three</a> <code>f(x)</code></p>
    <ul><li>a<li>b<ul><li>c</li></ul></li></ul><ol><li>one</li><li>two</li></ol>
    <pre><code>x = 1\n  y</code></pre><blockquote>said</blockquote>
    <table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2|3</td></tr></table><img alt="pic" src="p.png"></body>"""
    assert markdown(page, "https://example.org/d/") == (
        "## Head\n\nOne *two* [three](https://example.org/x) `f(x)`\n\n- a\n- b\n  - c\n\n1. one\n2. two\n\n"
        "```\nx = 1\n  y\n```\n\n> said\n\n| A | B |\n| --- | --- |\n| 1 | 2\\|3 |\n\n![pic](https://example.org/d/p.png)"
    )
    assert title_of("<TITLE>\n a \n b</TITLE>") == "a b" and title_of("x") == ""


@pytest.mark.parametrize("page", ["", "<", "<p", "</b></table>", "<li>x", "<td>x</td>", "<a>x</a>" * 99, "&#0;&a;"])
def test_broken_html_never_raises(page: str) -> None:
    markdown(page)
