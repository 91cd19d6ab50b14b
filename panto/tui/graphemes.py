"""What a person takes for one character: clusters, their widths in cells, and the edges between them."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import split_graphemes

Cluster = tuple[int, int, int]
"""Start and end (code points) and width (cells)."""

_FIRST_FLAG, _LAST_FLAG = "\U0001f1e6", "\U0001f1ff"


@lru_cache(maxsize=512)
def clusters(line: str) -> tuple[Cluster, ...]:
    """The clusters of a line without line breaks, in order; two regional indicators are one flag."""
    if line.isascii():
        return tuple((at, at + 1, 1) for at in range(len(line)))
    if "\t" in line:  # has no width, and would be taken for a part of what stands before it
        at = line.index("\t")
        rest = ((start + at + 1, end + at + 1, width) for start, end, width in clusters(line[at + 1 :]))
        return (*clusters(line[:at]), (at, at + 1, 0), *rest)
    joined: list[Cluster] = []
    half_flag = False
    for start, end, width in split_graphemes(line)[0]:
        is_flag = _FIRST_FLAG <= line[start] <= _LAST_FLAG
        if joined and (half_flag and is_flag or not width):
            first, _, before = joined[-1]
            joined[-1] = (first, end, before + width)
            half_flag = half_flag and not is_flag
        else:
            joined.append((start, end, width))
            half_flag = is_flag
    return tuple(joined)


def before(line: str, at: int) -> int:
    """The start of the cluster that ends at or holds `at` - 1 (0 at the beginning)."""
    last = 0
    for start, _, _ in clusters(line):
        if start >= at:
            break
        last = start
    return last


def after(line: str, at: int) -> int:
    """The end of the cluster that begins at or holds `at`."""
    for _, end, _ in clusters(line):
        if end > at:
            return end
    return len(line)
