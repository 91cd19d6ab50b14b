"""What a program may say on stdin: one JSON object a line."""

from __future__ import annotations

from collections.abc import Mapping

from panto.schema import ops
from panto.schema.codec import BadText, canonical, loads

KINDS = ("prompt", "steer", "queue", "interrupt", "answer", "reply")
DECISIONS = ("once", "session", "no")


class BadRequest(ValueError):
    """A line that asks for nothing known; the message says what is wrong with it."""


def read_request(data: bytes, questions: Mapping[str, str]) -> ops.Op:
    """A line as an op. `questions` are the open ones by id. Unknown fields are ignored. Raises BadRequest."""
    try:
        record = loads(data)
    except BadText as e:
        raise BadRequest(f"not JSON: {e}") from None
    if not isinstance(record, dict):
        raise BadRequest("not an object")
    match record.get("type"):
        case "prompt" | "steer":
            return ops.Prompt(_text(record, "text"))
        case "queue":
            return ops.Prompt(_text(record, "text"), when="turn")
        case "interrupt":
            return ops.Interrupt()
        case "answer":
            return _answer(record, _open(record, questions))
        case "reply":
            return _reply(record, _open(record, questions))
        case kind:
            raise BadRequest(f"type {kind!r} is none of {', '.join(KINDS)}")


def _answer(record: Mapping[str, object], call: str) -> ops.Op:
    decision = record.get("decision")
    arguments = record.get("arguments")
    text = "" if arguments is None else arguments if isinstance(arguments, str) else canonical(arguments).decode()
    reason = _text(record, "reason", "")
    match decision:
        case "once" | "session" | "no":
            return ops.Decide(call, decision, reason=reason, arguments=text)
        case _:
            raise BadRequest(f"decision {decision!r} is none of {', '.join(DECISIONS)}")


def _reply(record: Mapping[str, object], call: str) -> ops.Op:
    choices = record.get("choices")
    if choices is None:
        return ops.Answer(call, text=_text(record, "text"))
    if isinstance(choices, list) and all(isinstance(choice, str) for choice in choices):
        return ops.Answer(call, text=_text(record, "text", ""), choices=tuple(map(str, choices)))
    raise BadRequest("choices is no list of texts")


def _open(record: Mapping[str, object], questions: Mapping[str, str]) -> str:
    call = _text(record, "id")
    if call not in questions:
        raise BadRequest(f"no question {call!r} is open")
    return call


def _text(record: Mapping[str, object], name: str, otherwise: str | None = None) -> str:
    value = record.get(name, otherwise)
    if not isinstance(value, str):
        raise BadRequest(f"{name} is missing" if value is None else f"{name} is no text")
    if otherwise is None and not value.strip():
        raise BadRequest(f"{name} is empty")
    return value
