"""The difference of two texts as a DiffView with true line numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from panto.schema.view import DiffView, Hunk
from panto.tools.text import cut_line, visible

_LINES = 2_000
_SHOWN = 600
Opcode = tuple[str, int, int, int, int]


def diff(path: str, before: str, after: str, context: int = 3) -> DiffView:
    """What changed from `before` to `after`; hunks bounded to some hundred lines, the counts are of everything."""
    old, new = _split(before), _split(after)
    codes = list(_opcodes(old, new))
    added = sum(j2 - j1 for tag, _, _, j1, j2 in codes if tag != "equal")
    removed = sum(i2 - i1 for tag, i1, i2, _, _ in codes if tag != "equal")
    hunks: list[Hunk] = []
    lines = 0
    for group in _groups(codes, context):
        if lines >= _SHOWN:
            break
        hunk = _hunk(group, old, new, _SHOWN - lines)
        lines += len(hunk.lines)
        hunks.append(hunk)
    return DiffView(path=path, hunks=tuple(hunks), added=added, removed=removed)


def fact(view: DiffView) -> str:
    """The short form: "+2 −4"."""
    parts = ([f"+{view.added}"] if view.added else []) + ([f"−{view.removed}"] if view.removed else [])
    return " ".join(parts) or "no change"


def _fit(line: str) -> str:
    return visible(cut_line(line, 500))


def _split(text: str) -> list[str]:
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _opcodes(old: list[str], new: list[str]) -> Iterator[Opcode]:
    """As SequenceMatcher's, but with the equal ends cut off first: an edit in a long file costs what it changes."""
    start, stop = 0, min(len(old), len(new))
    while start < stop and old[start] == new[start]:
        start += 1
    end = 0
    while end < stop - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start:
        yield "equal", 0, start, 0, start
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    if len(middle_old) + len(middle_new) > 2 * _LINES:
        yield "replace", start, len(old) - end, start, len(new) - end
    else:
        matcher = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield tag, i1 + start, i2 + start, j1 + start, j2 + start
    if end:
        yield "equal", len(old) - end, len(old), len(new) - end, len(new)


def _groups(codes: list[Opcode], context: int) -> Iterator[list[Opcode]]:
    """Changes that stand close together, each with its context."""
    group: list[Opcode] = []
    for index, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        first, last = index == 0, index == len(codes) - 1
        if first:
            group = [(tag, max(i1, i2 - context), i2, max(j1, j2 - context), j2)]
        elif last:
            group.append((tag, i1, min(i2, i1 + context), j1, min(j2, j1 + context)))
        elif i2 - i1 > 2 * context:
            group.append((tag, i1, i1 + context, j1, j1 + context))
            yield group
            group = [(tag, i2 - context, i2, j2 - context, j2)]
        else:
            group.append((tag, i1, i2, j1, j2))
    if any(code[0] != "equal" for code in group):
        yield group


def _hunk(group: list[Opcode], old: list[str], new: list[str], limit: int) -> Hunk:
    lines: list[tuple[str, str]] = []
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            lines.extend((" ", _fit(line)) for line in old[i1:i2])
            continue
        lines.extend(("-", _fit(line)) for line in old[i1 : min(i2, i1 + limit)])
        lines.extend(("+", _fit(line)) for line in new[j1 : min(j2, j1 + limit)])
    return Hunk(old_start=group[0][1] + 1, new_start=group[0][3] + 1, lines=tuple(lines[:limit]))
