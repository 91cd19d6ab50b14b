"""Rows of the transcript as strips, and the short way to the terminal.

Textual's own way asks every visible widget for all its rows when one row changes. Here only the rows that changed are
written, straight to the driver, where nothing lies over them; a later full repaint draws the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from panto.tui.colours import Palette
from panto.tui.widgets.lines import NONE, Line, Look, mix, width_of

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widget import Widget

Span = tuple[int, int, Style]
"""Characters from, to (exclusive) of a line, and the ground they get."""


class RowState(NamedTuple):
    """A row that is drawn otherwise than its line alone says."""

    line: Line
    spans: tuple[Span, ...] = ()
    ground: Style | None = None


Row = Line | RowState
"""What a row is drawn from: the same line, or an equal state, gives the same strip."""


def line_of(row: Row) -> Line:
    """The line of a row."""
    return row if isinstance(row, Line) else row.line


class Rows:
    """The strips of the viewport, each made once for as long as its row stays."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.strips: list[Strip] = []
        self._made: dict[Row, Strip] = {}
        self._key: tuple[int, Palette] | None = None

    def clear(self) -> None:
        """Every row is to be made anew."""
        self._made = {}
        self.rows, self.strips = [], []

    def show(self, rows: list[Row], look: Look) -> list[int]:
        """Takes the rows of a frame; returns which of them changed."""
        key = self._key
        if key is None or key[0] != look.width or key[1] is not look.palette:
            self.clear()
            self._key = (look.width, look.palette)
        old_rows, old_strips, made = self.rows, self.strips, self._made
        strips = []
        changed = []
        count = len(old_rows)
        for y, row in enumerate(rows):
            if y < count and old_rows[y] is row:
                strips.append(old_strips[y])
                continue
            strip = made.get(row)
            if strip is None:
                strip = made[row] = _strip(row, look)
            strips.append(strip)
            if y >= count or (old_strips[y] is not strip and old_strips[y]._segments != strip._segments):
                changed.append(y)
        self.rows, self.strips = rows, strips
        if len(made) > 4 * len(rows) + 100:
            self._made = dict(zip(rows, strips, strict=True))
        return changed


def _strip(row: Row, look: Look) -> Strip:
    state = RowState(row) if isinstance(row, Line) else row
    line = state.line
    base = look.palette.base
    ground = line.ground or NONE
    if state.ground is not None:
        ground = mix(ground, state.ground)
    under = mix(base, ground)
    signs = look.palette.signs
    segments = [Segment(signs(s.text), mix(under, s.style) if s.style else under) for s in line.segments if s.text]
    if state.ground is not None:  # the ground of a chosen row wins over grounds within it
        segments = [Segment(s.text, mix(s.style or NONE, state.ground)) for s in segments]
    if state.spans:
        segments = restyled(segments, state.spans)
    used = sum(width_of(segment.text) for segment in segments)
    if used < look.width:
        segments.append(Segment(" " * (look.width - used), under))
        return Strip(segments, look.width)
    strip = Strip(segments, used)
    return strip if used == look.width else strip.adjust_cell_length(look.width, under)


def restyled(segments: Sequence[Segment], spans: Sequence[Span]) -> list[Segment]:
    """The same text with the spans' grounds laid over it."""
    out: list[Segment] = []
    edges = sorted({edge for start, end, _ in spans for edge in (start, end)})
    at = 0
    for text, style, _ in segments:
        start, end = at, at + len(text)
        for stop in [edge for edge in edges if start < edge < end] + [end]:
            shown = style or NONE
            for a, b, ground in spans:
                if a <= start < b:
                    shown = mix(shown, ground)
            out.append(Segment(text[start - at : stop - at], shown))
            start = stop
        at = end
    return out


class Writer:
    """The way past the compositor for one widget."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._places: object = None  # the compositor's table that `_covered` was worked out from
        self._covered: set[int] | None = None

    def write(self, rows: Rows, changed: Sequence[int]) -> bool:
        """Writes these rows straight to the terminal; whether that was possible (else they are to be refreshed)."""
        widget = self._widget
        app = widget.app
        driver = app._driver
        screen = widget.screen
        region = widget.region
        if (
            driver is None or driver.is_headless or driver.is_inline or app._batch_count or not app._running
            or app.screen is not screen or screen._layout_required or not region
        ):  # fmt: skip
            return False
        covered = self._rows_covered(screen)
        if covered is None:
            return False
        console = app.console
        out = []
        for y in changed:
            if y in covered:
                widget.refresh(Region(0, y, region.width, 1))
            elif y < region.height:
                out.append(f"\x1b[{region.y + y + 1};{region.x + 1}H{rows.strips[y].render(console)}")
        if out:
            column, row = app.cursor_position
            shown = getattr(app, "cursor_shown", "")
            hide = "\x1b[?25l" if shown else ""
            driver.write(f"\x1b[?2026h{hide}{''.join(out)}\x1b[{row + 1};{column + 1}H{shown}\x1b[?2026l")
        return True

    def _rows_covered(self, screen: Screen[object]) -> set[int] | None:
        """Rows of the widget that something lies over; None where it is not on the screen at all."""
        visible = screen._compositor.visible_widgets
        if visible is self._places:  # the table is made anew whenever anything is placed otherwise
            return self._covered
        self._places, self._covered = visible, None
        widget = self._widget
        if widget not in visible:
            return None
        region = widget.region
        covered: set[int] = set()
        ancestors = set(widget.ancestors)
        for other, (place, clip) in visible.items():
            if other is widget or other in ancestors:
                continue
            over = place.intersection(clip).intersection(region)
            if over:
                covered.update(range(over.y - region.y, over.bottom - region.y))
        self._covered = covered
        return covered
