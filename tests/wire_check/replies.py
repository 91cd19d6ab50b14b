"""A model's reply, told once, as each vendor would send it: streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.wire_check.rules import seal

Protocol = Literal["openai_chat", "openai_responses", "anthropic_messages", "google_generate"]


@dataclass(frozen=True)
class Reply:
    """What the model says. `calls`: name and arguments (text goes out verbatim where the wire has text).

    `ids` replace the calls' ids; `finish` is the vendor's own word instead of the fitting one; `signed` gives the
    reasoning (and, with Gemini, the first call) a signature. Token counts: `sent`, of which `cached`, and `made`.
    """

    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, dict[str, Any] | str]] = ()
    ids: Sequence[str] | None = None
    finish: str = ""
    signed: bool = True
    sent: int = 100
    cached: int = 40
    made: int = 20
    thought: int = 5
    number: int = 1


def halves(text: str) -> list[str]:
    """A text in two pieces (none for an empty one), so that streams have something to join."""
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def event(value: object, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def rendered(protocol: Protocol, reply: Reply, model: str, *, stream: bool) -> list[bytes]:
    """The reply's body in pieces: events, or one JSON document."""
    if protocol == "openai_chat":
        return list(_chat_events(reply, model)) if stream else [_dump(_chat_whole(reply, model))]
    if protocol == "openai_responses":
        return list(_responses_events(reply, model)) if stream else [_dump(_response(reply, model))]
    if protocol == "anthropic_messages":
        return list(_messages_events(reply, model)) if stream else [_dump(_message(reply, model))]
    return list(_google_events(reply, model)) if stream else [_dump(_google_whole(reply, model))]


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


def _ids(reply: Reply, prefix: str) -> Sequence[str]:
    return reply.ids if reply.ids is not None else [f"{prefix}{reply.number}_{i}" for i in range(len(reply.calls))]


def _texts(reply: Reply) -> list[tuple[str, str, str]]:
    """Calls as (name, arguments as text, position)."""
    return [(n, a if isinstance(a, str) else json.dumps(a), str(i)) for i, (n, a) in enumerate(reply.calls)]


def _object(arguments: dict[str, Any] | str) -> Any:
    return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments


# ---------------------------------------------------------------- Chat Completions


def _chat_usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.sent,
        "completion_tokens": reply.made,
        "total_tokens": reply.sent + reply.made,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
        "completion_tokens_details": {"reasoning_tokens": reply.thought},
    }


