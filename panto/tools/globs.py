"""File name patterns: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` across directories."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=512)
def matcher(pattern: str) -> re.Pattern[str]:
    """A pattern for paths with `/`. One without a slash matches a name at any depth.

    A directory part `**` stands for any number of directories, also none.
    """
    anchored = "/" in pattern.rstrip("/")
    body = _translate(pattern.strip().removeprefix("./").lstrip("/") if anchored else pattern.strip("/ "))
    return re.compile(("" if anchored else r"(?:.*/)?") + body + r"/?", re.DOTALL)


def _translate(pattern: str) -> str:
    out: list[str] = []
    depth = at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
            continue
        if pattern.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[" + ("^" + inner[1:] if inner[:1] in "!^" else inner) + "]")
            at = end
        elif char == "{" and "}" in pattern[at:]:
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        elif char == "\\" and at + 1 < len(pattern):
            at += 1
            out.append(re.escape(pattern[at]))
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out) + ")" * depth


def matches(pattern: str, path: str) -> bool:
    """Whether a path (relative to where the pattern is anchored) matches."""
    try:
        return matcher(pattern).fullmatch(path) is not None
    except re.error:
        return pattern == path
