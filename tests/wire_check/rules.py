"""What the vendors' rules have in common: pairing, names, schemas, images, text, signatures."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Body = dict[str, Any]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
MEDIA = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Refused(Exception):
    """The vendor's 400; the text says why."""


def expect(good: object, why: str) -> None:
    """Refuse unless it holds."""
    if not good:
        raise Refused(why)


def only(value: Mapping[str, Any], known: str, place: str) -> None:
    """Refuse members that are not among the words of `known`."""
    extra = sorted(set(value) - set(known.split()))
    expect(not extra, f"{place}.{extra[0] if extra else ''}: Extra inputs are not permitted")


def strings(value: object) -> Iterator[str]:
    """Every string in a body, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def check_text(body: object) -> None:
    """No lone surrogates, no NUL, anywhere."""
    for text in strings(body):
        expect("\0" not in text, "a NUL in a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refused("not valid JSON: no low surrogate in string") from None


def filled(text: object) -> bool:
    """A string with something to see in it."""
    return isinstance(text, str) and bool(text.strip())


def json_object(text: object, place: str) -> None:
    """Refuse what is not the text of a JSON object."""
    try:
        good = isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        good = False
    expect(good, f"{place}: arguments are not a JSON object: {str(text)[:80]!r}")


def check_image(media: object, data: object, place: str, limit: int) -> None:
    """A picture of a known type whose base64 is real and not too long."""
    expect(media in MEDIA, f"{place}: media type {media!r} is not supported")
    expect(isinstance(data, str) and data, f"{place}: no image data")
    assert isinstance(data, str)
    expect(len(data) <= limit, f"{place}: image exceeds {limit >> 20} MB maximum: {len(data)} bytes > {limit} bytes")
    try:
        base64.b64decode(data, validate=True)
    except binascii.Error:
        raise Refused(f"{place}: not base64") from None


def data_url(url: object, place: str, limit: int) -> None:
    """An image as a data URL."""
    found = re.fullmatch(r"data:([a-z/]+);base64,(.*)", url if isinstance(url, str) else "", re.DOTALL)
    expect(found, f"{place}: not a data URL")
    assert found
    check_image(found[1], found[2], place, limit)


# ---------------------------------------------------------------- tools


def check_names(names: list[Any], most: int = 128) -> None:
    """Names as all vendors take them, each once."""
    for name in names:
        expect(isinstance(name, str) and NAME.fullmatch(name), f"tools: name {name!r} does not match {NAME.pattern}")
    expect(len(set(names)) == len(names), "tools: Tool names must be unique")
    expect(len(names) <= most, f"Invalid 'tools': array too long. Expected an array with maximum length {most}")


def check_schema(schema: object, place: str, forbidden: str = "") -> None:
    """A parameter schema: an object at the root, no alternatives there, lists with items, no references."""
    expect(isinstance(schema, dict), f"{place}: schema must be an object")
    assert isinstance(schema, dict)
    expect(schema.get("type") == "object", f"{place}: schema must be of type object, got {schema.get('type')!r}")
    expect(isinstance(schema.get("properties"), dict), f"{place}: object schema missing properties")
    for word in ("anyOf", "oneOf", "allOf", "not", "enum"):
        expect(word not in schema, f"{place}: schema must not have {word} at the top level")
    _walk_schema(schema, place, ("$ref", "$defs", "definitions", *forbidden.split()))


def _walk_schema(schema: object, place: str, forbidden: tuple[str, ...]) -> None:
    if not isinstance(schema, dict):
        return
    for word in forbidden:
        expect(word not in schema, f"{place}: unsupported keyword {word}")
    if schema.get("type") == "array":
        expect("items" in schema or "prefixItems" in schema, f"{place}: array schema missing items")
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        _walk_schema(inner, f"{place}.{name}", forbidden)
    for word in ("items", "additionalProperties", "not"):
        _walk_schema(schema.get(word), f"{place}.{word}", forbidden)
    for word in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(word) or []:
            _walk_schema(inner, f"{place}.{word}", forbidden)


class Pairs:
    """Every call is answered by exactly one result, directly after it, before anything else is said."""

    def __init__(self, shape: str) -> None:
        self._shape = re.compile(shape)
        self.open: list[str] = []
        self._seen: set[str] = set()

    def call(self, ident: object, place: str) -> None:
        expect(isinstance(ident, str) and self._shape.fullmatch(ident), f"{place}: call id {ident!r} is not allowed")
        assert isinstance(ident, str)
        expect(ident not in self._seen, f"{place}: `tool_use` ids must be unique: {ident}")
        self._seen.add(ident)
        self.open.append(ident)

    def result(self, ident: object, place: str) -> None:
        expect(ident in self.open, f"{place}: unexpected result, no call {ident!r} directly before it")
        self.open.remove(str(ident))

    def other(self, place: str) -> None:
        expect(not self.open, f"{place}: calls without results directly after: {', '.join(self.open)}")


# ---------------------------------------------------------------- signatures


def seal(model: str, text: str) -> str:
    """A signature that this module's vendors give for a text of that model; `sealed` knows it again."""
    mark = hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return base64.b64encode(b"seal:" + model.encode() + b":" + mark).decode()


def sealed(signature: object, text: str, model: str | None = None) -> bool:
    """Whether the signature is unaltered and for this text; `model` None: of any model."""
    try:
        head, _, mark = base64.b64decode(str(signature), validate=True).partition(b"seal:")[2].partition(b":")
    except (binascii.Error, ValueError):
        return False
    made_by = head.decode("utf-8", "replace")
    good = mark == hashlib.sha256(f"{made_by}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return good and model in (None, made_by)
