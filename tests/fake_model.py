"""A model server of our own, on this machine: streams what a test or the bench wants, refuses what vendors refuse.

    with FakeModel() as fake:                     # a thread and a free port
        fake.replies += [Reply(calls=[("read", {"path": "a"})]), Reply("done")]
        ...                                       # requests to fake.url + "/chat/completions" or fake.url + "/messages"
        fake.requests[0].body["messages"]

    python -m tests.fake_model                    # a process; prints its URL, serves until end of stdin

A request is answered by the newest user message's marker `FAKE(name:number;option=value)`, else by the next of
`replies`, else by a greeting. Markers: `hello`; `flood:N` small deltas at once; `steady:N;rate=R` deltas a second;
`tools:K;file=F` K rounds of one read; `par:M;file=F` M reads at once; `sleep:S` one shell command; `slow:N` a delta a
second; `http429:F`, `http500:F`, `http529:F` the first F requests fail; `midcut:F` the first F break off;
`stall:S` silence. Files are numbered: `F` = `a.txt` reads `a-0.txt`, `a-1.txt` ... `a-19.txt`, and round again.
`GET /_stats` lists the requests since `POST /_reset`, with times of the machine's monotonic clock in seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Any, Self

from tests import fake_wire
from tests.fake_wire import Api, Body

MARK = re.compile(r"FAKE\(([a-z0-9]+)(?::(\d+))?((?:;[a-z]+=[^;)]*)*)\)")


@dataclass(frozen=True)
class Reply:
    """One answer of the model. `text` and `reasoning` are streamed piece by piece (a string is one piece)."""

    text: str | Sequence[str] = ()
    reasoning: str | Sequence[str] = ()
    calls: Sequence[tuple[str, dict[str, Any] | str]] = ()  # name and arguments; a string goes out verbatim
    call_ids: Sequence[str] | None = None  # instead of fresh ones
    finish: str | None = None  # the protocol's own word, instead of the fitting one
    status: int = 200  # anything else: an error body, no stream
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0  # before the first byte
    rate: float = 0  # text deltas a second; 0: as fast as the socket takes them
    cut_after: int | None = None  # the connection is dropped after so many text deltas
    stall_s: float = 0  # silence after the first text delta


@dataclass
class Request:
    """What one request was, and when (monotonic seconds: `began` when read whole, `ended` when answered whole)."""

    api: Api
    body: Body
    headers: dict[str, str]
    size: int
    began: float
    ended: float = 0
    scenario: str = ""
    round: int = 0  # tool results since the marker
    refused: str | None = None  # why it was answered with 400
    status: int = 0
    gone: bool = False  # the client hung up before the end


class FakeModel:
    """The server. A context manager that runs it in a thread; `serve` runs it in the caller's loop."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.replies: list[Reply] = []
        self.requests: list[Request] = []
        self._faults: dict[str, int] = {}
        self._count = 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The base URL of both protocols."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def refusals(self) -> list[str]:
        """Why requests were answered with 400, in order; empty if every request was acceptable."""
        return [r.refused for r in self.requests if r.refused]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="fake-model", daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self.serve())
        self._loop.close()

    async def serve(self) -> None:
        """Listens until stopped; `port` holds the real port once it does."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=1 << 26)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------ HTTP

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._exchange(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # the client hung up, or the server is being stopped: nobody is left to tell
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(RuntimeError):
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; false when the connection is finished."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        if path == "/_reset":
            self.requests, self._faults, self.replies = [], {}, []
            self._answer(writer, 200, {"ok": True}, {})
        elif path == "/_stats":
            self._answer(writer, 200, [_stat(r) for r in self.requests], {})
        elif method == "GET" and path.endswith("/models"):
            self._answer(writer, 200, {"object": "list", "data": [{"id": "fake", "object": "model"}]}, {})
        elif method == "POST" and path.endswith("/chat/completions"):
            return await self._complete("chat", headers, raw, reader, writer)
        elif method == "POST" and path.endswith("/messages"):
            return await self._complete("anthropic", headers, raw, reader, writer)
        else:
            self._answer(writer, 404, {"error": {"message": f"no such endpoint: {method} {path}"}}, {})
        return True

    @staticmethod
    def _answer(writer: asyncio.StreamWriter, status: int, value: object, headers: dict[str, str]) -> None:
        data = json.dumps(value).encode()
        extra = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{extra}\r\n"
        writer.write(head.encode() + data)

    async def _complete(
        self, api: Api, headers: dict[str, str], raw: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        began = time.monotonic()
        self._count += 1
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        request = Request(api, body, headers, len(raw), began)
        self.requests.append(request)
        request.refused = fake_wire.refusal(api, body, headers)
        reply = Reply(status=400) if request.refused else self._choose(request)
        request.status = reply.status
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.status != 200:
            message = request.refused or f"this is the error {reply.status} that was asked for"
            self._answer(writer, reply.status, fake_wire.error(api, reply.status, message), reply.headers)
            request.ended = time.monotonic()
            return True
        stream = asyncio.create_task(self._stream(api, request, reply, writer))
        hung_up = asyncio.create_task(reader.read(1))  # a client that waits for its answer sends nothing
        try:
            await asyncio.wait((stream, hung_up), return_when=asyncio.FIRST_COMPLETED)
            request.gone = not stream.done() or isinstance(stream.exception(), OSError)
            return not request.gone and stream.result()
        finally:
            request.ended = time.monotonic()
            stream.cancel()
            hung_up.cancel()
            await asyncio.gather(stream, hung_up, return_exceptions=True)

    async def _stream(self, api: Api, request: Request, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        begun, deltas = time.monotonic(), 0
        for data, is_text in fake_wire.events(api, request.body, reply, self._count, request.size):
            if is_text:
                if reply.cut_after is not None and deltas >= reply.cut_after:
                    await writer.drain()
                    return False
                if reply.rate:
                    await asyncio.sleep(max(0.0, begun + deltas / reply.rate - time.monotonic()))
                deltas += 1
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            if is_text and reply.stall_s and deltas == 1:
                await writer.drain()
                await asyncio.sleep(reply.stall_s)
            if deltas % 32 == 0:
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    # ------------------------------------------------------------ what to answer

    def _choose(self, request: Request) -> Reply:
        mark, request.round = _marker(request.api, request.body)
        if mark is None:
            return self.replies.pop(0) if self.replies else Reply(_words(12, "HELLO-DONE"))
        request.scenario = mark.group(1)
        options = dict(pair.split("=", 1) for pair in mark.group(3).split(";") if pair)
        return self._scenario(request, mark.group(0), int(mark.group(2) or 0), options)

    def _scenario(self, request: Request, mark: str, number: int, options: dict[str, str]) -> Reply:
        name, done = request.scenario, f"{request.scenario.upper()}-DONE"
        seen = self._faults.get(mark, 0)
        self._faults[mark] = seen + 1
        file = options.get("file", "hello.txt")
        match name:
            case "flood":
                return Reply(_words(max(number, 1), done))
            case "steady":
                return Reply(_words(max(number, 1), done), rate=float(options.get("rate", "100")))
            case "slow":
                return Reply(_words(number or 8, done), rate=1)
            case "tools" if request.round < number:
                return Reply(calls=[("read", {"path": _numbered(file, request.round)})])
            case "par" if request.round == 0:
                return Reply(calls=[("read", {"path": _numbered(file, i)}) for i in range(number)])
            case "sleep" if request.round == 0:
                return Reply(calls=[("bash", {"command": f"sleep {number or 30}"})])
            case "midcut" if seen < (number or 1):
                return Reply(_words(20, done), cut_after=10)
            case "stall" if seen == 0:
                return Reply(_words(20, done), stall_s=number or 30)
            case "http429" | "http500" | "http529" if seen < (number or 1):
                status = int(name[4:])
                return Reply(status=status, headers={"Retry-After": "1"} if status == 429 else {})
            case _:
                return Reply(_words(20, done))


def _marker(api: Api, body: Body) -> tuple[re.Match[str] | None, int]:
    """The newest user message's last marker, and how many tool results came after it."""
    results = 0
    for message in reversed(body["messages"]):
        results += fake_wire.result_count(api, message)
        if message["role"] == "user" and (found := list(MARK.finditer(fake_wire.text_of(message.get("content"))))):
            return found[-1], results
    return None, results


