"""What OpenAI's Responses answer, as parts. Items count as `output_item.done` gives them; deltas are a preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw, Struct

from panto.providers.failure import Failure, Place, explain, read_refusal
from panto.providers.names import Names
from panto.providers.wire import mend_surrogates
from panto.schema.messages import FinishReason
from panto.schema.stream import (
    FinishPart,
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

NAMESPACE = "openai_responses"
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _Event(Struct):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    item_id: str | None = None
    summary_index: int = 0
    item: Raw = Raw()
    response: Raw = Raw()


class _Item(Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    phase: str | None = None
    encrypted_content: str | None = None
    content: list[dict[str, Any]] | None = None
    summary: list[dict[str, Any]] | None = None


class _Response(Struct):
    id: str | None = None
    model: str | None = None
    created_at: float | None = None
    status: str | None = None
    output: list[Raw] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    incomplete_details: dict[str, Any] | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_item = msgspec.json.Decoder(_Item).decode
_decode_response = msgspec.json.Decoder(_Response).decode


@dataclass(slots=True)
class _Open:
    """An item being received. `number` is a call's index among the parts; `heard` whether deltas came."""

    number: int = -1
    heard: bool = False
    pieces: list[str] = field(default_factory=list)


class ResponsesReader:
    """See wire.Reader."""

    def __init__(self, names: Names, place: Place) -> None:
        self.done = False
        self.settled = False
        self._names = names
        self._place = place
        self._open: dict[object, _Open] = {}
        self._last: _Open | None = None
        self._calls = 0
        self._finish: FinishPart | None = None

    def feed(self, events: Sequence[tuple[bytes, bytes]], out: list[StreamPart]) -> None:
        """See wire.Reader."""
        for _, data in events:
            if data == b"[DONE]":
                continue
            event = self._read(data, _decode_event)
            match event.type:
                case "response.output_text.delta" | "response.refusal.delta":
                    self._at(event).heard = True
                    if event.delta and isinstance(event.delta, str):
                        out.append(TextDelta(event.delta))
                case "response.function_call_arguments.delta":
                    item = self._at(event)
                    item.heard = True
                    if item.number >= 0 and event.delta and isinstance(event.delta, str):
                        out.append(ToolCallDelta(item.number, event.delta))
                case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                    self._at(event).heard = True
                    if event.delta and isinstance(event.delta, str):
                        out.append(ReasoningDelta(event.delta))
                case "response.reasoning_summary_part.added":
                    if event.summary_index > 0:
                        out.append(ReasoningDelta("\n\n"))
                case "response.output_item.added":
                    self._added(event, out)
                case "response.output_item.done":
                    self._item(event.item, self._take(event), out)
                case "response.created":
                    self._head(self._read(bytes(event.response), _decode_response), out)
                case "error":
                    raise explain(self._place, 0, read_refusal(data))
                case kind if kind in _ENDS:
                    self._ended(self._read(bytes(event.response), _decode_response), bytes(event.response), out)
                    return
                case _:  # progress of what is taken whole later, and events still to be invented
                    pass

    def end(self, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        if self._finish is not None:
            out.append(self._finish)

    def whole(self, body: bytes, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        response = self._read(body, _decode_response)
        if response.output is None:
            raise explain(self._place, 0, read_refusal(body))
        self._head(response, out)
        for raw in response.output:
            self._item(raw, self._begin(self._read(bytes(raw), _decode_item), out), out)
        self._ended(response, body, out)
        self.end(out)

    def _read(self, data: bytes, decode: Any) -> Any:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            try:
                return decode(mend_surrogates(data))
            except (msgspec.DecodeError, UnicodeDecodeError):
                text = f"{self._place.host} sent an event that cannot be read ({error}): {data[:120]!r}"
                raise Failure("malformed", text) from None

    # ------------------------------------------------------------ items

    def _key(self, event: _Event) -> object:
        """Servers leave out one or the other; `added` and `done` carry the id inside the item."""
        return event.output_index if event.output_index is not None else (event.item_id or "")

    def _at(self, event: _Event) -> _Open:
        found = self._open.get(self._key(event)) or self._last
        if found is None:
            found = self._last = self._open[self._key(event)] = _Open()
        return found

    def _added(self, event: _Event, out: list[StreamPart]) -> None:
        item = self._read(bytes(event.item), _decode_item)
        key = event.output_index if event.output_index is not None else (event.item_id or item.id or "")
        self._last = self._open[key] = self._begin(item, out)

    def _take(self, event: _Event) -> _Open:
        key = self._key(event)
        if key == "":
            key = self._read(bytes(event.item), _decode_item).id or ""
        found = self._open.pop(key, None)
        if found is None:
            return self._begin(self._read(bytes(event.item), _decode_item), [])
        if found is self._last:
            self._last = None
        return found

    def _begin(self, item: _Item, out: list[StreamPart]) -> _Open:
        opened = _Open()
        if item.type == "function_call":
            opened.number, self._calls = self._calls, self._calls + 1
            out.append(ToolCallStart(opened.number, self._names.from_wire(item.name or ""), item.call_id or ""))
        return opened

    def _item(self, raw: Raw, opened: _Open, out: list[StreamPart]) -> None:
        item = self._read(bytes(raw), _decode_item)
        match item.type:
            case "message":
                text = "".join(str(p.get("text") or p.get("refusal") or "") for p in item.content or ())
                if not opened.heard and text:
                    out.append(TextDelta(text))
                if text:
                    for key, value in (("id", item.id), ("phase", item.phase)):
                        if value:
                            out.append(PartMetadata(-1, NAMESPACE, key, value))
                out.append(PartBreak())
            case "function_call":
                if not opened.heard and item.arguments:
                    out.append(ToolCallDelta(opened.number, item.arguments))
                if item.id:
                    out.append(PartMetadata(opened.number, NAMESPACE, "id", item.id))
                out.append(ToolCallEnd(opened.number))
            case "reasoning":
                texts = [str(p.get("text") or "") for p in item.summary or item.content or ()]
                if not opened.heard and any(texts):
                    out.append(ReasoningDelta("\n\n".join(texts)))
                if item.encrypted_content:  # without it the item means nothing to a server that stores nothing
                    out.append(PartMetadata(-1, NAMESPACE, "item", bytes(raw).decode()))
                out.append(PartBreak())
            case _:
                out.append(OpaquePart(-1, bytes(raw).decode(), NAMESPACE))

    # ------------------------------------------------------------ the response

    def _head(self, response: _Response, out: list[StreamPart]) -> None:
        out.append(ResponsePart(response.id or "", response.model or "", response.created_at or None))

    def _ended(self, response: _Response, data: bytes, out: list[StreamPart]) -> None:
        self.done = self.settled = True
        if response.status == "failed" or (response.error and response.status != "completed"):
            raise explain(self._place, 0, read_refusal(msgspec.json.encode({"error": response.error})))
        if any(opened.number >= 0 for opened in self._open.values()):
            raise Failure("malformed", f"{self._place.host} ended the reply with an unfinished tool call")
        if response.usage:
            out.append(_usage(response.usage))
        why = str((response.incomplete_details or {}).get("reason") or "")
        status = response.status or "completed"
        # Whatever cut a reply short, its calls may be cut too: they are not to be run.
        reason: FinishReason = "stop" if status == "completed" else _INCOMPLETE.get(why, "length")
        if self._calls and reason == "stop":
            reason = "tool_calls"
        self._finish = FinishPart(reason, why or status)


def _usage(usage: dict[str, Any]) -> UsagePart:
    """Input includes what was read from and written to the cache; output includes reasoning."""

    def number(*path: str) -> int | None:
        value: Any = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) else None

    return UsagePart(
        input=number("input_tokens"),
        output=number("output_tokens"),
        cache_read=number("input_tokens_details", "cached_tokens"),
        cache_write=number("input_tokens_details", "cache_write_tokens"),
        reasoning=number("output_tokens_details", "reasoning_tokens"),
    )
