"""Lines of the transcript, and how text becomes them: wrapping and cutting by cells, never inside a character.

A `Line` is immutable once made and compared by identity, so that a row whose line is the same object is not drawn
again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style

from panto.tui.colours import Glyphs, Palette

Run = tuple[str, Style]
NONE = Style()


class Colourable(Protocol):
    """Something whose syntax colours are worked out in small steps, after it was first shown without."""

    @property
    def wants_colours(self) -> bool:
        """Whether `colour` has something to do."""
        ...

    def colour(self) -> Iterator[bool]:
        """Works them out, a step at a time; yields True when there is only waiting to be done."""
        ...


class Line:
    """One row: segments from column 0.

    `ground` fills the whole row. `gutter`: that many leading characters are no part of the text (never copied); the
    same for those from `end` on. `joint`: what stands between the line above and this one in the source, None a line
    break. `target` is what a click on the row means ("" nothing): "fold", "child:ID".
    `art` is what the row is part of, where that may still get syntax colours.
    """

    __slots__ = ("segments", "ground", "gutter", "joint", "target", "end", "art")

    def __init__(
        self,
        segments: Sequence[Segment],
        ground: Style | None = None,
        gutter: int = 0,
        joint: str | None = None,
        target: str = "",
        end: int | None = None,
        art: Colourable | None = None,
    ) -> None:
        self.segments = segments
        self.ground = ground
        self.gutter = gutter
        self.joint = joint
        self.target = target
        self.end = end
        self.art = art

    @property
    def text(self) -> str:
        """The characters of the row."""
        return "".join([segment.text for segment in self.segments])


BLANK = Line(())


@dataclass(frozen=True, slots=True)
class Look:
    """How things are drawn now. `width` and `height` in cells; `frame` counts spinner frames; `now` UTC seconds.

    `full`: the height when nothing is below but the three rows, 0 the same: a question that opens folds no card.
    """

    width: int
    height: int
    palette: Palette
    glyphs: Glyphs
    frame: int = 0
    now: float = 0.0
    motion: bool = True
    full: int = 0

    @property
    def right(self) -> int:
        """The column where facts end (exclusive)."""
        return max(20, min(self.width, 104) - 2)

    @property
    def body(self) -> int:
        """Cells for a line of text that begins in column 3."""
        return max(18, min(self.width, 104) - 4)

    @property
    def short(self) -> bool:
        """Whether the screen is so low that cards show less."""
        return (self.full or self.height) < 27  # the transcript of a screen of 30 rows

    @property
    def spinner(self) -> str:
        """The spinner's present frame."""
        return self.glyphs.spinner[self.frame % len(self.glyphs.spinner)] if self.motion else self.glyphs.still