def _numbered(file: str, index: int) -> str:
    stem, dot, ending = file.rpartition(".")
    return f"{stem}-{index % 20}{dot}{ending}"


_STOCK = (
    "ledger reader carries each small change from the open terminal toward one quiet commit while several tests "
    "report what they saw and a careful person decides which of those lines should stay or leave today"
).split()


def _words(count: int, last: str) -> list[str]:
    """`count` small deltas of prose, the same on every run; the last one is `last`.

    Each twelfth word ends a line, each sixtieth a paragraph, and each line's first word is its number in five digits.
    """
    dice, out = Random(11), []
    for i in range(1, count):
        word = f"{i:05d}" if i % 12 == 1 else dice.choice(_STOCK)
        out.append(word + ("\n\n" if i % 60 == 0 else "\n" if i % 12 == 0 else " "))
    return [*out, last]


def _stat(request: Request) -> dict[str, object]:
    tools = request.body.get("tools") or []
    return {
        "t0": request.began, "t1": request.ended, "bytes": request.size, "ntools": len(tools),
        "scn": request.scenario, "round": request.round, "status": request.status,
    }  # fmt: skip


async def _until_end_of_input() -> None:
    server = FakeModel()
    task = asyncio.create_task(server.serve())
    while not server._ready.is_set():
        await asyncio.sleep(0.01)
    print(server.url, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server._stop.set()
    await task


if __name__ == "__main__":
    asyncio.run(_until_end_of_input())
