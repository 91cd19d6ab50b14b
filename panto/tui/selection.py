"""A selection of text by places in items, so that it stays with the text while more comes in below it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from panto.tui.widgets.lines import Line

_LIMIT = 100_000  # lines that one copy may take
Ends = tuple[tuple[int, int, int], tuple[int, int, int]]
"""Both ends as (item index, row, character), the earlier first."""
_WORD = re.compile(r"[\w./~:@%+=#?&-]+")


@dataclass(frozen=True, slots=True)
class Place:
    """A character in the transcript: an item's serial, a row of it (negative: the blank before it), a character."""

    item: int
    row: int
    char: int


@dataclass(frozen=True, slots=True)
class Selection:
    """From where the mouse went down to where it is."""

    anchor: Place
    head: Place

    def ordered(self, index_of: Callable[[int], int | None]) -> Ends | None:
        """Both ends as (item index, row, char), the earlier first; None where an item is gone."""
        a, b = index_of(self.anchor.item), index_of(self.head.item)
        if a is None or b is None:
            return None
        first, second = (a, self.anchor.row, self.anchor.char), (b, self.head.row, self.head.char)
        return (first, second) if first <= second else (second, first)


def span_in(ends: Ends, index: int, row: int, line: Line) -> tuple[int, int] | None:
    """The selected characters of a row, None where there are none."""
    (i0, r0, c0), (i1, r1, c1) = ends
    here = (index, row)
    if here < (i0, r0) or here > (i1, r1):
        return None
    size = len(line.text) if line.end is None else line.end
    start = max(c0 if here == (i0, r0) else 0, line.gutter)
    end = min(c1 if here == (i1, r1) else size, size)
    return (start, end) if start < end else None


def copied(ends: Ends, rows: Iterable[tuple[int, int, Line]]) -> str:
    """The selected text of `rows` (item index, row, line): what was wrapped for the screen is one line again."""
    parts: list[str] = []
    for count, (index, row, line) in enumerate(rows):
        if count >= _LIMIT:
            break
        span = span_in(ends, index, row, line)
        text = line.text[span[0] : span[1]].rstrip() if span is not None else ""
        if parts:
            parts.append("\n" if line.joint is None else line.joint)
        parts.append(text)
    return "".join(parts).strip("\n")


def word_at(line: Line, char: int) -> tuple[int, int]:
    """The word (or path, or link) around a character; the character itself where there is none."""
    text = line.text
    for match in _WORD.finditer(text):
        if match.start() <= char < match.end():
            return match.start(), match.end()
    return char, min(len(text), char + 1)
