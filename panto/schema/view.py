"""Screen contributions as data: what a tool or extension wants shown. The screen gets values only."""

from __future__ import annotations

from typing import Literal

from panto.schema.value import Value

Meaning = Literal["text", "aside", "accent", "attention", "wrong", "added"]


class TextView(Value, frozen=True, tag="text"):
    """Lines of plain text; `tail`: the end matters more than the head (command output)."""

    text: str
    meaning: Meaning = "text"
    tail: bool = False


class ListView(Value, frozen=True, tag="list"):
    """One item a line."""

    items: tuple[str, ...]


class TableView(Value, frozen=True, tag="table"):
    """Columns and rows of text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Hunk(Value, frozen=True):
    """Lines that changed, with context. `kind` per line: " " kept, "-" removed, "+" added; numbers count from 1."""

    old_start: int
    new_start: int
    lines: tuple[tuple[str, str], ...]


class DiffView(Value, frozen=True, tag="diff"):
    """One file's change. `path` as the person would write it."""

    path: str
    hunks: tuple[Hunk, ...]
    added: int
    removed: int


class ProgressView(Value, frozen=True, tag="progress"):
    """A task under way. `share` 0..1, or None when unknown."""

    label: str
    share: float | None = None


class CardView(Value, frozen=True, tag="card"):
    """A titled line with a fact at its right end and views below it."""

    title: str
    fact: str = ""
    state: Literal["running", "done", "failed", "stopped", "waiting"] = "done"
    children: tuple[View, ...] = ()


View = TextView | ListView | TableView | DiffView | ProgressView | CardView
