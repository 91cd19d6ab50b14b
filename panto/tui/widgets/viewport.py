"""What of a transcript is seen: a window on the layout that follows the end, or stays where its reader put it."""

from __future__ import annotations

from collections.abc import Iterator

from panto.tui.items import Item, PromptItem
from panto.tui.sanitize import clean_line
from panto.tui.search import Search
from panto.tui.selection import Ends, Place, Selection, copied, span_in
from panto.tui.transcript import Story
from panto.tui.widgets.layout import Layout
from panto.tui.widgets.lines import BLANK, NONE, Colourable, Line, Look, Run, at_cell, spread
from panto.tui.widgets.paint import Row, RowState, Span

_QUEUED_ROWS = 3
_PAD = 1  # the empty row above the rule


class Viewport:
    """`top` is the first row shown; `follow`: new rows at the end scroll into view."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.layout = Layout(story.items)
        self.look: Look | None = None
        self.top = 0
        self.follow = True
        self.selection: Selection | None = None
        self.search: Search | None = None
        self.current = 0  # serial of the item that keys act on, 0 none
        self.current_row = 0  # and the row of it: children have one each
        self.moving = False  # something in view has a spinner or a clock
        self.uncoloured: tuple[Item, Colourable] | None = None  # something in view that may get syntax colours
        self._left: tuple[int, int] | None = None  # the end when the reader left it: last item's serial, its height
        self._pinned: Line | None = None
        self._pin_key: object = None

    # ---------------------------------------------------------------- taking changes

    def restart(self) -> None:
        """The story began anew."""
        self.layout.restart()
        self.story.take_changes()
        self.top, self.follow, self._left = 0, True, None
        self.selection, self.current = None, 0

    def relook(self, look: Look) -> None:
        """Another size, palette or moment."""
        before, self.look = self.look, look
        if before is not None and before.width == look.width and before.short == look.short:
            self.layout.look = look
            return
        anchor = self._anchor()
        changes, reshaped = self.story.take_changes()  # another size may come before the frame that takes them
        if reshaped is not None:
            self.layout.reshape(reshaped)
        for item in changes:
            self.layout.stale(item)
        self.selection = None
        self.layout.relook(look)
        if before is None:
            self.layout.reshape(0)
        self.layout.settle()
        self._restore(anchor, scaled=True)

    def sync(self) -> None:
        """Takes what changed in the story and puts the window where it belongs."""
        if self.look is None:
            return
        anchor = self._anchor()
        changes, reshaped = self.story.take_changes()
        if reshaped is not None:
            self.layout.reshape(reshaped)
        for item in changes:
            self.layout.stale(item)
            index = self.layout.index_of(item)
            if index is not None and not self.follow:
                self.layout.lines(index)
        self.layout.settle()
        if self.follow:
            self._measure_end()
        else:
            self._restore(anchor)
            self._measure_view()

    def _anchor(self) -> tuple[int, int, int] | None:
        """The item in the first row: its serial, the row of it, its height."""
        if not self.layout.tops:
            return None
        index, row = self.layout.find(self.top)
        return self.layout.items[index].serial, row, self.layout.height(index)

    def _restore(self, anchor: tuple[int, int, int] | None, scaled: bool = False) -> None:
        if anchor is None or self.follow:
            self.top = self.max_top if self.follow else min(self.top, self.max_top)
            return
        serial, row, height = anchor
        index = self.layout.index_of_serial(serial)
        if index is None:
            self.top = min(self.top, self.max_top)
            return
        if scaled and height:
            self.layout.lines(index)
            self.layout.settle()
            row = row * self.layout.height(index) // height if row > 0 else row
        row = min(row, max(0, self.layout.height(index) - 1))
        self.top = max(0, min(self.layout.first_row(index) + row, self.max_top))

    def _measure_end(self) -> None:
        index = len(self.layout.items) - 1
        rows = 0
        while index >= 0 and rows < self.rows:
            self.layout.lines(index)
            rows += self.layout.height(index)
            index -= 1
        self.layout.settle()
        self.top = self.max_top

    def _measure_view(self) -> None:
        for _ in range(6):
            anchor = self._anchor()
            if not self.layout.tops:
                return
            index, _row = self.layout.find(self.top)
            known = True
            while index < len(self.layout.items) and self.layout.tops[index] < self.top + self.rows:
                known = known and self.layout.measured(index)
                self.layout.lines(index)
                index += 1
            self.layout.settle()
            if known:
                return
            self._restore(anchor)

    # ---------------------------------------------------------------- measures

    @property
    def queue(self) -> list[Line]:
        """The rows of inputs that wait, with the empty row below them."""
        look = self.look
        queued = self.story.queued
        if look is None or not queued:
            return []
        shown = queued[-_QUEUED_ROWS:] if look.height >= 8 else queued[-1:]
        lines = []
        for at, one in enumerate(shown):
            when = "next step" if one.when == "step" else "after this turn"
            keys = f" {look.glyphs.dot} Alt+Up" + (" takes it back" if look.width >= 100 else "")
            hidden = len(queued) - len(shown)
            more = f"{hidden} more above {look.glyphs.dot} " if at == 0 and hidden else ""
            text = clean_line(one.text, 400) or "[image]"
            left: list[Run] = [(look.glyphs.queued, look.palette.accent), (" " + text, NONE)]
            fact = more + when + (keys if at == len(shown) - 1 else "")
            lines.append(Line(spread(left, [(fact, look.palette.aside)], look.right, look.glyphs.ellipsis), gutter=2))
        return [*lines, BLANK]

    @property
    def rows(self) -> int:
        """Rows for items."""
        if self.look is None:
            return 0
        waiting = len(self.story.queued)
        if waiting:
            waiting = min(waiting, _QUEUED_ROWS if self.look.height >= 8 else 1) + 1
        return max(1, self.look.height - waiting)

    @property
    def max_top(self) -> int:
        """The first row when the end is in view."""
        return max(0, self.layout.total + _PAD - self.rows)

    @property
    def unseen(self) -> int:
        """Rows that came below the window since its reader left the end."""
        if self.follow or self._left is None:
            return 0
        serial, height = self._left
        index = self.layout.index_of_serial(serial)
        if index is None:
            return 0
        came = self.layout.total - (self.layout.first_row(index) + height)
        return max(0, min(came, self.layout.total - self.top - self.rows))

    # ---------------------------------------------------------------- moving

    def scroll(self, rows: int) -> None:
        """Moves the window; up past what is measured, that is measured first, so that nothing jumps."""
        self.sync()
        if not self.layout.tops:
            return
        if rows < 0:
            anchor = self._anchor()
            index, _ = self.layout.find(self.top)
            above = 0
            self.layout.lines(index)
            while index > 0 and above < -rows + 2:
                index -= 1
                self.layout.lines(index)
                above += self.layout.height(index)
            self.layout.settle()
            follow, self.follow = self.follow, False
            self._restore(anchor)
            self.follow = follow
        self.place(self.top + rows)

    def place(self, top: int) -> None:
        """Puts the window at a row; at the end it follows again."""
        top = max(0, min(top, self.max_top))
        was, self.follow = self.follow, top >= self.max_top
        self.top = top
        if was and not self.follow and self.layout.items:
            last = len(self.layout.items) - 1
            self._left = (self.layout.items[last].serial, self.layout.height(last))
        elif self.follow:
            self._left = None
        if not self.follow:
            self._measure_view()
            self.top = min(self.top, self.max_top)
            self.follow = self.top >= self.max_top

    def show_item(self, index: int, row: int = 0, centre: bool = False) -> None:
        """Brings a row of an item into view, moving as little as possible."""
        self.layout.lines(index)
        self.layout.settle()
        at = self.layout.first_row(index) + row
        if centre or at < self.top + 1 or at >= self.top + self.rows - 1:
            self.place(at - (self.rows // 3 if centre else 2 if at < self.top + 1 else self.rows - 3))

    def jump_prompt(self, direction: int) -> bool:
        """To the prompt before or after the first row; whether there is one."""
        self.sync()
        layout = self.layout
        if not layout.tops:
            return False
        prompts = [index for index, item in enumerate(layout.items) if item.kind == "prompt"]
        if direction < 0:
            before = [index for index in prompts if layout.first_row(index) < self.top]
            if not before:
                return False
            self.place(layout.first_row(before[-1]))
            return True
        after = [index for index in prompts if layout.first_row(index) > self.top]
        if not after:
            self.place(self.max_top)
            return False
        self.place(layout.first_row(after[0]))
        return True

    # ---------------------------------------------------------------- rows

    def states(self) -> list[Row]:
        """Every row of the screen, top to bottom; `moving` and `uncoloured` tell of what is in view."""
        look = self.look
        if look is None:
            return []
        ends = self.selection.ordered(self.layout.index_of_serial) if self.selection is not None else None
        plain = ends is None and self.search is None and not self.current
        out: list[Row] = []
        self.moving, self.uncoloured = False, None
        seen = -1
        for index, row, line in self.visible():
            if index != seen:
                seen = index
                self.moving = self.moving or self.layout.items[index].moves
            if line.art is not None and self.uncoloured is None and line.art.wants_colours:
                self.uncoloured = (self.layout.items[index], line.art)
            out.append(line if plain else self._state(look, index, row, line, ends))
        out += [BLANK] * (self.rows - len(out))
        pinned = self.pinned()
        if pinned is not None and out:
            out[0] = pinned
        out += self.queue
        return out[: look.height]

    def visible(self) -> Iterator[tuple[int, int, Line]]:
        """(item index, row of it, line) of the rows in the window; blank rows have negative numbers."""
        layout = self.layout
        if not layout.tops:
            return
        index, row = layout.find(self.top)
        left = self.rows
        while index < len(layout.items) and left > 0:
            lines = layout.lines(index)
            while row < len(lines) and left > 0:
                yield index, row, BLANK if row < 0 else lines[row]
                row += 1
                left -= 1
            index += 1
            row = -layout.gaps[index] if index < len(layout.items) and layout.height(index) else 0

    def _state(self, look: Look, index: int, row: int, line: Line, ends: Ends | None) -> Row:
        spans: list[Span] = []
        if self.search is not None and row >= 0:
            found = row == self.search.row and self.layout.items[index].serial == self.search.here
            style = look.palette.found_here if found else look.palette.found
            spans += [(start, end, style) for start, end in self.search.spans(line)]
        if ends is not None:
            span = span_in(ends, index, row, line)
            if span is not None:
                spans.append((*span, look.palette.selection))
        here = row == self.current_row and self.layout.items[index].serial == self.current
        ground = look.palette.current if here else None
        return RowState(line, tuple(spans), ground) if spans or ground is not None else line

    def pinned(self) -> Line | None:
        """The prompt that owns the first row, where its own first row is out of view."""
        look = self.look
        if look is None or not self.layout.tops or self.top <= 0:
            return None
        index, _ = self.layout.find(self.top)
        owner = self.layout.owners[index]
        if owner < 0 or self.layout.first_row(owner) >= self.top:
            return None
        item = self.layout.items[owner]
        if not isinstance(item, PromptItem):
            return None
        key = (item.serial, look.width, look.palette)
        if key != self._pin_key:
            self._pin_key = key
            runs: list[Run] = [(look.glyphs.prompt, look.palette.accent), (" " + item.first_line, look.palette.aside)]
            segments = spread(runs, [], look.right, look.glyphs.ellipsis)
            self._pinned = Line(segments, ground=look.palette.band, gutter=2, target=f"prompt:{item.serial}")
        return self._pinned

    # ---------------------------------------------------------------- places

    def place_at(self, x: int, y: int) -> tuple[Place, Line] | None:
        """The character under a cell of the screen, and its line; None below the last row."""
        if y == 0 and (pinned := self.pinned()) is not None:
            return Place(0, 0, 0), pinned
        for at, (index, row, line) in enumerate(self.visible()):
            if at == y:
                return Place(self.layout.items[index].serial, row, at_cell(line.text, x)), line
        return None

    def nearest(self, x: int, y: int) -> Place | None:
        """As `place_at`, for a pointer that may be outside."""
        y = max(1 if self.pinned() is not None else 0, min(y, self.rows - 1))
        last: tuple[int, int, Line] | None = None
        for at, seen in enumerate(self.visible()):
            last = seen
            if at == y:
                return Place(self.layout.items[seen[0]].serial, seen[1], at_cell(seen[2].text, x))
        if last is None:
            return None
        return Place(self.layout.items[last[0]].serial, last[1], len(last[2].text))

    def selected_text(self) -> str:
        """What is selected, as it was written: without gutters, wrapped lines joined."""
        if self.selection is None:
            return ""
        ends = self.selection.ordered(self.layout.index_of_serial)
        return copied(ends, self._between(ends)) if ends is not None else ""

    def _between(self, ends: Ends) -> Iterator[tuple[int, int, Line]]:
        (first, _, _), (last, _, _) = ends
        for index in range(first, last + 1):
            lines = self.layout.lines(index)
            if index > first and lines and self.layout.gaps[index]:
                yield index, -1, BLANK
            for row, line in enumerate(lines):
                yield index, row, line

    def current_line(self) -> Line | None:
        """The row that keys act on."""
        index = self.layout.index_of_serial(self.current)
        lines = self.layout.lines(index) if index is not None else []
        return lines[self.current_row] if self.current_row < len(lines) else None

    def current_item(self) -> Item | None:
        """The item that keys act on."""
        index = self.layout.index_of_serial(self.current)
        return self.layout.items[index] if index is not None else None
