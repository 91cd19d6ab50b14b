"""How many lines of each file differ from what they were before the session, as its edits tell: a fold of diffs.

A file is kept as what is known of it: runs of lines nobody touched, and between them what was taken out and put in.
Edits of the same place add up to their sum: what was put in and taken out again never counts, and a line that is back
as it was counts no more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher

from panto.schema.view import DiffView, Hunk

WHOLE = 1 << 40
"""Lines in a file of which only a part is known."""
COMPARED = 400
"""Lines of one place that are compared with what stood there."""


@dataclass(slots=True)
class _Part:
    """`kept` untouched lines; then `out` stood here before the session, and `put` stands here now."""

    kept: int
    out: list[str] = field(default_factory=list)
    put: list[str] = field(default_factory=list)


class FileChanges:
    """One file. Diffs that do not fit what is known (or were cut short) are only added up."""

    def __init__(self) -> None:
        self._parts = [_Part(WHOLE)]
        self._extra = (0, 0)

    def apply(self, diff: DiffView) -> None:
        """One more edit of it."""
        lines = [line for hunk in diff.hunks for line in hunk.lines]
        whole = sum(kind == "+" for kind, _ in lines), sum(kind == "-" for kind, _ in lines)
        before = [_Part(part.kept, list(part.out), list(part.put)) for part in self._parts]
        if whole != (diff.added, diff.removed) or not all(self._hunk(hunk) for hunk in diff.hunks):
            self._parts = before
            self._extra = (self._extra[0] + diff.added, self._extra[1] + diff.removed)

    @property
    def lines(self) -> tuple[int, int]:
        """Lines that were added and removed, all in all."""
        added, removed = self._extra
        for part in self._parts:
            same = _same(part.out, part.put)
            added, removed = added + len(part.put) - same, removed + len(part.out) - same
        return added, removed

    def _hunk(self, hunk: Hunk) -> bool:
        """Hunks come in order of the lines as they then are; False where one does not fit."""
        at = max(0, hunk.new_start - 1)
        for kind, text in hunk.lines:
            if kind == "-":
                if not self._take(at, text):
                    return False
            else:
                if kind == "+":
                    self._put(at, text)
                at += 1
        return True

    def _find(self, at: int) -> tuple[int, int]:
        """The part that line `at` (from 0) lies in, and its place there: up to `kept` among the kept ones."""
        for number, part in enumerate(self._parts):
            size = part.kept + len(part.put)
            if at < size or number == len(self._parts) - 1:
                return number, at
            at -= size
        raise AssertionError("a file has parts")

    def _split(self, at: int) -> tuple[_Part, int]:
        """A place between two lines, as a part and a place in its `put`."""
        number, place = self._find(at)
        part = self._parts[number]
        if place == 0 and number > 0:  # right behind what the part before put there
            part = self._parts[number - 1]
            return part, len(part.put)
        if place < part.kept:
            self._parts.insert(number, _Part(place))
            part.kept -= place
            return self._parts[number], 0
        return part, place - part.kept

    def _put(self, at: int, text: str) -> None:
        part, place = self._split(at)
        part.put.insert(place, text)

    def _take(self, at: int, text: str) -> bool:
        number, place = self._find(at)
        part = self._parts[number]
        if place >= part.kept:
            place -= part.kept
            if place >= len(part.put) or part.put[place] != text:
                return False
            del part.put[place]
            return True
        before, _ = self._split(at)
        after = self._parts[self._parts.index(before) + 1]
        after.kept -= 1
        before.out.append(text)
        if after.kept == 0:  # nothing untouched lies between the two any more
            before.out += after.out
            before.put += after.put
            self._parts.remove(after)
        return True


def _same(out: list[str], put: list[str]) -> int:
    """Lines of one place that are as they were."""
    if not out or not put or len(out) + len(put) > COMPARED:
        return 0
    return sum(block.size for block in SequenceMatcher(None, out, put, autojunk=False).get_matching_blocks())


class Changes:
    """The files of a session. `total`: each file that differs, with the lines added and removed."""

    def __init__(self) -> None:
        self._edits: list[tuple[str, DiffView]] = []
        self._files: dict[str, FileChanges] = {}
        self.total: dict[str, tuple[int, int]] = {}

    def add(self, turn: str, diff: DiffView) -> None:
        """An edit that was made in a turn."""
        self._edits.append((turn, diff))
        self._apply(diff)

    def without(self, turn: str) -> None:
        """A turn was taken back: its edits count no more."""
        kept = [one for one in self._edits if one[0] != turn]
        if len(kept) < len(self._edits):
            self._edits = kept
            self._files, self.total = {}, {}
            for _, diff in kept:
                self._apply(diff)

    def _apply(self, diff: DiffView) -> None:
        file = self._files.setdefault(diff.path, FileChanges())
        file.apply(diff)
        self.total[diff.path] = file.lines
        if file.lines == (0, 0):
            del self.total[diff.path]
