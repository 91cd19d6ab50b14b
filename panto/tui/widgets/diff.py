"""A diff as rows: numbers as in the file, tinted rows, changed words stronger, syntax colours kept.

Below 160 columns one column, from there on old and new side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rich.style import Style

from panto.schema.view import DiffView, Hunk
from panto.tui.sanitize import clean
from panto.tui.widgets.highlight import colour_steps, lexer_for_file, loaded
from panto.tui.widgets.lines import NONE, Look, Run, cut, cut_runs, mix, width_of, wrap

SIDE_BY_SIDE = 160
_HALF = 76
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST = 1000  # characters of one line that are looked at
_PAIRED = 24  # lines of one change whose words are compared
Row = list[Run]
Spans = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class DiffLine:
    """One line of a hunk: "-", "+" or " "; its numbers (0: none); which characters changed; its colours."""

    kind: str
    old: int
    new: int
    text: str
    changed: Spans = ()
    coloured: list[tuple[str, str]] | None = None


class DiffArt:
    """One file's diff, ready to draw. `version` rises as colours arrive."""

    def __init__(self, view: DiffView, whole: bool = False) -> None:
        self.path = view.path
        self.added = view.added
        self.removed = view.removed
        self.whole = whole
        self.hunks = [_lines(hunk) for hunk in view.hunks]
        self.version = 0
        self._coloured = False

    @property
    def wants_colours(self) -> bool:
        """Whether `colour` has something to do."""
        return not self._coloured and "." in self.path

    def colour(self) -> Iterator[bool]:
        """Works the colours out in small steps; each hunk has them at once. Yields True while there is only waiting."""
        lexer = yield from loaded(lexer_for_file, self.path)
        self._coloured = True
        if lexer is None:
            return
        for hunk in self.hunks:
            for side in ("-", "+"):
                lines = [line for line in hunk if line.kind in (" ", side)]
                for result in colour_steps("\n".join(line.text for line in lines), lexer):
                    for line, coloured in zip(lines, result or (), strict=False):
                        line.coloured = coloured
                    yield False
            self.version += 1

    def rows(self, look: Look, room: int, limit: int = 0, context: int = 3) -> tuple[list[Row], int, list[int]]:
        """Rows, how many lines of the first place are left out, and the first changed line of each place left out.

        `limit` rows at most (0: everything, all places); `context` unchanged lines around a change.
        """
        digits = max((len(str(max(line.old, line.new))) for hunk in self.hunks for line in hunk), default=1)
        both = bool(self.added and self.removed) and not self.whole
        draw = _Columns(look, room, max(5, digits + 1), both, self.whole)
        if not limit:
            rows: list[Row] = []
            for index, hunk in enumerate(self.hunks):
                if index:
                    rows.append([("     " + look.glyphs.ellipsis, look.palette.aside)])
                rows += draw.hunk(hunk)
            return rows, 0, []
        if not self.hunks:
            return [], 0, []
        first = _trimmed(self.hunks[0], context)
        rows = draw.hunk(first)
        hidden = max(0, len(rows) - limit)
        if hidden:
            rows = draw.hunk(_trimmed(self.hunks[0], min(context, 1)))
            hidden = max(0, len(rows) - limit)
            rows = rows[:limit]
        return rows, hidden, [_place(hunk) for hunk in self.hunks[1:]]


def diff_rows(view: DiffView, look: Look, room: int, colours: int = 60, whole: bool = False) -> list[Row]:
    """All rows of a diff at once; syntax colours only when it has at most `colours` lines.

    `whole`: in one column, long lines go on below and none is cut.
    """
    art = DiffArt(view, whole)
    if sum(len(hunk) for hunk in art.hunks) <= colours and art.wants_colours:
        for _ in art.colour():
            pass
    return art.rows(look, room)[0]


class _Columns:
    """Draws hunks in one or two columns."""

    def __init__(self, look: Look, room: int, field: int, both: bool, whole: bool = False) -> None:
        self.look = look
        self.whole = whole
        self.field = field
        self.double = look.width >= SIDE_BY_SIDE and both
        self.room = min(look.width - 2, 2 * _HALF + 4) if self.double else room

    def hunk(self, lines: Sequence[DiffLine]) -> list[Row]:
        if not self.double:
            return [row for line in lines for row in self._rows(line, line.old if line.kind == "-" else line.new)]
        bar = (" " + self.look.glyphs.bar, self.look.palette.aside)
        half = (self.room - 2) // 2
        rows = []
        for left, right in _pairs(lines):
            row = self._cell(left, half, left.old) if left is not None else [(" " * half, NONE)]
            rows.append([*row, bar, *(self._cell(right, half, right.new) if right is not None else [])])
        return rows

    def _rows(self, line: DiffLine, number: int) -> list[Row]:
        """One row, cut; of the whole as many as it takes, those behind the first below its text."""
        lead = self.field + 3
        room = max(lead + 8, self.room)
        if not self.whole or width_of(line.text) + lead <= room:
            return [self._cell(line, room, number)]
        cells = self._cell(line, width_of(line.text) + lead, number)
        head = 1 if line.kind == " " else 3
        ground = NONE if line.kind == " " else cells[-1][1]
        rows: list[Row] = []
        for segments, _ in wrap(cells[head:], room - lead):
            row = [*(cells[:head] if not rows else [(" " * lead, ground)])]
            row += [(part.text, part.style or NONE) for part in segments]
            rows.append([*row, (" " * (room - sum(width_of(text) for text, _ in row)), ground)])
        return rows

    def _cell(self, line: DiffLine, room: int, number: int) -> Row:
        palette = self.look.palette
        if line.kind == " ":
            row: Row = [(str(number).rjust(self.field) + "   ", palette.aside), *self._text(line, NONE, NONE)]
            row = cut_runs(row, room, self.look.glyphs.ellipsis)
            return row + [(" " * (room - sum(width_of(text) for text, _ in row)), NONE)] if self.double else row
        added = line.kind == "+"
        ground = palette.row_added if added else palette.row_removed
        sign = "+" if added else self.look.glyphs.minus
        word = palette.word_added if added else palette.word_removed
        lead = str(number).rjust(self.field)
        indent = min(2, self.field - len(str(number)))
        row = [
            (lead[:indent], NONE),
            (lead[indent:], mix(ground, palette.aside)),
            (f" {sign} ", mix(ground, palette.added if added else palette.wrong)),
            *self._text(line, ground, word),
        ]
        row = cut_runs(row, room, self.look.glyphs.ellipsis)
        return row + [(" " * (room - sum(width_of(text) for text, _ in row)), ground)]

    def _text(self, line: DiffLine, ground: Style, word: Style) -> Row:
        syntax = self.look.palette.syntax
        pieces = line.coloured if line.coloured is not None else [(line.text, "")]
        runs: Row = []
        at = 0
        edges = [edge for span in line.changed for edge in span]
        for text, kind in pieces:
            style = syntax.get(kind, NONE)
            start, end = at, at + len(text)
            for stop in [edge for edge in edges if start < edge < end] + [end]:
                inside = any(a <= start < b for a, b in line.changed)
                runs.append((line.text[start:stop], mix(ground + word if inside else ground, style)))
                start = stop
            at = end
        return runs


