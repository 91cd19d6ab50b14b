"""OpenAI's Responses, stateless: what is sent. What comes back: openai_responses_reply.py.

Switches (of the server or the model):
    summary     "auto" (default), "concise", "detailed", or "none" for servers that have no reasoning summary
    breakpoint  true: an explicit cache breakpoint at the end of the system prompt
    cache_key   false: no prompt_cache_key
    members     further body members that options may name
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence

import msgspec

from panto.providers.failure import Failure
from panto.providers.images import LIMITS, Gate
from panto.providers.lessons import Lessons
from panto.providers.model import ModelSpec, ProviderSettings
from panto.providers.names import Names
from panto.providers.openai_responses_reply import NAMESPACE, ResponsesReader
from panto.providers.schemas import for_reply, for_tool, is_strict
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
    cache_key,
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
from panto.schema.messages import Image, Message, Opaque, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec

PROTOCOL = "openai_responses"
OWNED = frozenset(("input", "model", "tools", "stream", "store", "background", "conversation", "previous_response_id"))
KNOWN = OWNED | frozenset(
    """context_management include instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls
    prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier
    stream_options temperature text tool_choice top_logprobs top_p truncation user""".split()
)
_IDS = IdRule(re.compile(r"[A-Za-z0-9_-]{1,64}"), "call_", 29)
_OPTIONAL = ("prompt_cache_key", "include", "prompt_cache_breakpoint", "summary")
SMALLEST_OUTPUT = 16


class OpenAIResponses:
    """The wire of one provider that speaks Responses."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._known = members(settings, KNOWN)
        self._speller = Speller()
        self._lessons = Lessons(place_of(settings, "").host)
        self._shaper = Shaper(Target(settings.name, PROTOCOL, _IDS), self._lessons.voided)

    def key_headers(self, key: str) -> dict[str, str]:
        """See Wire."""
        return {"authorization": f"Bearer {key}"}

    def prepare(self, request: Request, spec: ModelSpec, *, stream: bool) -> Prepared:
        """See Wire."""
        on = switches(self._settings, spec)
        left_out = self._lessons.members
        options = merged(self._settings.options, request.options)
        check_options(options, PROTOCOL, self._known, OWNED)
        names, tools = self._speller.tools(self._lessons.tools(request, spec), _tool)
        shaped = self._shaper.shape(request)
        choice, instruction, note = forced(request, spec)
        if instruction:
            instruct(shaped, instruction)
            shaped.notes.append(note)
        body: dict[str, object] = {"model": request.model, "store": False}
        if tools:
            body["tools"] = tools
            if choice.kind == "named":
                body["tool_choice"] = {"type": "function", "name": names.to_wire(choice.name)}
            elif choice.kind != "auto":
                body["tool_choice"] = choice.kind
        gate = Gate(request, spec, LIMITS[PROTOCOL], self._lessons.images)
        mark = bool(on.get("breakpoint")) and "prompt_cache_breakpoint" not in left_out
        body["input"] = self._input(shaped, gate, names, mark)
        if limit := request.max_output or spec.max_output:
            body["max_output_tokens"] = max(limit, SMALLEST_OUTPUT)
        if spec.reasoning:
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = _reasoning(request, spec, on, "summary" in left_out)
        if request.schema:
            schema = for_reply(request.schema, PROTOCOL)
            shown = {"type": "json_schema", "name": "reply", "schema": raw(schema), "strict": is_strict(schema)}
            body["text"] = {"format": shown}
        if on.get("cache_key") is not False:
            body["prompt_cache_key"] = cache_key(request, shaped.head)
        if stream:
            body["stream"] = True
        for name in left_out - set(options):
            body.pop(name, None)
        reader = ResponsesReader(names, place_of(self._settings, request.model))
        return Prepared("/responses", encode(merged(body, options)), reader, notes=shaped.notes)

    def adapt(self, failure: Failure, request: Request) -> str | None:
        """See Wire."""
        return self._lessons.learn(failure, request, _OPTIONAL)

    def _input(self, shaped: Shaped, gate: Gate, names: Names, mark: bool) -> list[object]:
        out: list[object] = []
        if head := clean("\n\n".join(shaped.head)):
            part: dict[str, object] = {"type": "input_text", "text": head}
            if mark:
                part["prompt_cache_breakpoint"] = {"mode": "explicit"}
            out.append({"role": "developer", "content": [part]})

        def make(group: Group) -> Sequence[object]:
            match group.kind:
                case "assistant":
                    return _assistant(group, names)
                case "results":
                    return [_result(result, wire, gate) for result, wire in group.results]
                case "user":
                    return [_user(group.messages, gate)]

        for pieces in self._speller.groups(shaped.groups, gate.variant, make):
            out.extend(pieces)
        return out


