"""The loop's whole world in one frozen value, and the few things that may change while a turn runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from panto.agent.hooks import Hooks
from panto.agent.loop_guard import Circles
from panto.schema.events import StopReason
from panto.schema.messages import ModelResult, Request, SystemBlock, ToolChoice, ToolSpec
from panto.schema.signals import Signal
from panto.schema.stream import StreamPart
from panto.session import Session
from panto.tools.tool import Tool, ToolContext

if TYPE_CHECKING:
    from panto.agent.approval import Verdict
    from panto.agent.context import Context
    from panto.agent.dispatch import Step
    from panto.providers.model import Model
    from panto.providers.retry import Wait


class Complete(Protocol):
    """`providers.complete`: one request to one result, tries and waits included."""

    def __call__(
        self,
        model: Model,
        request: Request,
        *,
        on_part: Callable[[StreamPart], None],
        on_wait: Callable[[Wait], None],
        on_reset: Callable[[int], None],
        retry_now: asyncio.Event,
    ) -> Awaitable[ModelResult]: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When the host ends a run by itself; 0: never. `cost` in USD, `seconds` of wall time per run."""

    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent asks a model with, right now. May be another value at the next step.

    `tools` are the declarations; a call to a name that is not among them is declined. `attended`: somebody can
    answer questions. `dispatch` False ends the turn at the first reply, its calls unresolved. `parallel` calls at
    once. `compact_at`: share of the context window at which the context is summarised (0: never). `repeat`: identical
    calls at which the loop guard warns (0: never).
    """

    model: Model
    reasoning: str
    system: tuple[SystemBlock, ...]
    tools: tuple[ToolSpec, ...]
    tool_choice: ToolChoice = ToolChoice()
    attended: bool = True
    dispatch: bool = True
    parallel: int = 16
    limits: Limits = Limits()
    compact_at: float = 0.8
    repeat: int = 3


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the loop may touch.

    `setup()` raises UsageError where the model is not available: the turn is parked, nothing is lost. `by_hand()`:
    a failed attempt waits for a person to retry it (else the turn settles as failed). `tool(name)` finds the handler
    at call time. `judge` decides whether a call may run. `tool_context(run, call, effect, raw arguments)` describes a
    call's surroundings. `child` names the agent in questions where it is one.
    """

    session: Session
    context: Context
    setup: Callable[[], Setup]
    by_hand: Callable[[], bool]
    complete: Complete
    tool: Callable[[str], Tool | None]
    judge: Callable[[Tool, Mapping[str, object]], Verdict]
    tool_context: Callable[[str, str, str, str], ToolContext]
    hooks: Hooks
    signal: Callable[[Signal], None]
    child: str = ""


@dataclass(frozen=True, slots=True)
class Base:
    """Where a drive began: tokens and USD, for the run's limits."""

    tokens: int = 0
    cost: float = 0.0


@dataclass(slots=True)
class Control:
    """What reaches a running turn from outside, and what its steps remember between two commits.

    `interrupt` is set when everything that runs must end by `deadline` (monotonic seconds): Escape, once it is
    recorded; `parking` (what runs stops, the run stays active); or a `limit` of time (its reason, and how to say it).
    `changed` wakes the tool step: a decision was recorded. `kept` is text streamed by the step that was interrupted.
    `crowded`: the vendor said that the context is too long. `reviewed`: the opening of each call of this step, and
    whether the call was approved by then. `running`: tasks by call. `launched`: calls that were ever run here, `held`:
    settlements that could not be written; both outlive the drive.
    """

    base: Base = Base()
    interrupt: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    retry_now: asyncio.Event = field(default_factory=asyncio.Event)
    deadline: float | None = None
    parking: bool = False
    limit: tuple[StopReason, str] | None = None
    kept: str = ""
    refusals: int = 0
    overflows: int = 0
    compactions: int = 0
    crowded: bool = False
    asked_context: tuple[str, int] = ("", 0)
    reviewed: dict[str, tuple[bool, Step]] = field(default_factory=dict)
    running: dict[str, asyncio.Task[Step]] = field(default_factory=dict)
    launched: set[str] = field(default_factory=set)
    held: list[Step] = field(default_factory=list)
    circles: Circles = field(default_factory=Circles)

    @property
    def ending(self) -> bool:
        """Whether nothing new may begin."""
        return self.interrupt.is_set()

    @property
    def late(self) -> bool:
        """Whether the time is over in which what runs may end by itself."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def stop_by(self, deadline: float) -> None:
        """Everything that runs has until `deadline` (monotonic seconds); an earlier one stands."""
        self.deadline = deadline if self.deadline is None else min(deadline, self.deadline)
        self.interrupt.set()
        self.changed.set()
