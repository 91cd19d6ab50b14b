"""What extensions add to the screen, as data: themes, shortcuts, status items, and who they are."""

from __future__ import annotations

from typing import Literal

from panto.schema.value import Value


class Theme(Value, frozen=True):
    """Colours by meaning (`view.Meaning` names, and "band", "code") as "#rrggbb"."""

    name: str
    dark: bool
    colours: dict[str, str]


class Shortcut(Value, frozen=True):
    """A key (Textual's spelling) that runs a slash command."""

    key: str
    description: str
    command: str


class StatusItem(Value, frozen=True):
    """A short text in the status line; a higher priority is dropped later when the line is narrow."""

    key: str
    text: str
    priority: int = 0


class Contributions(Value, frozen=True):
    """Everything extensions add to the screen now."""

    themes: tuple[Theme, ...] = ()
    shortcuts: tuple[Shortcut, ...] = ()
    statuses: tuple[StatusItem, ...] = ()


class ExtensionRow(Value, frozen=True):
    """One extension: where it is, what loading cost, and what is wrong with it ("" nothing).

    What it holds now: tasks and their coroutines, functions panto keeps for it, open descriptors (responses, programs,
    wake descriptors). `spent_ms`: time in its Lua code so far; `error`: the last failure of that code.
    """

    name: str
    place: str
    state: Literal["active", "broken", "off"]
    cost_ms: float = 0.0
    problem: str = ""
    tasks: int = 0
    coroutines: int = 0
    references: int = 0
    descriptors: int = 0
    spent_ms: float = 0.0
    error: str = ""
