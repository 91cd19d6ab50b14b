"""Tool calls as the screen knows them: what runs, how it stands, and in which words."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Text
from panto.schema.view import CardView, DiffView, TextView, View
from panto.tui.sanitize import clean_line
from panto.tui.widgets.output import Output, Tail

State = Literal["drafted", "pending", "waiting", "running", "done", "failed", "stopped", "refused", "unknown"]
LIVE: frozenset[State] = frozenset({"drafted", "pending", "waiting", "running"})

READING = frozenset({"read", "grep", "glob", "ls"})
_VERBS = {
    "bash": "run", "bash_output": "output", "bash_kill": "kill", "subagents.run": "agents", "subagents.lua": "agents",
    "subagents.workflow": "agents", "subagents.models": "models",
}  # fmt: skip
_MATTERS = ("path", "command", "pattern", "url", "question", "job", "name", "query", "file", "prompt", "text")
_WITHOUT_OUTPUT = READING | {"write", "edit", "fetch"}


@dataclass(slots=True)
class Child:
    """A child agent a call started; `state` in the words of a card."""

    agent: str
    title: str
    state: Literal["running", "done", "failed", "stopped"] = "running"


@dataclass(slots=True, eq=False)
class Call:
    """One call. Times are UTC seconds, None while unknown; `size` bytes of arguments while they are written.

    `paused`: its turn is parked, nothing moves until a person continues it.
    """

    id: str
    name: str
    arguments: str = ""
    state: State = "pending"
    started: float | None = None
    ended: float | None = None
    held: bool = False
    outcome: ToolOutcome | None = None
    message: str = ""
    view: View | None = None
    size: int = 0
    tail: Tail = field(default_factory=Tail)
    children: list[Child] = field(default_factory=list)
    open: bool = False
    wrapped: bool = False
    paused: bool = False
    _output: Output | None = None

    @property
    def live(self) -> bool:
        """Whether it has not come to an end."""
        return self.state in LIVE

    @property
    def reading(self) -> bool:
        """Whether several of it are one row."""
        return self.name in READING

    @property
    def agents(self) -> bool:
        """Whether it shows as a card of child agents: a call of theirs, or a slash command's card of cards."""
        if self.children or self.verb == "agents":
            return True
        if not self.name.startswith("/"):
            return False
        view = self.view or (self.outcome.view if self.outcome is not None else None)
        return isinstance(view, CardView) and any(isinstance(child, CardView) for child in view.children)

    @property
    def quiet(self) -> bool:
        """Whether what it gave back is not shown while folded, unless it failed."""
        return self.name in _WITHOUT_OUTPUT

    @property
    def verb(self) -> str:
        """What the card calls it."""
        return _VERBS.get(self.name) or clean_line(self.name, 24)

    @property
    def title(self) -> str:
        """The one argument that matters."""
        if self.outcome is not None and self.outcome.title and self.name != "ask":
            return clean_line(self.outcome.title)
        said = title_of(self.arguments)
        if self.children and said.startswith("{"):  # no argument of its own matters
            return "1 child" if len(self.children) == 1 else f"{len(self.children)} children"
        return said

    @property
    def diffs(self) -> tuple[DiffView, ...]:
        """The changes it made, one for each file."""
        match self.outcome.view if self.outcome is not None else self.view:
            case DiffView() as diff:
                return (diff,)
            case CardView(children=children) if children and all(isinstance(child, DiffView) for child in children):
                return tuple(child for child in children if isinstance(child, DiffView))
        return ()

    @property
    def shown(self) -> View | None:
        """The view to draw below the head, where it is more than text."""
        view = self.outcome.view if self.outcome is not None and self.outcome.view is not None else self.view
        return None if isinstance(view, TextView) else view

    @property
    def output(self) -> Output:
        """The text it gave back."""
        if self._output is None or self.live:
            self._output = Output(self._text())
        return self._output

    @property
    def took(self) -> float | None:
        """Seconds it ran, None where unknown."""
        return None if self.started is None or self.ended is None else max(0.0, self.ended - self.started)

    def settle(self, state: State, outcome: ToolOutcome | None, message: str = "") -> None:
        """It ended."""
        self.state = state
        self.message = message
        if outcome is not None:
            self.outcome = outcome
        self.tail = self.tail if self.outcome is None else Tail()
        self._output = None

    def _text(self) -> str:
        outcome = self.outcome
        if outcome is not None:
            if isinstance(outcome.view, TextView):
                return outcome.view.text
            return "\n".join(part.text for part in outcome.parts if isinstance(part, Text))
        if isinstance(self.view, TextView):
            return self.view.text
        return ""


def title_of(arguments: str) -> str:
    """The argument that matters of a call's JSON text: a path, a command; the text itself where it is no object."""
    try:
        value = json.loads(arguments) if arguments else {}
    except ValueError:
        return clean_line(arguments, 400)
    if not isinstance(value, dict):
        return clean_line(arguments, 400)
    for key in _MATTERS:
        if isinstance(value.get(key), str) and value[key]:
            title = clean_line(value[key])
            where = value.get("path")
            return f"{title}  {clean_line(where)}" if key == "pattern" and isinstance(where, str) and where else title
    for entry in value.values():
        if isinstance(entry, str) and entry:
            return clean_line(entry, 400)
    return clean_line(arguments, 400) if value else ""
