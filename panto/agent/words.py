"""What a model is told of each thing that happened: pure functions from entries and bodies to message parts."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from panto.agent.loop_guard import repeated_tail
from panto.schema.bodies import Body, ToolOutcome
from panto.schema.codec import canonical
from panto.schema.messages import BadJson, Image, Json, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from panto.session.context import ResultEntry

EXCERPT = 200
"""Characters of unreadable arguments that are sent back to the model inside valid JSON."""

CHARS = 4
"""Characters a token, where no vendor has counted."""

IMAGE_TOKENS = 1600

LEFT = "panto was ended"
"""How the message of a call begins that was stopped because panto was left, not by Escape."""
UNFINISHED = "This call has not finished."
UNKNOWN = "Outcome unknown: panto ended or lost the tool while this ran. It may have had effects: check first."


def estimate(message: Message) -> int:
    """About how many tokens a message takes."""
    total = 8
    for part in message.parts:
        match part:
            case Text(text=text) | Reasoning(text=text) | Opaque(value=text):
                total += len(text) // CHARS
            case ToolCall(arguments=arguments):
                total += 12 + len(arguments.text) // CHARS
            case ToolResult(parts=results):
                total += 12 + sum(IMAGE_TOKENS if isinstance(p, Image) else len(p.text) // CHARS for p in results)
            case Image():
                total += IMAGE_TOKENS
    return total


def visible(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Parts without blank text, which strict vendors refuse."""
    return tuple(p for p in parts if not (isinstance(p, Text) and not p.text.strip()))


def assistant_message(message: Message, calls: tuple[str, ...]) -> Message:
    """A model's own message as it goes back: calls under panto's ids, unreadable arguments inside valid JSON.

    One that would hold nothing but unsigned reasoning has no parts: it is left out.
    """
    ids = iter(calls)
    parts: list[Part] = []
    for part in visible(message.parts):
        if isinstance(part, ToolCall):
            arguments = part.arguments
            if isinstance(arguments, BadJson):
                excerpt = canonical({"unreadable_arguments": arguments.text[:EXCERPT]})
                arguments = Json(excerpt.decode("utf-8"))
            call = next(ids, None)
            if call is None:
                continue
            part = replace(part, call_id=call, arguments=arguments)
        if isinstance(part, Text) and (cut := repeated_tail(part.text)) is not None:
            part = replace(part, text=part.text[:cut] + "\n[… and so on]")
        parts.append(part)
    if all(isinstance(part, Reasoning) for part in parts):
        parts = []
    return replace(message, parts=tuple(parts))


def tool_result(entry: ResultEntry, outcome: Body | None) -> ToolResult:
    """What the model is told of one call."""
    parts = list(outcome.parts) if isinstance(outcome, ToolOutcome) else []
    says = ""
    match entry.status:
        case "ok":
            pass
        case "pending" | "waiting" | "executing":
            says = UNFINISHED
        case "unknown":
            says = UNKNOWN
        case "cancelled":
            said = "Not finished: panto was ended." if entry.message.startswith(LEFT) else "Cancelled by user."
            says = said + (" It may have had effects." if entry.effects == "unknown" else "")
        case "denied":
            says = f"Not run: {entry.message}"
        case "error":
            says = entry.message
    if says:
        parts.insert(0, Text(says))
    if not any(not isinstance(p, Text) or p.text.strip() for p in parts):
        parts = [Text("(no output)")]
    failed = entry.status != "ok" or (isinstance(outcome, ToolOutcome) and outcome.is_error)
    return ToolResult(entry.id, entry.name, tuple(parts), failed, entry.provider_id)
