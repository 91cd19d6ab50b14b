"""What the driver keeps of Lua's coroutines: tasks, the scopes they end with, and how they ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

GUARD_S = 0.1
"""CPU seconds that Lua code may run without a yield."""


SURVIVE = frozenset({"job_wait", "job_close", "agent_close", "job_detach", "append", "turn"})
"""Ops that still work in a task that was asked to end."""
FINISH = SURVIVE | {
    "agent_open", "run", "submit", "set_tools", "set_config", "add_message", "set_message_metadata", "fs_write",
}  # fmt: skip
"""Ops that are not cut off half way once they have begun: what they change is whole, or not there."""

GREEDY = ("runaway", "memory")
"""Kinds of failure of code that wanted more time or memory than there is for it: the person is told."""


class Outcome(Struct, frozen=True):
    """How a task or callback ended: its values, or a failure with place and traceback."""

    ok: bool
    values: tuple[Any, ...] = ()
    kind: str = ""
    message: str = ""
    place: str = ""
    traceback: str = ""
    status: int = 0
    retry_after: float | None = None


class Spent(Struct):
    """What an owner's Lua code has cost so far: seconds, and its last failure."""

    seconds: float = 0.0
    error: str = ""


class Scope(Struct, eq=False):
    """What a task belongs to and ends with: a call, a stream, a command, or a whole extension."""

    id: int
    owner: str
    lane: str
    cancelled: bool = False
    closed: bool = False
    tasks: set[LuaTask] = field(default_factory=set)
    on_close: list[Callable[[], None]] = field(default_factory=list)
    key: str = ""


class LuaTask(Struct, eq=False):
    """One coroutine under way."""

    id: int
    scope: Scope
    lane: str
    owner: str
    what: str
    done: asyncio.Future[Outcome]
    guard_s: float = GUARD_S
    waiting: asyncio.Future[Any] | None = None
    op: str = ""
    parked: bool = False
    cancelled: bool = False
    dialog_s: float = 0.0
    dialog_since: float | None = None
