"""Where the items of a transcript stand: heights, measured where looked at and estimated elsewhere, and their sums."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence

from rich.segment import Segment

from panto.tui.items import Item, Kind
from panto.tui.widgets.lines import NONE, Line, Look, mix

_KEPT_ROWS = 4000  # rows kept for items that are not shown


def gap_between(before: Kind | None, after: Kind) -> int:
    """Blank rows between two items: one between speakers, none between cards."""
    if before is None or after == "closing":
        return 0
    if before == after and after in ("card", "notice"):
        return 0
    return 1


class Layout:
    """Rows of all items as one column. `tops[i]` is the first row of item i, its blank row included."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._source = items
        self.items: list[Item] = []  # as taken over last: always in step with the sums
        self.look: Look | None = None
        self.tops: list[int] = []
        self.gaps: list[int] = []
        self.owners: list[int] = []  # the index of the prompt above, -1 none
        self.total = 0
        self._bodies: list[int] = []
        self._measured: list[bool] = []
        self._index: dict[int, int] = {}
        self._dirty: int | None = None
        self._rows: OrderedDict[int, tuple[object, list[Line], int]] = OrderedDict()
        self._kept = 0

    # ---------------------------------------------------------------- changes

    def restart(self) -> None:
        """The items are other ones."""
        self._rows.clear()
        self._kept = 0
        self.reshape(0)
        self.settle()

    def relook(self, look: Look) -> None:
        """Another width, height or palette; heights are scaled and measured again where looked at."""
        before, self.look = self.look, look
        if before is not None and (before.width, before.short) == (look.width, look.short):
            return
        if before is not None and before.body:
            ratio = before.body / look.body
            for index, item in enumerate(self.items[: len(self._bodies)]):
                if item.kind not in ("closing",) and self._bodies[index] > 1:
                    self._bodies[index] = max(1, round(self._bodies[index] * ratio))
        self._measured = [False] * len(self._bodies)
        self._mark(0)

    def reshape(self, at: int) -> None:
        """From index `at` on the list is another one."""
        look = self.look
        if look is None:
            return
        at = min(at, len(self.items))
        known = {
            self.items[index].serial: (self._bodies[index], self._measured[index])
            for index in range(at, len(self.items))
        }  # fmt: skip
        for serial in known:
            self._index.pop(serial, None)
        del self.items[at:], self._bodies[at:], self._measured[at:]
        for index in range(at, len(self._source)):
            item = self._source[index]
            body, measured = known.get(item.serial, (-1, False))
            self.items.append(item)
            self._bodies.append(item.estimate(look) if body < 0 else body)
            self._measured.append(measured)
            self._index[item.serial] = index
        self._mark(at)

    def stale(self, item: Item) -> None:
        """An item is drawn otherwise now."""
        index = self.index_of(item)
        if index is not None:
            self._measured[index] = False

    def index_of(self, item: Item) -> int | None:
        """Where an item stands."""
        return self._index.get(item.serial)

    def index_of_serial(self, serial: int) -> int | None:
        """Where the item with this serial stands."""
        return self._index.get(serial)

    # ---------------------------------------------------------------- rows

    def lines(self, index: int) -> list[Line]:
        """The rows of an item; its height is right from then on (after `settle`)."""
        item = self.items[index]
        look = self.look
        if look is None:
            return []
        key = (item.version, look.width, look.short, look.palette, item.open, item.dim, _tick(item, look))
        kept = self._rows.get(item.serial)
        if kept is not None and kept[0] == key:
            lines = kept[1]
            self._rows.move_to_end(item.serial)
        else:
            lines = item.lines(look)
            if item.dim:
                lines = [_dimmed(line, look) for line in lines]
            self._keep(item, key, lines)
        if self._bodies[index] != len(lines):
            self._bodies[index] = len(lines)
            self._mark(index)
        self._measured[index] = True
        return lines

    def measured(self, index: int) -> bool:
        """Whether an item's height is known, not guessed."""
        return self._measured[index]

    def settle(self) -> None:
        """Brings the sums up to date."""
        start, self._dirty = self._dirty, None
        if start is None:
            return
        del self.tops[start:], self.gaps[start:], self.owners[start:]
        top = self.tops[-1] + self._height(start - 1) if start else 0
        before = self._kind_before(start)
        owner = self.owners[-1] if start else -1
        for index in range(start, len(self.items)):
            kind = self.items[index].kind
            body = self._bodies[index]
            gap = gap_between(before, kind) if body else 0
            self.tops.append(top)
            self.gaps.append(gap)
            if body:
                before = kind
                top += gap + body
            if kind == "prompt":
                owner = index
            self.owners.append(owner)
        self.total = top

    def find(self, row: int) -> tuple[int, int]:
        """The item at a row of the column, and the row within its lines (negative: its blank row)."""
        index = max(0, min(len(self.tops) - 1, bisect_right(self.tops, row) - 1))
        return index, row - self.tops[index] - self.gaps[index]

    def first_row(self, index: int) -> int:
        """The first row of an item's own lines."""
        return self.tops[index] + self.gaps[index]

    def height(self, index: int) -> int:
        """Rows of an item without its blank row, as far as known."""
        return self._bodies[index]

    # ---------------------------------------------------------------- inside

    def _height(self, index: int) -> int:
        return self.gaps[index] + self._bodies[index] if self._bodies[index] else 0

    def _kind_before(self, index: int) -> Kind | None:
        for at in range(index - 1, -1, -1):
            if self._bodies[at]:
                return self.items[at].kind
        return None

    def _mark(self, index: int) -> None:
        self._dirty = index if self._dirty is None else min(self._dirty, index)

    def _keep(self, item: Item, key: object, lines: list[Line]) -> None:
        before = self._rows.pop(item.serial, None)
        if before is not None:
            self._kept -= before[2]
        self._rows[item.serial] = (key, lines, len(lines))
        self._kept += len(lines)
        while self._kept > _KEPT_ROWS and len(self._rows) > 1:
            serial, (_, _, size) = self._rows.popitem(last=False)
            self._kept -= size
            index = self._index.get(serial)
            if index is not None:
                self.items[index].release()


def _tick(item: Item, look: Look) -> object:
    """What changes by itself: the spinner's frame, and the second of a running clock."""
    if not item.moves:
        return None
    return (look.frame if look.motion else -1, int(look.now))


def _dimmed(line: Line, look: Look) -> Line:
    """The same row as an aside, without other colours."""
    aside = look.palette.aside
    segments = [Segment(s.text, mix(NONE, aside) if s.text.strip() else s.style) for s in line.segments]
    return Line(segments, ground=None, gutter=line.gutter, joint=line.joint, target=line.target, end=line.end)
