"""The only fold from a stream's parts to a result: every protocol, streamed or not, passes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from panto.providers.model import Price
from panto.schema import codec
from panto.schema.errors import ProviderError
from panto.schema.messages import (
    Arguments,
    BadJson,
    Finish,
    FinishReason,
    Json,
    Message,
    Metadata,
    ModelResult,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Text,
    ToolCall,
    Usage,
)
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

_KINDS = {list: "an array", str: "a string", bool: "true or false", int: "a number", float: "a number"}


def arguments_of(text: str) -> Arguments:
    """A call's arguments from the text a model sent: "" is an empty object; what is not an object is kept as it is."""
    if not text.strip():
        return Json("{}")
    try:
        value = codec.loads(text)
    except codec.BadText as bad:
        return BadJson(text, str(bad))
    if isinstance(value, dict):
        return Json(text)
    return BadJson(text, f"a JSON object is needed, this is {_KINDS.get(type(value), 'null')}")


FEW = 512
"""Pieces kept apart before they are joined: memory grows with the text, not with the number of deltas."""


class _Draft:
    """A part being built."""

    __slots__ = ("blocks", "id", "kind", "metadata", "name", "pieces")

    def __init__(self, kind: str, name: str = "", provider_id: str = "") -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.blocks: list[str] = []  # of FEW pieces each
        self.metadata: Metadata = {}
        self.name = name
        self.id = provider_id

    def more(self, text: str) -> None:
        self.pieces.append(text)
        if len(self.pieces) > FEW:
            self.blocks.append("".join(self.pieces))
            self.pieces.clear()

    def note(self, part: PartMetadata) -> None:
        known = self.metadata.setdefault(part.namespace, {})
        known[part.key] = part.value

    def part(self) -> Part | None:
        text = "".join(self.blocks) + "".join(self.pieces)
        match self.kind:
            case "text":
                return Text(text, self.metadata) if text or self.metadata else None
            case "reasoning":
                return Reasoning(text, self.metadata) if text or self.metadata else None
            case "opaque":
                return Opaque(text, self.metadata)
        return ToolCall(self.name, arguments_of(text), provider_id=self.id, metadata=self.metadata)


def _nowhere(text: str) -> None:
    raise AssertionError("no part is open")


_INCREDIBLE = 1 << 40
"""Tokens that no reply has: a count like this is a server's mistake, and what it says is not known."""


class Assembler:
    """Feed it the parts of one stream in order, then ask for the result. One stream, one assembler."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._open: _Draft | None = None
        self._add: Callable[[str], None] = _nowhere  # to the open draft
        self._kind = ""  # of the open draft
        self._calls: dict[int, _Draft] = {}
        self._usage: dict[str, int] = {}
        self._response = ResponsePart()
        self._notes: list[str] = []
        self._finish: FinishPart | None = None
        self.started = False
        """Whether anything was heard that a person could have seen."""

    def feed(self, part: StreamPart) -> None:
        """Take the next part. Raises ProviderError (malformed) for one that cannot stand here."""
        match part:
            case TextDelta():
                if self._kind != "text":
                    self._begin("text")
                self._add(part.text)
            case ReasoningDelta():
                if self._kind != "reasoning":
                    self._begin("reasoning")
                self._add(part.text)
            case ToolCallDelta():
                self._call(part.index).more(part.text)
            case ToolCallStart():
                self._close()
                self.started = True
                self._calls[part.index] = draft = _Draft("call", part.name, part.id)
                self._drafts.append(draft)
            case ToolCallEnd():
                self._call(part.index)
            case PartMetadata():
                self._note(part)
            case PartBreak():
                self._close()
            case OpaquePart():
                self._close()
                self._drafts.append(draft := _Draft("opaque"))
                draft.pieces.append(part.value)
                draft.metadata = {part.namespace: {}} if part.namespace else {}
            case UsagePart():
                for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
                    value = getattr(part, name)
                    if value is not None and 0 <= value < _INCREDIBLE:
                        self._usage[name] = value
            case ResponsePart():
                old = self._response
                created = part.created if part.created is not None else old.created
                self._response = ResponsePart(part.id or old.id, part.model or old.model, created)
            case NotePart():
                if part.text not in self._notes:
                    self._notes.append(part.text)
            case FinishPart():
                self._finish = part
            case _:
                assert_never(part)

    def _begin(self, kind: str) -> None:
        self._open = draft = _Draft(kind)
        self._kind, self._add = kind, draft.more
        self._drafts.append(draft)
        self.started = True

    def _close(self) -> None:
        self._open, self._kind = None, ""

    def _call(self, index: int) -> _Draft:
        try:
            return self._calls[index]
        except KeyError:
            raise ProviderError("malformed", f"the stream continues tool call {index}, which never began") from None

    def _note(self, part: PartMetadata) -> None:
        if part.index >= 0:
            self._call(part.index).note(part)
            return
        if self._open is None:
            self._begin("reasoning")
        assert self._open is not None
        self._open.note(part)

    def result(self, origin: Origin, *, price: Price | None = None, made_under: str = "") -> ModelResult:
        """What the stream came to. Raises ProviderError (connection) if it had no finish.

        `made_under` is the request's context digest; `price` gives the cost (None: unknown).
        """
        if self._finish is None:
            raise ProviderError("connection", "the stream ended before the reply did")
        parts = tuple(part for draft in self._drafts if (part := draft.part()) is not None)
        usage = Usage(**self._usage)
        return ModelResult(
            message=Message("assistant", parts, origin=origin, made_under=made_under),
            finish=Finish(_reason(self._finish.reason, bool(self._calls)), self._finish.raw),
            usage=usage,
            cost=price.cost(usage) if price is not None and self._usage else None,
            response_id=self._response.id,
            response_model=self._response.model,
            created=self._response.created or None,
            notes=tuple(self._notes),
        )


def _reason(said: FinishReason, calls: bool) -> FinishReason:
    """Servers say stop with calls and tool_calls without: what came counts."""
    if calls and said in ("stop", "other"):
        return "tool_calls"
    if not calls and said == "tool_calls":
        return "stop"
    return said
