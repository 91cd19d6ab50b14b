"""Search in the transcript: over the items' sources, shown in the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from panto.tui.items import Item
from panto.tui.widgets.lines import Line


class Search:
    """Words to look for, upper and lower case alike. `here` is the item (its serial) and `row` the row jumped to."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.here = 0
        self.row = 0
        self._pattern = re.compile(re.escape(words), re.IGNORECASE)

    def matches(self, items: Sequence[Item]) -> list[int]:
        """Indices of the items that hold the words."""
        return [index for index, item in enumerate(items) if self._pattern.search(item.source())]

    def spans(self, line: Line) -> list[tuple[int, int]]:
        """Where the words stand in a row."""
        return [match.span() for match in self._pattern.finditer(line.text)]

    def rows_in(self, lines: Sequence[Line]) -> list[int]:
        """The rows that show the words."""
        return [row for row, line in enumerate(lines) if self._pattern.search(line.text)]
