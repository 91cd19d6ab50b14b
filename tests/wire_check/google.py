"""What Gemini's generateContent refuses, as its third generation and later do."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from tests.wire_check.rules import Body, Refused, check_image, check_names, check_schema, expect, filled, only, sealed

FIELDS = "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent serviceTier"
STAND_INS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
CONFIG = """maxOutputTokens temperature topP topK stopSequences seed responseMimeType responseSchema responseJsonSchema
 thinkingConfig candidateCount presencePenalty frequencyPenalty mediaResolution responseModalities"""


def model_of(path: str) -> str:
    """The model's name in a request's path."""
    found = re.search(r"models/([^:/]+):(stream)?[gG]enerateContent", path)
    expect(found, f"no such method: {path}")
    assert found
    return found[1]


def check(body: Body, path: str, image_limit: int = 20 << 20) -> None:
    """Raise Refused for the first thing that the vendor would refuse."""
    model = model_of(path)
    only(body, FIELDS, "body")
    only(body.get("generationConfig", {}), CONFIG, "generation_config")
    thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
    only(thinking, "includeThoughts thinkingBudget thinkingLevel", "thinking_config")
    expect(not {"thinkingBudget", "thinkingLevel"} <= set(thinking), "thinkingBudget and thinkingLevel together")
    _tools(body)
    for part in body.get("systemInstruction", {"parts": [{"text": "x"}]})["parts"]:
        expect(filled(part.get("text")), "systemInstruction: empty part")
    contents = body.get("contents")
    expect(isinstance(contents, list) and contents, "GenerateContentRequest.contents: contents is not specified")
    assert isinstance(contents, list)
    expect(contents[0].get("role") == "user", "the first content must be a user's")
    expect(contents[-1].get("role") == "user", "Please ensure that the last content is a user's")
    said = [at for at, c in enumerate(contents) if c["role"] == "user" and any("text" in p for p in c["parts"])]
    current = said[-1] if said else 0
    open_calls: list[tuple[Any, Any]] = []
    for at, content in enumerate(contents):
        only(content, "role parts", f"contents[{at}]")
        parts = content.get("parts")
        expect(isinstance(parts, list) and parts, f"contents[{at}].parts must not be empty")
        results = [p["functionResponse"] for p in parts if "functionResponse" in p]
        calls = [p["functionCall"] for p in parts if "functionCall" in p]
        _answered(open_calls, results, at)
        expect(content.get("role") in ("user", "model"), f"contents[{at}]: unknown role")
        expect(not (content["role"] == "model" and results), f"contents[{at}]: results belong to the user")
        expect(not (content["role"] == "user" and calls), f"contents[{at}]: calls belong to the model")
        if calls:
            before = contents[at - 1].get("role") if at else ""
            expect(
                before == "user", "function call turn comes immediately after a user turn or a function response turn"
            )
        for index, part in enumerate(parts):
            _part(part, f"contents[{at}].parts[{index}]", model, image_limit)
        first = next((p for p in parts if "functionCall" in p), None)
        if first is not None and at > current and model.startswith(("gemini-3", "gemini-4")):
            text = (
                f"Function call is missing a thought_signature in functionCall parts: {first['functionCall']['name']}"
            )
            expect(first.get("thoughtSignature"), text)
        open_calls = [(c.get("id"), c.get("name")) for c in calls]
    expect(not open_calls, "the number of function response parts is equal to the number of function call parts")


def _answered(open_calls: list[tuple[Any, Any]], results: list[Any], at: int) -> None:
    text = "Please ensure that the number of function response parts is equal to the number of function call parts"
    expect(len(results) == len(open_calls), f"{text} of the function call turn (contents[{at}])")
    for (ident, name), result in zip(open_calls, results, strict=True):
        expect(result.get("name") == name and result.get("id") == ident, f"contents[{at}]: result for another call")


def _part(part: Any, place: str, model: str, image_limit: int) -> None:
    only(part, "text thought thoughtSignature inlineData functionCall functionResponse", place)
    kinds = [k for k in ("text", "inlineData", "functionCall", "functionResponse") if k in part]
    expect(len(kinds) == 1, f"{place}: must have one initialized field")
    signature = part.get("thoughtSignature")
    match kinds[0]:
        case "text":
            expect(filled(part["text"]) or signature, f"{place}: empty text")
            inner = part["text"]
        case "functionCall":
            only(part["functionCall"], "id name args", place)
            expect(filled(part["functionCall"].get("name")), f"{place}: call without a name")
            expect(isinstance(part["functionCall"].get("args", {}), dict), f"{place}.args: not an object")
            inner = part["functionCall"]["name"] + json.dumps(part["functionCall"].get("args", {}), sort_keys=True)
        case "functionResponse":
            only(part["functionResponse"], "id name response parts", place)
            response = part["functionResponse"].get("response")
            expect(isinstance(response, dict) and response, f"{place}.response: not an object")
            for image in part["functionResponse"].get("parts", ()):
                check_image(image["inlineData"].get("mimeType"), image["inlineData"].get("data"), place, image_limit)
            inner = ""
        case _:
            check_image(part["inlineData"].get("mimeType"), part["inlineData"].get("data"), place, image_limit)
            inner = ""
    if signature is not None:
        _signature(signature, inner, model, kinds[0], place)


def _signature(signature: Any, inner: str, model: str, kind: str, place: str) -> None:
    if signature in STAND_INS:
        expect(kind == "functionCall", f"{place}: a stand-in on what is no call")
        return
    try:
        base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise Refused(f"{place}: thought_signature: Base64 decoding failed (INVALID_ARGUMENT)") from None
    expect(sealed(signature, inner, model), f"{place}: Corrupted thought signature.")


def _tools(body: Body) -> None:
    declarations = [d for tool in body.get("tools", ()) for d in tool.get("functionDeclarations", ())]
    if "tools" in body:
        expect(declarations, "tools: empty")
    for one in declarations:
        only(one, "name description parameters parametersJsonSchema", "function_declarations")
        expect(not {"parameters", "parametersJsonSchema"} <= set(one), "parameters and parametersJsonSchema together")
        check_schema(one.get("parametersJsonSchema"), f"function {one.get('name')}", "const")
    names = [one.get("name") for one in declarations]
    check_names(names, 512)
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    mode, allowed = config.get("mode", "AUTO"), config.get("allowedFunctionNames")
    expect(mode in ("AUTO", "ANY", "NONE", "VALIDATED"), f"mode {mode!r}")
    if allowed is not None:
        expect(mode in ("ANY", "VALIDATED"), "allowed_function_names is only for ANY")
        expect(set(allowed) <= set(names), "allowed_function_names names no declaration")
    if "toolConfig" in body:
        expect(declarations, "toolConfig without tools")