def _lines(hunk: Hunk) -> list[DiffLine]:
    old, new = hunk.old_start, hunk.new_start
    lines: list[DiffLine] = []
    for kind, raw in hunk.lines:
        text = clean(raw[:_LONGEST]).replace("\n", " ")
        lines.append(DiffLine(kind, old if kind != "+" else 0, new if kind != "-" else 0, text))
        old += kind != "+"
        new += kind != "-"
    _compare_words(lines)
    return lines


def _compare_words(lines: list[DiffLine]) -> None:
    at = 0
    while at < len(lines):
        if lines[at].kind == " ":
            at += 1
            continue
        end = at
        while end < len(lines) and lines[end].kind != " ":
            end += 1
        removed = [line for line in lines[at:end] if line.kind == "-"][:_PAIRED]
        added = [line for line in lines[at:end] if line.kind == "+"][:_PAIRED]
        begin = 0
        for old in removed:
            for index in range(begin, len(added)):
                if _pair_words(old, added[index]):
                    begin = index + 1
                    break
        at = end


def _pair_words(old: DiffLine, new: DiffLine) -> bool:
    """Marks what differs in two lines that are much alike; whether they are."""
    if not old.text.strip() or not new.text.strip() or max(len(old.text), len(new.text)) > 400:
        return False
    a, b = _WORDS.findall(old.text), _WORDS.findall(new.text)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.real_quick_ratio() < 0.5 or matcher.quick_ratio() < 0.5:
        return False
    codes = matcher.get_opcodes()
    same = sum(len("".join(a[i1:i2]).strip()) for tag, i1, i2, _, _ in codes if tag == "equal")
    if same * 2 < max(len(old.text.strip()), len(new.text.strip())):
        return False
    old.changed = _spans(a, [(i1, i2) for tag, i1, i2, _, _ in codes if tag != "equal" and i2 > i1])
    new.changed = _spans(b, [(j1, j2) for tag, _, _, j1, j2 in codes if tag != "equal" and j2 > j1])
    return True


def _spans(words: list[str], ranges: list[tuple[int, int]]) -> Spans:
    edges = [0]
    for word in words:
        edges.append(edges[-1] + len(word))
    return tuple((edges[start], edges[end]) for start, end in ranges)


def _trimmed(lines: Sequence[DiffLine], context: int) -> Sequence[DiffLine]:
    changed = [index for index, line in enumerate(lines) if line.kind != " "]
    if not changed:
        return lines[: 2 * context]
    return lines[max(0, changed[0] - context) : changed[-1] + 1 + context]


def _place(lines: Sequence[DiffLine]) -> int:
    for line in lines:
        if line.kind != " ":
            return line.new or line.old
    return lines[0].new if lines else 0


def _pairs(lines: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    at = 0
    while at < len(lines):
        if lines[at].kind == " ":
            yield lines[at], lines[at]
            at += 1
            continue
        removed: list[DiffLine] = []
        added: list[DiffLine] = []
        while at < len(lines) and lines[at].kind != " ":
            (added if lines[at].kind == "+" else removed).append(lines[at])
            at += 1
        for index in range(max(len(removed), len(added))):
            yield (
                removed[index] if index < len(removed) else None,
                added[index] if index < len(added) else None,
            )


def hidden_words(hidden: int, places: Sequence[int], path: str, look: Look) -> str:
    """What is said below a folded diff about what it leaves out ("" nothing is)."""
    ellipsis = look.glyphs.ellipsis
    if hidden:
        more = f" and {len(places)} more places" if places else ""
        return f"{ellipsis} {hidden} more {'line' if hidden == 1 else 'lines'}{more}"
    if not places:
        return ""
    name = cut(path.rpartition("/")[2], 40, ellipsis)
    shown = ", ".join(f"{name if index == 0 else ''}:{line}" for index, line in enumerate(places[:4]))
    more = f" {ellipsis}" if len(places) > 4 else ""
    return f"{ellipsis} {len(places)} more {'place' if len(places) == 1 else 'places'}   {shown}{more}"
