"""HTML to Markdown: the reading order of a page, its headings, lists, links, code and tables; nothing of its looks."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urljoin

_SILENT = frozenset(("script style noscript template svg iframe head title nav footer form dialog").split())
_BLOCKS = frozenset(
    "p div section article main header aside figure figcaption address details summary dl dd dt fieldset table".split()
)
_VOID = frozenset("br hr img input meta link area base col embed source track wbr".split())
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}


def markdown(html: str, base: str = "") -> str:
    """A page's text as Markdown; `base` is its address, for relative links. Never raises."""
    reader = _Reader(base)
    reader.feed(html)
    reader.close()
    return reader.text()


def title_of(html: str) -> str:
    """The page's title ("" if none)."""
    found = re.search(r"<title[^>]*>(.*?)</title", html, re.IGNORECASE | re.DOTALL)
    return " ".join(unescape(found[1]).split()) if found else ""


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._out: list[str] = []
        self._silent: list[str] = []
        self._lists: list[int] = []  # per open list: 0 for bullets, else the next number
        self._pre = 0
        self._quote = 0
        self._links: list[tuple[str, int]] = []
        self._row: list[str] | None = None
        self._rows = 0
        self._cell_start = 0

    def text(self) -> str:
        """What has been read."""
        text = "".join(self._out)
        text = re.sub(r"[ \t]+\n", "\n", text)
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent:
            if tag not in _VOID and tag in _SILENT:
                self._silent.append(tag)
            return
        values = {name: value or "" for name, value in attrs}
        match tag:
            case _ if tag in _SILENT:
                self._silent.append(tag)
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._gap(2)
                self._out.append("#" * int(tag[1]) + " ")
            case "br":
                self._out.append("\n")
            case "hr":
                self._gap(2)
                self._out.append("---")
                self._gap(2)
            case "ul" | "ol":
                self._gap(1 if self._lists else 2)
                self._lists.append(1 if tag == "ol" else 0)
            case "li":
                self._item()
            case "pre":
                self._gap(2)
                self._out.append("```\n")
                self._pre += 1
            case "code" | "kbd" | "samp" | "tt" if not self._pre:
                self._out.append("`")
            case "blockquote":
                self._gap(2)
                self._quote += 1
                self._out.append("> ")
            case "a":
                self._links.append((values.get("href", ""), len(self._out)))
            case "img" if values.get("alt"):
                self._out.append(f"![{values['alt']}]({urljoin(self._base, values.get('src', ''))})"[:500])
            case "tr":
                self._row = []
            case "td" | "th":
                self._cell_start = len(self._out)
            case _ if tag in _MARKS and not self._pre:
                self._out.append(_MARKS[tag])
            case _ if tag in _BLOCKS and self._row is None:
                self._gap(2)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            if tag in self._silent:
                while self._silent.pop() != tag:
                    pass
            return
        match tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._gap(2)
            case "ul" | "ol" if self._lists:
                self._lists.pop()
                self._gap(1 if self._lists else 2)
            case "pre" if self._pre:
                self._pre -= 1
                self._gap(1)
                self._out.append("```")
                self._gap(2)
            case "code" | "kbd" | "samp" | "tt" if not self._pre:
                self._out.append("`")
            case "blockquote" if self._quote:
                self._quote -= 1
                self._gap(2)
            case "a" if self._links:
                self._link(*self._links.pop())
            case "td" | "th" if self._row is not None:
                cell = "".join(self._out[self._cell_start :])
                del self._out[self._cell_start :]
                self._row.append(" ".join(cell.split()).replace("|", "\\|"))
            case "tr" if self._row is not None:
                self._end_row()
            case "table":
                self._rows = 0
                self._gap(2)
            case _ if tag in _MARKS and not self._pre:
                self._out.append(_MARKS[tag])
            case _ if tag in _BLOCKS and self._row is None:
                self._gap(2)

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._pre:
            self._out.append(data)
            return
        text = re.sub(r"\s+", " ", data)
        if text.startswith(" ") and (not self._out or self._out[-1].endswith(("\n", " "))):
            text = text[1:]
        if text:
            self._out.append(text)

    def _gap(self, lines: int) -> None:
        """End the line, with an empty one after it where `lines` is 2."""
        if self._out and self._out[-1] != "\n" * lines:
            self._out.append("\n" * lines + "> " * self._quote)

    def _item(self) -> None:
        self._gap(1)
        indent = "  " * max(0, len(self._lists) - 1)
        number = self._lists[-1] if self._lists else 0
        if number:
            self._lists[-1] += 1
        self._out.append(f"{indent}{number}. " if number else f"{indent}- ")

    def _link(self, href: str, start: int) -> None:
        text = "".join(self._out[start:]).strip()
        target = urljoin(self._base, href) if href and not href.startswith(("#", "javascript:", "data:")) else ""
        if target and text and len(target) <= 500:
            del self._out[start:]
            self._out.append(f"[{text}]({target})")

    def _end_row(self) -> None:
        assert self._row is not None
        row, self._row = self._row, None
        if not row:
            return
        self._gap(1)
        self._out.append("| " + " | ".join(row) + " |")
        self._rows += 1
        if self._rows == 1:
            self._gap(1)
            self._out.append("|" + " --- |" * len(row))
