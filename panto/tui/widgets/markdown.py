"""Markdown as it streams: what is finished is drawn once, only the unfinished tail is parsed again, once a frame.

Everything before the last top-level block of the tail is final. An open fence is not parsed at all: its lines are
taken as they come until the closing one. The result equals a parse of the whole text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from panto.tui.sanitize import clean, untab
from panto.tui.widgets.blocks import Mapper
from panto.tui.widgets.code import CodeBlock
from panto.tui.widgets.lines import BLANK, Line, Look

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[^\n]*\n?")
_ONLY_MARKUP = re.compile(r"[\s\-=*_`~#>|+.:0-9\[\]]{0,12}\Z")
_DEFINES = re.compile(r"(?m)^ {0,3}\[[^\]\n]+\]:")
_TAIL_LIMIT = 60_000
"""Characters of one unfinished block beyond which it is cut: no frame may parse without bound."""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


class _Block:
    """A finished or growing top-level block that is not an open fence: its tokens, and its lines for one look."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.codes: dict[int, CodeBlock] = {}
        self._key: object = None
        self._lines: list[Line] = []

    def lines(self, look: Look) -> list[Line]:
        key = (look.body, look.palette, look.glyphs, sum(code.version for code in self.codes.values()))
        if key != self._key:
            self._lines = Mapper(look, self.codes).block(self.tokens)
            self._key = key[:3] + (sum(code.version for code in self.codes.values()),)
        return self._lines


class _Fence:
    """A top-level fence, open or closed."""

    def __init__(self, code: CodeBlock, indent: int, marker: str) -> None:
        self.code = code
        self.indent = indent
        self.closing = re.compile(rf" {{0,3}}{re.escape(marker[0])}{{{len(marker)},}}[ \t]*\Z")

    def lines(self, look: Look) -> list[Line]:
        return self.code.lines(look, 2, look.right - 2)

    def strip(self, line: str) -> str:
        return line[len(line[: self.indent]) - len(line[: self.indent].lstrip(" ")) :]