def _chat_events(reply: Reply, model: str) -> Iterator[bytes]:
    base = {"id": f"chatcmpl-{reply.number}", "object": "chat.completion.chunk", "created": 1790000000, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event({**base, "choices": [choice], "usage": None})

    yield chunk({"role": "assistant", "content": ""})
    for piece in halves(reply.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in halves(reply.text):
        yield chunk({"content": piece})
    ids = _ids(reply, "call_")
    for i, (name, _, _) in enumerate(_texts(reply)):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": i, "id": ids[i], "type": "function", "function": function}]})
    parts = [halves(arguments) for _, arguments, _ in _texts(reply)]
    for turn in range(2):  # the pieces of parallel calls come interleaved
        for i, pieces in enumerate(parts):
            if turn < len(pieces):
                yield chunk({"tool_calls": [{"index": i, "function": {"arguments": pieces[turn]}}]})
    yield chunk({}, reply.finish or ("tool_calls" if reply.calls else "stop"))
    yield event({**base, "choices": [], "usage": _chat_usage(reply)})
    yield b"data: [DONE]\n\n"


def _chat_whole(reply: Reply, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        ids = _ids(reply, "call_")
        message["tool_calls"] = [
            {"id": ids[i], "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments, _) in enumerate(_texts(reply))
        ]
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    return {
        "id": f"chatcmpl-{reply.number}",
        "object": "chat.completion",
        "created": 1790000000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _chat_usage(reply),
    }


# ---------------------------------------------------------------- Responses


def reasoning_item(reply: Reply, model: str) -> dict[str, Any]:
    """The item that carries a reply's reasoning."""
    ident, summary = f"rs_{reply.number}", [{"type": "summary_text", "text": reply.reasoning}]
    sealed = seal(model, ident + json.dumps(summary))
    return {"id": ident, "type": "reasoning", "summary": summary, "encrypted_content": sealed}


def _items(reply: Reply, model: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        items.append(reasoning_item(reply, model))
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        message = {"id": f"msg_{reply.number}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": [part], "phase": "commentary" if reply.calls else "final_answer"})
    ids = _ids(reply, "call_")
    for i, (name, arguments, _) in enumerate(_texts(reply)):
        call = {"id": f"fc_{reply.number}_{i}", "type": "function_call", "call_id": ids[i], "name": name}
        items.append({**call, "arguments": arguments, "status": "completed"})
    return items


def _response(reply: Reply, model: str) -> dict[str, Any]:
    status = {"": "completed"}.get(reply.finish, "incomplete")
    usage = {
        "input_tokens": reply.sent,
        "input_tokens_details": {"cached_tokens": reply.cached},
        "output_tokens": reply.made,
        "output_tokens_details": {"reasoning_tokens": reply.thought},
        "total_tokens": reply.sent + reply.made,
    }
    head = {"id": f"resp_{reply.number}", "object": "response", "created_at": 1790000000, "model": model}
    details = {"reason": reply.finish} if reply.finish else None
    return {**head, "status": status, "incomplete_details": details, "output": _items(reply, model), "usage": usage}


def _responses_events(reply: Reply, model: str) -> Iterator[bytes]:
    number = iter(range(10_000))

    def send(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, "sequence_number": next(number), **fields}, kind)

    whole = _response(reply, model)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield send("response.created", response=begun)
    yield send("response.in_progress", response=begun)
    for at, item in enumerate(whole["output"]):
        where = {"output_index": at, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                yield send("response.output_item.added", output_index=at, item={**item, "encrypted_content": "cut"})
                part = {"type": "summary_text", "text": ""}
                yield send("response.reasoning_summary_part.added", **where, summary_index=0, part=part)
                for piece in halves(reply.reasoning):
                    yield send("response.reasoning_summary_text.delta", **where, summary_index=0, delta=piece)
                yield send("response.reasoning_summary_text.done", **where, summary_index=0, text=reply.reasoning)
            case "message":
                yield send("response.output_item.added", output_index=at, item={**item, "content": []})
                empty = {**item["content"][0], "text": ""}
                yield send("response.content_part.added", **where, content_index=0, part=empty)
                for piece in halves(reply.text):
                    yield send("response.output_text.delta", **where, content_index=0, delta=piece)
                yield send("response.output_text.done", **where, content_index=0, text=reply.text)
                yield send("response.content_part.done", **where, content_index=0, part=item["content"][0])
            case _:
                yield send("response.output_item.added", output_index=at, item={**item, "arguments": ""})
                for piece in halves(item["arguments"]):
                    yield send("response.function_call_arguments.delta", **where, delta=piece)
                yield send("response.function_call_arguments.done", **where, arguments=item["arguments"])
        yield send("response.output_item.done", output_index=at, item=item)
    yield send(f"response.{whole['status']}", response=whole)


# ---------------------------------------------------------------- Messages


def _message(reply: Reply, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        signature = seal(model, reply.reasoning) if reply.signed else ""
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    ids = _ids(reply, "toolu_")
    for i, (name, arguments) in enumerate(reply.calls):
        content.append({"type": "tool_use", "id": ids[i], "name": name, "input": _object(arguments)})
    usage = {
        "input_tokens": reply.sent - reply.cached - 10,
        "cache_read_input_tokens": reply.cached,
        "cache_creation_input_tokens": 10,
        "output_tokens": reply.made,
        "output_tokens_details": {"thinking_tokens": reply.thought},
    }
    head = {"id": f"msg_{reply.number}", "type": "message", "role": "assistant", "model": model}
    stop = reply.finish or ("tool_use" if reply.calls else "end_turn")
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _messages_events(reply: Reply, model: str) -> Iterator[bytes]:
    def send(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, **fields}, kind)

    def delta(at: int, kind: str, **fields: Any) -> bytes:
        return send("content_block_delta", index=at, delta={"type": kind, **fields})

    texts = iter(_texts(reply))
    whole = _message(reply if _parses(reply) else _empty(reply), model)
    usage = {**whole["usage"], "output_tokens": 1}
    yield send("message_start", message={**whole, "content": [], "stop_reason": None, "usage": usage})
    yield send("ping")
    for at, block in enumerate(whole["content"]):
        match block["type"]:
            case "thinking":
                yield send("content_block_start", index=at, content_block={**block, "thinking": "", "signature": ""})
                for piece in halves(block["thinking"]):
                    yield delta(at, "thinking_delta", thinking=piece)
                if block["signature"]:
                    yield delta(at, "signature_delta", signature=block["signature"])
            case "text":
                yield send("content_block_start", index=at, content_block={"type": "text", "text": ""})
                for piece in halves(block["text"]):
                    yield delta(at, "text_delta", text=piece)
            case _:
                yield send("content_block_start", index=at, content_block={**block, "input": {}})
                yield delta(at, "input_json_delta", partial_json="")
                for piece in halves(next(texts)[1]):
                    yield delta(at, "input_json_delta", partial_json=piece)
        yield send("content_block_stop", index=at)
    out = {
        "output_tokens": reply.made,
        "input_tokens": None,
        "output_tokens_details": {"thinking_tokens": reply.thought},
    }
    yield send("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": None}, usage=out)
    yield send("message_stop")


def _parses(reply: Reply) -> bool:
    try:
        return all(isinstance(_object(a), dict) for _, a in reply.calls)
    except ValueError:
        return False


def _empty(reply: Reply) -> Reply:
    return Reply(**{**reply.__dict__, "calls": [(name, {}) for name, _ in reply.calls]})


# ---------------------------------------------------------------- Gemini


def _google_parts(reply: Reply, model: str) -> list[list[dict[str, Any]]]:
    chunks: list[list[dict[str, Any]]] = [[{"text": piece, "thought": True}] for piece in halves(reply.reasoning)]
    chunks += [[{"text": piece}] for piece in halves(reply.text)]
    calls: list[dict[str, Any]] = []
    ids = reply.ids if reply.ids is not None else [f"g{reply.number}{i}" for i in range(len(reply.calls))]
    for i, (name, arguments) in enumerate(reply.calls):
        args = _object(arguments)
        call: dict[str, Any] = {"functionCall": {"id": ids[i], "name": name, "args": args}}
        if i == 0 and reply.signed:
            call["thoughtSignature"] = seal(model, name + json.dumps(args, sort_keys=True))
        calls.append(call)
    if calls:
        chunks.append(calls)
    elif reply.reasoning and reply.signed:
        chunks.append([{"text": "", "thoughtSignature": seal(model, "")}])
    return chunks


def _google_events(reply: Reply, model: str) -> Iterator[bytes]:
    chunks = _google_parts(reply, model)
    for at, parts in enumerate(chunks or [[]]):
        last = at >= len(chunks) - 1
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if last:
            candidate["finishReason"] = reply.finish or "STOP"
        body = {"candidates": [candidate], **_google_tail(reply, model)}
        yield event(body).replace(b"\n\n", b"\r\n\r\n")


def _google_tail(reply: Reply, model: str) -> dict[str, Any]:
    usage = {
        "promptTokenCount": reply.sent,
        "cachedContentTokenCount": reply.cached,
        "candidatesTokenCount": reply.made - reply.thought,
        "thoughtsTokenCount": reply.thought,
        "totalTokenCount": reply.sent + reply.made,
    }
    return {"usageMetadata": usage, "modelVersion": model, "responseId": f"resp{reply.number}"}


def _google_whole(reply: Reply, model: str) -> dict[str, Any]:
    parts = [part for chunk in _google_parts(reply, model) for part in chunk]
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": reply.finish or "STOP"}
    return {"candidates": [candidate], **_google_tail(reply, model)}
