"""A block of code: plain at once, coloured when someone looks at it, on a faint ground without fences."""

from __future__ import annotations

from collections.abc import Iterator

from rich.segment import Segment

from panto.tui.widgets.highlight import PLAIN, Coloured, colour_steps, lexer_named, loaded
from panto.tui.widgets.lines import NONE, Line, Look, Run, cut, mix, width_of, wrap

_LONGEST = 4000  # characters of one line of code that are drawn


class CodeBlock:
    """Lines of code that may grow; `partial` is a last line still coming. `version` rises when its colours arrive.

    `coloured` counts that for all blocks together: while it stands, no block has changed its colours.
    """

    coloured = 0

    def __init__(self, language: str) -> None:
        self.language = language.split()[0].lower()[:20] if language.strip() else ""
        self.version = 0
        self.partial = ""
        self.closed = False
        self._code: list[str] = []
        self._coloured: Coloured | None = None
        self._lines: list[Line] = []
        self._drawn = 0  # lines of _code that stand in _lines
        self._key: object = None

    def add(self, line: str) -> None:
        """One more line."""
        self._code.append(line)

    def close(self) -> None:
        """Nothing more comes: colours may be worked out."""
        self.closed = True

    @property
    def wants_colours(self) -> bool:
        """Whether `colour` has something to do."""
        return self.closed and self._coloured is None and self.language not in PLAIN

    def colour(self) -> Iterator[bool]:
        """Works the colours out in small steps; ends when they are there. Yields True while there is only waiting."""
        lexer = yield from loaded(lexer_named, self.language)
        if lexer is None:
            self._coloured = []
            return
        code = "\n".join(line[:_LONGEST] for line in self._code)
        for result in colour_steps(code, lexer):
            if result is not None:
                self._coloured = result
                self._key = None
                self.version += 1
                CodeBlock.coloured += 1
            yield False

    def lines(self, look: Look, indent: int, width: int) -> list[Line]:
        """The rows: ground from column `indent` over `width` cells; the language at the first row's right end."""
        key = (indent, width, look.palette)
        if key != self._key:
            self._key, self._lines, self._drawn = key, [], 0
        while self._drawn < len(self._code):
            self._lines.extend(self._rows(look, indent, width, self._drawn))
            self._drawn += 1
        if not self.closed and (self.partial or not self._code):
            return self._lines + self._draw(look, indent, width, [(self.partial, NONE)], first=not self._code)
        if not self._lines and self.closed:
            return self._draw(look, indent, width, [("", NONE)], first=True)
        return self._lines

    def _rows(self, look: Look, indent: int, width: int, index: int) -> list[Line]:
        runs: list[Run] = [(self._code[index][:_LONGEST], NONE)]
        if self._coloured is not None and index < len(self._coloured):
            syntax = look.palette.syntax
            runs = [(text, syntax.get(kind, NONE)) for text, kind in self._coloured[index]]
        return self._draw(look, indent, width, runs, first=index == 0)

    def _draw(self, look: Look, indent: int, width: int, runs: list[Run], first: bool) -> list[Line]:
        ground = look.palette.code
        room = max(8, width - 2)
        rows = []
        for row, (segments, joint) in enumerate(wrap(runs, room)):
            drawn = [Segment(" " * indent, NONE), Segment(" ", ground)]
            drawn += [Segment(segment.text, mix(ground, segment.style or NONE)) for segment in segments]
            used = sum(width_of(segment.text) for segment in segments)
            tail = cut(self.language, 20) if first and row == 0 else ""
            if tail and used + len(tail) + 2 <= room:
                drawn.append(Segment(" " * (room - used - len(tail)), ground))
                drawn.append(Segment(tail + " ", mix(ground, look.palette.aside)))
            else:
                drawn.append(Segment(" " * (width - 1 - used), ground))
            size = sum(len(segment.text) for segment in segments)
            rows.append(Line(drawn, gutter=indent + 1, joint=joint if row else None, end=indent + 1 + size, art=self))
        return rows
