"""Why an exact replacement did not find its place: counts, white space, nearest lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_CLOSE = 0.6
_LINES = 4_000
_WIDTH = 160


def explain(text: str, old: str, lines: Sequence[int], found: int) -> str:
    """A sentence for the model. `lines` are the places of the first occurrences, `found` their number."""
    if found:
        places = ", ".join(map(str, lines)) + (", …" if found > len(lines) else "")
        return f"old occurs {found} times (lines {places}): add lines around it, or set all"
    have = text.replace("\r\n", "\n").split("\n")
    want = old.replace("\r\n", "\n").split("\n")
    while want and not want[-1].strip():
        want.pop()
    while want and not want[0].strip():
        want = want[1:]
    if not want:
        return "old is blank and does not occur like this"
    return _white_space(have, want) or _partial(have, want) or _nearest(have, want)


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _white_space(have: list[str], want: list[str]) -> str:
    """The message where old occurs but for white space."""
    keys = [_squeezed(line) for line in want]
    for at in range(len(have) - len(want) + 1):
        if _squeezed(have[at]) != keys[0] or any(_squeezed(have[at + i]) != key for i, key in enumerate(keys)):
            continue
        off = next((i for i, line in enumerate(want) if have[at + i] != line), 0)
        return (
            f"old is not in the file, but line {at + 1 + off} differs only in white space: "
            f"the file has {_quote(have[at + off])}, old has {_quote(want[off])}"
        )
    return ""


def _partial(have: list[str], want: list[str]) -> str:
    """The message where old's first lines match and a later one does not."""
    best, length = -1, 0
    for at, line in enumerate(have if len(want) > 1 else []):
        if line.endswith(want[0]):
            n = 1
            while n < len(want) and at + n < len(have) and have[at + n] == want[n]:
                n += 1
            if n > length:
                best, length = at, n
    if best < 0:
        return ""
    if length == len(want):
        last = best + length
        return f"old is not in the file: it differs from lines {best + 1} to {last} in blank lines or line endings"
    there = _quote(have[best + length]) if best + length < len(have) else "the end of the file"
    return (
        f"old is not in the file: it matches from line {best + 1}, but at line {best + length + 1} "
        f"the file has {there}, old has {_quote(want[length])}"
    )


def _nearest(have: list[str], want: list[str]) -> str:
    """The message with the lines most like old's longest line."""
    key = max(want, key=len)
    near: list[tuple[float, int]] = []
    matcher = difflib.SequenceMatcher(None, b=key[:_WIDTH], autojunk=False)
    for at, line in enumerate(have[:_LINES]):
        matcher.set_seq1(line[:_WIDTH])
        if matcher.real_quick_ratio() > _CLOSE and matcher.quick_ratio() > _CLOSE:
            ratio = matcher.ratio()
            if ratio > _CLOSE:
                near.append((-ratio, at))
    if not near:
        return "old is not in the file, nor anything like it: read the file again"
    lines = "".join(f"\n{at + 1}\t{have[at][:_WIDTH]}" for _, at in sorted(near)[:3])
    return f"old is not in the file. Nearest lines:{lines}"


def _quote(line: str) -> str:
    return repr(line if len(line) <= _WIDTH else line[:_WIDTH] + "…")
