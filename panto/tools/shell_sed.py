"""Reads sed scripts: only those that clearly neither run commands nor write files are let pass."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:\\.|[^/\\\n])*/[IM]*)"
_WHERE = re.compile(rf"{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?")
_SUBSTITUTE = r"s([^\w\s\\;{}])(?:\\.|(?!\1)[^\\\n])*\1(?:\\.|(?!\1)[^\\])*\1[gpiImM\d]*"
_SWAP = r"y([^\w\s\\;{}])(?:\\.|(?!\2)[^\\\n])*\2(?:\\.|(?!\2)[^\\])*\2"
_PLAIN = r"[pPdDgGhHxnNlqQz=]\s*\d*|[btT:]\s*\w*|[aic]\s*\\?\n?[^\n\\]*(?:\n|$)"
_COMMAND = re.compile(rf"(?:{_SUBSTITUTE}|{_SWAP}|{_PLAIN})(?=\s*(?:[;}}\n]|$)|(?<=\n))", re.DOTALL)
_FLAGS = re.compile(
    r"--(quiet|silent|regexp-extended|separate|unbuffered|null-data|zero-terminated|posix|debug|sandbox)"
)
_IN_PLACE = re.compile(r"-[nErsuz]*i.*|--in-place(=.*)?", re.DOTALL)


def harmless(words: Sequence[str]) -> bool:
    """Whether a sed with these arguments runs no command and writes no file but those it is given (with -i)."""
    scripts: list[str] = []
    rest = list(words)
    operands: list[str] = []
    while rest:
        word = rest.pop(0)
        short = re.fullmatch(r"-([nErsuz]*)(?:e(.*)|l\d*)?", word, re.DOTALL)
        if word == "--":
            operands += rest
            break
        if short and "e" in word and short[2] is not None:
            scripts.append(short[2] or (rest.pop(0) if rest else ""))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word == "--expression":
            scripts.append(rest.pop(0) if rest else "")
        elif word == "-" or not word.startswith("-"):
            operands.append(word)
        elif not short and not _FLAGS.fullmatch(word) and not _IN_PLACE.fullmatch(word):
            return False
    return all(_reads(script) for script in scripts or operands[:1])


def _reads(script: str) -> bool:
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        where = _WHERE.match(script, at)
        if where is not None:
            at = where.end()
        while at < len(script) and script[at] in " \t!":
            at += 1
        if script[at : at + 1] == "{":
            continue
        found = _COMMAND.match(script, at)
        if found is None:
            return False
        at = found.end()
    return True
