"""What Google's generateContent answers, as parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

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

NAMESPACE = "google_generate"
_FINISH: dict[str, FinishReason] = {
    "STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter", "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter", "PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter", "LANGUAGE": "content_filter", "MODEL_ARMOR": "content_filter",
}  # fmt: skip
_AGAIN = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL")


class _Call(Struct):
    name: str = ""
    id: str | None = None
    args: dict[str, Any] | None = None


class _Part(Struct, rename={"signature": "thoughtSignature", "call": "functionCall"}):
    text: str | None = None
    thought: bool = False
    signature: str | None = None
    call: _Call | None = None
    inlineData: Any = None
    executableCode: Any = None
    codeExecutionResult: Any = None


class _Content(Struct):
    parts: list[_Part] = field(default_factory=list)


class _Candidate(Struct):
    content: _Content | None = None
    finishReason: str | None = None
    finishMessage: str | None = None


class _Chunk(Struct):
    candidates: list[_Candidate] | None = None
    promptFeedback: dict[str, Any] | None = None
    usageMetadata: dict[str, Any] | None = None
    modelVersion: str | None = None
    responseId: str | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class GenerateReader:
    """See wire.Reader."""

    def __init__(self, names: Names, place: Place) -> None:
        self.done = False
        self.settled = False
        self._names = names
        self._place = place
        self._finish = ""
        self._calls = 0
        self._named = self._any = False
        self._usage: dict[str, Any] = {}

    def feed(self, events: Sequence[tuple[bytes, bytes]], out: list[StreamPart]) -> None:
        """See wire.Reader."""
        for _, data in events:
            self._chunk(self._read(data), out)

    def end(self, out: list[StreamPart]) -> None:
        """See wire.Reader."""
        if not self._finish:
            return
        if self._finish in _AGAIN or (self._finish == "STOP" and not self._any):
            raise Failure("malformed", f"{self._place.host} gave no usable reply: {self._finish}")
        out.append(self._count())
        out.append(FinishPart(_FINISH.get(self._finish, "other"), self._finish))

    def whole(self, body: bytes, out: list[StreamPart]) -> None:
        """See wire.Reader. A list of chunks, as a stream without `alt=sse` is, serves too."""
        if body.lstrip()[:1] == b"[":
            for chunk in msgspec.json.decode(body, type=list[msgspec.Raw]):
                self._chunk(self._read(bytes(chunk)), out)
        else:
            self._chunk(self._read(body), out)
        self.done = True
        self.end(out)
        if not self._finish:
            raise Failure("malformed", f"{self._place.host} sent a reply without a finish: {body[:200]!r}")

    def _read(self, data: bytes) -> _Chunk:
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            try:
                chunk = _decode(mend_surrogates(data))
            except (msgspec.DecodeError, UnicodeDecodeError):
                text = f"{self._place.host} sent a chunk that cannot be read ({error}): {data[:120]!r}"
                raise Failure("malformed", text) from None
        if chunk.error:
            raise explain(self._place, 0, read_refusal(data))
        return chunk

    def _chunk(self, chunk: _Chunk, out: list[StreamPart]) -> None:
        if not self._named and (chunk.responseId or chunk.modelVersion):
            self._named = True
            out.append(ResponsePart(chunk.responseId or "", chunk.modelVersion or ""))
        if chunk.usageMetadata:
            self._usage = chunk.usageMetadata
        if chunk.candidates:
            candidate = chunk.candidates[0]
            if candidate.content is not None:
                for part in candidate.content.parts:
                    self._part(part, out)
            if candidate.finishReason:
                self._finish, self.settled = candidate.finishReason, True
                if candidate.finishMessage:
                    out.append(NotePart(candidate.finishMessage))
        elif chunk.promptFeedback and (why := chunk.promptFeedback.get("blockReason")):
            text = f"{self._place.host} refused the prompt: {why}"
            raise Failure("content_filter", text, hint="Say it differently, or use another model.")

    def _part(self, part: _Part, out: list[StreamPart]) -> None:
        self._any = True
        if part.call is not None:
            self._call(part.call, part.signature, out)
        elif part.text is not None:
            self._text(part.text, part.thought, part.signature, out)
        elif part.inlineData or part.executableCode or part.codeExecutionResult:
            value = {k: v for k in ("inlineData", "executableCode", "codeExecutionResult") if (v := getattr(part, k))}
            out.append(OpaquePart(-1, msgspec.json.encode(value).decode(), NAMESPACE))

    def _text(self, text: str, thought: bool, signature: str | None, out: list[StreamPart]) -> None:
        """A signed part stays a part of its own: the signature is for its very text."""
        if signature:
            out.append(PartBreak())
        if text:
            out.append(ReasoningDelta(text) if thought else TextDelta(text))
        if signature:
            out.append(PartMetadata(-1, NAMESPACE, "signature", signature))
            if not thought and not text:  # carried by an empty reasoning part
                out.append(PartMetadata(-1, NAMESPACE, "of", "text"))
            out.append(PartBreak())

    def _call(self, call: _Call, signature: str | None, out: list[StreamPart]) -> None:
        index, self._calls = self._calls, self._calls + 1
        out.append(ToolCallStart(index, self._names.from_wire(call.name), call.id or ""))
        if call.args:
            out.append(ToolCallDelta(index, msgspec.json.encode(call.args).decode()))
        if signature:
            out.append(PartMetadata(index, NAMESPACE, "signature", signature))
        out.append(ToolCallEnd(index))

    def _count(self) -> UsagePart:
        """Thoughts are counted beside the candidates; what was cached is part of the prompt."""

        def number(name: str) -> int | None:
            value = self._usage.get(name)
            return value if isinstance(value, int) else None

        prompt, made, thought = (number(f"{n}TokenCount") for n in ("prompt", "candidates", "thoughts"))
        extra = number("toolUsePromptTokenCount") or 0
        return UsagePart(
            input=None if prompt is None else prompt + extra,
            output=None if made is None and thought is None else (made or 0) + (thought or 0),
            cache_read=number("cachedContentTokenCount"),
            reasoning=thought,
        )
