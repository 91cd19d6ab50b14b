"""What Anthropic's Messages answer, as parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from panto.providers.failure import Failure, Place, explain, read_refusal
from panto.providers.names import Names
from panto.providers.wire import mend_surrogates
from panto.schema.messages import FinishReason
from panto.schema.stream import (
    FinishPart,
    NotePart,
    OpaquePart,
    PartBreak,
    PartMetadata,
    ReasoningDelta,
    ResponsePart,
    StreamPart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsagePart,
)

NAMESPACE = "anthropic_messages"
_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "content_filter", "sensitive": "content_filter",
}  # fmt: skip


class _Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: Any = None
    message: Any = None
    usage: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class MessagesReader:
    """See wire.Reader."""

    def __init__(self, names: Names, place: Place) -> None:
        self.done = False
        self.settled = False
        self._names = names
        self._place = place
        self._blocks: dict[int, str] = {}  # open blocks: index -> type
        self._stop = ""
        self._usage: dict[str, int] = {}

    def feed(self, events: Sequence[tuple[bytes, bytes]], out: list[StreamPart]) -> None:
        """See wire.Reader."""
        for _, data in events:
            event = self._read(data)
            match event.type:
                case "content_block_delta":
                    if event.delta is not None:
                        self._delta(event.index, event.delta, out)
                case "content_block_start":
                    self._begin(event.index, event.content_block or {}, out)
                case "content_block_stop":
                    self._end_block(event.index, out)
                case "message_start":
                    self._head(event.message or {}, out)
                case "message_delta":
                    if event.delta is not None and event.delta.stop_reason:
                        self._stop, self.settled = event.delta.stop_reason, True
                        self._refusal(event.delta.stop_details, out)
                    if isinstance(event.usage, dict):
                        self._count(event.usage, out)
                case "message_stop":
                    self.done = True
                    return
                case "error":
                    raise explain(self._place, 0, read_refusal(data))
                case _:  # ping, and events still to be invented
                    pass

    def end(self, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        if self.done and self._stop:
            out.append(FinishPart(_FINISH.get(self._stop, "other"), self._stop))

    def whole(self, body: bytes, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        try:
            message = msgspec.json.decode(mend_surrogates(body))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Failure("malformed", f"{self._place.host} sent what is not JSON: {error}") from None
        if not isinstance(message, dict) or message.get("type") == "error" or "content" not in message:
            raise explain(self._place, 0, read_refusal(body))
        self._head(message, out)
        for index, block in enumerate(message.get("content") or []):
            self._begin(index, block, out)
            self._end_block(index, out)
        self._stop, self.done = str(message.get("stop_reason") or ""), True
        self._refusal(message.get("stop_details"), out)
        self.end(out)

    def _read(self, data: bytes) -> _Event:
        try:
            return _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            try:
                return _decode(mend_surrogates(data))
            except (msgspec.DecodeError, UnicodeDecodeError):
                text = f"{self._place.host} sent an event that cannot be read ({error}): {data[:120]!r}"
                raise Failure("malformed", text) from None

    def _delta(self, index: int, delta: _Delta, out: list[StreamPart]) -> None:
        match delta.type:
            case "text_delta":
                if delta.text:
                    out.append(TextDelta(delta.text))
            case "thinking_delta":
                if delta.thinking:
                    out.append(ReasoningDelta(delta.thinking))
            case "input_json_delta":
                if delta.partial_json and self._blocks.get(index) == "tool_use":
                    out.append(ToolCallDelta(index, delta.partial_json))
            case "signature_delta":
                if delta.signature:
                    out.append(PartMetadata(-1, NAMESPACE, "signature", delta.signature))
            case _:
                pass

    def _begin(self, index: int, block: dict[str, Any], out: list[StreamPart]) -> None:
        kind = str(block.get("type", ""))
        self._blocks[index] = kind
        match kind:
            case "text":
                out.append(PartBreak())
                if block.get("text"):
                    out.append(TextDelta(str(block["text"])))
            case "thinking":
                out.append(PartBreak())
                if block.get("thinking"):
                    out.append(ReasoningDelta(str(block["thinking"])))
                if block.get("signature"):
                    out.append(PartMetadata(-1, NAMESPACE, "signature", str(block["signature"])))
            case "redacted_thinking":
                out.append(PartBreak())
                out.append(PartMetadata(-1, NAMESPACE, "redacted", str(block.get("data", ""))))
            case "tool_use":
                name = self._names.from_wire(str(block.get("name", "")))
                out.append(ToolCallStart(index, name, str(block.get("id") or "")))
                if block.get("input"):
                    out.append(ToolCallDelta(index, msgspec.json.encode(block["input"]).decode()))
            case _:
                out.append(OpaquePart(index, msgspec.json.encode(block).decode(), NAMESPACE))

    def _end_block(self, index: int, out: list[StreamPart]) -> None:
        kind = self._blocks.pop(index, "")
        out.append(ToolCallEnd(index) if kind == "tool_use" else PartBreak())

    def _head(self, message: dict[str, Any], out: list[StreamPart]) -> None:
        out.append(ResponsePart(str(message.get("id") or ""), str(message.get("model") or "")))
        if isinstance(message.get("usage"), dict):
            self._count(message["usage"], out)

    def _refusal(self, details: object, out: list[StreamPart]) -> None:
        if isinstance(details, dict) and details.get("type") == "refusal":
            said = details.get("explanation") or details.get("category") or "no reason given"
            out.append(NotePart(f"the model refused: {said}"))

    def _count(self, usage: dict[str, Any], out: list[StreamPart]) -> None:
        """Counts are cumulative and may be null; the vendor's input is only what was not cached."""
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        for name in names:
            if isinstance(usage.get(name), int):
                self._usage[name] = usage[name]
        details = usage.get("output_tokens_details")
        thought = details.get("thinking_tokens") if isinstance(details, dict) else None
        plain, written, read, output = (self._usage.get(name) for name in names)
        total = None if plain is None else plain + (written or 0) + (read or 0)
        out.append(UsagePart(total, output, read, written, thought if isinstance(thought, int) else None))
