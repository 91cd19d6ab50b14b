"""http: one request over panto's client. With an endpoint, address, headers and key are added here, out of sight."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from panto.lua.driver import Driver, LuaTask
from panto.lua.protocol import Endpoint
from panto.providers.http import Http
from panto.schema.errors import ProviderError, UsageError

LARGEST = 32 << 20


class _Body(Struct):
    """A response's unread body."""

    chunks: AsyncIterator[bytes]
    stack: AsyncExitStack
    owner: LuaTask


class Requests:
    """The open responses of one Lua state."""

    def __init__(self, http: Callable[[], Http], endpoint: Callable[[int], Endpoint | None]) -> None:
        self.bodies: dict[int, _Body] = {}
        self._http, self._endpoint = http, endpoint
        self._last = 0
        self._driver: Driver | None = None

    def install(self, driver: Driver) -> None:
        """Add the ops."""
        self._driver = driver
        driver.ops |= {"http": self._request, "http_chunk": self._chunk, "http_refused": self._refused}
        driver.messages["http_close"] = self._close_soon

    async def _place(self, spec: dict[str, Any]) -> tuple[str, dict[str, str], Http]:
        """URL, headers and client of a request. Raises UsageError."""
        headers = {str(k): str(v) for k, v in (spec.get("headers") or {}).items()}
        if "endpoint" not in spec:
            url = spec.get("url")
            if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
                raise UsageError("http: url must begin with http:// or https://")
            return url, headers, self._http()
        endpoint = self._endpoint(int(spec["endpoint"]))
        if endpoint is None:
            raise UsageError("http: the stream of this endpoint is closed")
        if spec.get("url"):
            raise UsageError("http: with an endpoint, give a path; the address is the endpoint's")
        path = spec.get("path") or ""
        base = endpoint.settings.base_url.rstrip("/")
        url = base + path
        if path and not path.startswith(("/", "?")) or urlsplit(url).netloc != urlsplit(base).netloc:
            raise UsageError("http: path must begin with / and stay with the endpoint")
        own = {name.lower(): value for name, value in endpoint.settings.headers.items()}
        return url, headers | own | await _key(endpoint, spec), endpoint.http

    async def _request(self, task: LuaTask, spec: dict[str, Any]) -> dict[str, Any]:
        url, headers, http = await self._place(spec)
        body = spec.get("body")
        data = body.encode("utf-8", "surrogateescape") if isinstance(body, str) else None
        method = str(spec.get("method") or ("POST" if data is not None else "GET")).upper()
        stack = AsyncExitStack()
        try:
            response = await stack.enter_async_context(http.open(method, url, headers=headers, body=data))
            got: dict[str, Any] = {"status": response.status_code, "headers": dict(response.headers)}
            if spec.get("check") and not 200 <= response.status_code < 300:
                raise await _refusal(response, url, self._name(spec))
            if spec.get("stream"):
                self._last += 1
                self.bodies[self._last] = _Body(aiter(response.aiter_bytes()), stack, task)
                task.scope.on_close.append(lambda id=self._last: self._close_soon(id))  # type: ignore[misc]
                return got | {"id": self._last}
            got["body"] = await _read(response.aiter_bytes())
        except BaseException:
            await stack.aclose()
            raise
        await stack.aclose()
        return got

    def _name(self, spec: dict[str, Any]) -> str:
        endpoint = self._endpoint(int(spec["endpoint"])) if "endpoint" in spec else None
        return endpoint.settings.name if endpoint else ""

    def _refused(self, task: LuaTask, id: int, text: str) -> None:
        """A refusal inside a reply that began well. Raises the error of its kind."""
        from panto.providers.failure import Place, explain, read_refusal

        endpoint = self._endpoint(id)
        name, url = (endpoint.settings.name, endpoint.settings.base_url) if endpoint else ("", "")
        raise explain(Place(name, _host(url)), 200, read_refusal(text.encode("utf-8", "surrogateescape")))

    async def _chunk(self, task: LuaTask, id: int) -> str | None:
        body = self.bodies.get(id)
        if body is None:
            return None
        try:
            chunk = await anext(body.chunks)
        except StopAsyncIteration:
            await self._close(id)
            return None
        except BaseException:
            await self._close(id)
            raise
        return chunk.decode("utf-8", "surrogateescape")

    async def _close(self, id: int) -> None:
        body = self.bodies.pop(id, None)
        if body is not None:
            await body.stack.aclose()

    def _close_soon(self, id: int) -> None:
        if id in self.bodies and self._driver is not None:
            task = self._driver.loop.create_task(self._close(id))
            self._driver.keep(task)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


async def _refusal(response: Any, url: str, name: str) -> ProviderError:
    """A vendor's refusal as the error of its kind."""
    from panto.providers.failure import Place, explain, read_refusal, wait_wish

    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > 256 * 1024:
            break
    headers = {k.lower(): v for k, v in response.headers.items()}
    wish = wait_wish(headers, time.time())
    return explain(Place(name or _host(url), _host(url)), response.status_code, read_refusal(body), retry_after=wish)


async def _key(endpoint: Endpoint, spec: dict[str, Any]) -> dict[str, str]:
    """The header with the endpoint's key; `auth` names it where it is not `authorization: Bearer`."""
    if endpoint.settings.key is None:
        return {}
    key = endpoint.settings.key()
    text = (await key if inspect.isawaitable(key) else key).strip()
    if not text:
        raise ProviderError("auth", f"there is no key for provider {endpoint.settings.name}")
    name = str(spec.get("auth") or "authorization").lower()
    return {name: f"Bearer {text}" if name == "authorization" else text}


async def _read(chunks: AsyncIterator[bytes]) -> str:
    out = bytearray()
    async for chunk in chunks:
        out += chunk
        if len(out) > LARGEST:
            raise UsageError(f"http: the body is larger than {LARGEST >> 20} MiB; use stream = true")
    return out.decode("utf-8", "surrogateescape")
