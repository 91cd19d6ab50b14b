"""A body as its difference from another: what both begin and end with is left out.

Requests of one turn name the same messages and one or two more each time; kept whole they would grow with the square
of the turn's length.
"""

from __future__ import annotations

import struct

_HEAD = struct.Struct(">II")


def between(base: bytes, data: bytes) -> bytes:
    """The difference that leads from `base` to `data`."""
    most = min(len(base), len(data))
    start = _shared(base, data, most, False)
    end = _shared(base, data, most - start, True)
    return _HEAD.pack(start, end) + data[start : len(data) - end]


def apply(base: bytes, difference: bytes) -> bytes:
    """What a difference from `base` means. Anything at all where it is none: the digest tells."""
    if len(difference) < _HEAD.size:
        return b""
    start, end = _HEAD.unpack_from(difference)
    return base[:start] + difference[_HEAD.size :] + (base[len(base) - end :] if end else b"")


def _shared(a: bytes, b: bytes, most: int, ends: bool) -> int:
    """How many bytes two strings begin (or end) with alike, found by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        same = a[len(a) - middle :] == b[len(b) - middle :] if ends else a[:middle] == b[:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
