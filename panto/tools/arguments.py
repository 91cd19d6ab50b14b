"""Checks a call's arguments against its tool's JSON Schema, in words a model can act on.

The keywords that tools use are checked: type, properties, required, additionalProperties, items, enum, const,
minimum, maximum, minLength, maxLength, minItems, maxItems, anyOf. Others (also of extensions' schemas) are let pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from panto.schema.codec import BadText, loads
from panto.schema.errors import ToolFailure
from panto.schema.messages import ToolSpec

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
    "object": (dict,), "null": (type(None),),
}  # fmt: skip


def check(spec: ToolSpec, arguments: object) -> dict[str, object]:
    """The arguments, if they fit. Raises ToolFailure(invalid_input) that names the argument and what is expected."""
    schema = _schema(spec.schema)
    problems: list[str] = []
    value = _fit(schema, arguments, "", problems)
    if problems or not isinstance(value, dict):
        named = "; ".join(problems[:4]) or "arguments must be a JSON object"
        raise ToolFailure(f"{spec.name}: {named}", "invalid_input", retry_allowed=False)
    return value


def parse(spec: ToolSpec, text: str) -> dict[str, object]:
    """JSON text to checked arguments; blank text is {}. Raises ToolFailure(invalid_input)."""
    if not text.strip():
        return check(spec, {})
    try:
        value = loads(text)
    except BadText as e:
        raise ToolFailure(f"{spec.name}: arguments are not JSON: {e}: {text[:400]}", "invalid_input") from None
    return check(spec, value)


@lru_cache(maxsize=256)
def _schema(text: str) -> Mapping[str, object]:
    schema = json.loads(text)
    return schema if isinstance(schema, dict) else {}


def _name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _fit(schema: Mapping[str, object], value: object, at: str, problems: list[str]) -> object:
    """`value` with whole floats made integers where integers are wanted; what is wrong is added to `problems`."""
    here = at or "arguments"
    if isinstance(value, float) and schema.get("type") == "integer" and value.is_integer():
        value = int(value)
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if names and not any(_is(value, name) for name in names):
        article = " or ".join(str(name) for name in names)
        problems.append(f"{here} must be {article}, not {_name(value)}")
        return value
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list) and value not in choices:
        problems.append(f"{here} must be one of {', '.join(map(json.dumps, choices))}")
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        tries: list[list[str]] = []
        for branch in branches:
            tries.append([])
            fitted = _fit(branch, value, at, tries[-1])
            if not tries[-1]:
                value = fitted
                break
        else:
            problems.append(" or ".join(reasons[0] for reasons in tries if reasons))
    _bounds(schema, value, here, problems)
    if isinstance(value, dict):
        return _object(schema, value, at, problems)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return [_fit(items, item, f"{here}[{index}]", problems) for index, item in enumerate(value)]
    return value


def _is(value: object, name: object) -> bool:
    kinds = _TYPES.get(str(name), (object,))
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds or object in kinds)


def _bounds(schema: Mapping[str, object], value: object, here: str, problems: list[str]) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        measure, low, high, unit = float(value), "minimum", "maximum", ""
    elif isinstance(value, str):
        measure, low, high, unit = float(len(value)), "minLength", "maxLength", " characters"
    elif isinstance(value, list):
        measure, low, high, unit = float(len(value)), "minItems", "maxItems", " items"
    else:
        return
    least, most = schema.get(low), schema.get(high)
    if isinstance(least, int | float) and measure < least:
        empty = unit and least == 1
        problems.append(f"{here} must not be empty" if empty else f"{here} must be at least {least}{unit}")
    if isinstance(most, int | float) and measure > most:
        problems.append(f"{here} must be at most {most}{unit}")


def _object(schema: Mapping[str, object], value: dict[str, object], at: str, problems: list[str]) -> dict[str, object]:
    known = schema.get("properties")
    properties: Mapping[str, object] = known if isinstance(known, dict) else {}
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    for name in needed:
        if name not in value:
            wanted = properties.get(name)
            kind = wanted.get("type", "") if isinstance(wanted, dict) else ""
            problems.append(f"{at + '.' if at else ''}{name} is missing{f' ({kind})' if kind else ''}")
    out: dict[str, object] = {}
    for name, item in value.items():
        place = f"{at}.{name}" if at else name
        inner = properties.get(name)
        if isinstance(inner, dict):
            if item is None and name not in needed and isinstance(inner.get("type"), str) and inner["type"] != "null":
                continue  # some models write null for "not given"
            out[name] = _fit(inner, item, place, problems)
        elif schema.get("additionalProperties") is False:
            problems.append(f"{place} is not an argument; there are {', '.join(properties) or 'none'}")
        else:
            out[name] = item
    return out
