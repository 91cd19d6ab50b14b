"""The seam for whoever may block or rewrite: extensions in Lua, or nobody.

The host of extensions implements `Hooks`; a failing `tool_call` hook must fail closed (answer Block), the others
open (answer None). Each method may await; the agent waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Message
from panto.tools.tool import Progress


@dataclass(frozen=True, slots=True)
class Block:
    """The call is not run; the model is told `reason`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The call runs with these arguments (JSON text) instead."""

    arguments: str


class Hooks(Protocol):
    """What extensions may do around a turn. `agent` is the session id concerned."""

    def watches(self, event: str) -> bool:
        """Is anybody there for `tool_call`, `tool_result`, `input`, `context` or `before_compact`?"""
        ...

    async def tool_call(
        self, agent: str, call: str, name: str, arguments: str, progress: Progress
    ) -> Block | Rewrite | None:
        """Before a call runs. The first Block wins; rewrites chain."""
        ...

    async def tool_result(
        self, agent: str, call: str, name: str, outcome: ToolOutcome, progress: Progress
    ) -> ToolOutcome | None:
        """After a call ran: another outcome, or None to leave it."""
        ...

    async def input(self, agent: str, message: Message) -> Message | Block | None:
        """Before an input is submitted: another message, Block (handled or refused), or None."""
        ...

    async def context(self, agent: str) -> Sequence[Message]:
        """User messages to add before a request; each is recorded, and sent at the same place ever after."""
        ...

    async def before_compact(self, agent: str, instructions: str) -> str | None:
        """An own summary instead of the model's, or None."""
        ...


class NoHooks:
    """Nobody watches."""

    def watches(self, event: str) -> bool:
        return False

    async def tool_call(
        self, agent: str, call: str, name: str, arguments: str, progress: Progress
    ) -> Block | Rewrite | None:
        return None

    async def tool_result(
        self, agent: str, call: str, name: str, outcome: ToolOutcome, progress: Progress
    ) -> ToolOutcome | None:
        return None

    async def input(self, agent: str, message: Message) -> Message | Block | None:
        return None

    async def context(self, agent: str) -> Sequence[Message]:
        return ()

    async def before_compact(self, agent: str, instructions: str) -> str | None:
        return None
