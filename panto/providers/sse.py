"""Server-sent events from bytes: split on bytes, decoded nowhere.

A splitter of our own instead of httpx-sse: 0.55 µs an event against 1.5 (20,000 chat deltas), data stays bytes for the
JSON decoder, and a last event without its blank line still counts, as some servers send it.
"""

from __future__ import annotations

from panto.schema.errors import ProviderError

LIMIT = 64 * 1024 * 1024
"""Bytes one event may take; more is a broken server."""


class EventSplitter:
    """Feed it chunks cut anywhere; it gives whole events as (event name, data), both bytes.

    Takes LF, CRLF and CR line ends, `data:` with and without a space, several data lines, comments and a byte order
    mark; events without data are skipped.
    """

    __slots__ = ("_held", "_rest", "_start")

    def __init__(self) -> None:
        self._rest = b""
        self._held = b""  # a CR at the end of a chunk: the LF may follow
        self._start = True

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """The events that this chunk completes. Raises ProviderError (malformed) if one grows beyond the limit."""
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if b"\r" in chunk:
            if chunk.endswith(b"\r"):
                chunk, self._held = chunk[:-1], b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        data = self._rest + chunk if self._rest else chunk
        if self._start:
            if len(data) < 3 and b"\xef\xbb\xbf".startswith(data):
                self._rest = data
                return []
            data = data.removeprefix(b"\xef\xbb\xbf")
            self._start = False
        *blocks, self._rest = data.split(b"\n\n")
        if len(self._rest) > LIMIT:
            raise ProviderError("malformed", f"one event of the stream is larger than {LIMIT >> 20} MiB")
        out: list[tuple[bytes, bytes]] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                out.append((b"", block[6:]))
            elif block:
                event = _parse(block)
                if event is not None:
                    out.append(event)
        return out

    def close(self) -> list[tuple[bytes, bytes]]:
        """The last event, where the stream ended without the blank line after it."""
        block, self._rest, self._held = self._rest.rstrip(b"\n"), b"", b""
        event = _parse(block) if block else None
        return [event] if event is not None else []


def _parse(block: bytes) -> tuple[bytes, bytes] | None:
    name, lines = b"", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    data = b"\n".join(lines)
    return (name, data) if data else None
