"""The four protocols, declared for the conformance suite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from panto.providers import Http, NetworkSettings, Protocols, ProviderSettings
from panto.providers.conformance import Canned, CannedError, Fixture, Meaning, arguments
from panto.providers.model import ModelSpec
from panto.providers.provider import Provider
from panto.schema.messages import FinishReason, Usage
from tests.wire_check import Protocol, Reply, rendered
from tests.wire_check.replies import event, reasoning_item
from tests.wire_check.rules import seal

MODEL = "MODEL-MARK"
TEXT = 'ñ北👩‍👩‍👧 said "so"\n\ttwo\\lines\u2028end'
OPTIONS: dict[Protocol, dict[str, object]] = {
    "openai_chat": {"temperature": 0.25, "seed": 7},
    "openai_responses": {"temperature": 0.25, "text": {"verbosity": "low"}},
    "anthropic_messages": {"stop_sequences": ["STOP"], "service_tier": "auto"},
    "google_generate": {"generationConfig": {"temperature": 0.25}, "safetySettings": []},
}
ERRORS: dict[Protocol, CannedError] = {
    "openai_chat": CannedError(
        429, b'{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}', "quota"
    ),
    "openai_responses": CannedError(
        400, b'{"error":{"message":"too long","code":"context_length_exceeded"}}', "overflow"
    ),
    "anthropic_messages": CannedError(
        529,
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}',
        "overloaded",
    ),
    "google_generate": CannedError(
        400,
        b'{"error":{"code":400,"message":"API key not valid. Pass a valid API key.","status":"INVALID_ARGUMENT"}}',
        "auth",
    ),
}
_SPECS = {MODEL: ModelSpec(MODEL, context=100_000, images=True, reasoning=("low", "high"))}


def provider(
    protocol: str, base_url: str, stream: bool = True, options: Mapping[str, object] | None = None, **more: Any
) -> Provider:
    """A provider of a built-in protocol with a model that can do everything."""
    path = {"google_generate": "/v1beta"}.get(protocol, "/v1")
    url = base_url if base_url.endswith(path) else base_url + path
    given: dict[str, Any] = {"specs": _SPECS, **more}
    network = given.pop("network", NetworkSettings(idle_s=10))
    settings = ProviderSettings(
        name="local", protocol=protocol, base_url=url, stream=stream, options=options or {}, **given
    )
    return Protocols().make(settings, Http(network))


def _usage(protocol: Protocol) -> Usage:
    return Usage(
        input=100, output=20, cache_read=40, cache_write=10 if protocol == "anthropic_messages" else 0, reasoning=5
    )


_FINISH: dict[Protocol, tuple[str, str]] = {
    "openai_chat": ("stop", "tool_calls"),
    "openai_responses": ("completed", "completed"),
    "anthropic_messages": ("end_turn", "tool_use"),
    "google_generate": ("STOP", "STOP"),
}
_IDS: dict[Protocol, str] = {
    "openai_chat": "chatcmpl-3",
    "openai_responses": "resp_3",
    "anthropic_messages": "msg_3",
    "google_generate": "resp3",
}


def _canned(protocol: Protocol, reply: Reply, signature: str = "") -> Canned:
    finish: FinishReason = "tool_calls" if reply.calls else "stop"
    names = {"look_up": "look.up"}
    meaning = Meaning(
        text=reply.text,
        reasoning=reply.reasoning,
        calls=tuple(
            (names.get(n, n), arguments(a if isinstance(a, dict) else json.loads(a or "{}"))) for n, a in reply.calls
        ),
        finish=finish,
        raw=_FINISH[protocol][bool(reply.calls)],
        usage=_usage(protocol),
        response_id=_IDS[protocol],
        response_model=MODEL,
        created=1790000000.0 if protocol.startswith("openai") else None,
    )
    stream = rendered(protocol, reply, MODEL, stream=True)
    return Canned(meaning, stream, rendered(protocol, reply, MODEL, stream=False)[0], signature)


def _signature(protocol: Protocol, reply: Reply) -> str:
    match protocol:
        case "openai_chat":
            return reply.reasoning
        case "openai_responses":
            return str(reasoning_item(reply, MODEL)["encrypted_content"])
        case "anthropic_messages":
            return seal(MODEL, reply.reasoning)
        case "google_generate":
            return seal(MODEL, "look_up" + json.dumps({"at": "x"}, sort_keys=True))


def fixture(protocol: Protocol) -> Fixture:
    """The declaration of one protocol."""
    calls: list[tuple[str, dict[str, Any] | str]] = [
        ("look_up", {"at": '北 \\ " 1'}),
        ("put", {"at": "", "n": [1, {}]}),
    ]
    thinking = Reply("Well.", "I think about ñ", calls=[("look_up", {"at": "x"})], number=3)
    broken = {"error": {"message": "Overloaded", "type": "overloaded_error", "code": 503, "status": "UNAVAILABLE"}}
    text = Reply(TEXT, number=3)
    start = rendered(protocol, text, MODEL, stream=True)[:1]
    frame = event({"type": "error", **broken}, "error")
    return Fixture(
        name=protocol,
        provider=lambda url, stream, options: provider(protocol, url, stream, options),
        model=MODEL,
        text=_canned(protocol, text),
        calls=_canned(protocol, Reply(calls=calls, number=3)),
        reasoning=_canned(protocol, thinking, _signature(protocol, thinking)),
        error=ERRORS[protocol],
        stream_error=([*start, frame], "overloaded"),
        options=OPTIONS[protocol],
    )
