"""Views (data that tools and extensions want shown) as rows of runs."""

from __future__ import annotations

from collections.abc import Sequence

from panto.schema.view import CardView, DiffView, ListView, ProgressView, TableView, TextView, View
from panto.tui.colours import Palette
from panto.tui.sanitize import clean_line
from panto.tui.widgets.diff import diff_rows
from panto.tui.widgets.lines import NONE, Look, Run, cut_runs, spread, width_of, wrap
from panto.tui.widgets.output import Output
from panto.tui.widgets.table import table

_LIMIT = 400  # rows of one view
_DEPTH = 6
Row = list[Run]


def view_rows(view: View, look: Look, room: int, depth: int = 0) -> list[Row]:
    """The rows of a view in at most `room` cells."""
    if depth > _DEPTH:
        return []
    palette = look.palette
    match view:
        case TextView(text=text, meaning=meaning, tail=tail):
            output = Output(text)
            lines = output.tail(_LIMIT) if tail else output.head(_LIMIT)
            style = palette.of(meaning)
            return [[(part.text, style) for part in row] for line in lines for row, _ in wrap([(line, style)], room)]
        case ListView(items=items):
            mark = look.glyphs.bullet + " "
            return [[(mark, palette.aside), *cut_runs([(clean_line(i), NONE)], room - 2)] for i in items[:_LIMIT]]
        case TableView(columns=columns, rows=rows):
            head = [[(clean_line(cell, 200), NONE)] for cell in columns]
            body = [[[(clean_line(cell, 500), NONE)] for cell in row] for row in rows[:_LIMIT]]
            return [[(s.text, s.style or NONE) for s in row] for row in table(head, body, (), room, look)]
        case DiffView():
            return diff_rows(view, look, room)
        case ProgressView(label=label, share=share):
            return [_progress(clean_line(label), share, look, room)]
        case CardView():
            return card_rows(view, look, room, depth)


def card_rows(view: CardView, look: Look, room: int, depth: int = 0) -> list[Row]:
    """A titled line with its views below it, indented."""
    rows = aligned([view], look, room)
    for child in view.children:
        rows += [[("  ", NONE), *row] for row in view_rows(child, look, room - 2, depth + 1)]
    return rows


def aligned(cards: Sequence[CardView], look: Look, room: int) -> list[Row]:
    """One row a card; tabs in titles and facts part columns, which line up over all of them."""
    lefts = [[clean_line(cell, 300) for cell in card.title.split("\t")] for card in cards]
    rights = [[clean_line(cell, 60) for cell in card.fact.split("\t")] for card in cards]
    fields = _fields([cells[:-1] for cells in lefts])
    facts = _fields(rights)
    rows = []
    for card, left, right in zip(cards, lefts, rights, strict=True):
        row: Row = [_mark(card, look), (" ", NONE)]
        for index, cell in enumerate(left[:-1]):
            style = look.palette.text if index == 0 else look.palette.aside
            row.append((cell + " " * (fields[index] - width_of(cell) + 2), style))
        row.append((left[-1], look.palette.text if len(left) == 1 else NONE))
        fact = "   ".join(" " * (facts[i] - width_of(cell)) + cell for i, cell in enumerate(right))
        segments = spread(row, [(fact, look.palette.aside)], room, look.glyphs.ellipsis)
        rows.append([(segment.text, segment.style or NONE) for segment in segments])
    return rows


def _fields(rows: list[list[str]]) -> list[int]:
    widths = [0] * max((len(row) for row in rows), default=0)
    for row in rows:
        for index, cell in enumerate(row):
            widths[index] = max(widths[index], width_of(cell))
    return [min(width, 24) for width in widths]


def _mark(card: CardView, look: Look) -> Run:
    palette: Palette = look.palette
    glyphs = look.glyphs
    match card.state:
        case "running":
            return (look.spinner, palette.accent)
        case "done":
            return (glyphs.ok, palette.aside)
        case "failed":
            return (glyphs.failed, palette.wrong)
        case "stopped":
            return (glyphs.stopped, palette.attention)
        case "waiting":
            return (glyphs.asks, palette.attention)


def _progress(label: str, share: float | None, look: Look, room: int) -> Row:
    if share is None:
        return cut_runs([(label, NONE)], room)
    share = min(1.0, max(0.0, share))
    cells = 12
    full = round(share * cells)
    bar = [("▰" * full, look.palette.accent), ("▱" * (cells - full), look.palette.aside)]
    percent = f"  {share * 100:.0f} %"
    return cut_runs([*bar, (percent, look.palette.aside), ("  " + label, NONE)], room)
