"""fetch: a web page as Markdown, or a text file as it is. Private addresses are refused unless the person allows them.

The HTTP client belongs to another room: this tool is handed one `get`, follows redirects itself, and checks every
address that a name stands for before anything is sent to it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import TextView, View
from panto.tools.builtin import Builtin
from panto.tools.masks import masked
from panto.tools.text import MODEL_LIMIT, VIEW_LIMIT, both_ends, encoding_of, kind_of, one_line, plain, size
from panto.tools.tool import Approval, ToolContext, ToolReply

_BODY = 5_000_000
_REDIRECTS = 5
_SECONDS = 30.0
_ACCEPT = "text/html,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One answer. `headers` by lower-case name; `body` at most what was asked for, `cut` if there was more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


class HttpGet(Protocol):
    """One GET without following redirects.

    `address`: the IP address to connect to (host and TLS name stay the URL's), None behind a proxy, which resolves by
    itself. `limit` in bytes, `seconds` for the whole of it. Raises PantoError, fit for the model.
    """

    async def __call__(
        self, url: str, *, address: str | None, headers: Mapping[str, str], limit: int, seconds: float
    ) -> HttpReply: ...


class Fetch(Builtin):
    name = "fetch"
    subject = "url"
    schema = (
        '{"type":"object","properties":{"url":{"type":"string"},'
        '"limit":{"type":"integer","minimum":100,"description":"characters"}},'
        '"required":["url"],"additionalProperties":false}'
    )
    mutates = False
    replay = True
    approval: Approval = "read"

    def __init__(self, get: HttpGet, allow_private: bool = False) -> None:
        self._get = get
        self._private = allow_private

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        """Nothing beyond the address. What is refused anyway, nobody is asked about: ToolFailure."""
        try:
            host = urlsplit(str(arguments["url"])).hostname or ""
        except ValueError:
            return None
        if not self._private and _plainly_private(host):
            raise _refused(host, host)
        return None

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        limit = arguments.get("limit", MODEL_LIMIT)
        assert isinstance(limit, int)
        work = asyncio.ensure_future(self._follow(str(arguments["url"])))
        stop = asyncio.ensure_future(context.cancelled.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ToolFailure("stopped by the user", "cancelled", retry_allowed=True)
            url, reply = work.result()
        finally:
            work.cancel()
            stop.cancel()
        return await asyncio.to_thread(_outcome, url, reply, min(limit, MODEL_LIMIT), context)

    async def _follow(self, url: str) -> tuple[str, HttpReply]:
        """The address that answered and its answer."""
        for _ in range(_REDIRECTS + 1):
            url, address = await self._checked(url)
            reply = await self._get(url, address=address, headers={"accept": _ACCEPT}, limit=_BODY, seconds=_SECONDS)
            where = reply.headers.get("location", "")
            if reply.status not in (301, 302, 303, 307, 308) or not where:
                return url, reply
            url = urljoin(url, where)
        raise ToolFailure(f"more than {_REDIRECTS} redirects", "unavailable")

    async def _checked(self, url: str) -> tuple[str, str]:
        """The URL in order, and the address to connect to. Raises ToolFailure for what may not be fetched."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as e:
            raise ToolFailure(f"{one_line(url)} is not a web address: {e}") from None
        if parts.scheme not in ("http", "https") or not host:
            raise ToolFailure(f"{one_line(url)} is not an http or https address")
        if parts.username or parts.password:
            raise ToolFailure("an address with a user name or password is not fetched")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port or (443 if parts.scheme == "https" else 80), type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as e:
            raise ToolFailure(f"{one_line(host)} is not known: {e}", "unavailable", retry_allowed=True) from None
        addresses = [str(entry[4][0]) for entry in found]
        private = next((address for address in addresses if not is_public(address)), None)
        if private is not None and not self._private:
            raise _refused(host, private)
        return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", parts.query, "")), addresses[0]


def _refused(host: str, address: str) -> ToolFailure:
    known = f" ({address})" if address != host else ""
    said = f"{one_line(host)} is a private address{known}; tools.fetch_private allows that"
    return ToolFailure(said, "permission_denied")


def _plainly_private(host: str) -> bool:
    """Whether a host is private by what is written, whatever a name would stand for."""
    import ipaddress

    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return not is_public(host)


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet, also where it is wrapped in an IPv6 form."""
    import ipaddress

    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


def _outcome(url: str, reply: HttpReply, limit: int, context: ToolContext) -> ToolReply:
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = encoding_of(reply.body)
    if encoding is None and reply.body:
        what = kind or kind_of(reply.body) or "binary"
        raise ToolFailure(f"{one_line(url)} is {what}, {size(len(reply.body))}: not text")
    text = _decoded(reply)
    title = ""
    if kind in ("text/html", "application/xhtml+xml") or (not kind and text.lstrip()[:9].lower() == "<!doctype"):
        from panto.tools.html import markdown, title_of

        title = title_of(text)
        text = markdown(text, url)
    text = masked(plain(text), context.mask).strip()
    if reply.cut:
        text += f"\n(cut after {size(_BODY)})"
    file = _kept(text, context.spool) if len(text) > limit else ""
    body = both_ends(text, limit, f"; all of it is in {file}" if file else "") or "(nothing)"
    head = f"{url}{f' — {one_line(title)}' if title else ''}"
    if reply.status >= 400:
        cls = "not_found" if reply.status in (404, 410) else "unavailable"
        raise ToolFailure(f"{one_line(url)} answered {reply.status}: {body[:500]}", cls)  # type: ignore[arg-type]
    outcome = ToolOutcome(
        parts=(Text(f"{head}\n\n{body}"),), title=one_line(url), fact=size(len(reply.body)),
        view=TextView(text[:VIEW_LIMIT]), file=file,
    )  # fmt: skip
    return ToolReply(outcome)


def _decoded(reply: HttpReply) -> str:
    named = reply.headers.get("content-type", "").lower().partition("charset=")[2].strip(" \"';")
    encoding = encoding_of(reply.body)
    if encoding is not None and (encoding.bom or encoding.name == "utf-8"):
        return encoding.decode(reply.body)
    try:
        return reply.body.decode(named or "utf-8", "replace")
    except LookupError:
        return reply.body.decode("latin-1")


def _kept(text: str, spool: str) -> str:
    try:
        os.makedirs(spool, mode=0o700, exist_ok=True)
        path = os.path.join(spool, f"page-{os.urandom(6).hex()}.md")
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
        return path
    except OSError:
        return ""
