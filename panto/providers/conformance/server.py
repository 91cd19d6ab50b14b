"""A small HTTP server on this machine that answers what a test tells it to, byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came: header names in lower case, the body whole."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON data; None if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered. `pieces` are written one by one, `pause_s` seconds apart; then the body ends, or, with `cut`,
    the connection breaks; `hang_s` keeps it open in silence before that. A body without `content-length` is chunked.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    pause_s: float = 0.0
    hang_s: float = 0.0
    cut: bool = False


def json_answer(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A JSON body in one piece."""
    length = {"content-type": "application/json", "content-length": str(len(body))}
    return Answer([body], status, {**length, **(headers or {})})


class LocalServer:
    """Serves in the running loop: `async with LocalServer(answer) as server: … server.url`.

    `answer` is called with each request (kept in `seen`) and must return at once; an exception of its own becomes a 500
    and is kept in `errors`.
    """

    def __init__(self, answer: Callable[[Seen], Answer]) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._stopped = asyncio.Event()
        self.seen: list[Seen] = []
        self.errors: list[Exception] = []
        self.connections = 0
        self.gone = 0
        """How many connections the client dropped while it was being answered."""
        self.port = 0

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> LocalServer:
        self._stopped.clear()
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=1 << 26)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._stopped.set()
        for writer in self._tasks.values():
            writer.transport.abort()
        await asyncio.gather(*self._tasks)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = writer
        self.connections += 1
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._exchange(reader, writer):
                pass
        except asyncio.IncompleteReadError:
            pass  # the client has no further request
        except OSError:
            self.gone += 1
        finally:
            del self._tasks[task]
            with contextlib.suppress(RuntimeError):
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        seen = Seen(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
        self.seen.append(seen)
        try:
            answer = self._answer(seen)
        except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:  # the test's own fault
            self.errors.append(error)
            answer = json_answer(json.dumps({"error": {"message": repr(error)}}).encode(), 500)
        await self._write(answer, writer)
        if answer.cut:
            writer.transport.abort()
        return not answer.cut

    async def _write(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        names = {name.lower() for name in answer.headers}
        chunked = "content-length" not in names
        lines = [f"{name}: {value}\r\n" for name, value in answer.headers.items()]
        lines += ["transfer-encoding: chunked\r\n"] if chunked else []
        writer.write(f"HTTP/1.1 {answer.status} -\r\n{''.join(lines)}\r\n".encode("latin1"))
        for piece in answer.pieces:
            if piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                await writer.drain()
            await self._pause(answer.pause_s)
        await self._pause(answer.hang_s)
        if not answer.cut and chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _pause(self, seconds: float) -> None:
        if seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)
