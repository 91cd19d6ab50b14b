"""A widget that is a list of lines: the base of everything here that is not the transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from panto.tui.colours import Glyphs, Palette
from panto.tui.widgets.lines import BLANK, Line, Run, cut_runs, width_of

if TYPE_CHECKING:
    from panto.tui.app import PantoApp

PLAIN = Style()


class Panel(Widget):
    """Draws what `lines` gives, one row each; rows beyond them are empty.

    Rows that change are written straight to the terminal where nothing else is due: Textual's own way asks every
    visible widget for all its rows, which a key press or a spinner's step should not cost.
    """

    note = ""  # what an overlay has to say once, in the place of its keys
    _kept: tuple[int, int, list[Line]] | None = None

    @property
    def panto(self) -> PantoApp:
        """The application, by its own type."""
        return cast("PantoApp", self.app)

    @property
    def palette(self) -> Palette:
        """The colours in force."""
        colours: Palette = self.panto.palette
        return colours

    @property
    def glyphs(self) -> Glyphs:
        """The signs in force."""
        signs: Glyphs = self.panto.glyphs
        return signs

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """What to show in this many cells and rows."""
        raise NotImplementedError

    def redraw(self) -> None:
        """What `lines` gives has changed."""
        before, self._kept = self._kept, None
        width, height = self.size
        if before is None or before[:2] != (width, height) or not can_write(self):
            self.refresh()
            return
        rows = self._kept_lines(width, height)
        out: list[str] = []
        for y in range(height):
            new, old = self._at_row(rows, y), self._at_row(before[2], y)
            if new.segments != old.segments or new.ground != old.ground:
                text = strip(new, width, self.palette).render(self.app.console)
                out.append(f"\x1b[{self.region.y + y + 1};{self.region.x + 1}H{text}")
        write(self.panto, out)

    def forget(self) -> None:
        """What was drawn is of other colours now."""
        self._kept = None
        self.refresh()

    def _kept_lines(self, width: int, height: int) -> list[Line]:
        if self._kept is None or self._kept[:2] != (width, height):
            self._kept = (width, height, list(self.lines(width, height)))
        return self._kept[2]

    @staticmethod
    def _at_row(rows: Sequence[Line], y: int) -> Line:
        return rows[y] if y < len(rows) else BLANK

    def render_line(self, y: int) -> Strip:
        """One row, exactly as wide as the widget."""
        width, height = self.size
        return strip(self._at_row(self._kept_lines(width, height), y), width, self.palette)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of a part, past Textual's cache, which knows nothing of rows written directly."""
        rows = [self.render_line(y) for y in crop.line_range]
        if crop.column_span == (0, self.size.width):
            return rows
        return [row.crop(*crop.column_span) for row in rows]


def can_write(widget: Widget) -> bool:
    """Whether rows of this widget may be written to the terminal now: it is on the screen as it stands."""
    app = widget.app
    driver, screen = app._driver, widget.screen
    return (
        driver is not None and not driver.is_headless and not app._batch_count and app._running
        and app.screen is screen and not screen._layout_required and not screen._dirty_widgets
        and bool(widget.region) and widget.display
    )  # fmt: skip


def write(app: PantoApp, rows: Sequence[str]) -> None:
    """Write positioned rows at once and put the cursor back where it belongs."""
    driver = app._driver
    if rows and driver is not None:
        column, row = app.cursor_position
        body = "".join(rows)
        driver.write(f"\x1b[?2026h\x1b[?25l{body}\x1b[{row + 1};{column + 1}H{app.cursor_shown}\x1b[?2026l")


def strip(line: Line, width: int, palette: Palette) -> Strip:
    """A line as a strip of exactly `width` cells, every cell styled."""
    ground = palette.base + line.ground if line.ground else palette.base
    signs = palette.signs
    made = Strip([Segment(signs(text), ground + style if style else ground) for text, style, _ in line.segments])
    return made.adjust_cell_length(width, ground)


def line(runs: Sequence[Run], ground: Style | None = None, target: str = "") -> Line:
    """A line from runs."""
    return Line([Segment(text, style) for text, style in runs if text], ground, target=target)


def sides(left: Sequence[Run], right: Sequence[Run], width: int, ground: Style | None = None) -> Line:
    """`left` and, ending at `width`, `right`; `left` is cut where both do not fit."""
    right_width = sum(width_of(text) for text, _ in right)
    kept = cut_runs(left, max(0, width - right_width - (1 if right else 0)))
    gap = width - right_width - sum(width_of(text) for text, _ in kept)
    return line([*kept, (" " * max(0, gap), PLAIN), *right], ground)


def key_rows(pairs: Sequence[tuple[str, str]], width: int, palette: Palette) -> list[Line]:
    """Keys and what they do, in as many rows as they need."""
    rows: list[list[Run]] = [[("  ", PLAIN)]]
    used = 2
    for key, meaning in pairs:
        size = width_of(key + meaning) + 1
        if used + size > width and used > 2:
            rows.append([("  ", PLAIN)])
            used = 2
        gap = "   "[: max(0, width - used - size)]
        rows[-1] += [(key, palette.accent), (f" {meaning}{gap}", palette.aside)]
        used += size + 3
    return [sides(row, [], width) for row in rows]


def ruled(left: Sequence[Run], right: Sequence[Run], width: int, style: Style, rule: str = "─") -> Line:
    """A horizontal line with words at either end: `── left ─────── right ──`."""
    ends = width_of(rule) * 2
    if left and sum(width_of(text) for text, _ in right) > width - 20:
        right = ()  # what stands at the left is what it is about
    right_width = sum(width_of(text) for text, _ in right)
    room = max(0, width - right_width - (12 if right else 6))
    head = [(rule * 2 + " ", style), *cut_runs(left, room), (" ", PLAIN)] if left else []
    tail = [(" ", PLAIN), *cut_runs(right, max(0, width - 8)), (" " + rule * 2, style)] if right else []
    used = sum(width_of(text) for text, _ in [*head, *tail])
    return line([*head, (rule * max(ends, width - used), style), *tail])
