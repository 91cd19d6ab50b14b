"""One asynchronous agent job: a turn that someone opened, its records buffered for pulling, its result."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

from panto.schema.bodies import ResultBody
from panto.schema.events import ModelStepCompleted
from panto.schema.messages import Usage
from panto.schema.records import Record, Recorder
from panto.schema.signals import Fact, Update
from panto.schema.value import Value

BOUND = 4096
"""Records a job may have waiting before droppable ones are dropped."""

DROPPABLE = ("text_delta", "reasoning_delta", "progress", "retry")


class JobResult(Value, frozen=True):
    """What a job came to. `limited`: a limit stopped it (then `status` is failed). `tool_calls`: those of its last
    reply that were not run: (id, name, arguments JSON text). `cost` in USD, None unknown."""

    id: str
    status: Literal["completed", "failed", "cancelled"]
    text: str = ""
    error: dict[str, object] | None = None
    limited: bool = False
    resumable: bool = True
    usage: Usage = Usage()
    cost: float | None = None
    tool_calls: tuple[tuple[str, str, str], ...] = ()


class Job:
    """A turn of one agent, driven to its end on the owner loop. `id` is the durable input's id."""

    def __init__(self, id: str, agent: str, interrupt: Callable[[], Awaitable[None]], owner: object) -> None:
        self.id = id
        self.agent = agent
        self.owner = owner
        self.closed = False
        self.result: JobResult | None = None
        self._interrupt = interrupt
        self._recorder = Recorder(agent)
        self._buffer: deque[Record] = deque()
        self._ready: Callable[[bool], None] = lambda settled: None
        self._settled = asyncio.Event()
        self._calls: tuple[tuple[str, str, str], ...] = ()
        self._cancelling: asyncio.Task[None] | None = None

    # --- reading -----------------------------------------------------------------------------------------------

    def next_event(self) -> Record | None:
        """The next record, or None; never blocks. The caller owns it."""
        return self._buffer.popleft() if self._buffer else None

    def unread(self) -> bool:
        """Whether a record waits."""
        return bool(self._buffer)

    def on_ready(self, call: Callable[[bool], None]) -> None:
        """Be called for each record put (False; merging into a waiting delta is none) and once on settling (True)."""
        self._ready = call

    async def wait(self) -> JobResult:
        """The result, once settled. Cancelling the waiter leaves the job alone."""
        await self._settled.wait()
        assert self.result is not None
        return self.result

    # --- ending ------------------------------------------------------------------------------------------------

    def request_cancel(self) -> None:
        """Ask the turn to stop; it settles within the Escape window."""
        if self.result is None and self._cancelling is None:
            self._cancelling = asyncio.ensure_future(self._interrupt())

    def detach(self) -> None:
        """Leave the owner: the session owns it from here on."""
        self.owner = None

    async def close(self) -> None:
        """End the turn where it runs, and free what was buffered. Returns when it has really ended. Idempotent."""
        if self.result is None:
            self.request_cancel()
            await self._settled.wait()
        self.closed = True
        self._buffer.clear()

    # --- writing (the agent's side) ----------------------------------------------------------------------------

    def put(self, update: Update) -> None:
        """Take an update of the agent."""
        if self.result is not None or update.agent != self.agent:
            return
        if isinstance(update, Fact) and isinstance(update.event, ModelStepCompleted):
            if isinstance(update.body, ResultBody):
                calls = update.body.result.calls()
                self._calls = tuple((call.provider_id, call.name, call.arguments.text) for call in calls)
        for record in self._recorder.records(update):
            self._put(record)
            if record["type"] == "turn_ended":
                self.settle(from_record(self.id, record, self._calls))

    def _put(self, record: Record) -> None:
        last = self._buffer[-1] if self._buffer else None
        kind = record["type"]
        if last is not None and kind in ("text_delta", "reasoning_delta") and last["type"] == kind:
            last["text"] = f"{last['text']}{record['text']}"
            return
        if len(self._buffer) >= BOUND and kind in DROPPABLE:
            return
        self._buffer.append(record)
        self._ready(False)

    def settle(self, result: JobResult) -> None:
        """The turn has ended (or was parked, as cancelled)."""
        if self.result is None:
            self.result = result
            self._settled.set()
            self._ready(True)


def from_record(id: str, record: Record, calls: tuple[tuple[str, str, str], ...]) -> JobResult:
    """The result that a `turn_ended` record tells of."""
    status = record["status"]
    outside: dict[object, Literal["completed", "failed", "cancelled"]] = {
        "interrupted": "cancelled", "completed": "completed", "refused": "completed",
    }  # fmt: skip
    usage, cost, error = record["usage"], record["cost"], record["error"]
    assert isinstance(usage, dict)
    return JobResult(
        id=id,
        status=outside.get(status, "failed"),
        text=str(record["text"]),
        error=error if isinstance(error, dict) else None,
        limited=status == "limited",
        usage=Usage(**usage),
        cost=cost if isinstance(cost, float) else None,
        tool_calls=calls,
    )


