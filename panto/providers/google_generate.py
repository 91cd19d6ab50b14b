"""Google's generateContent: what is sent. What comes back: google_generate_reply.py.

Switches (of the server or the model):
    thinking      "level" (default) or "budget" (tokens) or "none"
    signatures    true: calls need a thought signature (third generation and later; default by the model's name)
    results_hold_images    false: images of results follow in a content of their own (default by the model's name)
    members       further body members that options may name
"""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import quote

from panto.providers.failure import Failure
from panto.providers.google_generate_reply import NAMESPACE, GenerateReader
from panto.providers.images import LIMITS, Gate
from panto.providers.lessons import Lessons
from panto.providers.model import ModelSpec, ProviderSettings
from panto.providers.names import Names
from panto.providers.schemas import for_reply, for_tool
from panto.providers.shape import (
    Group,
    IdRule,
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
from panto.schema.messages import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolSpec

PROTOCOL = "google_generate"
OWNED = frozenset(("contents", "tools"))
KNOWN = OWNED | frozenset(
    "systemInstruction toolConfig generationConfig safetySettings cachedContent serviceTier labels store".split()
)
STAND_IN = "skip_thought_signature_validator"
_IDS = IdRule(re.compile(r"[!-~]{1,128}"), "", 24)
_BUDGETS = {"minimal": 512, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 32768}


class GoogleGenerate:
    """The wire of one provider that speaks generateContent."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._known = members(settings, KNOWN)
        self._speller = Speller()
        self._lessons = Lessons(place_of(settings, "").host)
        self._shaper = Shaper(Target(settings.name, PROTOCOL, _IDS), self._lessons.voided)

    def key_headers(self, key: str) -> dict[str, str]:
        """See Wire."""
        return {"x-goog-api-key": key}

    def prepare(self, request: Request, spec: ModelSpec, *, stream: bool) -> Prepared:
        """See Wire."""
        on = _defaults(request.model) | switches(self._settings, spec)
        options = merged(self._settings.options, request.options)
        check_options(options, PROTOCOL, self._known, OWNED)
        names, tools = self._speller.tools(self._lessons.tools(request, spec), _tool)
        shaped = self._shaper.shape(request)
        choice, instruction, note = forced(request, spec)
        if instruction:
            instruct(shaped, instruction)
            shaped.notes.append(note)
        body: dict[str, object] = {}
        if shaped.head:
            body["systemInstruction"] = {"parts": [{"text": clean(text)} for text in shaped.head]}
        if tools:
            body["tools"] = [{"functionDeclarations": tools}]
            if choice.kind != "auto":
                config: dict[str, object] = {"mode": "NONE" if choice.kind == "none" else "ANY"}
                if choice.kind == "named":
                    config["allowedFunctionNames"] = [names.to_wire(choice.name)]
                body["toolConfig"] = {"functionCallingConfig": config}
        gate = Gate(request, spec, LIMITS[PROTOCOL], self._lessons.images)
        body["contents"] = self._contents(shaped.groups, gate, on, names)
        if config := _config(request, spec, on):
            body["generationConfig"] = config
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        path = f"/models/{quote(request.model, safe='')}:{method}"
        reader = GenerateReader(names, place_of(self._settings, request.model))
        return Prepared(path, encode(merged(body, options)), reader, notes=shaped.notes)

    def adapt(self, failure: Failure, request: Request) -> str | None:
        """See Wire."""
        return self._lessons.learn(failure, request, ())

    def _contents(self, groups: list[Group], gate: Gate, on: dict[str, object], names: Names) -> list[object]:
        signed, inside = bool(on["signatures"]), bool(on["results_hold_images"])

        def make(group: Group) -> list[dict[str, object]]:
            match group.kind:
                case "assistant":
                    return [_model(group, names, signed)]
                case "results":
                    shown = not inside and any(images_of(result) for result, _ in group.results)
                    return [_results(group, gate, names, inside), *([_shown(group, gate)] if shown else ())]
                case "user":
                    return [_user(group.messages, gate)]

        spelt = self._speller.groups(groups, (gate.variant, signed, inside), make)
        return [piece for pieces in spelt for piece in pieces]


def _defaults(model: str) -> dict[str, object]:
    newer = re.search(r"gemini-(\d+)", model)
    modern = newer is None or int(newer[1]) >= 3
    return {"signatures": modern, "results_hold_images": modern, "thinking": "level" if modern else "budget"}


def _tool(tool: ToolSpec, names: Names) -> dict[str, object]:
    schema = raw(for_tool(tool.schema, PROTOCOL))
    return {"name": names.to_wire(tool.name), "description": tool.description, "parametersJsonSchema": schema}


def _image(image: Image, gate: Gate) -> dict[str, object]:
    if instead := gate.stand_in(image):
        return {"text": instead}
    return {"inlineData": {"mimeType": image.media_type, "data": b64encode(image.data).decode()}}


def _user(messages: tuple[Message, ...], gate: Gate) -> dict[str, object]:
    parts = [spelt for message in messages for part in message.parts for spelt in _said(part, gate)]
    return {"role": "user", "parts": parts}


def _said(part: Part, gate: Gate) -> list[dict[str, object]]:
    match part:
        case Text(text=text) if text.strip():
            return [{"text": clean(text)}]
        case Image():
            return [_image(part, gate)]
        case _:
            return []


def _signature(part: Text | Reasoning | ToolCall, keep: bool) -> dict[str, object]:
    value = part.metadata.get(NAMESPACE, {}).get("signature") if keep else None
    return {"thoughtSignature": value} if value else {}


def _model(group: Group, names: Names, signed: bool) -> dict[str, object]:
    """Signatures stay on the part they came on. The first call of a step that has none gets the vendor's stand-in."""
    parts: list[object] = []
    ids = iter(group.ids)
    called = False
    for part in group.messages[0].parts:
        match part:
            case Text(text=text) if text.strip():
                parts.append({"text": clean(text), **_signature(part, group.keep)})
            case Reasoning(text=text):
                mark = _signature(part, group.keep)
                if mark and part.metadata[NAMESPACE].get("of") == "text":
                    parts.append({"text": text, **mark})
                elif mark:
                    parts.append({"text": text, "thought": True, **mark})
            case ToolCall():
                call: dict[str, object] = {"name": names.to_wire(part.name), "args": raw(wire_arguments(part))}
                wire = next(ids)
                if wire in group.echoed:
                    call["id"] = wire
                mark = _signature(part, group.own)
                if not mark and signed and not called:
                    mark = {"thoughtSignature": STAND_IN}
                parts.append({"functionCall": call, **mark})
                called = True
    return {"role": "model", "parts": parts}


def _results(group: Group, gate: Gate, names: Names, inside: bool) -> dict[str, object]:
    parts: list[dict[str, object]] = []
    for result, wire in group.results:
        text = result_text(result, flagged=False)
        response: dict[str, object] = {"name": names.to_wire(result.name)}
        if wire in group.echoed:
            response["id"] = wire
        shown = [_image(image, gate) for image in images_of(result)] if inside else []
        text = "\n".join([text, *(str(s["text"]) for s in shown if "text" in s)])
        response["response"] = {"error" if result.is_error else "output": text}
        if pictures := [s for s in shown if "inlineData" in s]:
            response["parts"] = pictures
        parts.append({"functionResponse": response})
    return {"role": "user", "parts": parts}


def _shown(group: Group, gate: Gate) -> dict[str, object]:
    parts: list[dict[str, object]] = []
    for result, _ in group.results:
        for image in images_of(result):
            parts.append({"text": f"Image from {result.name}:"})
            parts.append(_image(image, gate))
    return {"role": "user", "parts": parts}


def _config(request: Request, spec: ModelSpec, on: dict[str, object]) -> dict[str, object]:
    config: dict[str, object] = {}
    if limit := request.max_output or spec.max_output:
        config["maxOutputTokens"] = limit
    if request.schema:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = raw(for_reply(request.schema, PROTOCOL))
    if spec.reasoning and on["thinking"] != "none":
        thinking: dict[str, object] = {"includeThoughts": True}
        level = level_for(request.reasoning, spec.reasoning)
        if level and on["thinking"] == "budget":
            thinking["thinkingBudget"] = 0 if level == "off" else _BUDGETS.get(level, -1)
        elif level:
            thinking["thinkingLevel"] = level.upper()
        config["thinkingConfig"] = thinking
    return config
