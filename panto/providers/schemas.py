"""JSON Schemas as each target takes them. What needs no change goes out with its own bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Schema = dict[str, Any]
_DROPPED = (
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "$dynamicAnchor",
    "$dynamicRef",
    "$vocabulary",
)
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_CLAUDE_REFUSES = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems", "uniqueItems",
    "minContains", "maxContains", "minProperties", "maxProperties", "minLength", "maxLength", "pattern",
)  # fmt: skip
_CLAUDE_FORMATS = "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()
_STRICT_REFUSES = (
    "allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "contains", "prefixItems",
    "default", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip


@lru_cache(maxsize=1024)
def for_tool(text: str, protocol: str) -> str:
    """A tool's parameters for a protocol, as JSON text: an object at the root without alternatives, references inlined,
    lists with items; for Gemini constants as one-value enums. Text that needs none of this comes back as it is; what is
    no JSON at all becomes an object that takes anything, since one bad tool must not cost the turn.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    fitted = _rooted(_plain(value, value if isinstance(value, dict) else {}, ()))
    if protocol == "google_generate":
        fitted = _each(fitted, _no_const)
    return text if fitted == value and _same_types(fitted, value) else _dump(fitted)


@lru_cache(maxsize=256)
def for_reply(text: str, protocol: str) -> str:
    """A reply's schema for a protocol, as JSON text."""
    value = json.loads(text)
    fitted = _plain(value, value if isinstance(value, dict) else {}, ())
    if protocol == "anthropic_messages":
        fitted = _each(fitted, _for_claude)
    elif protocol == "google_generate":
        fitted = _each(fitted, _no_const)
    return text if fitted == value and _same_types(fitted, value) else _dump(fitted)


@lru_cache(maxsize=256)
def is_strict(text: str) -> bool:
    """Whether a schema lies in the subset that OpenAI's strict mode takes as it is."""
    good = True

    def look(schema: Schema) -> Schema:
        nonlocal good
        if any(word in schema for word in _STRICT_REFUSES) or not (
            {"type", "anyOf", "enum", "$ref", "const"} & set(schema)
        ):
            good = False
        if schema.get("type") == "object":
            properties = schema.get("properties", {})
            whole = sorted(properties) == sorted(schema.get("required", ()))
            good = good and whole and schema.get("additionalProperties") is False
        return schema

    value = json.loads(text)
    _each(value, look)
    return good and isinstance(value, dict) and value.get("type") == "object"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _same_types(one: object, two: object) -> bool:
    """Python takes 1, 1.0 and true for equal; JSON does not."""
    return _dump(one) == _dump(two)


def _plain(schema: Any, root: Schema, inside: tuple[str, ...]) -> Any:
    """References inlined (a recursive one becomes an open object), definitions and addresses dropped."""
    if isinstance(schema, list):
        return [_plain(item, root, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    ref = schema.get("$ref")
    if isinstance(ref, str):
        rest = {k: v for k, v in schema.items() if k != "$ref"}
        target = None if ref in inside else _find(ref, root)
        if target is None:
            rest.setdefault("type", "object")
            return _plain(rest, root, inside)
        found = _plain(target, root, (*inside, ref))
        return {**found, **_plain(rest, root, inside)} if isinstance(found, dict) else found
    out: Schema = {}
    for key, value in schema.items():
        if key in _DROPPED:
            continue
        if key == "properties" and isinstance(value, dict):
            out[key] = {name: _plain(inner, root, inside) for name, inner in value.items()}
        elif key in ("enum", "const", "default", "examples", "required"):
            out[key] = value
        else:
            out[key] = _plain(value, root, inside)
    if out.get("type") == "array" and "items" not in out and "prefixItems" not in out:
        out["items"] = {}
    return out


def _find(ref: str, root: Schema) -> Any:
    if not ref.startswith("#"):
        return None
    at: Any = root
    for step in ref[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list) and step.isdigit() and int(step) < len(at):
            at = at[int(step)]
        elif isinstance(at, dict) and step in at:
            at = at[step]
        else:
            return None
    return at


def _rooted(schema: Any) -> Schema:
    """An object at the root; alternatives there are folded into one object that takes all their members."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    out = {k: v for k, v in schema.items() if k not in (*_ALTERNATIVES, "not", "enum", "const", "if", "then", "else")}
    properties: Schema = dict(out["properties"]) if isinstance(out.get("properties"), dict) else {}
    required = list(out.get("required", ()))
    for word in _ALTERNATIVES:
        branches = [b for b in schema.get(word, ()) if isinstance(b, dict)]
        for branch in branches:
            for name, inner in (branch.get("properties") or {}).items():
                properties.setdefault(name, inner)
        needed = [set(branch.get("required", ())) for branch in branches]
        if needed:
            common = set.union(*needed) if word == "allOf" else set.intersection(*needed)
            required += sorted(common - set(required))
    if out.get("type") != "object":
        out = {"type": "object", **{k: v for k, v in out.items() if k != "type"}}
    if "properties" not in out or properties != out["properties"]:
        out["properties"] = properties
    if required != list(out.get("required", ())):
        out["required"] = required
    return out


def _each(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """`change` applied to every schema in a schema, inner ones first."""
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    for word in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(out.get(word), dict):
            out[word] = {name: _each(inner, change) for name, inner in out[word].items()}
    for word in ("items", "additionalProperties", "not", "contains", "propertyNames"):
        if isinstance(out.get(word), dict):
            out[word] = _each(out[word], change)
    for word in (*_ALTERNATIVES, "prefixItems"):
        if isinstance(out.get(word), list):
            out[word] = [_each(inner, change) for inner in out[word]]
    return change(out)


def _no_const(schema: Schema) -> Schema:
    if "const" in schema:
        value = schema.pop("const")
        schema.setdefault("enum", [value])
    return schema


def _for_claude(schema: Schema) -> Schema:
    for word in _CLAUDE_REFUSES:
        schema.pop(word, None)
    if schema.get("minItems", 0) not in (0, 1):
        schema["minItems"] = 1
    if schema.get("format") not in (None, *_CLAUDE_FORMATS):
        del schema["format"]
    if schema.get("type") == "object" or "properties" in schema:
        schema["additionalProperties"] = False
    return schema
