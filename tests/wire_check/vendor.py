"""A vendor of one protocol: takes requests over HTTP, refuses, records, answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from panto.providers.conformance.server import Answer, LocalServer, Seen, json_answer
from tests.wire_check import google
from tests.wire_check.check import refusal
from tests.wire_check.replies import Protocol, Reply, rendered


@dataclass(frozen=True)
class Fault:
    """Instead of a reply: an error status, or (status 200) a stream cut or silent after `after` events."""

    status: int = 200
    message: str = "this fault was asked for"
    headers: Mapping[str, str] = field(default_factory=dict)
    after: int = 3
    silent_s: float = 0.0
    kind: str = ""  # the vendor's own error type


@dataclass(frozen=True)
class Recorded:
    """One request: its body as data, and why it was refused (None: it was not)."""

    path: str
    headers: Mapping[str, str]
    body: Any
    refused: str | None


class WireCheck:
    """See the package. A context manager both ways: `with` runs it in a thread, `async with` in the running loop."""

    def __init__(self, protocol: Protocol, *, dialect: str = "openai", image_limit: int = 0) -> None:
        self.protocol: Protocol = protocol
        self.replies: list[Reply | Fault] = []
        self.requests: list[Recorded] = []
        self._dialect = dialect
        self._image_limit = image_limit
        self._server = LocalServer(self._answer)
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """What a provider's `base_url` must be."""
        return self._server.url + ("/v1beta" if self.protocol == "google_generate" else "/v1")

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self._server.connections

    @property
    def refusals(self) -> list[str]:
        """Why requests were refused, in order; empty if every one was acceptable."""
        return [r.refused for r in self.requests if r.refused]

    async def __aenter__(self) -> WireCheck:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    def __enter__(self) -> WireCheck:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="wire-check", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self, ready: threading.Event) -> None:
        assert self._loop is not None
        self._loop.run_until_complete(self._until_stopped(ready))
        self._loop.close()

    async def _until_stopped(self, ready: threading.Event) -> None:
        self._stop = asyncio.Event()
        async with self._server:
            ready.set()
            await self._stop.wait()

    def _answer(self, seen: Seen) -> Answer:
        if seen.method == "GET":
            return json_answer(json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode())
        body = seen.json
        checks = {"path": seen.path, "dialect": self._dialect, "image_limit": self._image_limit}
        why = refusal(self.protocol, body, seen.headers, **checks)  # type: ignore[arg-type]
        self.requests.append(Recorded(seen.path, seen.headers, body, why))
        if why is not None:
            return json_answer(self._error(400, why), 400)
        self._number += 1
        reply = self.replies.pop(0) if self.replies else Reply("ok")
        gemini = self.protocol == "google_generate"
        model = google.model_of(seen.path) if gemini else str(body["model"])
        stream = "stream" in seen.path if gemini else bool(body.get("stream"))
        if isinstance(reply, Fault):
            return self._fault(reply, model, stream)
        if reply.number == 1:
            reply = Reply(**{**reply.__dict__, "number": self._number})
        pieces = rendered(self.protocol, reply, model, stream=stream)
        return Answer(pieces) if stream else json_answer(pieces[0])

    def _fault(self, fault: Fault, model: str, stream: bool) -> Answer:
        if fault.status != 200:
            return json_answer(self._error(fault.status, fault.message, fault.kind), fault.status, fault.headers)
        whole = Reply("one two three four", reasoning="first I think", number=self._number)
        pieces = rendered(self.protocol, whole, model, stream=stream)
        return Answer(pieces[: fault.after], hang_s=fault.silent_s, cut=not fault.silent_s)

    def _error(self, status: int, message: str, kind: str = "") -> bytes:
        named = {
            400: "invalid_request_error",
            401: "authentication_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        kind = kind or named.get(status, "api_error")
        if self.protocol == "anthropic_messages":
            return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
        if self.protocol == "google_generate":
            states = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
            error = {"code": status, "message": message, "status": states.get(status, "INTERNAL")}
            return json.dumps({"error": error}).encode()
        return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()
