"""The parts of a model's stream: a closed union, the same names for every wire protocol and for Lua.

Order is the wire's order. `Finish` is mandatory: a stream that ends without one is a failure.
"""

from __future__ import annotations

from panto.schema.messages import FinishReason
from panto.schema.value import Value


class TextDelta(Value, frozen=True, tag="text"):
    """More visible text. `metadata` belongs to the text part being built."""

    text: str


class ReasoningDelta(Value, frozen=True, tag="reasoning"):
    """More reasoning text."""

    text: str


class ToolCallStart(Value, frozen=True, tag="tool_call_start"):
    """A call begins. `index` tells parallel calls apart within one stream."""

    index: int
    name: str
    id: str = ""


class ToolCallDelta(Value, frozen=True, tag="tool_call_delta"):
    """More text of a call's arguments."""

    index: int
    text: str


class ToolCallEnd(Value, frozen=True, tag="tool_call_end"):
    """A call's arguments are complete."""

    index: int


class PartMetadata(Value, frozen=True, tag="metadata"):
    """Vendor data for one part.

    `index` >= 0: the tool call with that index. `index` = -1: the text or reasoning part being built; where none
    is open (a signed block with no visible text), an empty reasoning part is made to carry it.
    """

    index: int
    namespace: str
    key: str
    value: str


class PartBreak(Value, frozen=True, tag="part_break"):
    """The text or reasoning part being built is complete; the next delta begins another one."""


class OpaquePart(Value, frozen=True, tag="opaque"):
    """A block of the vendor's that panto does not understand, as JSON text, kept in order."""

    index: int
    value: str
    namespace: str = ""


class UsagePart(Value, frozen=True, tag="usage"):
    """Token counts, normalised as in `messages.Usage`; a later one replaces what it sets (None: not said)."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class ResponsePart(Value, frozen=True, tag="response"):
    """Who answered. `created` is UTC seconds, or None."""

    id: str = ""
    model: str = ""
    created: float | None = None


class NotePart(Value, frozen=True, tag="note"):
    """Something the result must say, e.g. that a forced tool choice was sent as auto."""

    text: str


class FinishPart(Value, frozen=True, tag="finish"):
    """The stream's end and why. Mandatory, last."""

    reason: FinishReason
    raw: str = ""


StreamPart = (
    TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | PartMetadata
    | PartBreak
    | OpaquePart
    | UsagePart
    | ResponsePart
    | NotePart
    | FinishPart
)
