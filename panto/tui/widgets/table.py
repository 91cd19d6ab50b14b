"""A table: as wide as its content, a rule under the head only, numbers to the right, long cells wrapped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style

from panto.tui.widgets.lines import NONE, Look, Run, mix, width_of, wrap

_NUMBER = re.compile(r"\s*[-+−–]?[$€£]?\d[\d\s.,_:]*\s*(%|[kKMGTx]?[bB]?|[a-zµ]{1,3})?\s*\Z")
_GAP = 3
_BOLD = Style(bold=True)


def table(
    head: Sequence[Sequence[Run]],
    rows: Sequence[Sequence[Sequence[Run]]],
    aligns: Sequence[str],
    room: int,
    look: Look,
) -> list[list[Segment]]:
    """The rows of a table in at most `room` cells. `aligns`: "left", "right", "center" or "" for each column."""
    columns = max([len(head), *(len(row) for row in rows)], default=0)
    if columns == 0:
        return []
    widths = _fit([_natural(head, rows, column) for column in range(columns)], room)
    sides = [_side(aligns, rows, column) for column in range(columns)]
    bold = [[(text, mix(style, _BOLD)) for text, style in cell] for cell in head]
    out = _row(bold, widths, sides)
    rule = look.glyphs.rule * min(room, sum(widths) + _GAP * (len(widths) - 1))
    out.append([Segment(rule, look.palette.aside)])
    for row in rows:
        out.extend(_row(row, widths, sides))
    return out


def _natural(head: Sequence[Sequence[Run]], rows: Sequence[Sequence[Sequence[Run]]], column: int) -> int:
    cells = [row[column] for row in (head, *rows) if column < len(row)]
    return max((sum(width_of(text) for text, _ in cell) for cell in cells), default=0) or 1


def _fit(widths: list[int], room: int) -> list[int]:
    """The widest columns give way until all fit, none below three cells; columns that still do not fit are left out."""
    widths = list(widths)
    keep = max(1, (room + _GAP) // (3 + _GAP))
    widths = widths[:keep]
    space = room - _GAP * (len(widths) - 1)
    while sum(widths) > space:
        widest = max(widths)
        if widest <= 3:
            break
        at = [index for index, width in enumerate(widths) if width == widest]
        second = max([width for width in widths if width < widest], default=3)
        excess = sum(widths) - space
        step = max(1, min(widest - max(second, 3), -(-excess // len(at))))
        for index in at:
            widths[index] -= step
    return widths


def _side(aligns: Sequence[str], rows: Sequence[Sequence[Sequence[Run]]], column: int) -> str:
    given = aligns[column] if column < len(aligns) else ""
    if given:
        return given
    cells = ["".join(text for text, _ in row[column]) for row in rows if column < len(row)]
    filled = [cell for cell in cells if cell.strip(" -–")]
    return "right" if filled and all(_NUMBER.match(cell) for cell in filled) else "left"


def _row(cells: Sequence[Sequence[Run]], widths: Sequence[int], sides: Sequence[str]) -> list[list[Segment]]:
    wrapped = [
        [segments for segments, _ in wrap(cells[column] if column < len(cells) else [], width)]
        for column, width in enumerate(widths)
    ]
    out = []
    for level in range(max(len(cell) for cell in wrapped)):
        row: list[Segment] = []
        owed = 0  # blanks that are only drawn when something follows
        for column, width in enumerate(widths):
            segments = wrapped[column][level] if level < len(wrapped[column]) else []
            used = sum(width_of(segment.text) for segment in segments)
            side = sides[column]
            before = width - used if side == "right" else (width - used) // 2 if side == "center" else 0
            owed += before
            if segments:
                row.append(Segment(" " * owed, NONE))
                row.extend(segments)
                owed = 0
            owed += width - used - before + _GAP
        out.append(row)
    return out
