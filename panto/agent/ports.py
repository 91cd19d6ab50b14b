"""The loop's whole world in one frozen value, and the few things that may change while a turn runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from panto.agent.hooks import Hooks
from panto.agent.loop_guard import Circles
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
    answer questions; `retried_by_hand`: a failed attempt waits for them (else the turn settles as failed).
    `dispatch` False ends the turn at the first reply, its calls unresolved. `parallel` calls at once. `compact_at`:
    share of the context window at which the context is summarised (0: never). `repeat`: identical calls at which the
    loop guard warns (0: never).
    """

    model: Model
    reasoning: str
    system: tuple[SystemBlock, ...]
    tools: tuple[ToolSpec, ...]
    tool_choice: ToolChoice = ToolChoice()
    attended: bool = True
    retried_by_hand: bool = True
    dispatch: bool = True
    parallel: int = 16
    limits: Limits = Limits()
    compact_at: float = 0.8
    repeat: int = 3


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the loop may touch.

    `setup()` raises UsageError where the model is not available: the turn is parked, nothing is lost. `tool(name)`
    finds the handler at call time. `judge` decides whether a call may run. `tool_context(run, call, effect, raw
    arguments)` describes a call's surroundings. `child` names the agent in questions where it is one.
    """

    session: Session
    context: Context
    setup: Callable[[], Setup]
    complete: Complete
    tool: Callable[[str], Tool | None]
    judge: Callable[[Tool, Mapping[str, object]], Verdict]
    tool_context: Callable[[str, str, str, str], ToolContext]
    hooks: Hooks
    signal: Callable[[Signal], None]
    child: str = ""


@dataclass(frozen=True, slots=True)
class Base:
    """Where a drive began: tokens, USD and monotonic seconds, for the run's limits."""

    tokens: int = 0
    cost: float = 0.0
    time: float = 0.0


@dataclass(slots=True)
class Control:
    """What reaches a running turn from outside, and what its steps remember between two commits.

    `interrupt` is set after `interrupt_requested` was committed, with `deadline` (monotonic seconds) by which every
    call must have settled. `changed` wakes the tool step: a decision was recorded. `kept` is text streamed by the
    step that was interrupted. `parking`: stop what runs but leave the run active. `crowded`: the vendor said that the
    context is too long. `reviewed`: each pending call is reviewed once, and once more when approved.
    """

    base: Base
    interrupt: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    retry_now: asyncio.Event = field(default_factory=asyncio.Event)
    deadline: float | None = None
    kept: str = ""
    refusals: int = 0
    overflows: int = 0
    compactions: int = 0
    crowded: bool = False
    parking: bool = False
    asked_context: tuple[str, int] = ("", 0)
    reviewed: dict[str, Step] = field(default_factory=dict)
    approved: dict[str, bool] = field(default_factory=dict)
    paths: dict[str, frozenset[str]] = field(default_factory=dict)
    circles: Circles = field(default_factory=Circles)

    def stop_by(self, deadline: float) -> None:
        """Escape: everything that runs has until `deadline` (monotonic seconds)."""
        self.deadline = deadline
        self.interrupt.set()
        self.changed.set()
