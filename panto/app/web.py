"""The web as `fetch` reaches it: by the models' own HTTP client, so that proxies and authorities count here too."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from panto.schema.errors import ProviderError, ToolFailure
from panto.tools.fetch import HttpReply

if TYPE_CHECKING:
    from panto.providers.http import Http


class WebGet:
    """Implements `panto.tools.fetch.HttpGet`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def __call__(
        self, url: str, *, address: str | None, headers: Mapping[str, str], limit: int, seconds: float
    ) -> HttpReply:
        """See HttpGet. Raises ToolFailure: unavailable, timeout."""
        try:
            async with (
                asyncio.timeout(seconds),
                self._http.open("GET", url, headers=headers, idle_s=seconds, address=address or "") as response,
            ):
                body = bytearray()
                async for piece in response.aiter_bytes(65536):
                    body += piece
                    if len(body) > limit:
                        break
                return HttpReply(response.status_code, dict(response.headers), bytes(body[:limit]), len(body) > limit)
        except TimeoutError:
            raise ToolFailure(f"{urlsplit(url).hostname} took longer than {seconds:g} s", "timeout") from None
        except ProviderError as error:  # its hints are about models; what went wrong is said by the message
            raise ToolFailure(error.message, "timeout" if error.kind == "timeout" else "unavailable") from None
