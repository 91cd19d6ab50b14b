"""What is said between people, models and tools: messages and their parts, requests and results.

Everything here is frozen, closed and can be persisted. Tuples stand where JSON has arrays. `Metadata` is
namespace -> key -> string; it is kept byte for byte and handed back only to where it came from.
"""

from __future__ import annotations

from typing import Literal

from panto.schema.value import Value

Metadata = dict[str, dict[str, str]]
"""namespace -> key -> value, e.g. {"anthropic": {"signature": "..."}}."""

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "other"]


class Text(Value, frozen=True, tag="text"):
    """Plain text. Never empty in a request: blank parts are left out before sending."""

    text: str
    metadata: Metadata = {}


class Reasoning(Value, frozen=True, tag="reasoning"):
    """What a model thought aloud. `metadata` carries the vendor's signature or encrypted form."""

    text: str
    metadata: Metadata = {}


class Image(Value, frozen=True, tag="image"):
    """An image, already scaled to what vendors accept. `data` is the file's bytes (base64 in JSON)."""

    media_type: str
    data: bytes
    name: str = ""


class Json(Value, frozen=True, tag="json"):
    """A JSON document as text, exactly as it was made; `text` always parses."""

    text: str


class BadJson(Value, frozen=True, tag="bad_json"):
    """Text that should have been a JSON object and was not: kept and reported, never executed.

    `problem` says what is wrong and where, e.g. "expected ',' or '}' at position 17".
    """

    text: str
    problem: str


Arguments = Json | BadJson


class ToolCall(Value, frozen=True, tag="tool_call"):
    """A model's wish to run a tool.

    `call_id` is panto's own id, bound when the result is recorded ("" before that). `provider_id` is what the
    provider sent; it may be empty or repeated and is only echoed back to the same provider.
    """

    name: str
    arguments: Arguments
    call_id: str = ""
    provider_id: str = ""
    metadata: Metadata = {}


ResultPart = Text | Image | Json


class ToolResult(Value, frozen=True, tag="tool_result"):
    """What the model is told about one call. Exactly one per call, directly after it."""

    call_id: str
    name: str
    parts: tuple[ResultPart, ...]
    is_error: bool = False
    provider_id: str = ""


class Opaque(Value, frozen=True, tag="opaque"):
    """A vendor's block that panto does not understand: kept in order, sent back unchanged. `value` is JSON text."""

    value: str
    metadata: Metadata = {}


Part = Text | Reasoning | Image | ToolCall | ToolResult | Opaque


class Origin(Value, frozen=True):
    """Which model wrote an assistant message. Decides to whom its metadata may be handed back."""

    provider: str
    protocol: str
    model: str


class Message(Value, frozen=True):
    """One message of a conversation.

    `made_under` (assistant only) is the digest of (system, tools, base checkpoint) that it was made under: once
    that has changed, reasoning of finished turns is left out.
    `in_progress` marks the turn that is still running (set by the agent when it builds a request; not stored).
    """

    role: Role
    parts: tuple[Part, ...]
    metadata: dict[str, object] = {}
    origin: Origin | None = None
    made_under: str = ""
    in_progress: bool = False


class ToolSpec(Value, frozen=True):
    """What a model may call. `schema` is JSON Schema as text; its bytes survive storage and sending unchanged."""

    name: str
    description: str
    schema: str


class SystemBlock(Value, frozen=True):
    """One named part of the system prompt. `cache` asks for a cache breakpoint after it."""

    name: str
    text: str
    cache: bool = False


class ToolChoice(Value, frozen=True):
    """auto | none | required | named (then `name`)."""

    kind: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""


class Request(Value, frozen=True):
    """One model call, nothing else.

    `model` is the wire id; `options` are members of the request body (already chosen for this provider) and may
    override what panto set; `schema` is a JSON Schema text for a structured reply; `max_output` in tokens.
    `agent` and `session_id` say who asks (protocols of extensions want it; it is never sent over a wire).
    """

    model: str
    system: tuple[SystemBlock, ...] = ()
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    reasoning: str = ""
    max_output: int | None = None
    schema: str = ""
    options: dict[str, object] = {}
    context_digest: str = ""
    agent: str = ""
    session_id: str = ""


class Usage(Value, frozen=True):
    """Tokens. `input` is everything sent, cached or not; `cache_read` and `cache_write` are shares of it;
    `reasoning` is a share of `output`. Normalised over vendors, whose own counts differ in this."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
        )


class Finish(Value, frozen=True):
    """Why the model stopped; `raw` is the vendor's own word."""

    reason: FinishReason
    raw: str = ""


class ModelResult(Value, frozen=True):
    """What one model call came to. `message.role` is assistant; `created` is UTC seconds or None, never 1970."""

    message: Message
    finish: Finish
    usage: Usage = Usage()
    cost: float | None = None
    response_id: str = ""
    response_model: str = ""
    created: float | None = None
    notes: tuple[str, ...] = ()

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the message, in order."""
        return tuple(part for part in self.message.parts if isinstance(part, ToolCall))

    def text(self) -> str:
        """The visible text of the message, parts joined."""
        return "".join(part.text for part in self.message.parts if isinstance(part, Text))
