"""What the author of a protocol declares: how to build the provider, canned replies, and what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from panto.providers.provider import Provider
from panto.schema.errors import ProviderErrorKind
from panto.schema.messages import BadJson, FinishReason, Json, ModelResult, Reasoning, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Meaning:
    """A reply without its wire. `calls`: (name, arguments as canonical JSON text). `created`: UTC seconds or None."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: FinishReason = "stop"
    raw: str = ""
    usage: Usage = Usage()
    response_id: str = ""
    response_model: str = ""
    created: float | None = None

    @staticmethod
    def of(result: ModelResult) -> Meaning:
        """The meaning of a result."""
        parts = result.message.parts
        return Meaning(
            text=result.text(),
            reasoning="".join(p.text for p in parts if isinstance(p, Reasoning)),
            calls=tuple((p.name, _canonical(p)) for p in parts if isinstance(p, ToolCall)),
            finish=result.finish.reason,
            raw=result.finish.raw,
            usage=result.usage,
            response_id=result.response_id,
            response_model=result.response_model,
            created=result.created,
        )


def _canonical(call: ToolCall) -> str:
    match call.arguments:
        case Json(text=text):
            return arguments(json.loads(text))
        case BadJson(text=text):
            return f"not JSON: {text}"


def arguments(value: object) -> str:
    """Arguments as `Meaning.calls` holds them."""
    return json.dumps(value, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Canned:
    """One reply in the wire's own format: `stream` in pieces, `whole` as one document (None: lacks "whole").

    `signature` is a text inside it that must come back byte for byte in the next request.
    """

    meaning: Meaning
    stream: Sequence[bytes]
    whole: bytes | None = None
    signature: str = ""


@dataclass(frozen=True, slots=True)
class CannedError:
    """An error as this vendor says it, and the kind it must become."""

    status: int
    body: bytes
    kind: ProviderErrorKind


Capability = str
"""One of: whole (replies that are not streamed), tools, reasoning, signatures, images, options, bytes, status."""
CAPABILITIES: frozenset[Capability] = frozenset(
    ("whole", "tools", "reasoning", "signatures", "images", "options", "bytes", "status")
)


@dataclass(frozen=True, slots=True)
class Fixture:
    """A protocol under test.

    `provider(base_url, stream, options)` builds it against a local server; `model` is the wire id to ask for. `text`,
    `calls` (two in parallel, of the tools `look.up` and `put`) and `reasoning` are replies; `error` comes with its
    status, `stream_error` inside a stream that began with 200. `options`: members that must be found in the body.
    `lacks`: capabilities that the protocol does not have; their cases are skipped, and said to be.
    `media` is the content type of a stream.

    A protocol without HTTP gives `play`, called with each reply (or error) before it is asked for, and `heard`, which
    gives the last request as one text.
    """

    name: str
    provider: Callable[[str, bool, Mapping[str, object]], Provider]
    text: Canned
    error: CannedError
    model: str = "MODEL-MARK"
    calls: Canned | None = None
    reasoning: Canned | None = None
    stream_error: tuple[Sequence[bytes], ProviderErrorKind] | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    lacks: frozenset[Capability] = frozenset()
    media: str = "text/event-stream"
    play: Callable[[Canned | CannedError, bool], None] | None = None
    heard: Callable[[], str] | None = None
