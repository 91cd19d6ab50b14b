"""Markdown tokens as rows: weight for headings, a bar for quotes, no fences, tables as wide as what is in them."""

from __future__ import annotations

import re

from markdown_it.common.normalize_url import normalizeLinkText
from markdown_it.token import Token
from rich.segment import Segment
from rich.style import Style

from panto.tui.sanitize import clean_line, clean_url
from panto.tui.widgets.code import CodeBlock
from panto.tui.widgets.lines import BLANK, NONE, Line, Look, Run, mix, width_of, wrap
from panto.tui.widgets.table import table

_BOLD = Style(bold=True)
_ITALIC = Style(italic=True)
_STRIKE = Style(strike=True)
_UNDER = Style(underline=True)
_URL = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]")
_LEFT = 2  # the body begins in column 3
_DEEPEST = 12  # levels of lists and quotes that are still indented


class Mapper:
    """Draws one top-level block. `codes` holds the blocks of code inside it by place: so their colours are kept."""

    def __init__(self, look: Look, codes: dict[int, CodeBlock]) -> None:
        self.look = look
        self.codes = codes
        self.out: list[Line] = []
        self.first: list[Run] = []  # what stands before the next row
        self.rest: list[Run] = []  # and before those after it

    def block(self, tokens: list[Token]) -> list[Line]:
        """The rows of a top-level block."""
        self._walk(tokens, 0, len(tokens))
        return self.out

    # ---------------------------------------------------------------- structure

    def _walk(self, tokens: list[Token], at: int, end: int, tight: bool = False) -> None:
        begun = False
        while at < end:
            token = tokens[at]
            stop = _closing(tokens, at)
            if begun and not tight and token.type != "list_item_open":
                self._blank()
            begun = True
            self._one(tokens, at, stop)
            at = stop + 1

    def _one(self, tokens: list[Token], at: int, stop: int) -> None:
        token = tokens[at]
        match token.type:
            case "paragraph_open":
                self._paragraph(tokens[at + 1], NONE)
            case "heading_open":
                self._paragraph(tokens[at + 1], self._heading(int(token.tag[1:])))
            case "bullet_list_open" | "ordered_list_open":
                self._list(tokens, at, stop)
            case "blockquote_open":
                self._quote(tokens, at, stop)
            case "fence" | "code_block":
                self._code(token, at)
            case "table_open":
                self._table(tokens, at, stop)
            case "hr":
                self._row([(self.look.glyphs.rule * 3, self.look.palette.aside)])
            case "html_block":
                for line in token.content.rstrip("\n").split("\n"):
                    self._rows([(line, self.look.palette.aside)])
            case _:
                if token.content:
                    self._rows([(token.content.replace("\n", " "), NONE)])

    def _heading(self, level: int) -> Style:
        palette = self.look.palette
        if level == 1:
            return mix(palette.accent, _BOLD)
        return _BOLD if level == 2 else mix(palette.aside, _BOLD)

    def _list(self, tokens: list[Token], at: int, stop: int) -> None:
        ordered = tokens[at].type == "ordered_list_open"
        number = int(tokens[at].attrs.get("start", 1) or 1) if ordered else 0
        level = tokens[at].level + 2
        paragraphs = [token for token in tokens[at:stop] if token.type == "paragraph_open" and token.level == level]
        loose = any(not token.hidden for token in paragraphs)
        items = []
        inner = at + 1
        while inner < stop:
            close = _closing(tokens, inner)
            items.append((inner, close))
            inner = close + 1
        field = len(str(number + len(items) - 1)) + 2 if ordered else 2
        for index, (begin, close) in enumerate(items):
            if index and loose:
                self._blank()
            mark = f"{number + index}.".rjust(field - 1) + " " if ordered else self.look.glyphs.bullet + " "
            if not ordered and _is_task(tokens, begin, close):
                mark = ""  # its box is mark enough
            self._nest(mark, self.look.palette.aside, tokens, begin, close, tight=not loose)

    def _nest(self, mark: str, style: Style, tokens: list[Token], at: int, stop: int, tight: bool) -> None:
        first, rest = self.first, self.rest
        if len(self.rest) < _DEEPEST:
            self.first = first + [(mark, style)]
            self.rest = rest + [(" " * (width_of(mark) or 4), NONE)]
        if at + 1 >= stop:
            self._row([])
        self._walk(tokens, at + 1, stop, tight)
        self.first, self.rest = rest, rest

    def _quote(self, tokens: list[Token], at: int, stop: int) -> None:
        first, rest = self.first, self.rest
        if len(self.rest) < _DEEPEST:
            bar = (self.look.glyphs.bar + " ", self.look.palette.aside)
            self.first, self.rest = first + [bar], rest + [bar]
        self._walk(tokens, at + 1, stop)
        self.first, self.rest = rest, rest

    def _code(self, token: Token, at: int) -> None:
        code = self.codes.get(at)
        if code is None:
            code = self.codes[at] = CodeBlock(token.info.strip())
            for line in token.content.removesuffix("\n").split("\n"):
                code.add(line)
            code.close()
        indent = _LEFT + sum(width_of(text) for text, _ in self.rest)
        rows = code.lines(self.look, indent, max(10, self.look.right - indent))
        for row in rows:
            head = self._take()
            if any(text.strip() for text, _ in head):
                padding = indent - _LEFT - sum(width_of(text) for text, _ in head)
                lead = [Segment(" " * _LEFT), *(Segment(*run) for run in head), Segment(" " * padding)]
                row = Line(lead + list(row.segments[1:]), gutter=row.gutter, joint=row.joint, end=row.end, art=row.art)
            self.out.append(row)

    def _table(self, tokens: list[Token], at: int, stop: int) -> None:
        head: list[list[Run]] = []
        rows: list[list[list[Run]]] = []
        aligns: list[str] = []
        current = head
        for index in range(at, stop):
            token = tokens[index]
            if token.type == "tr_open" and rows is not None and tokens[index + 1].type == "td_open":
                current = []
                rows.append(current)
            elif token.type in ("th_open", "td_open"):
                if token.type == "th_open":
                    aligns.append(str(token.attrs.get("style", "")).rpartition(":")[2])
                runs = [run for line in self._inline(tokens[index + 1], NONE) for run in line]
                current.append(runs)
        for segments in table(head, rows, aligns, self._room(), self.look):
            self._row([(segment.text, segment.style or NONE) for segment in segments])

    # ---------------------------------------------------------------- rows

    def _room(self) -> int:
        return max(8, self.look.body - sum(width_of(text) for text, _ in self.rest))

    def _take(self) -> list[Run]:
        head, self.first = self.first, self.rest
        return head

    def _blank(self) -> None:
        if not self.out:
            return
        bars = [(text, style) for text, style in self.rest]
        if any(text.strip() for text, _ in bars):
            self.out.append(Line([Segment(" " * _LEFT)] + [Segment(text, style) for text, style in bars], gutter=_LEFT))
        else:
            self.out.append(BLANK)

    def _row(self, runs: list[Run], joint: str | None = None) -> None:
        head = self._take()
        segments = [Segment(" " * _LEFT)] + [Segment(text, style) for text, style in head + runs if text]
        gutter = _LEFT + (0 if joint is None else sum(len(text) for text, _ in head))
        self.out.append(Line(segments, gutter=gutter, joint=joint))

    def _rows(self, runs: list[Run]) -> None:
        for index, (segments, joint) in enumerate(wrap(runs, self._room())):
            self._row([(segment.text, segment.style or NONE) for segment in segments], joint if index else None)

    def _paragraph(self, inline: Token, style: Style) -> None:
        for line in self._inline(inline, style):
            self._rows(line)

    # ---------------------------------------------------------------- inline

    def _inline(self, inline: Token, base: Style) -> list[list[Run]]:
        lines: list[list[Run]] = [[]]
        styles = [base]
        palette = self.look.palette
        target = ""  # of a link that no terminal opens
        for token in inline.children or ():
            style = styles[-1]
            match token.type:
                case "text":
                    _text(lines[-1], token.content, style, palette.accent)
                case "softbreak":
                    lines[-1].append((" ", style))
                case "hardbreak":
                    lines.append([])
                case "code_inline":
                    lines[-1].append((token.content, mix(style, palette.inline)))
                case "strong_open":
                    styles.append(mix(style, _BOLD))
                case "em_open":
                    styles.append(mix(style, _ITALIC))
                case "s_open":
                    styles.append(mix(style, _STRIKE))
                case "link_open":
                    href = str(token.attrs.get("href", ""))
                    styles.append(_link(style, href, palette.accent))
                    target = _written(href)
                case "link_close":
                    styles.pop()
                    if target and target not in "".join(text for text, _ in lines[-1]):
                        lines[-1].append((f" ({target})", mix(styles[-1], palette.aside)))
                case "strong_close" | "em_close" | "s_close":
                    if len(styles) > 1:
                        styles.pop()
                case "image":
                    source = str(token.attrs.get("src", ""))
                    name = token.content or _written(source) or "no name"
                    lines[-1].append((f"[image: {name}]", _link(style, source, palette.accent)))
                case _:
                    lines[-1].append((token.content, mix(style, palette.aside)))
        return lines


def _text(runs: list[Run], text: str, style: Style, accent: Style) -> None:
    if "://" not in text:
        runs.append((text, style))
        return
    at = 0
    for match in _URL.finditer(text):
        runs.append((text[at : match.start()], style))
        runs.append((match.group(0), _link(style, match.group(0), accent)))
        at = match.end()
    runs.append((text[at:], style))


def _link(style: Style, href: str, accent: Style) -> Style:
    url = clean_url(href)
    shown = mix(mix(style, accent), _UNDER)
    return shown + Style(link=url) if url else shown


def _written(href: str) -> str:
    """A target as text, where a terminal cannot open it: of a file, say."""
    return "" if clean_url(href) else clean_line(normalizeLinkText(href), 200)


def _closing(tokens: list[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += tokens[index].nesting
        if depth <= 0:
            return index
    return len(tokens) - 1


def _is_task(tokens: list[Token], begin: int, close: int) -> bool:
    """Whether a list's item begins with a box: `- [ ] todo`."""
    first = next((token for token in tokens[begin:close] if token.type == "inline"), None)
    return first is not None and first.content[:4] in ("[ ] ", "[x] ", "[X] ")
