"""The prompt: draws a draft, edits it by key and mouse, grows from one row to twelve, shows the terminal's own cursor.

Keys it does not know go on to the application. What Enter, history or completion mean is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.events import Key, MouseDown, MouseMove, MouseUp, Paste
from textual.geometry import Offset

from panto.tui.draft import Draft, clean
from panto.tui.graphemes import clusters
from panto.tui.widgets.lines import Line
from panto.tui.widgets.panel import PLAIN, Panel
from panto.tui.wrapping import TAB, Row, layout, place, position

MAX_ROWS = 12
INDENT = 2


class Desk:
    """What stands behind a composer. It is called at once, not told: the next key must find what this one did."""

    def key(self, event: Key) -> bool:
        """A key before the composer sees it; True when it meant something here."""
        return False

    def changed(self) -> None:
        """The text or the cursor changed."""

    def edge(self, step: int) -> None:
        """Up on the first row (-1) or down on the last (1)."""

    def pasted(self, text: str) -> None:
        """Text was pasted."""


class Composer(Panel, can_focus=True):
    """`glyph` stands before the first row; `placeholder` shows while it is empty. `desk` says what keys mean."""

    shows_cursor = True
    placeholder = ""
    glyph = "›"
    masked = False  # what is written is not for eyes

    def __init__(self, *, id: str | None = None, max_rows: int = MAX_ROWS) -> None:
        super().__init__(id=id)
        self.draft = Draft()
        self.max_rows = max_rows
        self.desk = Desk()
        self._top = 0
        self._column: int | None = None  # the column that up and down keep to
        self._rows_for: tuple[int, int, list[Row]] = (-1, -1, [])

    # --- layout ----------------------------------------------------------------------------------------------

    def _rows(self) -> list[Row]:
        width = max(4, self.size.width - INDENT - 1) if self.size.width else 78
        if self._rows_for[:2] != (self.draft.version, width):
            self._rows_for = (self.draft.version, width, layout(self.draft.text, width, self.draft.label))
        return self._rows_for[2]

    def _cursor(self) -> tuple[int, int]:
        return place(self._rows(), self.draft.text, self.draft.cursor, self.draft.label)

    @property
    def height_wanted(self) -> int:
        """Rows for the text, within the bounds."""
        return max(1, min(len(self._rows()), self.max_rows, max(1, self.screen.size.height // 2)))

    def touched(self) -> None:
        """The draft changed: adapt height and scroll, draw, tell."""
        self.settle()
        self.desk.changed()

    def settle(self) -> None:
        """Adapt height and scroll to the draft and draw it."""
        wanted = self.height_wanted
        height = self.styles.height
        if height is None or height.value != wanted:
            self.styles.height = wanted
        row, _ = self._cursor()
        self._top = max(0, min(self._top, len(self._rows()) - wanted, row))
        if row >= self._top + wanted:
            self._top = row - wanted + 1
        self.redraw()
        self.place_cursor()

    def place_cursor(self) -> None:
        """Put the terminal's cursor where the next character goes."""
        if self.has_focus and self.app.screen is self.screen:
            row, column = self._cursor()
            at = self.region.offset + Offset(min(INDENT + column, max(0, self.size.width - 1)), row - self._top)
            self.app.cursor_position = at

    def on_resize(self) -> None:
        """Another width breaks the rows elsewhere."""
        self.settle()

    def on_focus(self) -> None:
        """The cursor comes here."""
        self.place_cursor()
        self.redraw()

    # --- drawing ---------------------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The visible rows of the draft."""
        self.place_cursor()
        colours = self.palette
        glyph = Segment(f"{self.glyph} ", colours.accent)
        if not self.draft.text:
            return [Line([glyph, Segment(self.placeholder, colours.aside)])]
        rows = self._rows()[self._top : self._top + max(height, 1)]
        return [Line([glyph if row.start == 0 and self._top + at == 0 else Segment("  "), *self._segments(row)])
                for at, row in enumerate(rows)]  # fmt: skip

    def _segments(self, row: Row) -> list[Segment]:
        text = self.draft.text[row.start : row.end]
        span = self.draft.selection
        start, end = (span[0] - row.start, span[1] - row.start) if span else (0, 0)
        segments: list[Segment] = []
        for first, last, _ in clusters(text):
            character = text[first:last]
            label = self.draft.label(character)
            style: Style = self.palette.accent if label is not None else PLAIN
            if start <= first < end:
                style = style + self.palette.selection
            if self.masked:
                character = "•"
            shown = label if label is not None else " " * TAB if character[0] == "\t" else character
            if segments and segments[-1].style == style:
                segments[-1] = Segment(segments[-1].text + shown, style)
            else:
                segments.append(Segment(shown, style))
        return segments

    # --- editing ---------------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Edit, or let the key pass."""
        if self.desk.key(event) or self.edit(event.key, event.character):
            event.stop()
            event.prevent_default()

    def edit(self, key: str, character: str | None) -> bool:
        """Apply an editing key; False when it is none."""
        draft = self.draft
        key = {"ctrl+p": "up", "ctrl+n": "down"}.get(key, key)
        vertical = key in ("up", "down", "shift+up", "shift+down")
        if not vertical:
            self._column = None
        if key in _EDITS:
            _EDITS[key](draft)
        elif key.removeprefix("shift+") in _MOVES:
            draft.move(_MOVES[key.removeprefix("shift+")](draft), select=key.startswith("shift+"))
        elif vertical:
            self._vertical(-1 if key.endswith("up") else 1, key.startswith("shift+"))
            return True
        elif key in ("home", "end", "shift+home", "shift+end"):
            row = self._rows()[self._cursor()[0]]
            last = row.end if row.end == draft.line()[1] else draft.left_of(row.end)
            draft.move(row.start if key.endswith("home") else last, select=key.startswith("shift+"))
        elif character and len(character) == 1 and character.isprintable() and not key.startswith(("ctrl+", "alt+")):
            draft.insert(clean(character), typed=True)
        else:
            return False
        self.touched()
        return True

    def newline(self) -> None:
        """Break the line."""
        self.draft.insert("\n")
        self.touched()

    def set_text(self, text: str, cursor: int | None = None) -> None:
        """Replace everything."""
        self.draft.set(text, cursor)
        self.touched()

    def clear(self) -> None:
        """Empty it, undo as well."""
        self.draft = self.draft.emptied()
        self.touched()

    def _vertical(self, step: int, select: bool) -> None:
        rows, draft = self._rows(), self.draft
        row, column = self._cursor()
        self._column = column if self._column is None else self._column
        if not 0 <= row + step < len(rows):
            if not select:
                self.desk.edge(step)
            return
        target = rows[row + step]
        at = position(target, draft.text, self._column, draft.label)
        if at == target.end and row + step + 1 < len(rows) and rows[row + step + 1].start == at:
            at = draft.left_of(at)  # the end of a wrapped row is the start of the next
        draft.move(at, select)
        self.touched()

    # --- mouse and paste -------------------------------------------------------------------------------------

    def _at(self, x: int, y: int) -> int:
        rows = self._rows()
        row = rows[max(0, min(y + self._top, len(rows) - 1))]
        return position(row, self.draft.text, max(0, x - INDENT), self.draft.label)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Place the cursor; a drag selects."""
        event.stop()
        self.focus()
        self.capture_mouse()
        self.draft.move(self._at(event.x, event.y), select=event.shift)
        self.touched()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Grow the selection."""
        if self.app.mouse_captured is self and event.button:
            self.draft.move(self._at(event.x, event.y), select=True)
            self.touched()

    def on_mouse_up(self, event: MouseUp) -> None:
        """End the drag."""
        self.release_mouse()

    def on_paste(self, event: Paste) -> None:
        """What a paste means is the desk's business."""
        event.stop()
        self.desk.pasted(event.text)


