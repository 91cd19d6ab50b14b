"""Reasoning that a server leaves in the text, between <think> tags at the start of a reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

OPEN, CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Feed it the text of a reply in pieces cut anywhere; it tells reasoning from text.

    `opened`: the template wrote the opening tag itself, so that the reply begins in the middle of a thought.
    Once `plain` is true, everything to come is text.
    """

    def __init__(self, opened: bool = False) -> None:
        self.plain = False
        self._state: Literal["start", "inside", "after"] = "inside" if opened else "start"
        self._held = ""
        self._begun = False  # inside, and past the line ends after the tag

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """(is reasoning, text) pieces, none empty."""
        if self.plain:
            yield False, text
            return
        held, self._held = self._held + text, ""
        if self._state == "start":
            bare = held.lstrip()
            if len(bare) < len(OPEN) and OPEN.startswith(bare):
                self._held = held
                return
            if not bare.startswith(OPEN):
                self.plain = True
                yield False, held
                return
            self._state, held = "inside", bare[len(OPEN) :]
        if self._state == "inside":
            if not self._begun:
                held = held.lstrip("\n")
                self._begun = bool(held)
            thought, tag, held = held.partition(CLOSE)
            if not tag:
                keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if thought.endswith(CLOSE[:n])), 0)
                self._held = thought[len(thought) - keep :] if keep else ""
                thought = thought[: len(thought) - keep]
            else:
                self._state = "after"
            if thought:
                yield True, thought
        if self._state == "after" and (rest := held.lstrip("\n")):
            self.plain = True
            yield False, rest

    def end(self) -> Iterator[tuple[bool, str]]:
        """What was held back, as what it turned out to be."""
        if self._held:
            yield self._state == "inside", self._held
            self._held = ""
