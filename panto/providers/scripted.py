"""The shipped fake: replies as data, with delays and faults. For tests and extension authors.

A script is a list of replies, or `{"pick": "order" | "turn", "replies": [...]}`. `order` gives one reply a request;
`turn` takes the one at the number of assistant messages in the conversation, so that it survives a resume. A reply:

    {"reasoning": "…" or ["…"], "text": "…" or ["…"], "calls": [{"name": "read", "arguments": {…} or "verbatim"}],
     "finish": "stop", "usage": {"input": 10}, "delay_s": 0 (before the first part), "each_s": 0 (between parts),
     "stall_s": 0 (silence after the first part), "error": {"kind": "overloaded", "status": 529, "retry_after": 1,
     "message": "…", "after": 3 (parts before it)}}

Lists are streamed piece by piece. A wrong script raises UsageError naming the reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from panto.providers.failure import Failure
from panto.schema.errors import UsageError
from panto.schema.messages import FinishReason, Request
from panto.schema.stream import (
    FinishPart,
    ReasoningDelta,
    ResponsePart,
    StreamPart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsagePart,
)

PROTOCOL = "scripted"
Reply = Mapping[str, object]
_MEMBERS = frozenset(("reasoning", "text", "calls", "finish", "usage", "delay_s", "each_s", "stall_s", "error"))


class Scripted:
    """A Provider whose answers are written down beforehand. `requests` keeps what was asked, for tests."""

    def __init__(
        self, script: object, *, name: str = "scripted", reply: Callable[[Request], Reply] | None = None
    ) -> None:
        self._name = name
        self._reply = reply
        self._pick = "order"
        if isinstance(script, Mapping):
            self._pick = str(script.get("pick", "order"))
            script = script.get("replies", [])
        if not isinstance(script, Sequence) or isinstance(script, str) or self._pick not in ("order", "turn"):
            raise UsageError("a script is a list of replies, or an object with pick (order or turn) and replies")
        self._replies = [_checked(at, one) for at, one in enumerate(script)]
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        """The provider's name in the config."""
        return self._name

    @property
    def protocol(self) -> str:
        """Always "scripted"."""
        return PROTOCOL

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        """See Provider.stream."""
        at = len(self.requests)
        self.requests.append(request)
        if self._reply is not None:
            reply = _checked(at, self._reply(request))
        else:
            if self._pick == "turn":
                at = sum(m.role == "assistant" for m in request.messages)
            reply = self._replies[at] if at < len(self._replies) else {"text": "The script has no further reply."}
        await asyncio.sleep(_seconds(reply, "delay_s"))
        error = reply.get("error")
        after = int(str(error.get("after", 0))) if isinstance(error, Mapping) else -1
        for count, part in enumerate(_parts(reply, request)):
            if count == after:
                assert isinstance(error, Mapping)
                raise _failure(error)
            yield part
            if count == 1 and (stall := _seconds(reply, "stall_s")):
                await asyncio.sleep(stall)
            if each := _seconds(reply, "each_s"):
                await asyncio.sleep(each)
        if isinstance(error, Mapping):
            raise _failure(error)


def load(text: str, *, name: str = "scripted") -> Scripted:
    """A provider from a script file's text (JSON). Raises UsageError with the position."""
    try:
        return Scripted(json.loads(text), name=name)
    except json.JSONDecodeError as error:
        raise UsageError(f"the script of provider {name} is not JSON: {error}") from None


def _checked(at: int, reply: object) -> Reply:
    if isinstance(reply, str):
        return {"text": reply}
    if not isinstance(reply, Mapping) or set(reply) - _MEMBERS:
        wrong = ", ".join(sorted(set(reply) - _MEMBERS)) if isinstance(reply, Mapping) else type(reply).__name__
        raise UsageError(f"reply {at} of the script has what no reply has: {wrong}")
    return reply


def _seconds(reply: Reply, name: str) -> float:
    value = reply.get(name, 0)
    return float(value) if isinstance(value, int | float) else 0.0


def _pieces(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value else []
    return [str(piece) for piece in value] if isinstance(value, Sequence) else []


def _failure(error: Mapping[str, object]) -> Failure:
    wish = error.get("retry_after")
    return Failure(
        str(error.get("kind", "server")),  # type: ignore[arg-type] # a script's word; a wrong one is a test's own fault
        str(error.get("message", "the script says so")),
        status=int(str(error.get("status", 0))),
        retry_after=float(wish) if isinstance(wish, int | float) else None,
    )


def _parts(reply: Reply, request: Request) -> list[StreamPart]:
    out: list[StreamPart] = [ResponsePart(model=request.model)]
    out += [ReasoningDelta(piece) for piece in _pieces(reply.get("reasoning"))]
    out += [TextDelta(piece) for piece in _pieces(reply.get("text"))]
    calls = reply.get("calls", [])
    for index, call in enumerate(calls if isinstance(calls, Sequence) else []):
        arguments = call.get("arguments", {})
        out.append(ToolCallStart(index, str(call.get("name", "")), str(call.get("id", ""))))
        out.append(ToolCallDelta(index, arguments if isinstance(arguments, str) else json.dumps(arguments)))
        out.append(ToolCallEnd(index))
    usage = reply.get("usage")
    if isinstance(usage, Mapping):
        out.append(UsagePart(**{str(k): int(v) for k, v in usage.items()}))
    else:
        size = sum(len(getattr(p, "text", "")) for m in request.messages for p in m.parts)
        out.append(UsagePart(input=size // 4, output=len(out)))
    reason: FinishReason = "tool_calls" if calls else "stop"
    said = str(reply.get("finish", reason))
    known: tuple[FinishReason, ...] = ("stop", "tool_calls", "length", "content_filter")
    out.append(FinishPart(next((k for k in known if k == said), "other"), said))
    return out
