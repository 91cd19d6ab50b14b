"""A provider over HTTP: one wire protocol, one address, one try. All the network there is in a model call."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from panto.providers.failure import Failure, Place, explain, read_refusal, server_word, wait_wish
from panto.providers.http import Http
from panto.providers.model import ProviderSettings
from panto.providers.sse import EventSplitter
from panto.providers.wire import Prepared, Reader, Wire, host_of
from panto.schema.messages import Request
from panto.schema.stream import FinishPart, NotePart, StreamPart

if TYPE_CHECKING:
    import httpx

ADAPTATIONS = 12
"""How often one request is changed and sent again after a refusal, at most."""
GRACE_S = 3.0
"""How long an end mark is waited for once the reply's finish is known."""
LARGEST_ERROR = 256 * 1024


class Endpoint:
    """A Provider (see provider.py) that speaks `wire` at `settings.base_url`."""

    def __init__(self, settings: ProviderSettings, wire: Wire, http: Http) -> None:
        self.settings = settings
        self._wire = wire
        self._http = http
        self._secret = ""
        self._host = host_of(settings.base_url)

    @property
    def name(self) -> str:
        """The provider's name in the config."""
        return self.settings.name

    @property
    def protocol(self) -> str:
        """The wire protocol's name."""
        return self.settings.protocol

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        """See Provider.stream. What a server refuses to take is left out, said in a NotePart, and sent again."""
        spec = self.settings.spec(request.model)
        key = await self._key()
        headers = {"content-type": "application/json", **(self._wire.key_headers(key) if key else {})}
        notes: list[str] = []
        for left in range(ADAPTATIONS, -1, -1):
            prepared = self._wire.prepare(request, spec, stream=self.settings.stream)
            heard = False
            try:
                async with aclosing(self._once(prepared, request.model, headers, notes)) as batches:
                    async for batch in batches:
                        heard = True
                        for part in batch:
                            yield part
                return
            except Failure as failure:
                note = None if heard or not left else self._wire.adapt(failure, request)
                if note is None:
                    raise
                if note:
                    notes.append(note)

    async def _once(
        self, prepared: Prepared, model: str, headers: dict[str, str], notes: list[str]
    ) -> AsyncGenerator[list[StreamPart], None]:
        url = self.settings.base_url.rstrip("/") + prepared.path
        headers = {**headers, **prepared.headers, **self.settings.headers}
        async with self._http.open("POST", url, headers=headers, body=prepared.body) as response:
            if response.status_code != 200:
                raise await self._refused(response, model)
            first: list[StreamPart] = [NotePart(note) for note in (*prepared.notes, *notes)]
            kind = response.headers.get("content-type", "")
            if not self.settings.stream or kind.startswith("application/json"):
                prepared.reader.whole(await response.aread(), first)
                yield first
                return
            async with aclosing(self._events(response, prepared.reader, first)) as batches:
                async for batch in batches:
                    yield batch

    async def _events(
        self, response: httpx.Response, reader: Reader, out: list[StreamPart]
    ) -> AsyncGenerator[list[StreamPart], None]:
        """The stream's parts. Silence is bounded by the client; lines that bring no part are bounded here."""
        splitter, idle = EventSplitter(), self._http.settings.idle_s
        chunks = aiter(response.aiter_raw() if "content-encoding" not in response.headers else response.aiter_bytes())
        last = time.monotonic()
        while not reader.done:
            try:
                chunk = await (_soon(chunks) if reader.settled else anext(chunks))
            except StopAsyncIteration:
                reader.feed(splitter.close(), out)
                break
            except TimeoutError:
                break
            reader.feed(splitter.feed(chunk), out)
            if out:
                yield out
                out = []
                last = time.monotonic()
            elif time.monotonic() - last > idle:
                raise Failure("timeout", f"{self._host} sent nothing but keep-alives for {idle:g} s")
        if reader.done:
            await _drain(chunks)
        reader.end(out)
        if not out or not isinstance(out[-1], FinishPart):
            raise Failure("connection", f"{self._host} ended the stream before the reply was complete")
        yield out

    async def _refused(self, response: httpx.Response, model: str) -> Failure:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > LARGEST_ERROR:
                break
        headers = {k.lower(): v for k, v in response.headers.items()}
        if self._secret:  # some servers quote what they refuse
            body = body.replace(self._secret.encode(), b"***")
        place = Place(self.name, self._host, model)
        wish = wait_wish(headers, time.time())
        return explain(place, response.status_code, read_refusal(body), retry_after=wish, again=server_word(headers))

    async def _key(self) -> str:
        """The key, or "" where none is needed. Raises Failure (auth), which never shows it."""
        if self.settings.key is None:
            return ""
        try:
            key = self.settings.key()
            text = await key if inspect.isawaitable(key) else key
        except OSError as error:
            raise Failure("auth", f"the key of provider {self.name} could not be had: {error}") from None
        text = text.strip()
        if not text:
            raise Failure(
                "auth", f"there is no key for provider {self.name}", hint=f"Set it, or `panto login {self.name}`."
            )
        if not text.isascii() or not text.isprintable():
            raise Failure("auth", f"the key of provider {self.name} has characters that a header cannot carry")
        self._secret = text
        return text


async def _soon(chunks: AsyncIterator[bytes]) -> bytes:
    """The next chunk of a reply whose finish is known; TimeoutError if none comes soon, or the connection breaks."""
    import httpx

    try:
        async with asyncio.timeout(GRACE_S):
            return await anext(chunks)
    except httpx.HTTPError:
        raise TimeoutError from None


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can serve again; not at any price."""
    import httpx

    with suppress(TimeoutError, httpx.HTTPError, httpx.StreamError):
        async with asyncio.timeout(0.1):
            async for _ in chunks:
                pass
