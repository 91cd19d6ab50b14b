"""Rows of a damaged database file, found page by page, where the tree that leads to them is broken.

The layout of pages, cells and records is that of https://www.sqlite.org/fileformat2.html. Nothing read here is
believed by itself: commits and bodies carry their digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PAGE = 4096
"""SQLite's page size, which panto never sets."""

MOST = 1 << 30
"""Bytes: SQLite stores no longer row."""

Row = tuple[object, ...]

_INNER, _LEAF, _ROWID_LEAF = 0x02, 0x0A, 0x0D
_LEAST = (PAGE - 12) * 32 // 255 - 23
_FULL = {_INNER: (PAGE - 12) * 64 // 255 - 23, _LEAF: (PAGE - 12) * 64 // 255 - 23, _ROWID_LEAF: PAGE - 35}
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_CONSTANTS = {0: None, 8: 0, 9: 1}


def carve(file: Path, columns: int, *, rowid: bool) -> Iterator[Row]:
    """Every row of so many columns that any page holds; with `rowid` of a table that has one, put in its first column.

    A row may be found more than once, or be one that was deleted. Raises OSError.
    """
    kinds = (_ROWID_LEAF,) if rowid else (_INNER, _LEAF)
    with file.open("rb") as source:
        for number in range(file.stat().st_size // PAGE):
            source.seek(number * PAGE)
            page = source.read(PAGE)
            start = 100 if number == 0 else 0
            if page[start] in kinds:
                yield from _cells(source, page, start, columns)


def _cells(source: BinaryIO, page: bytes, start: int, columns: int) -> Iterator[Row]:
    kind = page[start]
    first = start + (12 if kind == _INNER else 8)
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for at in range(first, min(first + 2 * count, PAGE - 1), 2):
        place = int.from_bytes(page[at : at + 2], "big") + (4 if kind == _INNER else 0)
        try:
            size, place = _varint(page, place)
            if size > MOST:
                continue
            id, place = _varint(page, place) if kind == _ROWID_LEAF else (None, place)
            row = _record(_payload(source, page, place, size, _FULL[kind]), columns)
        except (IndexError, ValueError, OSError):
            continue  # this cell is damaged
        if row is not None:
            yield row if id is None else (id, *row[1:])


def _payload(source: BinaryIO, page: bytes, place: int, size: int, full: int) -> bytes:
    """A cell's content, also what overflows into other pages. Raises ValueError where it is not whole."""
    if size <= full:
        found = page[place : place + size]
        next_page = 0
    else:
        local = _LEAST + (size - _LEAST) % (PAGE - 4)
        local = local if local <= full else _LEAST
        found = page[place : place + local]
        next_page = int.from_bytes(page[place + local : place + local + 4], "big")
    pieces, missing = [found], size - len(found)
    while missing > 0 and next_page:
        source.seek((next_page - 1) * PAGE)
        more = source.read(PAGE)
        if len(more) < PAGE:
            break
        next_page = int.from_bytes(more[:4], "big")
        pieces.append(more[4 : 4 + missing])
        missing -= len(pieces[-1])
    if missing:
        raise ValueError("a part of it is gone")
    return b"".join(pieces)


def _record(data: bytes, columns: int) -> Row | None:
    """The values of a record of so many columns."""
    end, at = _varint(data, 0)
    kinds: list[int] = []
    while at < end and len(kinds) <= columns:
        kind, at = _varint(data, at)
        kinds.append(kind)
    if len(kinds) != columns:
        return None
    row: list[object] = []
    for kind in kinds:
        size = _INTEGERS.get(kind, 8 if kind == 7 else max(0, kind - 12) // 2)
        piece = data[end : end + size]
        if len(piece) < size:
            raise ValueError("it is cut short")
        row.append(_value(kind, piece))
        end += size
    return tuple(row)


def _value(kind: int, piece: bytes) -> object:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind in _INTEGERS:
        return int.from_bytes(piece, "big", signed=True)
    if kind == 7:
        import struct

        return struct.unpack(">d", piece)[0]
    if kind < 12:
        raise ValueError("no such type is stored")
    return piece.decode("utf-8", "surrogateescape") if kind % 2 else piece


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to nine bytes, and the place behind it."""
    value = 0
    for n in range(8):
        byte = data[at + n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    return value << 8 | data[at + 8], at + 9
