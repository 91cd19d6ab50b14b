"""The reply as it comes: parts to signals, and what was streamed so far in case it is stopped."""

from __future__ import annotations

import asyncio

from panto.agent.ports import Control, Ports, Setup
from panto.providers.retry import Wait
from panto.schema.errors import ProviderError
from panto.schema.messages import ModelResult, Request
from panto.schema.signals import (
    CallDrafted,
    ReasoningStreamed,
    RetryResumed,
    RetryWaiting,
    Signal,
    StepReset,
    TextStreamed,
)
from panto.schema.stream import ReasoningDelta, StreamPart, TextDelta, ToolCallDelta, ToolCallStart

DRAFT_STEP = 2048
"""Bytes of a call's arguments between two signs of life."""


class Live:
    """One model step's live side. All signals are droppable; `text()` is what a stop keeps."""

    def __init__(self, ports: Ports, step: int) -> None:
        self.over = False
        """Nobody wants to hear of it any more, whatever still comes."""
        self._tell = ports.signal
        self._agent = ports.session.id
        self._step = step
        self._text: list[str] = []
        self._drafts: dict[int, tuple[str, int, int]] = {}

    def text(self) -> str:
        """The visible text streamed by the present try."""
        return "".join(self._text)

    def _signal(self, signal: Signal) -> None:
        if not self.over:
            self._tell(signal)

    def part(self, part: StreamPart) -> None:
        """Tell readers of one part."""
        match part:
            case TextDelta(text=text):
                self._text.append(text)
                self._signal(TextStreamed(self._agent, self._step, text))
            case ReasoningDelta(text=text):
                self._signal(ReasoningStreamed(self._agent, self._step, text))
            case ToolCallStart(index=index, name=name):
                self._drafts[index] = (name, 0, 0)
                self._signal(CallDrafted(self._agent, self._step, index, name, 0))
            case ToolCallDelta(index=index, text=text) if index in self._drafts:
                name, size, told = self._drafts[index]
                size += len(text)
                if size - told >= DRAFT_STEP:
                    told = size
                    self._signal(CallDrafted(self._agent, self._step, index, name, size))
                self._drafts[index] = (name, size, told)
            case _:
                pass

    def wait(self, wait: Wait) -> None:
        """A try failed and is repeated after a wait, or the wait is over."""
        if wait.over:
            self._signal(RetryResumed(self._agent))
        else:
            self._signal(RetryWaiting(self._agent, wait.cause, wait.status, wait.wait_s, wait.attempt, wait.attempts))

    def reset(self, generation: int) -> None:
        """What this step has streamed so far is void: it is tried again."""
        self._text.clear()
        self._drafts.clear()
        self._signal(StepReset(self._agent, self._step, generation))


async def ask(ports: Ports, control: Control, setup: Setup, request: Request, live: Live) -> ModelResult:
    """The model's answer to a request, tries and waits included. Raises ProviderError."""
    try:
        return await ports.complete(
            setup.model,
            request,
            on_part=live.part,
            on_wait=live.wait,
            on_reset=live.reset,
            retry_now=control.retry_now,
        )
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ProviderError("cancelled", f"{setup.model.label} was broken off by its own provider") from None
