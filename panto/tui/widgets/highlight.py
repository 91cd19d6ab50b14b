"""Syntax colours, in small steps: Pygments takes a third of a millisecond a line, so no frame colours a whole file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygments.lexer import Lexer

Coloured = list[list[tuple[str, str]]]
"""Lines of (text, kind); kind is a key of `Palette.syntax`, "" for plain text."""

LIMIT = 3000
"""Lines of one block that are coloured; what follows stays plain."""

PLAIN = frozenset({"text", "plain", "plaintext", "txt", "output", "console", "none", ""})
"""Languages that have no colours."""


_FOUND: set[tuple[Callable[[str], object], str]] = set()  # what was looked for once: quick from then on


@lru_cache(maxsize=256)
def lexer_named(language: str) -> Lexer | None:
    """The lexer for the word after a fence, None where there is none (then the code stays plain)."""
    word = language.strip().lower()
    if word in PLAIN or len(word) > 40:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(word, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def lexer_for_file(name: str) -> Lexer | None:
    """The lexer for a file's name, by its name alone."""
    if len(name) > 200 or "." not in name:
        return None
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def loaded(find: Callable[[str], Lexer | None], word: str) -> Generator[bool, None, Lexer | None]:
    """Finds a lexer in a thread, since the first use of a language takes a tenth of a second; yields True to wait."""
    if (find, word) not in _FOUND:
        thread = threading.Thread(target=find, args=(word,), name="panto-lexer", daemon=True)
        thread.start()
        while thread.is_alive():
            yield True
        _FOUND.add((find, word))
    return find(word)


def colour_steps(code: str, lexer: Lexer) -> Iterator[Coloured | None]:
    """Colours `code`: yields None after each line or so, at last the lines. Stop early by dropping the iterator."""
    lines: Coloured = [[]]
    steps = 0
    for _, token, value in lexer.get_tokens_unprocessed(code):
        kind = _kind(token)
        head, *rest = value.split("\n")
        if head:
            lines[-1].append((head, kind))
        for piece in rest:
            lines.append([(piece, kind)] if piece else [])
        steps += 1
        if rest or steps % 32 == 0:
            yield None
        if len(lines) > LIMIT:
            break
    yield lines


def colour(code: str, lexer: Lexer) -> Coloured:
    """All at once: for a few lines only."""
    lines: Coloured = []
    for result in colour_steps(code, lexer):
        if result is not None:
            lines = result
    return lines


@lru_cache(maxsize=1024)
def _kind(token: Any) -> str:
    from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Token

    if token in Generic.Deleted or token in Generic.Inserted:
        return "removed" if token in Generic.Deleted else "added"
    if token in Generic.Heading or token in Generic.Subheading:
        return "name"
    if token in Comment:
        return "comment"
    if token in Keyword or token is Operator.Word:
        return "keyword"
    if token in String:
        return "string"
    if token in Number:
        return "number"
    if token in Name.Function or token in Name.Class or token in Name.Decorator or token in Name.Tag:
        return "name"
    if token in Token.Literal:
        return "number"
    return ""
