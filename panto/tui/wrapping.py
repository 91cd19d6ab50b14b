"""Rows of a draft: soft wrap by words, never inside a cluster, and the way between positions and places."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from panto.tui.graphemes import clusters
from panto.tui.widgets.lines import width_of

Label = Callable[[str], str | None]
TAB = 4


class Row(NamedTuple):
    """One screen row: the span of the text it shows."""

    start: int
    end: int


@lru_cache(maxsize=512)
def _wrap_plain(line: str, width: int) -> tuple[tuple[int, int], ...]:
    return _wrap(line, width, lambda _character: None)


def _wrap(line: str, width: int, label: Label) -> tuple[tuple[int, int], ...]:
    rows: list[tuple[int, int]] = []
    start, used, space = 0, 0, -1
    used_at_space = 0
    for begin, end, _ in clusters(line):
        cells = cells_of(line[begin:end], label)
        if used + cells > width and begin > start:
            if line[begin].isspace() and cells == 1:  # the blank between two rows hangs over the edge
                space, used_at_space = end, used + cells
                used += cells
                continue
            stop = space if space > start else begin
            rows.append((start, stop))
            used -= used_at_space if stop == space else used
            start, space, used_at_space = stop, -1, 0
        used += cells
        if line[begin].isspace():
            space, used_at_space = end, used
    rows.append((start, len(line)))
    return tuple(rows)


def cells_of(cluster: str, label: Label) -> int:
    """The width of one cluster as the composer shows it (tabs as blanks, chips as their label)."""
    if cluster[0] == "\t":
        return TAB
    shown = label(cluster[0])
    if shown is not None:
        return width_of(shown)
    return width_of(cluster)


def layout(text: str, width: int, label: Label) -> list[Row]:
    """All rows of a text at this width, at least one."""
    rows: list[Row] = []
    at = 0
    for line in text.split("\n"):
        plain = not any(label(character) for character in line) if not line.isascii() else "\t" not in line
        spans = _wrap_plain(line, width) if plain and "\t" not in line else _wrap(line, width, label)
        rows.extend(Row(at + start, at + end) for start, end in spans)
        at += len(line) + 1
    return rows


def place(rows: list[Row], text: str, at: int, label: Label) -> tuple[int, int]:
    """Row number and column (cells) of a position."""
    number = 0
    for index, row in enumerate(rows):
        if row.start <= at:
            number = index
        else:
            break
    row = rows[number]
    column = sum(cells_of(text[row.start + b : row.start + e], label) for b, e, _ in clusters(text[row.start : at]))
    return number, column


def position(row: Row, text: str, column: int, label: Label) -> int:
    """The position nearest to a column of a row, on a cluster's edge."""
    used = 0
    line = text[row.start : row.end]
    for begin, end, _ in clusters(line):
        cells = cells_of(line[begin:end], label)
        if used + cells > column:
            return row.start + (begin if column - used <= cells / 2 else end)
        used += cells
    return row.end
