"""Values to bytes and back, and the one canonical form of JSON that digests are taken over.

Canonical: keys sorted by UTF-16 code units, no white space, UTF-8 unescaped, integers with all their digits
(also beyond 2^53: a deliberate departure from RFC 8785), floats in ES6 shortest form. Refused, never merged:
duplicate keys, trailing data, invalid UTF-8, lone surrogates, NaN and infinities.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import NoReturn, TypeVar

import msgspec

T = TypeVar("T")
Digest = str
"""SHA-256 as 64 lower-case hex digits."""


class BadText(ValueError):
    """Outside JSON that is refused; the message says what and where."""


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadText(f"duplicate key {key!r}")
            seen.add(key)
    return out


def _constant(word: str) -> NoReturn:
    raise BadText(f"{word} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadText(f"number {text[:40]} is out of range")
    return value


def loads(data: bytes | str) -> object:
    """Read outside JSON strictly. Raises BadText with the position; never merges or repairs.

    Integers are exact at any size up to 4,300 digits; depth is bounded by the interpreter's recursion limit.
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value: object = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
        text.encode("utf-8")
    except json.JSONDecodeError as e:
        raise BadText(f"{e.msg} at position {e.pos}") from None
    except UnicodeDecodeError as e:
        raise BadText(f"invalid UTF-8 at byte {e.start}") from None
    except UnicodeEncodeError as e:
        raise BadText(f"lone surrogate at position {e.start}") from None
    except RecursionError:
        raise BadText("nested too deeply") from None
    except BadText:
        raise
    except ValueError as e:  # int digits beyond the interpreter's limit
        raise BadText(str(e)) from None
    if "\\u" in text:
        _refuse_surrogates(value)
    return value


def _refuse_surrogates(value: object) -> None:
    match value:
        case str():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise BadText("lone surrogate in a string") from None
        case dict():
            for key, item in value.items():
                _refuse_surrogates(key)
                _refuse_surrogates(item)
        case list():
            for item in value:
                _refuse_surrogates(item)


def _es6(value: float) -> str:
    """A float as ECMAScript's Number.prototype.toString gives it (RFC 8785, section 3.2.2.3)."""
    if math.isnan(value) or math.isinf(value):
        raise BadText(f"{value} is not JSON")
    if value == 0:
        return "0"
    text = repr(abs(value))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    n = len(digits)
    if n <= point <= 21:
        out = digits + "0" * (point - n)
    elif 0 < point <= 21:
        out = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        out = "0." + "0" * -point + digits
    else:
        e = point - 1
        out = digits[0] + ("." + digits[1:] if n > 1 else "") + "e" + ("+" if e > 0 else "-") + str(abs(e))
    return "-" + out if value < 0 else out


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _emit(value: object, out: list[str]) -> None:
    match value:
        case None:
            out.append("null")
        case bool():
            out.append("true" if value else "false")
        case int():
            out.append(int.__repr__(value))
        case float():
            out.append(_es6(value))
        case str():
            out.append(json.dumps(value, ensure_ascii=False))
        case dict():
            out.append("{")
            keys = sorted(value, key=_utf16) if not all(map(str.isascii, value)) else sorted(value)
            for i, key in enumerate(keys):
                out.append("," if i else "")
                out.append(json.dumps(key, ensure_ascii=False))
                out.append(":")
                _emit(value[key], out)
            out.append("}")
        case list() | tuple():
            out.append("[")
            for i, item in enumerate(value):
                out.append("," if i else "")
                _emit(item, out)
            out.append("]")
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical form")


def canonical(value: object) -> bytes:
    """The canonical JSON bytes of a Struct or of plain JSON data. Raises BadText on what JSON cannot hold."""
    out: list[str] = []
    try:
        _emit(msgspec.to_builtins(value), out)
        return "".join(out).encode("utf-8")
    except UnicodeEncodeError as e:
        raise BadText(f"lone surrogate at position {e.start}") from None
    except RecursionError:
        raise BadText("nested too deeply") from None


def digest(data: bytes) -> Digest:
    """SHA-256 of bytes, as hex."""
    return hashlib.sha256(data).hexdigest()


def derive_id(*parts: object) -> str:
    """32 lower-case hex digits: the first 128 bits of SHA-256 over the canonical JSON array of the arguments."""
    return hashlib.sha256(canonical(list(parts))).hexdigest()[:32]


def decode(data: bytes, type_: type[T]) -> T:
    """Bytes to a value, strictly: unknown fields, unknown tags, nulls and duplicate keys are refused.

    Raises BadText. Panto's own canonical bytes skip the duplicate-key pass by `decode_own`.
    """
    loads(data)
    return decode_own(data, type_)


def decode_own(data: bytes, type_: type[T]) -> T:
    """Bytes that panto wrote itself (digest-checked) to a value. Raises BadText."""
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.DecodeError as e:
        raise BadText(str(e)) from None
