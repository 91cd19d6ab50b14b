"""Anthropic's Messages, and the servers that speak it: what is sent. What comes back: anthropic_messages_reply.py.

Switches (of the server or the model):
    thinking    "adaptive" (cannot be off), "adaptive_off" (can), "budget" (a number of tokens), "none" (default)
    between     true: thinking can be kept to between tools where it cannot be off
    cache       false: no cache_control (a server that refuses it)
    version     the anthropic-version header
    bearer      true: the key goes as a bearer token
    betas       further beta names
    members     further body members that options may name
"""

from __future__ import annotations

import re
from base64 import b64encode

import msgspec

from panto.providers.anthropic_messages_reply import NAMESPACE, MessagesReader
from panto.providers.failure import Failure
from panto.providers.images import LIMITS, Gate
from panto.providers.lessons import Lessons
from panto.providers.model import ModelSpec, ProviderSettings
from panto.providers.names import Names
from panto.providers.schemas import for_reply, for_tool
from panto.providers.shape import (
    Group,
    IdRule,
    Shaped,
    Shaper,
    Target,
    clean,
    images_of,
    instruct,
    result_text,
    wire_arguments,
)
from panto.providers.wire import (
    Prepared,
    Speller,
    check_options,
    encode,
    forced,
    level_for,
    members,
    merged,
    place_of,
    raw,
    switches,
)
from panto.schema.messages import Image, Opaque, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec

PROTOCOL = "anthropic_messages"
OWNED = frozenset(("messages", "model", "tools", "stream"))
KNOWN = OWNED | frozenset(
    """cache_control compaction container context_management diagnostics fallbacks inference_geo max_tokens mcp_servers
    metadata output_config output_format service_tier speed stop_sequences system temperature thinking thread
    tool_choice top_k top_p transformations""".split()
)
_IDS = IdRule(re.compile(r"[A-Za-z0-9_-]{1,64}"), "toolu_", 30)
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
DEFAULT_OUTPUT = 8192
_OPTIONAL = ("output_config", "thinking", "cache_control")
_CACHE = {"type": "ephemeral"}
_BINDING = "thinking-binding-controls-2026-08-01"
_INTERLEAVED = "interleaved-thinking-2025-05-14"


class AnthropicMessages:
    """The wire of one provider that speaks Messages."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._known = members(settings, KNOWN)
        self._speller = Speller()
        self._lessons = Lessons(place_of(settings, "").host)
        self._shaper = Shaper(Target(settings.name, PROTOCOL, _IDS, any_model=True), self._lessons.voided)

    def key_headers(self, key: str) -> dict[str, str]:
        """See Wire."""
        if self._settings.wire.get("bearer"):
            return {"authorization": f"Bearer {key}"}
        return {"x-api-key": key}

    def prepare(self, request: Request, spec: ModelSpec, *, stream: bool) -> Prepared:
        """See Wire."""
        on = switches(self._settings, spec)
        options = merged(self._settings.options, request.options)
        check_options(options, PROTOCOL, self._known, OWNED)
        names, tools = self._speller.tools(self._lessons.tools(request, spec), _tool)
        shaped = self._shaper.shape(request)
        limit = request.max_output or spec.max_output or DEFAULT_OUTPUT
        thinking, effort, betas = _thinking(request, spec, on, limit, shaped.stale)
        choice, instruction, note = forced(request, spec, allowed=thinking.get("type") != "enabled")
        if instruction:
            instruct(shaped, instruction)
            shaped.notes.append(note)
        cache = on.get("cache") is not False and "cache_control" not in self._lessons.members
        body: dict[str, object] = {"model": request.model, "max_tokens": limit}
        if tools:
            body["tools"] = tools
            if choice.kind != "auto":
                kind = {"none": "none", "required": "any", "named": "tool"}[choice.kind]
                body["tool_choice"] = {"type": kind, **({"name": names.to_wire(choice.name)} if kind == "tool" else {})}
        if system := _system(request, shaped, cache):
            body["system"] = system
        gate = Gate(request, spec, LIMITS[PROTOCOL], self._lessons.images)
        body["messages"] = self._messages(shaped, gate, names, cache)
        if thinking:
            body["thinking"] = thinking
        if request.schema:
            effort["format"] = {"type": "json_schema", "schema": raw(for_reply(request.schema, PROTOCOL))}
        if effort:
            body["output_config"] = effort
        if stream:
            body["stream"] = True
        for name in self._lessons.members - set(options):
            body.pop(name, None)
        headers = {"anthropic-version": str(on.get("version", "2023-06-01"))}
        extra = on.get("betas")
        if names_of := [*betas, *(extra if isinstance(extra, list | tuple) else ())]:
            headers["anthropic-beta"] = ",".join(map(str, names_of))
        reader = MessagesReader(names, place_of(self._settings, request.model))
        path = "/messages" if self._settings.base_url.rstrip("/").endswith("/v1") else "/v1/messages"
        return Prepared(path, encode(merged(body, options)), reader, headers, shaped.notes)

    def adapt(self, failure: Failure, request: Request) -> str | None:
        """See Wire."""
        optional = _OPTIONAL if "Extra inputs" in failure.detail else ()
        return self._lessons.learn(failure, request, optional)

    def _messages(self, shaped: Shaped, gate: Gate, names: Names, cache: bool) -> list[object]:
        """Results and what a person says after them are one user message, results first."""

        def make(group: Group) -> list[dict[str, object]]:
            match group.kind:
                case "assistant":
                    return [_assistant(group, names)]
                case "results":
                    return _results(group, gate)
                case "user":
                    return [
                        block for message in group.messages for part in message.parts for block in _said(part, gate)
                    ]

        out: list[object] = []
        said: list[list[msgspec.Raw]] = []  # the contents of the user messages
        for group, pieces in zip(shaped.groups, self._speller.groups(shaped.groups, gate.variant, make), strict=True):
            if group.kind == "assistant":
                out.append(pieces[0])
            elif out and isinstance(out[-1], dict):
                said[-1] += pieces
            else:
                said.append(list(pieces))
                out.append({"role": "user", "content": said[-1]})
        for blocks in said[-2:] if cache else ():
            marked = {**msgspec.json.decode(blocks[-1]), "cache_control": _CACHE}
            blocks[-1] = msgspec.Raw(encode(marked))
        return out


def _tool(tool: ToolSpec, names: Names) -> dict[str, object]:
    return {
        "name": names.to_wire(tool.name),
        "description": tool.description,
        "input_schema": raw(for_tool(tool.schema, PROTOCOL)),
    }


def _system(request: Request, shaped: Shaped, cache: bool) -> list[dict[str, object]]:
    """The named parts, then the conversation's own system messages; breakpoints where asked, two at most."""
    out: list[dict[str, object]] = []
    marks = 0
    for block in request.system:
        if block.text.strip():
            out.append({"type": "text", "text": clean(block.text)})
            if cache and block.cache and marks < 1:
                out[-1]["cache_control"] = _CACHE
                marks += 1
    out += [{"type": "text", "text": clean(text)} for text in shaped.head[len(out) :]]
    if out and cache:
        out[-1]["cache_control"] = _CACHE
    return out