class Document:
    """A Markdown text that may still grow. `lines` is cheap when nothing changed."""

    def __init__(self, text: str = "", finished: bool = True) -> None:
        self._pieces: list[str] = []
        self._pending: list[str] = []
        self._tail = ""
        self._done: list[_Block | _Fence] = []
        self._growing: list[_Block] = []
        self._fence: _Fence | None = None
        self._parsed = ""  # the tail as parsed last, where it is one block shown whole
        self._env: dict[str, object] = {}
        self._finished = False
        self._lines: list[Line] = []
        self._fixed = 0  # blocks of _done whose lines stand in _lines
        self._fixed_rows = 0
        self._key: object = None
        if text:
            self.append(text)
        if finished:
            self.finish()

    @property
    def text(self) -> str:
        """The source, cleaned of what must not reach a terminal only when drawn."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def append(self, text: str) -> None:
        """More text; it is looked at when lines are asked for."""
        self._pieces.append(text)
        self._pending.append(text)

    def finish(self) -> None:
        """No more text comes."""
        self._finished = True
        if self._fixed or self._done:  # a definition may come after what refers to it
            if _DEFINES.search(self.text):
                text = self.text
                self._pending, self._tail, self._done, self._growing = [text], "", [], []
                self._fence, self._key = None, None
                _parser().parse(clean(text), self._env)

    def lines(self, look: Look) -> list[Line]:
        """The document's rows, body indented to column 3, blocks parted by a blank row."""
        if self._pending or (self._finished and (self._tail or self._growing or self._fence)):
            self._advance()
        key = (look.body, look.right, look.palette, look.glyphs, CodeBlock.coloured)
        if key != self._key:
            self._key = key
            self._lines, self._fixed, self._fixed_rows = [], 0, 0
        del self._lines[self._fixed_rows :]
        out = self._lines
        for block in self._done[self._fixed :]:
            self._put(out, block.lines(look))
        self._fixed, self._fixed_rows = len(self._done), len(out)
        for growing in self._growing:
            self._put(out, growing.lines(look))
        if self._fence is not None:
            self._put(out, self._fence.lines(look))
        return out

    @staticmethod
    def _put(out: list[Line], lines: list[Line]) -> None:
        if lines:
            if out:
                out.append(BLANK)
            out.extend(lines)

    # ---------------------------------------------------------------- reading

    def _advance(self) -> None:
        text = "".join(self._pending)
        self._pending.clear()
        if text.endswith("\r") and not self._finished:  # its line feed may be next
            self._pending.append("\r")
            text = text[:-1]
        self._tail = untab(self._tail + clean(text, keep_tabs=True))
        while self._fence is not None:
            if not self._feed_fence(self._fence):
                return
        self._parse()

    def _parse(self) -> None:
        tail = self._tail
        if self._longer_paragraph(tail):
            return
        shown = tail if self._finished else self._without_doubt(tail)
        groups = _groups(_parser().parse(shown, self._trial()))
        self._growing = [_Block(group) for group in groups if group]
        self._parsed = ""
        if not groups:
            if self._finished:
                self._tail = ""
            return
        if self._finished:
            self._done.extend(_fence_or_block(block) for block in self._growing)
            self._growing, self._tail = [], ""
            return
        keep = 1
        line = (groups[-1][0].map or [0])[0]
        if len(groups) > 1 and line >= shown.count("\n"):  # begun by a line that may yet turn out to be no beginning
            keep = 2
            line = (groups[-2][0].map or [0])[0]
        start = _line_start(tail, line)
        if start:
            self._done.extend(_fence_or_block(block) for block in self._growing[:-keep])
            self._growing = self._growing[-keep:]
            if "]:" in tail[:start]:
                _parser().parse(tail[:start], self._env)  # for its definitions, now that they are certain
            self._tail = tail = tail[start:]
        if shown.endswith(tail):
            self._parsed = tail
        self._open_fence(groups[-1], tail)
        if len(self._tail) > _TAIL_LIMIT and self._fence is None:
            self._done.extend(self._growing)
            self._growing, self._tail = [], ""

    def _trial(self) -> dict[str, object]:
        """The definitions that are certain, to be added to by a parse that is not."""
        known = self._env.get("references")
        return {"references": dict(known)} if isinstance(known, dict) else {}

    def _longer_paragraph(self, tail: str) -> bool:
        """Whether the tail is but a paragraph whose last line grew: then only its inline text is parsed again.

        What kind of block a line begins is settled by its first characters; these have been seen and were no markup.
        """
        before = self._parsed
        if not before or self._finished or len(self._growing) != 1 or not tail.startswith(before):
            return False
        tokens = self._growing[0].tokens
        added = tail[len(before) :]
        line = before[before.rfind("\n") + 1 :]
        if (
            tokens[0].type != "paragraph_open" or "\n" in added or "|" in tail or _ONLY_MARKUP.match(line)
            or before.lstrip()[:1] in "<[" or line.lstrip()[:1] == "<"
        ):  # fmt: skip
            return False
        inline = _parser().parseInline(tail.strip(), self._trial())[0]
        self._growing = [_Block([tokens[0], inline, tokens[-1]])]
        self._parsed = tail
        return True

    def _without_doubt(self, tail: str) -> str:
        """The tail without a last line that may yet turn out to be markup of another kind (a rule, a table's head)."""
        edge = tail.rfind("\n") + 1
        last = tail[edge:]
        if _ONLY_MARKUP.match(last):
            tail = tail[:edge]
        start = tail.rfind("\n\n") + 2 if "\n\n" in tail else 0
        block = tail[start:].lstrip("\n")
        if block.startswith("|") and block.count("\n") < 2:
            return tail[: len(tail) - len(block)]
        return tail

    def _open_fence(self, group: list[Token], tail: str) -> None:
        token = group[0]
        if token.type != "fence" or len(group) != 1:
            return
        match = _FENCE.match(tail)
        if match is None or not match.group(0).endswith("\n"):
            return
        fence = _Fence(CodeBlock(token.info.strip()), len(match.group(1)), match.group(2))
        if any(fence.closing.match(line) for line in tail[match.end() :].split("\n")[:-1]):
            return
        self._growing = []
        self._fence = fence
        self._tail = tail[match.end() :]
        self._feed_fence(fence)

    def _feed_fence(self, fence: _Fence) -> bool:
        """Takes the tail's lines into the open fence; whether it closed, so that what follows is to be parsed."""
        *whole, rest = self._tail.split("\n")
        for index, line in enumerate(whole):
            if fence.closing.match(line):
                return self._close_fence(fence, "\n".join(whole[index + 1 :] + [rest]))
            fence.code.add(fence.strip(line))
        self._tail = rest
        if self._finished:
            if rest.strip() and not fence.closing.match(rest):
                fence.code.add(fence.strip(rest))
            return self._close_fence(fence, "")
        fence.code.partial = "" if _ONLY_MARKUP.match(rest) else fence.strip(rest)
        return False

    def _close_fence(self, fence: _Fence, rest: str) -> bool:
        fence.code.partial = ""
        fence.code.close()
        self._done.append(fence)
        self._fence = None
        self._tail = rest
        return True


def _fence_or_block(block: _Block) -> _Block | _Fence:
    token = block.tokens[0]
    if token.type != "fence" or len(block.tokens) != 1:
        return block
    code = CodeBlock(token.info.strip())
    body = token.content
    for line in body[:-1].split("\n") if body.endswith("\n") else body.split("\n") if body else []:
        code.add(line)
    code.close()
    return _Fence(code, 0, token.markup or "```")


def _groups(tokens: list[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups


def _line_start(text: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
    return at
