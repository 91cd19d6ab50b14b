"""The two wire protocols of the fake model server: what its vendor would refuse, and a reply as streamed events.

The refusals are the vendors' rules as far as they bear on history: pairing of calls and results, ids, empty content,
arguments, names, unknown fields. A request that passes here may still fail at a vendor; one that fails here must.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tests.fake_model import Reply

Api = Literal["chat", "anthropic"]
Body = dict[str, Any]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHAT_FIELDS = set(
    "model messages stream stream_options tools tool_choice parallel_tool_calls temperature top_p max_tokens "
    "max_completion_tokens reasoning_effort stop seed n user response_format metadata store service_tier "
    "prompt_cache_key prompt_cache_retention safety_identifier verbosity".split()
)
_ANTHROPIC_FIELDS = set(
    "model messages max_tokens stream system tools tool_choice temperature top_p top_k stop_sequences metadata "
    "thinking output_config service_tier cache_control".split()
)


class _Refused(Exception):
    """The vendor's 400; the text says why."""


def text_of(content: object) -> str:
    """All text inside a message's content, whichever of the shapes the protocols allow it has."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        return str(content["text"]) if isinstance(content.get("text"), str) else ""
    return ""


def result_count(api: Api, message: Body) -> int:
    """How many tool results this message carries."""
    if api == "chat":
        return int(message["role"] == "tool")
    content = message["content"]
    return sum(b["type"] == "tool_result" for b in content) if isinstance(content, list) else 0


# ---------------------------------------------------------------- refusals


def refusal(api: Api, body: object, headers: dict[str, str]) -> str | None:
    """Why the vendor of this protocol would answer 400, or None."""
    try:
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
            raise _Refused("the body is not an object with messages")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise _Refused("model: field required")
        unknown = sorted(set(body) - (_CHAT_FIELDS if api == "chat" else _ANTHROPIC_FIELDS))
        if unknown:
            raise _Refused(f"unknown field: {unknown[0]}")
        if api == "chat":
            _refuse_chat(body)
        else:
            _refuse_anthropic(body, headers)
    except _Refused as reason:
        return str(reason)
    return None


def _refuse_tools(names: Sequence[object], schemas: Sequence[object]) -> None:
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _Refused(f"tool name not allowed: {name!r}")
    if len(set(names)) != len(names):
        raise _Refused("tool names must be unique")
    for name, schema in zip(names, schemas, strict=True):
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise _Refused(f"the schema of tool {name} is not an object's")


class _Pairs:
    """Every call is answered by exactly one result, directly after it, before anything else is said."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.seen: set[str] = set()

    def call(self, ident: object, limit: int) -> None:
        if not isinstance(ident, str) or not ident or len(ident) > limit:
            raise _Refused(f"tool call id empty or longer than {limit}: {ident!r}")
        if ident in self.seen:
            raise _Refused(f"tool call id used twice: {ident}")
        self.seen.add(ident)
        self.open.append(ident)

    def result(self, ident: object) -> None:
        if ident not in self.open:
            raise _Refused(f"tool result without its call directly before: {ident!r}")
        self.open.remove(str(ident))

    def other(self) -> None:
        if self.open:
            raise _Refused(f"tool calls without results: {', '.join(self.open)}")


def _refuse_chat(body: Body) -> None:
    tools = [t.get("function") or {} for t in body.get("tools") or []]
    _refuse_tools([t.get("name") for t in tools], [t.get("parameters", {"type": "object"}) for t in tools])
    if "tools" in body and not tools:
        raise _Refused("tools is an empty list")
    if "stream_options" in body and not body.get("stream"):
        raise _Refused("stream_options is only allowed with stream")
    pairs = _Pairs()
    for at, message in enumerate(body["messages"]):
        role, calls = message.get("role"), message.get("tool_calls")
        if role == "tool":
            pairs.result(message.get("tool_call_id"))
            if not isinstance(message.get("content"), str | list):
                raise _Refused(f"messages[{at}]: a tool result needs content")
            continue
        pairs.other()
        if role not in ("system", "developer", "user", "assistant"):
            raise _Refused(f"messages[{at}]: unknown role {role!r}")
        if calls is not None and (role != "assistant" or not calls):
            raise _Refused(f"messages[{at}]: tool_calls must be a filled list of an assistant")
        if not calls and not message.get("content"):
            raise _Refused(f"messages[{at}]: empty {role} message")
        for call in calls or []:
            _refuse_arguments(call["function"].get("arguments"))
            pairs.call(call.get("id"), 40)
    pairs.other()


def _refuse_arguments(text: object) -> None:
    try:
        good = isinstance(json.loads(text), dict) if isinstance(text, str) else False
    except ValueError:
        good = False
    if not good:
        raise _Refused(f"tool call arguments are not a JSON object: {str(text)[:80]!r}")


def _refuse_anthropic(body: Body, headers: dict[str, str]) -> None:
    if not headers.get("anthropic-version"):
        raise _Refused("anthropic-version: header is required")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise _Refused("max_tokens: field required")
    tools = body.get("tools") or []
    _refuse_tools([t.get("name") for t in tools], [t.get("input_schema") for t in tools])
    if json.dumps(body).count('"cache_control"') > 4:
        raise _Refused("a maximum of 4 blocks with cache_control may be provided")
    for block in body["system"] if isinstance(body.get("system"), list) else []:
        if not block.get("text"):
            raise _Refused("system: text content blocks must be non-empty")
    if body["messages"][0].get("role") != "user":
        raise _Refused("messages: the first message must use the user role")
    if body["messages"][-1].get("role") == "assistant":
        raise _Refused("this model does not support assistant message prefill")
    pairs = _Pairs()
    for at, message in enumerate(body["messages"]):
        _refuse_blocks(f"messages.{at}", message, pairs)
    pairs.other()