def _results(group: Group, gate: Gate) -> list[dict[str, object]]:
    later: list[dict[str, object]] = []
    return [*(_result(result, wire, gate, later) for result, wire in group.results), *later]


def _said(part: Part, gate: Gate) -> list[dict[str, object]]:
    match part:
        case Text(text=text) if text.strip():
            return [{"type": "text", "text": clean(text)}]
        case Image():
            return [_image(part, gate)]
        case _:
            return []


def _image(image: Image, gate: Gate) -> dict[str, object]:
    if instead := gate.stand_in(image):
        return {"type": "text", "text": instead}
    source = {"type": "base64", "media_type": image.media_type, "data": b64encode(image.data).decode()}
    return {"type": "image", "source": source}


def _result(result: ToolResult, wire: str, gate: Gate, later: list[dict[str, object]]) -> dict[str, object]:
    """An error may hold text only: its images go behind all results of the turn."""
    images = [_image(image, gate) for image in images_of(result)]
    content: list[dict[str, object]] = [{"type": "text", "text": result_text(result, flagged=False)}]
    block: dict[str, object] = {"type": "tool_result", "tool_use_id": wire, "content": content}
    if result.is_error:
        block["is_error"] = True
        later.extend(images)
    else:
        content.extend(images)
    return block


def _assistant(group: Group, names: Names) -> dict[str, object]:
    blocks: list[object] = []
    ids = iter(group.ids)
    for part in group.messages[0].parts:
        match part:
            case Text(text=text) if text.strip():
                blocks.append({"type": "text", "text": clean(text)})
            case Reasoning() if group.keep:
                data = part.metadata.get(NAMESPACE, {})
                if "redacted" in data:
                    blocks.append({"type": "redacted_thinking", "data": data["redacted"]})
                elif data.get("signature"):
                    blocks.append({"type": "thinking", "thinking": part.text, "signature": data["signature"]})
            case Opaque(value=value) if group.keep:
                blocks.append(raw(value))
            case ToolCall():
                name, arguments = names.to_wire(part.name), raw(wire_arguments(part))
                blocks.append({"type": "tool_use", "id": next(ids), "name": name, "input": arguments})
    return {"role": "assistant", "content": blocks}


def _thinking(
    request: Request, spec: ModelSpec, on: dict[str, object], limit: int, stale: bool
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """The thinking member, output_config and betas for the level asked for."""
    level, kind = level_for(request.reasoning, spec.reasoning), on.get("thinking", "none")
    off = level == "off"
    effort: dict[str, object] = {"effort": level} if level and not off else {}
    if kind == "budget":
        if off or not level or limit <= 2048:
            return {}, {}, []
        budget = min(_BUDGETS.get(level, 8192), limit - 1024)
        return {"type": "enabled", "budget_tokens": max(1024, budget)}, {}, [_INTERLEAVED] if request.tools else []
    if kind not in ("adaptive", "adaptive_off"):
        return {}, {}, []
    if off and kind == "adaptive_off":
        return {"type": "disabled"}, {}, []
    if off:
        return ({"type": "between_tools"} if on.get("between") else {}), {"effort": "low"}, []
    thinking: dict[str, object] = {"type": "adaptive", "display": "summarized"}
    if stale:
        thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    return thinking, effort, [_BINDING] if stale else []