def _tool(tool: ToolSpec, names: Names) -> dict[str, object]:
    shown = {"type": "function", "name": names.to_wire(tool.name), "description": tool.description}
    return {**shown, "parameters": raw(for_tool(tool.schema, PROTOCOL)), "strict": False}


def _image(image: Image, gate: Gate) -> dict[str, object]:
    if instead := gate.stand_in(image):
        return {"type": "input_text", "text": instead}
    url = f"data:{image.media_type};base64,{b64encode(image.data).decode()}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _user(messages: tuple[Message, ...], gate: Gate) -> dict[str, object]:
    content = [spelt for message in messages for part in message.parts for spelt in _said(part, gate)]
    return {"role": "user", "content": content}


def _said(part: Part, gate: Gate) -> list[dict[str, object]]:
    match part:
        case Text(text=text) if text.strip():
            return [{"type": "input_text", "text": clean(text)}]
        case Image():
            return [_image(part, gate)]
        case _:
            return []


def _result(result: ToolResult, wire: str, gate: Gate) -> dict[str, object]:
    text = result_text(result, flagged=True)
    images = images_of(result)
    output: object = text
    if images:
        output = [{"type": "input_text", "text": text}, *(_image(image, gate) for image in images)]
    return {"type": "function_call_output", "call_id": wire, "output": output}


def _assistant(group: Group, names: Names) -> list[dict[str, object] | msgspec.Raw]:
    """The items of one reply. A reasoning item goes only with what followed it, and ids only with a reasoning item."""
    items: list[dict[str, object] | msgspec.Raw] = []
    held: list[msgspec.Raw] = []
    reasoned = False
    ids = iter(group.ids)
    for part in group.messages[0].parts:
        data = part.metadata.get(NAMESPACE, {}) if group.own and not isinstance(part, Image | ToolResult) else {}
        match part:
            case Reasoning() if group.keep and "item" in data:
                held.append(raw(data["item"]))
            case Opaque(value=value) if group.keep:
                items.append(raw(value))
            case Text(text=text) if text.strip():
                items += held
                reasoned, held = reasoned or bool(held), []
                items.append(_message(clean(text), data, reasoned))
            case ToolCall():
                items += held
                reasoned, held = reasoned or bool(held), []
                call: dict[str, object] = {"type": "function_call", "call_id": next(ids)}
                if reasoned and "id" in data:
                    call["id"] = data["id"]
                items.append({**call, "name": names.to_wire(part.name), "arguments": wire_arguments(part)})
    return items


def _message(text: str, data: dict[str, str], reasoned: bool) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item: dict[str, object] = {"type": "message", "role": "assistant"}
    if reasoned and "id" in data:
        item |= {"id": data["id"], "status": "completed"}
    if "phase" in data:
        item["phase"] = data["phase"]
    return {**item, "content": content}


def _reasoning(request: Request, spec: ModelSpec, on: dict[str, object], no_summary: bool) -> dict[str, object]:
    out: dict[str, object] = {}
    level = level_for(request.reasoning, spec.reasoning)
    if level:
        out["effort"] = "none" if level == "off" else level
    summary = on.get("summary", "auto")
    if summary != "none" and not no_summary:
        out["summary"] = summary
    return out
