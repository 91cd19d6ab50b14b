"""The text being written: cursor, selection, undo, kill ring and chips, without a screen.

A chip stands for something folded (a long paste, an image) and is one character of a private range in the text, so
that it moves, is deleted and undone like any other character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from panto.schema.messages import Image
from panto.tui.graphemes import after, before

CHIP_FIRST, CHIP_LAST = 0x10FE00, 0x10FFFD
_CHIPS = re.compile(f"[{chr(CHIP_FIRST)}-{chr(CHIP_LAST)}]")
_UNSAFE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\ud800-\udfff]"
)
_WORD = re.compile(r"\w+|[^\w\s]+")
_UNDO_LIMIT = 200


@dataclass(frozen=True)
class Chip:
    """What a chip shows and what it stands for."""

    label: str
    text: str = ""
    image: Image | None = None


def clean(text: str) -> str:
    """Text fit for the draft: line breaks are \\n, escape sequences and control characters are gone, tabs stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CHIPS.sub("", _UNSAFE.sub("", text))


class Draft:
    """A text with a cursor. Positions are code points and always on a cluster's edge."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self.anchor: int | None = None
        self.chips: dict[str, Chip] = {}
        self.killed = ""
        self.version = 0
        self._undo: list[tuple[str, int]] = []
        self._redo: list[tuple[str, int]] = []
        self._run = ""  # the kind of edit that the next one may join in one undo step

    # --- reading ---------------------------------------------------------------------------------------------

    @property
    def selection(self) -> tuple[int, int] | None:
        """Start and end of what is selected, or None."""
        if self.anchor is None or self.anchor == self.cursor:
            return None
        return min(self.anchor, self.cursor), max(self.anchor, self.cursor)

    def selected(self) -> str:
        """The selected text with chips opened."""
        span = self.selection
        return self.opened(self.text[span[0] : span[1]]) if span else ""

    def opened(self, text: str | None = None) -> str:
        """The text (default: all) as it will be sent, chips replaced by what they stand for."""
        return _CHIPS.sub(lambda found: self.chips[found[0]].text, self.text if text is None else text)

    def images(self) -> tuple[Image, ...]:
        """The images of chips still in the text, in order."""
        held = (self.chips[found].image for found in _CHIPS.findall(self.text))
        return tuple(image for image in held if image is not None)

    def label(self, character: str) -> str | None:
        """What a chip's character shows, None for an ordinary one."""
        chip = self.chips.get(character)
        return chip.label if chip else None

    def line(self, at: int | None = None) -> tuple[int, int]:
        """Start and end of the line that holds a position (default: the cursor)."""
        at = self.cursor if at is None else at
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        return start, len(self.text) if end < 0 else end

    # --- changing --------------------------------------------------------------------------------------------

    def _mark(self, run: str = "") -> None:
        if not run or run != self._run:
            self._undo.append((self.text, self.cursor))
            del self._undo[:-_UNDO_LIMIT]
        self._redo.clear()
        self._run = run

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)
        self.anchor = None
        self.version += 1

    def set(self, text: str, cursor: int | None = None) -> None:
        """Replace everything (undoable)."""
        self._mark()
        self._replace(0, len(self.text), text)
        if cursor is not None:
            self.cursor = cursor

    def insert(self, text: str, *, typed: bool = False) -> None:
        """Put text in the place of the selection, or at the cursor. `typed` characters are undone word by word."""
        span = self.selection
        self._mark("type" if typed and not span and not text.isspace() else "")
        start, end = span or (self.cursor, self.cursor)
        self._replace(start, end, text)

    def fold(self, chip: Chip) -> None:
        """Insert a chip."""
        free = next((code for code in range(CHIP_FIRST, CHIP_LAST + 1) if chr(code) not in self.chips), None)
        if free is None:
            self.insert(chip.text)
            return
        self.chips[chr(free)] = chip
        self.insert(chr(free))

    def emptied(self) -> Draft:
        """A fresh draft that can still yank, and show a text of this one when it comes back."""
        made = Draft()
        made.killed, made.chips, made.version = self.killed, self.chips, self.version + 1
        return made

    def forget_chips(self) -> None:
        """Nothing but what was killed last can bring a chip back."""
        self.chips = {name: chip for name, chip in self.chips.items() if name in self.killed or name in self.text}

    def unfold(self, text: str) -> bool:
        """Open the chip before the cursor if it stands for this text: pasting twice shows it."""
        previous = self.text[self.cursor - 1 : self.cursor]
        chip = self.chips.get(previous)
        if chip is None or chip.image or chip.text != text:
            return False
        self._mark()
        self._replace(self.cursor - 1, self.cursor, text)
        return True

    def delete(self, start: int, end: int, run: str = "") -> None:
        """Delete a span."""
        if start < end:
            self._mark(run)
            self._replace(start, end, "")

    def backspace(self) -> None:
        """Delete the selection or the cluster before the cursor."""
        self.delete(*(self.selection or (self.left_of(self.cursor), self.cursor)), run="back")

    def delete_right(self) -> None:
        """Delete the selection or the cluster after the cursor."""
        self.delete(*(self.selection or (self.cursor, self.right_of(self.cursor))), run="ahead")

    def kill(self, start: int, end: int) -> None:
        """Delete a span and keep it for `yank`."""
        if start < end:
            self.killed = self.text[start:end]
            self.delete(start, end)

    def yank(self) -> None:
        """Insert what was killed last."""
        if self.killed:
            self.insert(self.killed)

    def undo(self) -> None:
        """Take the last change back."""
        self._swap(self._undo, self._redo)

    def redo(self) -> None:
        """Make the change again that was taken back."""
        self._swap(self._redo, self._undo)

    def _swap(self, source: list[tuple[str, int]], target: list[tuple[str, int]]) -> None:
        if source:
            target.append((self.text, self.cursor))
            self.text, self.cursor = source.pop()
            self.anchor = None
            self._run = ""
            self.version += 1

    # --- moving ----------------------------------------------------------------------------------------------

    def move(self, at: int, select: bool = False) -> None:
        """Put the cursor somewhere; with `select` the selection grows to there."""
        if select and self.anchor is None:
            self.anchor = self.cursor
        elif not select:
            self.anchor = None
        self.cursor = max(0, min(at, len(self.text)))
        self._run = ""

    def left_of(self, at: int) -> int:
        """One cluster to the left, over line ends."""
        start, end = self.line(at)
        return start + before(self.text[start:end], at - start) if at > start else max(0, at - 1)

    def right_of(self, at: int) -> int:
        """One cluster to the right, over line ends."""
        start, end = self.line(at)
        return start + after(self.text[start:end], at - start) if at < end else min(len(self.text), at + 1)

    def word_left(self, at: int) -> int:
        """The start of the word at or before a position."""
        starts = [found.start() for found in _WORD.finditer(self.text, 0, at)]
        return starts[-1] if starts else 0

    def word_right(self, at: int) -> int:
        """The end of the word at or after a position."""
        found = _WORD.search(self.text, at)
        return found.end() if found else len(self.text)
