"""The items of a transcript: what was said and what happened, each able to draw itself at any width.

An item keeps its source, never its rows: whoever shows it (widgets/layout) keeps rows for what is near the viewport.
`version` rises with every change of what is drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Literal

from rich.segment import Segment
from rich.style import Style

from panto.tui import units
from panto.tui.sanitize import clean, clean_line, sentences
from panto.tui.widgets.lines import NONE, Line, Look, Run, between_parts, spread, width_of, wrap
from panto.tui.widgets.markdown import Document
from panto.tui.widgets.output import Output

Kind = Literal["greeting", "prompt", "prose", "card", "notice", "closing", "error"]
_serials = itertools.count(1)
_BOLD = Style(bold=True)
_ITALIC = Style(italic=True)


class Item:
    """One item. `kind` decides the blank row before it; `turn` it belongs to ("" none); `dim`: that is superseded."""

    kind: Kind = "notice"
    can_open = False

    def __init__(self, turn: str = "") -> None:
        self.serial = next(_serials)
        self.turn = turn
        self.version = 0
        self.dim = False
        self.open = False

    def touch(self) -> None:
        """What is drawn changed."""
        self.version += 1

    def lines(self, look: Look) -> list[Line]:
        """The rows at this width."""
        raise NotImplementedError

    def estimate(self, look: Look) -> int:
        """About how many rows, without drawing."""
        return 1

    @property
    def moves(self) -> bool:
        """Whether it holds a spinner or a running clock."""
        return False

    def toggle(self) -> bool:
        """Opens or folds it; whether it can."""
        if self.can_open:
            self.open = not self.open
            self.touch()
        return self.can_open

    def source(self) -> str:
        """The text as it came: for copying and searching."""
        return ""

    def copy(self) -> str:
        """What the copying key takes."""
        return self.source()

    def pager(self) -> str:
        """Everything there is of it, safe to draw."""
        return clean(self.source()[:4_000_000])

    def release(self) -> None:
        """Forgets what can be made again from the source: nobody looks."""


def rows_of(text: str, width: int) -> int:
    """About how many rows `text` wraps to."""
    size = len(text)
    return max(1, size // max(1, width) + min(text.count("\n"), size) + 1) if size else 0


class GreetingItem(Item):
    """The lines of a fresh session; the first word of the first line is its name."""

    kind: Kind = "greeting"

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__()
        self._lines = [clean(line).replace("\n", " ") for line in lines]

    def lines(self, look: Look) -> list[Line]:
        out: list[Line] = []
        for index, text in enumerate(self._lines):
            style = look.palette.aside
            for row in between_parts(text.strip(), look.width - 4):
                runs: list[Run] = [(row, style)]
                if index == 0 and not out:
                    name, gap, rest = row.partition("   ")
                    runs = [(name, _BOLD), (gap + rest, style)]
                out += _paragraph(runs, look.width - 4)
        return out

    def estimate(self, look: Look) -> int:
        return len(self._lines)

    def source(self) -> str:
        return "\n".join(self._lines)


class PromptItem(Item):
    """What a person (or program, or extension) said, on a faint band."""

    kind: Kind = "prompt"
    _FOLDED = 12

    def __init__(self, turn: str, text: str, images: Iterable[str] = (), source: str = "person") -> None:
        super().__init__(turn)
        self._text = text
        self._images = [f"[{clean_line(name, 40) or 'image'}]" for name in images]
        self._by = "" if source in ("person", "command") else source
        self.can_open = text.count("\n") >= self._FOLDED or len(text) > 1500

    @property
    def first_line(self) -> str:
        """What stands in row 1 when the prompt itself has scrolled away."""
        return clean_line(self._text.strip()[:400] or " ".join(self._images), 200)

    def lines(self, look: Look) -> list[Line]:
        palette = look.palette
        text = clean(self._text.strip("\n"))
        paragraphs = text.split("\n", 400) if text else []
        rows: list[Line] = []
        by = f"from {'an' if self._by[:1] in 'aeiou' else 'a'} {self._by}" if self._by else ""
        for paragraph in paragraphs:
            for segments, joint in wrap([(paragraph, palette.text)], look.body):
                rows.append(Line([Segment("  "), *segments], ground=palette.band, gutter=2, joint=joint))
            if not self.open and len(rows) > self._FOLDED:
                break
        if self._images:
            chips = Segment(" ".join(self._images), palette.accent)
            rows.append(Line([Segment("  "), chips], ground=palette.band, gutter=2))
        if not self.open and self.can_open and len(rows) > self._FOLDED - 1:
            rows = rows[: self._FOLDED - 2]
            hidden = units.plural(max(1, text.count("\n") + 1 - len(rows)), "more line")
            note = Segment(f"  {look.glyphs.ellipsis} {hidden}", palette.aside)
            rows.append(Line([note], ground=palette.band, gutter=2, target="fold"))
        rows = rows or [Line([Segment("  ")], ground=palette.band, gutter=2)]
        first = rows[0]
        head: list[Run] = [(look.glyphs.prompt, palette.accent + _BOLD), (" ", NONE)]
        head += [(segment.text, segment.style or NONE) for segment in first.segments[1:]]
        by = "taken back" if self.dim else by
        segments = spread(head, [(by, palette.aside)] if by else [], look.right)
        rows[0] = Line(segments, ground=palette.band, gutter=2, target=first.target)
        return rows

    def estimate(self, look: Look) -> int:
        return min(rows_of(self._text[:3000], look.body), 400 if self.open else self._FOLDED)

    def source(self) -> str:
        return self._text


class ProseItem(Item):
    """Markdown of the model, perhaps still coming."""

    kind: Kind = "prose"

    def __init__(self, turn: str, text: str = "", streaming: bool = False) -> None:
        super().__init__(turn)
        self.streaming = streaming
        self._text = text
        self._document: Document | None = Document(text, finished=False) if streaming else None

    def append(self, text: str) -> None:
        """More of it; nothing is parsed before the next frame."""
        if self._document is not None:
            self._document.append(text)
        self.touch()

    def finish(self, text: str | None = None) -> None:
        """It is complete; `text`, where given, is what counts."""
        document = self._document
        if document is not None and (text is None or text == document.text):
            document.finish()
            self._text = document.text
        elif text is not None:
            self._document = None
            self._text = text
        self.streaming = False
        self.touch()

    def lines(self, look: Look) -> list[Line]:
        if self._document is None:
            self._document = Document(self._text)
        return self._document.lines(look)

    def release(self) -> None:
        if not self.streaming:
            self._document = None

    def estimate(self, look: Look) -> int:
        text = self.source()
        return max(1, len(text) // max(1, look.body) + text.count("\n") + 1) if text else 0

    def source(self) -> str:
        return self._document.text if self.streaming and self._document is not None else self._text


class ReasoningItem(Item):
    """What the model thought: one quiet line, live while it comes; opened, all of it."""

    kind: Kind = "card"
    can_open = True

    def __init__(self, turn: str, text: str = "", started: float | None = None, streaming: bool = False) -> None:
        super().__init__(turn)
        self._pieces = [text] if text else []
        self.started = started
        self.ended: float | None = None
        self.streaming = streaming

    def append(self, text: str) -> None:
        """More of it."""
        self._pieces.append(text)
        self.touch()

    def finish(self, text: str | None, now: float | None) -> None:
        """It is complete."""
        if text is not None:
            self._pieces = [text]
        if self.streaming:
            self.ended = now
        self.streaming = False
        self.touch()

    @property
    def moves(self) -> bool:
        return self.streaming

    def lines(self, look: Look) -> list[Line]:
        aside = look.palette.aside
        text = self.source()
        took = None
        if self.started is not None:
            took = (look.now if self.streaming else self.ended or self.started) - self.started
        fact = units.seconds(took, whole=self.streaming) if took is not None and took >= 1 else ""
        excerpt = clean_line(text[-600:].rstrip().rpartition("\n")[2] if self.streaming else text[:600])
        glyph: Run = (look.spinner, look.palette.accent) if self.streaming else (" ", NONE)
        if self.open and not self.streaming:
            glyph, excerpt = (look.glyphs.open, aside), ""
        runs: list[Run] = [glyph, (" think  ", aside), (excerpt, aside + _ITALIC)]
        head = Line(spread(runs, [(fact, aside)] if fact else [], look.right, look.glyphs.ellipsis), target="fold")
        if not self.open:
            return [head]
        bar = Segment(look.glyphs.bar + "    ", aside)
        rows = [head]
        for paragraph in clean(text.strip("\n")).split("\n", 2000):
            for segments, joint in wrap([(paragraph, aside)], look.body - 3):
                rows.append(Line([bar, *segments], gutter=5, joint=joint))
        return rows

    def estimate(self, look: Look) -> int:
        return 1 + (rows_of(self.source(), look.body - 3) if self.open else 0)

    def source(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""


class NoticeItem(Item):
    """Something a person should know, in one line or a few; `detail`, where there is some, opens."""

    kind: Kind = "notice"

    def __init__(self, turn: str, text: str, level: str = "info", hint: str = "", detail: str = "") -> None:
        super().__init__(turn)
        self.text = text
        self.level = level
        self.hint = hint
        self.detail = detail
        self.can_open = bool(detail)
        self.last = True  # nothing after it opens

    def lines(self, look: Look) -> list[Line]:
        palette, glyphs = look.palette, look.glyphs
        mark, style = (" ", NONE), palette.aside
        if self.level == "attention":
            mark, style = (glyphs.asks, palette.attention), palette.text
        elif self.level == "stopped":
            mark = (glyphs.stopped, palette.attention)
        elif self.level == "wrong":
            mark, style = (glyphs.failed, palette.wrong), palette.text
        said = clean(self.text).strip("\n").split("\n")[:200]
        rows = [row for text in said[:-1] for row in _paragraph([(text, style)], look.body)]
        runs: list[Run] = [(said[-1], style)]
        opens = f"   {glyphs.dot} {'Ctrl+O opens' if self.last else 'click opens'}"
        more = (clean_line(self.hint) + (opens if self.detail and not self.open else "")).strip()
        if more and width_of(said[-1]) + 3 + width_of(more) <= look.body:
            runs, more = [*runs, ("   " + more, palette.aside)], ""
        rows += _paragraph(runs, look.body) + _parts(more, look.body, palette.aside)
        first = rows[0]
        segments = [Segment(*mark), Segment(" "), *first.segments[1:]]
        rows[0] = Line(segments, gutter=2, joint=None, target="fold" if self.detail else "")
        if self.open:
            rows += _barred(self.detail, look)
        return rows

    def estimate(self, look: Look) -> int:
        return rows_of(self.text, look.body) + (rows_of(self.detail, look.body) if self.open else 0)

    def source(self) -> str:
        return "\n".join(part for part in (self.text, self.hint, self.detail) if part)


class ErrorItem(Item):
    """What went wrong, and below it what to do next."""

    kind: Kind = "error"

    def __init__(self, turn: str, text: str, fact: str = "", time: str = "", hint: str = "") -> None:
        super().__init__(turn)
        self.text = text
        self.fact = fact
        self.time = time
        self.hint = hint

    def lines(self, look: Look) -> list[Line]:
        palette = look.palette
        text, aside = sentences(self.text), palette.aside
        mark: list[Run] = [(look.glyphs.failed, palette.wrong), (" ", NONE)]
        room = look.body - len(self.time) - 2
        rows = wrap([(text, palette.text), ("   " + self.fact if self.fact else "", aside)], room)
        first = spread(
            [*mark, *((s.text, s.style or NONE) for s in rows[0][0])],
            [(self.time, aside)] if self.time else [],
            look.right,
        )
        lines = [Line(first, gutter=2)]
        lines += [Line([Segment("  "), *segments], gutter=2, joint=joint) for segments, joint in rows[1:]]
        if self.hint:
            lines += _parts(clean(self.hint), look.body, aside)
        return lines

    def estimate(self, look: Look) -> int:
        return 2

    def source(self) -> str:
        return f"{self.text}\n{self.hint}" if self.hint else self.text


class ClosingItem(Item):
    """A turn's last line: how it ended, its time, tokens and cost."""

    kind: Kind = "closing"

    def __init__(self, turn: str, facts: Iterable[str], ended: str = "") -> None:
        super().__init__(turn)
        self._facts = [fact for fact in facts if fact]
        self._ended = ended

    def lines(self, look: Look) -> list[Line]:
        aside = look.palette.aside
        kept = self._facts
        while len(kept) > 1 and sum(width_of(fact) + 3 for fact in kept) + width_of(self._ended) > look.right:
            kept = kept[1:]  # the cost is the last to go
        facts = f" {look.glyphs.dot} ".join(kept)
        left: list[Run] = []
        if self._ended:
            left = [(look.glyphs.stopped, look.palette.attention), (" " + self._ended, aside)]
        return [Line(spread(left, [(facts, aside)], look.right, look.glyphs.ellipsis), gutter=2 if self._ended else 0)]

    def source(self) -> str:
        return " · ".join(([self._ended] if self._ended else []) + self._facts)


def _paragraph(runs: list[Run], width: int) -> list[Line]:
    rows = wrap(runs, max(8, width))
    return [Line([Segment("  "), *segments], gutter=2, joint=joint) for segments, joint in rows]


def _parts(text: str, width: int, style: Style) -> list[Line]:
    """Ways out, three blanks between them, never broken inside one that fits."""
    return [line for row in between_parts(text, width) for line in _paragraph([(row, style)], width)]


def _barred(text: str, look: Look, limit: int = 200) -> list[Line]:
    bar = Segment(look.glyphs.bar + "    ", look.palette.aside)
    rows = []
    for line in Output(text).head(limit):
        for segments, joint in wrap([(line, look.palette.text)], look.body - 3):
            rows.append(Line([bar, *segments], gutter=5, joint=joint))
    return rows
