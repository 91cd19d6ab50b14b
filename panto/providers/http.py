"""The one HTTP client. Nothing of httpx is imported before the first request, no TLS context is made before https."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from panto.providers.failure import Failure
from panto.providers.model import NetworkSettings

if TYPE_CHECKING:
    import ssl

    import httpx


def is_local(host: str) -> bool:
    """Whether this host is the machine itself; such a server is never reached through a proxy."""
    host = host.strip("[]").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if not host[:1].isdigit() and ":" not in host:
        return False
    import ipaddress  # only for hosts that are numbers

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_for(url: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The proxy for a URL by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (either case); None: go straight."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if is_local(host):
        return None

    def read(name: str) -> str:
        return environ.get(name.lower()) or environ.get(name.upper()) or ""

    port = parts.port or (443 if parts.scheme == "https" else 80)
    if any(_excludes(entry.strip().lower(), host, port) for entry in read("no_proxy").split(",") if entry.strip()):
        return None
    proxy = read(f"{parts.scheme}_proxy") or read("all_proxy")
    return (proxy if "://" in proxy else f"http://{proxy}") if proxy else None


def _excludes(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        import ipaddress

        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and "]" not in number and name.count(":") == 0:
        if int(number) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").removeprefix(".")
    return host == entry or host.endswith("." + entry)


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Trusts the system's authorities (or SSL_CERT_FILE, SSL_CERT_DIR), and those in `ca_file` besides."""
    import ssl

    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath) or not (context.cert_store_stats()["x509"] or _filled(paths.capath)):
        import certifi

        context.load_verify_locations(certifi.where())
    if ca_file:
        try:
            context.load_verify_locations(os.path.expanduser(ca_file))
        except (OSError, ssl.SSLError) as error:
            message = f"the file of trusted authorities {ca_file} cannot be used: {error}"
            raise Failure("connection", message, hint="Correct ca_file under [network].", again=False) from None
    return context


def _filled(folder: str | None) -> bool:
    try:
        return bool(folder) and any(os.scandir(folder))
    except OSError:
        return False


class Http:
    """The client. Made without I/O; `aclose` frees its connections. One for the whole process."""

    def __init__(self, settings: NetworkSettings = NetworkSettings()) -> None:  # noqa: B008 - frozen
        self.settings = settings
        self._clients: dict[tuple[str, str], httpx.AsyncClient] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def _client(self, url: str) -> httpx.AsyncClient:
        """The client for this scheme and proxy: with neither TLS nor proxies it costs almost nothing."""
        import httpx

        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # connections belong to the loop they were made in; a library user may have several
            self._clients, self._loop = {}, loop
        secure, proxy = url.startswith("https:"), proxy_for(url) or ""
        key = ("https" if secure else "http", proxy)
        if key not in self._clients:
            needs_tls = secure or proxy.startswith("https:")
            # verify=False stands only where no TLS is spoken; it spares reading all authorities from disk.
            self._clients[key] = httpx.AsyncClient(
                verify=tls_context(self.settings.ca_file) if needs_tls else False,
                proxy=proxy or None,
                trust_env=False,
                http2=False,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=90),
                headers={"user-agent": "panto", "accept-encoding": "identity"},
            )
        return self._clients[key]

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        idle_s: float | None = None,
        address: str = "",
    ) -> AsyncIterator[httpx.Response]:
        """Send a request, give its response with the body unread; leaving closes it at once.

        `idle_s`: longest silence while reading (default: the settings'). `address`: connect to this IP address instead
        of whatever the host's name stands for (a proxy looks the name up itself). Raises Failure for whatever the
        network does, naming host and way out; no status raises.
        """
        import httpx

        idle = self.settings.idle_s if idle_s is None else idle_s
        timeout = httpx.Timeout(idle, connect=self.settings.connect_s, pool=None)
        try:
            host = urlsplit(url).netloc.rpartition("@")[2]
        except ValueError as error:
            raise Failure("invalid_request", f"{url} is no address: {error}", hint="Check base_url.") from None
        try:
            client = self._client(url)
            sni: dict[str, str] = {}
            if address and not proxy_for(url):
                url, headers, sni = _pinned(url, address, headers or {})
            async with client.stream(
                method, url, headers=headers, content=body, timeout=timeout, extensions=sni
            ) as response:
                yield response
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise translate(error, host, self.settings) from error
        except ImportError as error:  # a SOCKS proxy without its package
            raise Failure("connection", f"the proxy for {host} cannot be used: {error}", again=False) from None

    async def aclose(self) -> None:
        """Close all connections; the client can be used again afterwards."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()


def _pinned(url: str, address: str, headers: Mapping[str, str]) -> tuple[str, Mapping[str, str], dict[str, str]]:
    """The URL with an IP address in the place of its host, which stays the one asked for and proved by TLS."""
    parts = urlsplit(url)
    place = f"[{address}]" if ":" in address else address
    there = parts._replace(netloc=f"{place}:{parts.port}" if parts.port else place)
    name = parts.netloc.rpartition("@")[2]
    return there.geturl(), {**headers, "host": name}, {"sni_hostname": parts.hostname or ""}


def translate(error: Exception, host: str, settings: NetworkSettings) -> Failure:
    """The one place where httpx's errors become ours."""
    import httpx

    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        message = f"{host} did not answer within {settings.connect_s:g} s"
        return Failure("timeout", message, hint="Check base_url and the network (or a proxy: HTTPS_PROXY).")
    if isinstance(error, httpx.TimeoutException):
        message = f"{host} was silent for {settings.idle_s:g} s"
        return Failure("timeout", message, hint="A slow model may need a larger idle_s under [network].")
    if isinstance(error, httpx.ConnectError):
        cause: BaseException | None = error
        while cause is not None:
            if "CERTIFICATE_VERIFY_FAILED" in str(cause):
                hint = "Name the authority's PEM file as ca_file under [network], or in SSL_CERT_FILE."
                message = (
                    f"{host} has a certificate that is not trusted: {getattr(cause, 'verify_message', '') or cause}"
                )
                return Failure("connection", message, hint=hint, again=False)
            cause = cause.__cause__ or cause.__context__
        here = is_local(host.rsplit(":", 1)[0])
        hint = "Is the server running?" if here else "Check base_url and the network (or a proxy: HTTPS_PROXY)."
        return Failure("connection", f"cannot reach {host}: {reason}", hint=hint, again=False if here else None)
    if isinstance(error, httpx.ProxyError):
        return Failure("connection", f"the proxy did not let {host} be reached: {reason}", again=False)
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return Failure(
            "invalid_request", f"{host or 'the URL'} cannot be asked: {reason}", hint="Check base_url.", again=False
        )
    if isinstance(error, httpx.RemoteProtocolError) and "closed connection" in reason or "disconnected" in reason:
        return Failure("connection", f"{host} closed the connection in the middle of its answer")
    return Failure("connection", f"the connection to {host} broke: {reason}")
