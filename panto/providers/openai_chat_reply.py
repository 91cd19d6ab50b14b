"""What Chat Completions servers answer, strict and sloppy ones alike, as parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from panto.providers.failure import Failure, Place, explain, read_refusal
from panto.providers.names import Names
from panto.providers.think import ThinkSplitter
from panto.providers.wire import mend_surrogates
from panto.schema.messages import FinishReason
from panto.schema.stream import (
    FinishPart,
    OpaquePart,
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

NAMESPACE = "openai_chat"
_FINISH: dict[str, FinishReason] = {
    "stop": "stop", "end": "stop", "eos": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "tool_calls": "tool_calls", "function_call": "tool_calls", "tool_use": "tool_calls",
    "length": "length", "max_tokens": "length", "model_length": "length", "model_context_window_exceeded": "length",
    "content_filter": "content_filter", "sensitive": "content_filter", "refusal": "content_filter",
}  # fmt: skip
_BROKEN = ("error", "network_error")


class _Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    id: Any = None
    model: Any = None
    created: Any = None
    error: Any = None
    x_groq: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _Slot:
    """A call being received: its number among the parts, and what tells it from the next one."""

    __slots__ = ("arguments", "id", "name", "number", "started")

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = self.name = ""
        self.arguments: list[str] = []
        self.started = False


class ChatReader:
    """See wire.Reader."""

    def __init__(self, names: Names, place: Place, opened: bool = False) -> None:
        self.done = False
        self.settled = False
        self._names = names
        self._place = place
        self._think = ThinkSplitter(opened)
        self._field = ""
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._details: list[dict[str, Any]] = []
        self._finish: str | None = None
        self._named = self._any = self._refused = False

    def feed(self, events: Sequence[tuple[bytes, bytes]], out: list[StreamPart]) -> None:
        """See wire.Reader."""
        for _, data in events:
            if data == b"[DONE]":
                self.done = True
                return
            chunk = self._read(data)
            if not self._named:
                self._named = True
                out.append(_head(chunk))
            if chunk.choices:
                choice = chunk.choices[0]
                if choice.delta is not None:
                    self._delta(choice.delta, out)
                if choice.finish_reason:
                    self._finish, self.settled = choice.finish_reason, True
                if choice.usage:
                    out.append(usage_part(choice.usage))
            if chunk.usage:
                out.append(usage_part(chunk.usage))
            elif chunk.x_groq and isinstance(chunk.x_groq.get("usage"), dict):
                out.append(usage_part(chunk.x_groq["usage"]))

    def end(self, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        for thought, text in self._think.end():
            out.append(ReasoningDelta(text) if thought else TextDelta(text))
        if self._finish is None and not (self.done and self._any):
            return
        raw = self._finish or ""
        if raw in _BROKEN:
            raise Failure("server", f"{self._place.host} broke the reply off: finish_reason {raw!r}")
        for slot in self._slots:
            self._start(slot, out)
            out.append(ToolCallEnd(slot.number))
        if self._details:
            value = msgspec.json.encode({"reasoning_details": self._details}).decode()
            out.append(OpaquePart(len(self._slots), value, NAMESPACE))
        reason: FinishReason = "content_filter" if self._refused else _FINISH.get(raw, "other" if raw else "stop")
        out.append(FinishPart(reason, raw))

    def whole(self, body: bytes, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        chunk = self._read(body)
        out.append(_head(chunk))
        choice = chunk.choices[0] if chunk.choices else _Choice()
        if choice.message is None:
            raise Failure("malformed", f"{self._place.host} sent a reply without a message: {body[:200]!r}")
        self._delta(choice.message, out)
        if usage := chunk.usage or choice.usage:
            out.append(usage_part(usage))
        self._finish, self.done = choice.finish_reason, True
        self.end(out)

    def _read(self, data: bytes) -> _Chunk:
        try:
            chunk = _decode(data)
        except msgspec.ValidationError as error:
            text = f"{self._place.host} sent a chunk of another form: {error}"
            raise Failure("malformed", text) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            chunk = self._mended(data, error)
        if chunk.error:
            raise explain(self._place, 0, read_refusal(data))
        return chunk

    def _mended(self, data: bytes, error: Exception) -> _Chunk:
        """Half a surrogate pair is no reason to lose a reply; anything else that is not JSON is."""
        try:
            return _decode(mend_surrogates(data))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Failure("malformed", f"{self._place.host} sent what is not JSON ({error}): {data[:120]!r}") from None

    # ------------------------------------------------------------ deltas

    def _delta(self, delta: _Delta, out: list[StreamPart]) -> None:
        thought = delta.reasoning_content or delta.reasoning or delta.reasoning_text
        if thought:
            self._thought(delta, thought, out)
        text = delta.content
        if text:
            if isinstance(text, list):
                self._list(text, out)
            elif self._think.plain:
                out.append(TextDelta(text))
                self._any = True
            else:
                self._text(text, out)
        if delta.tool_calls:
            for at, call in enumerate(delta.tool_calls):
                self._call(call, at, out)
        if delta.refusal:
            self._refused = self._any = True
            out.append(TextDelta(delta.refusal))
        if delta.reasoning_details:
            self._join_details(delta.reasoning_details)

    def _thought(self, delta: _Delta, thought: str, out: list[StreamPart]) -> None:
        self._any = True
        out.append(ReasoningDelta(thought))
        if not self._field:
            given = [f for f in ("reasoning_content", "reasoning", "reasoning_text") if getattr(delta, f)]
            self._field = given[0]
            out.append(PartMetadata(-1, NAMESPACE, "field", self._field))
            self._think.plain = True  # a server that tells reasoning apart leaves no tags in the text

    def _text(self, text: str, out: list[StreamPart]) -> None:
        self._any = True
        for thought, piece in self._think.feed(text):
            out.append(ReasoningDelta(piece) if thought else TextDelta(piece))
            if thought and not self._field:
                self._field = "think"
                out.append(PartMetadata(-1, NAMESPACE, "field", "think"))

    def _list(self, content: list[Any], out: list[StreamPart]) -> None:
        """Content as a list of parts (Mistral): thinking and text."""
        self._any = True
        for part in content:
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = inner if isinstance(inner, list) else [{"text": inner}]
                text = "".join(str(p.get("text") or "") for p in pieces if isinstance(p, dict))
                if text:
                    out.append(ReasoningDelta(text))
                    if not self._field:
                        self._field = "content"
                        out.append(PartMetadata(-1, NAMESPACE, "field", "content"))
            elif isinstance(part.get("text"), str) and part["text"]:
                out.append(TextDelta(part["text"]))

    def _join_details(self, details: list[Any]) -> None:
        """OpenRouter's reasoning_details: pieces of one index are joined, encrypted ones stay whole."""
        for new in details:
            if not isinstance(new, dict):
                continue
            last = self._details[-1] if self._details else {}
            same = last.get("type") == new.get("type") and last.get("index") == new.get("index")
            key = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(new.get("type")))
            if not (same and key):
                self._details.append(dict(new))
                continue
            for name, value in new.items():
                if name == key and isinstance(value, str):
                    last[name] = str(last.get(name) or "") + value
                elif value is not None:
                    last[name] = value

    # ------------------------------------------------------------ calls

    def _call(self, call: _Call, at: int, out: list[StreamPart]) -> None:
        self._any = True
        function = call.function or _Function()
        slot = self._slot_for(call, at, function.name or "")
        if call.id and not slot.id:
            slot.id = call.id
        if function.name and not slot.name:
            slot.name = function.name
        text = function.arguments
        if isinstance(text, dict):
            text = msgspec.json.encode(text).decode()
        if text:
            slot.arguments.append(text)
        if slot.started:
            if text:
                out.append(ToolCallDelta(slot.number, text))
        elif slot.name:
            self._start(slot, out)

    def _start(self, slot: _Slot, out: list[StreamPart]) -> None:
        if not slot.started:
            slot.started = True
            out.append(ToolCallStart(slot.number, self._names.from_wire(slot.name), slot.id))
            if slot.arguments:
                out.append(ToolCallDelta(slot.number, "".join(slot.arguments)))

    def _slot_for(self, call: _Call, at: int, name: str) -> _Slot:
        """Which call a piece belongs to. Indexes may be missing or shared, ids missing or repeated in every piece."""
        slot = self._by_index.get(call.index) if call.index is not None else (self._slots[-1] if self._slots else None)
        if slot is not None:
            if call.id and slot.id:
                other = call.id != slot.id
            else:  # no ids to go by: a name after complete arguments begins another call
                other = bool(name) and bool(slot.name) and _complete("".join(slot.arguments))
            if not other:
                return slot
        slot = _Slot(len(self._slots))
        self._slots.append(slot)
        if call.index is not None:
            self._by_index[call.index] = slot
        return slot


def _head(chunk: _Chunk) -> ResponsePart:
    created = chunk.created if isinstance(chunk.created, int | float) and chunk.created > 0 else None
    return ResponsePart(str(chunk.id or ""), str(chunk.model or ""), created)


def _complete(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def _number(usage: Mapping[str, Any], *path: str) -> int | None:
    value: Any = usage
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def usage_part(usage: Mapping[str, Any]) -> UsagePart:
    """Usage as these servers say it; the prompt's count includes what was cached."""
    read = _number(usage, "prompt_tokens_details", "cached_tokens")
    if read is None:
        read = _number(usage, "prompt_cache_hit_tokens")
    if read is None:
        read = _number(usage, "cached_tokens")
    return UsagePart(
        input=_number(usage, "prompt_tokens"),
        output=_number(usage, "completion_tokens"),
        cache_read=read,
        cache_write=_number(usage, "prompt_tokens_details", "cache_write_tokens"),
        reasoning=_number(usage, "completion_tokens_details", "reasoning_tokens"),
    )
