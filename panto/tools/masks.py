"""Hides known secret values in what comes back from tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from panto.schema.errors import ToolFailure

T = TypeVar("T", bound=msgspec.Struct)
HIDDEN = "[secret]"
_SHORTEST = 6
"""Characters below which a value is too common a word to be hidden."""


def _values(mask: Sequence[str]) -> list[bytes]:
    found = {value.encode("utf-8", "surrogateescape") for value in mask if len(value) >= _SHORTEST}
    return sorted(found, key=len, reverse=True)


def holds_secret(data: bytes, mask: Sequence[str]) -> bool:
    """Whether a known secret value stands in the bytes of a file."""
    return any(value in data for value in _values(mask))


def masked(text: str, mask: Sequence[str]) -> str:
    """Text with every known secret value replaced."""
    for value in sorted(mask, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    return text


def masked_value(value: T, mask: Sequence[str]) -> T:
    """A value that is going to be recorded, with every known secret replaced, wherever in it that stands."""
    data = msgspec.json.encode(value)
    clean = data
    for secret in sorted(mask, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            clean = clean.replace(msgspec.json.encode(secret)[1:-1], HIDDEN.encode())
    return value if clean == data else msgspec.json.decode(clean, type=type(value))


def hide(failure: ToolFailure, mask: Sequence[str]) -> None:
    """Replace every known secret in what a failure says and carries."""
    failure.message = masked(failure.message, mask)
    if failure.outcome is not None:
        failure.outcome = masked_value(failure.outcome, mask)


class Masker:
    """Masks a stream of bytes that arrives in pieces; holds back only what may be the beginning of a secret."""

    def __init__(self, mask: Sequence[str]) -> None:
        self._secrets = _values(mask)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What may be shown after this piece."""
        if not self._secrets:
            return data
        data = self._pattern.sub(HIDDEN.encode(), self._held + data)
        keep = self._possible_start(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def end(self) -> bytes:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, b""
        return rest

    def _possible_start(self, data: bytes) -> int:
        longest = len(self._secrets[0]) - 1
        for length in range(min(longest, len(data)), 0, -1):
            end = data[-length:]
            if any(secret.startswith(end) for secret in self._secrets):
                return length
        return 0
