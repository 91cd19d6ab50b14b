"""The seam: what a tool is, and what it may know of its surroundings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from panto.schema.bodies import ToolOutcome
from panto.schema.codec import Digest
from panto.schema.events import FileChange
from panto.schema.messages import ToolSpec
from panto.schema.view import View

Progress = Callable[[str, View | None], None]
"""Called with more output text and/or a whole view; cheap, never blocks, may be called from the owner loop only."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """A call's surroundings as plain values.

    `cwd` absolute. `fresh`: real path -> digest of the content this session last read or wrote there (a fold of
    the ledger's file changes). `cancelled` is set on Escape: a tool that waits watches it, and answers by raising
    ToolFailure(cls="cancelled", effects=..., outcome=partial) before `deadline()` (monotonic seconds; None while not
    cancelled); whoever has not answered by then is recorded as unknown and its task is cancelled. `env_drop`: names of
    variables that hold credentials, `env_pass` those of them let through all the same. `mask`: secret values that must
    not appear in results. `spool`: a directory for full outputs. `raw`: the arguments as the model wrote them.
    `network(command)`: whether rules let a command reach the network (None: they do not say).
    """

    session: str
    run: str
    call: str
    effect: str
    agent: str
    cwd: str
    progress: Progress
    fresh: Mapping[str, Digest | None]
    spool: str
    raw: str = ""
    env_drop: frozenset[str] = frozenset()
    env_pass: frozenset[str] = frozenset()
    mask: tuple[str, ...] = ()
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    deadline: Callable[[], float | None] = lambda: None
    network: Callable[[str], bool | None] = lambda command: None


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool gives back: the outcome, the files it touched, and bodies (content before a change) to store."""

    outcome: ToolOutcome
    files: tuple[FileChange, ...] = ()
    bodies: tuple[bytes, ...] = field(default=())


Approval = Literal["read", "edit", "command"]


class Tool(Protocol):
    """One tool. Stateless: everything about a call is in its context.

    `mutates` (true when in doubt): a crash leaves its outcome unknown. `replay` (false when in doubt): a lost run
    may be repeated. `external`: the call waits for an outside answer instead of running.
    """

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def mutates(self) -> bool: ...
    @property
    def replay(self) -> bool: ...
    @property
    def external(self) -> bool: ...
    @property
    def approval(self) -> Approval: ...

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        """Real paths the call would touch, for rules and for serialising calls on a file; () if none. Never raises."""
        ...

    def title(self, arguments: Mapping[str, object]) -> str:
        """The one argument that matters, for cards: a path, a command. Bounded, one line."""
        ...

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        """What an approval question shows: the exact diff or command. None: nothing beyond the arguments."""
        ...

    async def limits(self, arguments: Mapping[str, object], context: ToolContext) -> str:
        """What bounds the call, for a person who is asked about it: a sandbox, a time. "" nothing."""
        ...

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        """Run it. Raises ToolFailure (the model is told) or ToolStop (the run stops); see ToolContext on cancelling."""
        ...
