"""One asynchronous agent job: a turn that someone opened, its records buffered for pulling, its result."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

from panto.scheduler.mailbox import Parked
from panto.schema.bodies import ResultBody
from panto.schema.errors import OwnershipLost, PantoError, StorageFailed, UsageError
from panto.schema.events import ModelStepCompleted, ToolCallStarted, ToolStepOpened
from panto.schema.messages import Usage
from panto.schema.records import Record, Recorder
from panto.schema.signals import Fact, Update
from panto.schema.value import Value

BOUND = 4096
"""Records a job may have waiting before droppable ones are dropped."""

MERGED = ("text_delta", "reasoning_delta")
DROPPABLE = (*MERGED, "progress", "retry")


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


class Unresolved:
    """The calls of the last reply that were not run: (id, name, arguments JSON text), from facts."""

    def __init__(self) -> None:
        self._said: tuple[tuple[str, str, str], ...] = ()
        self._open: dict[str, tuple[str, str, str]] = {}

    def take(self, fact: Fact) -> None:
        """The next fact of the turn."""
        match fact.event:
            case ModelStepCompleted() if isinstance(fact.body, ResultBody):
                calls = fact.body.result.calls()
                self._said = tuple((call.provider_id, call.name, call.arguments.text) for call in calls)
                self._open = {}
            case ToolStepOpened(calls=calls):
                self._open = {bound.call: self._said[bound.index] for bound in calls if bound.index < len(self._said)}
            case ToolCallStarted(call=call):
                self._open.pop(call, None)
            case _:
                pass

    def calls(self) -> tuple[tuple[str, str, str], ...]:
        """Those that are left."""
        return tuple(self._open.values())


class Job:
    """A turn of one agent, driven to its end on the owner loop. `id` is the durable input's id.

    `interrupt(deadline)` is how the agent is stopped. `stopping`: it was asked to stop, maybe before it began.
    """

    def __init__(
        self, id: str, agent: str, interrupt: Callable[[float | None], Awaitable[None]], owner: object
    ) -> None:
        self.id = id
        self.agent = agent
        self.owner = owner
        self.closed = False
        self.stopping = asyncio.Event()
        self.result: JobResult | None = None
        self._interrupt = interrupt
        self._recorder = Recorder(agent)
        self._buffer: deque[Record] = deque()
        self._deltas: list[str] = []
        self._ready: Callable[[bool], None] = lambda settled: None
        self._settled = asyncio.Event()
        self._unresolved = Unresolved()
        self._cancelling: asyncio.Future[None] | None = None

    # --- reading -----------------------------------------------------------------------------------------------

    def next_event(self) -> Record | None:
        """The next record, or None; never blocks. The caller owns it."""
        if len(self._buffer) == 1:
            self._join()
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

    def request_cancel(self, deadline: float | None = None) -> None:
        """Ask the turn to stop; it settles within the Escape window, or by `deadline` (monotonic seconds)."""
        if self.result is None:
            self.stopping.set()
            self._cancelling = asyncio.ensure_future(self._interrupt(deadline))
            self._cancelling.add_done_callback(_unheard)

    def detach(self) -> None:
        """Leave the owner: the session owns it from here on."""
        self.owner = None

    async def close(self) -> None:
        """End the turn where it runs, and free what was buffered. Returns when it has really ended. Idempotent."""
        if self.result is None:
            self.request_cancel()
            await self._settled.wait()
        self.closed = True
        self._deltas.clear()
        self._buffer.clear()

    # --- writing (the agent's side) ----------------------------------------------------------------------------

    def put(self, update: Update) -> None:
        """Take an update of the agent."""
        if self.result is not None or update.agent != self.agent:
            return
        if isinstance(update, Fact):
            self._unresolved.take(update)
        for record in self._recorder.records(update):
            self._put(record)
            if record["type"] == "turn_ended":
                self.settle(from_record(self.id, record, self._unresolved.calls()))

    def give_up(self, parked: Parked) -> None:
        """The turn came to rest without an end: the job is over, the turn can be continued."""
        record = self._recorder.parked()
        if parked.reason != "shutdown":
            record["status"] = "failed"
        if parked.problem is not None:
            record["error"] = {"kind": error_kind(parked.problem), "message": parked.problem.message}
        self.settle(from_record(self.id, record, self._unresolved.calls(), resumable=parked.reason != "ownership_lost"))

    def _put(self, record: Record) -> None:
        kind = record["type"]
        if kind in MERGED and self._buffer and self._buffer[-1]["type"] == kind:
            self._deltas.append(str(record["text"]))
            return
        if len(self._buffer) >= BOUND and kind in DROPPABLE:
            return
        self._join()
        self._buffer.append(record)
        self._ready(False)

    def _join(self) -> None:
        """Put merged deltas into the record they belong to, the last one."""
        if self._deltas:
            last = self._buffer[-1]
            last["text"] = str(last["text"]) + "".join(self._deltas)
            self._deltas.clear()

    def settle(self, result: JobResult) -> None:
        """The turn has ended (or was parked, as cancelled)."""
        if self.result is None:
            self.result = result
            self._settled.set()
            self._ready(True)


def error_kind(problem: PantoError) -> str:
    """What kind of trouble ended a job."""
    match problem:
        case UsageError():
            return "invalid_request"
        case StorageFailed():
            return "storage"
        case OwnershipLost():
            return "ownership_lost"
        case _:
            return "internal"


def from_record(
    id: str, record: Record, calls: tuple[tuple[str, str, str], ...], *, resumable: bool = True
) -> JobResult:
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
        resumable=resumable,
        usage=Usage(**usage),
        cost=cost if isinstance(cost, float) else None,
        tool_calls=calls,
    )


def _unheard(task: asyncio.Future[None]) -> None:
    if not task.cancelled():
        task.exception()