def width_of(text: str) -> int:
    """Cells that `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def wrap(runs: Sequence[Run], width: int) -> list[tuple[list[Segment], str | None]]:
    """`runs` (no line breaks in them) in rows of at most `width` cells, each with its joint; at least one row.

    Breaks at spaces and beside wide characters, elsewhere only when a word is longer than a row.
    """
    text = "".join([run[0] for run in runs])
    if len(text) <= width and text.isascii():
        return [([Segment(part, style) for part, style in runs if part], None)]
    spans = _ascii_breaks(text, width) if text.isascii() else _cell_breaks(text, width)
    if len(runs) == 1:
        style = runs[0][1]
        return [([Segment(text[a:b], style)] if b > a else [], joint) for a, b, joint in spans]
    return _slice(runs, spans)


def _ascii_breaks(text: str, width: int) -> list[tuple[int, int, str | None]]:
    rows: list[tuple[int, int, str | None]] = []
    start, size = 0, len(text)
    joint: str | None = None
    while size - start > width:
        cut = text.rfind(" ", start + 1, start + width + 1)
        if cut <= start or not text[start:cut].strip():
            end = after = start + width
            following = ""
        else:
            end, after, following = cut, cut + 1, " "
            while end > start and text[end - 1] == " ":
                end -= 1
            while after < size and text[after] == " ":
                after += 1
        rows.append((start, end, joint))
        start, joint = after, following
    if start < size or not rows:
        rows.append((start, size, joint))
    return rows


def _cell_breaks(text: str, width: int) -> list[tuple[int, int, str | None]]:
    rows: list[tuple[int, int, str | None]] = []
    start = cells = 0
    joint: str | None = None
    stop = -1  # the last place to break: (end of the row, start of the next, joint)
    stop_next, stop_joint, stop_cells = 0, "", 0
    for a, b, size in split_graphemes(text)[0]:
        if text[a] == " ":
            if a > start:
                stop, stop_next, stop_joint, stop_cells = a, b, " ", cells + size
            cells += size
            continue
        if size == 2 and a > start and text[a - 1] != " ":
            stop, stop_next, stop_joint, stop_cells = a, a, "", cells
        if cells + size > width and a > start:
            if stop <= start or not text[start:stop].strip():
                stop, stop_next, stop_joint, stop_cells = a, a, "", cells
            rows.append((start, start + len(text[start:stop].rstrip(" ")), joint))
            cells -= stop_cells
            start, joint, stop = stop_next, stop_joint, -1
        cells += size
        if size == 2:
            stop, stop_next, stop_joint, stop_cells = b, b, "", cells
    if start < len(text) or not rows:
        rows.append((start, len(text), joint))
    return rows


def _slice(
    runs: Sequence[Run], spans: Iterable[tuple[int, int, str | None]]
) -> list[tuple[list[Segment], str | None]]:
    rows: list[tuple[list[Segment], str | None]] = []
    index, offset = 0, 0  # the run we are in and where it begins
    for start, end, joint in spans:
        row: list[Segment] = []
        while index < len(runs) and offset + len(runs[index][0]) <= start:
            offset += len(runs[index][0])
            index += 1
        at, begin = index, offset
        while at < len(runs) and begin < end:
            text, style = runs[at]
            piece = text[max(0, start - begin) : end - begin]
            if piece:
                row.append(Segment(piece, style))
            begin += len(text)
            at += 1
        rows.append((row, joint))
    return rows


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in at most `width` cells, its end replaced by `ellipsis` where it does not fit."""
    if width_of(text) <= width:
        return text
    if width <= 0:
        return ""
    if text.isascii():
        return text[: width - 1] + ellipsis
    cells, keep = 0, 0
    for _, end, size in split_graphemes(text)[0]:
        if cells + size > width - 1:
            break
        cells, keep = cells + size, end
    return text[:keep] + ellipsis


def cut_middle(text: str, width: int, ellipsis: str = "…") -> str:
    """As `cut`, keeping both ends."""
    if width_of(text) <= width:
        return text
    tail = text[len(text) - max(1, width // 2) :]
    while width_of(tail) > width // 2:
        tail = tail[1:]
    return cut(text, width - width_of(tail), ellipsis) + tail


def cut_runs(runs: Sequence[Run], width: int, ellipsis: str = "…") -> list[Run]:
    """`runs` in at most `width` cells."""
    if sum(width_of(text) for text, _ in runs) <= width:
        return list(runs)
    kept: list[Run] = []
    left = width
    for text, style in runs:
        size = width_of(text)
        if size >= left:
            kept.append((cut(text + " ", left, ellipsis) if size == left else cut(text, left, ellipsis), style))
            break
        kept.append((text, style))
        left -= size
    return kept


def spread(left: Sequence[Run], right: Sequence[Run], width: int, ellipsis: str = "…") -> list[Segment]:
    """`left` and, ending at column `width`, `right`; `left` is cut where both do not fit."""
    right = cut_runs(right, max(8, width - 12) if any(text for text, _ in left) else width, ellipsis)
    size = sum(width_of(text) for text, _ in right)
    kept = cut_runs(left, width - size - (2 if size else 0), ellipsis)
    used = sum(width_of(text) for text, _ in kept)
    row = [Segment(text, style) for text, style in kept if text]
    if size:
        row.append(Segment(" " * (width - used - size), NONE))
        row.extend(Segment(text, style) for text, style in right if text)
    return row


@lru_cache(maxsize=4096)
def mix(under: Style, over: Style) -> Style:
    """`over` drawn on `under`."""
    return under + over


def at_cell(text: str, cell: int) -> int:
    """The index of the character that covers `cell` (the length of `text` when beyond it)."""
    if text.isascii():
        return min(cell, len(text))
    spans = split_graphemes(text)[0]
    edges, total = [], 0
    for _, _, size in spans:
        edges.append(total)
        total += size
    if cell >= total:
        return len(text)
    return spans[max(0, bisect_right(edges, cell) - 1)][0]


def between_parts(text: str, width: int) -> list[str]:
    """A line of parts with three blanks between them as rows, broken between parts only."""
    rows: list[str] = []
    for part in (one.strip() for one in text.split("   ") if one.strip()):
        if rows and width_of(rows[-1]) + 3 + width_of(part) <= width:
            rows[-1] += "   " + part
        else:
            rows.append(part)
    return rows