def _line_start(draft: Draft) -> int:
    return draft.line()[0]


_MOVES: dict[str, Callable[[Draft], int]] = {
    "left": lambda d: d.selection[0] if d.selection and d.anchor is not None else d.left_of(d.cursor),
    "right": lambda d: d.right_of(d.cursor),
    "ctrl+f": lambda d: d.right_of(d.cursor),
    "ctrl+a": _line_start,
    "ctrl+e": lambda d: d.line()[1],
    "ctrl+left": lambda d: d.word_left(d.cursor),
    "ctrl+right": lambda d: d.word_right(d.cursor),
    "alt+left": lambda d: d.word_left(d.cursor),
    "alt+right": lambda d: d.word_right(d.cursor),
    "alt+b": lambda d: d.word_left(d.cursor),
    "alt+f": lambda d: d.word_right(d.cursor),
}

_EDITS: dict[str, Callable[[Draft], None]] = {
    "backspace": Draft.backspace,
    "shift+backspace": Draft.backspace,
    "ctrl+h": Draft.backspace,
    "delete": Draft.delete_right,
    "ctrl+w": lambda d: d.kill(_blank_left(d), d.cursor),
    "alt+backspace": lambda d: d.kill(d.word_left(d.cursor), d.cursor),
    "ctrl+backspace": lambda d: d.kill(d.word_left(d.cursor), d.cursor),
    "alt+d": lambda d: d.kill(d.cursor, d.word_right(d.cursor)),
    "ctrl+delete": lambda d: d.kill(d.cursor, d.word_right(d.cursor)),
    "ctrl+k": lambda d: d.kill(d.cursor, d.line()[1] if d.line()[1] > d.cursor else min(d.cursor + 1, len(d.text))),
    "ctrl+u": lambda d: d.kill(d.line()[0] if d.line()[0] < d.cursor else max(0, d.cursor - 1), d.cursor),
    "ctrl+y": Draft.yank,
    "ctrl+underscore": Draft.undo,
    "ctrl+minus": Draft.undo,
    "alt+underscore": Draft.redo,
    "alt+slash": Draft.redo,
}


def _blank_left(draft: Draft) -> int:
    """Where the run of non-blanks before the cursor begins, as Ctrl+W in readline."""
    head = draft.text[: draft.cursor].rstrip()
    return max((head.rfind(blank) for blank in " \t\n"), default=-1) + 1


def is_edit(key: str) -> bool:
    """Whether a key edits or moves, so that no table of actions is asked about it."""
    return key in _EDITS or key.removeprefix("shift+") in _MOVES
