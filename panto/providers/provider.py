"""The seam: one request in, parts out. No steps, no tools run, no approval, no turn policy cross it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from panto.schema.messages import Request
from panto.schema.stream import StreamPart


class Provider(Protocol):
    """One configured endpoint that speaks one wire protocol. Usable by itself as a library."""

    @property
    def name(self) -> str:
        """The provider's name in the config, e.g. "anthropic"."""
        ...

    @property
    def protocol(self) -> str:
        """The wire protocol, e.g. "anthropic_messages"."""
        ...

    def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        """Send the request once, give its parts in wire order; the last is FinishPart.

        An async generator: `aclose()` cancels the HTTP call at once and never blocks. Raises ProviderError, also
        for a stream that ends without a finish. One try: retry is `providers.retry`'s.
        """
        ...