def _refuse_blocks(place: str, message: Body, pairs: _Pairs) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise _Refused(f"{place}: unknown role {role!r}")
    if not content or (isinstance(content, str) and not content.strip()):
        raise _Refused(f"{place}: all messages must have non-empty content")
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        kind = block.get("type")
        if kind == "tool_result":
            if role != "user":
                raise _Refused(f"{place}: tool_result outside a user message")
            pairs.result(block.get("tool_use_id"))
            continue
        if kind == "tool_use":
            if role != "assistant" or not isinstance(block.get("input"), dict):
                raise _Refused(f"{place}: tool_use needs an assistant and an object as input")
            if not _NAME.fullmatch(str(block.get("id"))):
                raise _Refused(f"{place}: tool_use id {block.get('id')!r} is not allowed")
            pairs.call(block.get("id"), 64)
            continue
        if role == "user":
            pairs.other()
        if kind == "text" and not str(block.get("text", "")).strip():
            raise _Refused(f"{place}: text content blocks must be non-empty")


# ---------------------------------------------------------------- answers


def error(api: Api, status: int, message: str) -> Body:
    """The vendor's error body."""
    named = {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = named.get(status, "api_error" if api == "anthropic" else "server_error")
    if api == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "code": None, "param": None}}


def events(api: Api, body: Body, reply: Reply, number: int, size: int) -> Iterator[tuple[bytes, bool]]:
    """The reply as server-sent events; the flag marks a piece of text. `size` is the request's, for the usage."""
    make = _chat_events if api == "chat" else _anthropic_events
    return make(body, reply, number, max(1, size // 4))


def _pieces(text: str | Sequence[str]) -> Sequence[str]:
    return [text] if isinstance(text, str) and text else text if not isinstance(text, str) else ()


def _event(value: Body, name: str = "") -> bytes:
    data = b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"
    return b"event: " + name.encode() + b"\n" + data if name else data


def _mould(event: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the text of a delta, so that thousands of them cost little to make."""
    before, _, after = event.partition(b'"<text>"')
    return before, after


def _calls(reply: Reply, number: int, prefix: str) -> list[tuple[str, str, str]]:
    """The calls as id, name and the text of the arguments."""
    ids = reply.call_ids or [f"{prefix}{number}_{i}" for i in range(len(reply.calls))]
    texts = [a if isinstance(a, str) else json.dumps(a) for _, a in reply.calls]
    return [(i, name, text) for i, (name, _), text in zip(ids, reply.calls, texts, strict=True)]


def _chat_events(body: Body, reply: Reply, number: int, tokens: int) -> Iterator[tuple[bytes, bool]]:
    base = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def chunk(delta: Body, finish: str | None = None) -> bytes:
        return _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""}), False
    for piece in _pieces(reply.reasoning):
        yield chunk({"reasoning_content": piece}), False
    before, after = _mould(chunk({"content": "<text>"}))
    texts, calls = _pieces(reply.text), _calls(reply, number, "call_")
    for piece in texts:
        yield before + json.dumps(piece).encode() + after, True
    for i, (ident, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": i, "id": ident, "type": "function", "function": function}]}), False
        half = len(arguments) // 2
        for part in (arguments[:half], arguments[half:]):
            yield chunk({"tool_calls": [{"index": i, "function": {"arguments": part}}]}), False
    yield chunk({}, reply.finish or ("tool_calls" if calls else "stop")), False
    out = len(texts) + 12 * len(calls) + 1
    usage = {"prompt_tokens": tokens, "completion_tokens": out, "total_tokens": tokens + out}
    yield _event({**base, "choices": [], "usage": usage}), False
    yield b"data: [DONE]\n\n", False


def _anthropic_events(body: Body, reply: Reply, number: int, tokens: int) -> Iterator[tuple[bytes, bool]]:
    def event(kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, **fields}, kind)

    def delta(at: int, kind: str, **fields: Any) -> bytes:
        return event("content_block_delta", index=at, delta={"type": kind, **fields})

    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    usage = {"input_tokens": tokens, "output_tokens": 1}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage}), False
    at = 0
    if reasoning := _pieces(reply.reasoning):
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield event("content_block_start", index=at, content_block=block), False
        for piece in reasoning:
            yield delta(at, "thinking_delta", thinking=piece), False
        yield delta(at, "signature_delta", signature=f"signed-{number}"), False
        yield event("content_block_stop", index=at), False
        at += 1
    if texts := _pieces(reply.text):
        yield event("content_block_start", index=at, content_block={"type": "text", "text": ""}), False
        before, after = _mould(delta(at, "text_delta", text="<text>"))
        for piece in texts:
            yield before + json.dumps(piece).encode() + after, True
        yield event("content_block_stop", index=at), False
        at += 1
    calls = _calls(reply, number, "toolu_")
    for ident, name, arguments in calls:
        use: Body = {"type": "tool_use", "id": ident, "name": name, "input": {}}
        yield event("content_block_start", index=at, content_block=use), False
        yield delta(at, "input_json_delta", partial_json=arguments), False
        yield event("content_block_stop", index=at), False
        at += 1
    reason = reply.finish or ("tool_use" if calls else "end_turn")
    out = {"output_tokens": len(texts) + 12 * len(calls) + 1}
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=out), False
    yield event("message_stop"), False
