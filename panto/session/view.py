"""The folds that readers look at: the chat context, the turns, the files, the sums. Each event costs O(1).

The context is what the agent turns into messages: an ordered list of entries that name bodies. It is always
sendable: a call's result stands directly after its assistant entry, in call order; superseded turns are not in it;
a checkpoint puts its summary and exactly the retained entries in the place of what came before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from panto.schema.codec import Digest
from panto.schema.errors import FailureClass
from panto.schema.events import CallBinding, Effects, FileChange
from panto.schema.messages import Usage

ResultStatus = Literal["pending", "waiting", "executing", "ok", "error", "cancelled", "denied", "unknown"]


class InputEntry(Struct, frozen=True, tag="input"):
    """A delivered input. `body` names a MessageBody."""

    id: str
    turn: str
    run: str
    body: Digest


class AssistantEntry(Struct, frozen=True, tag="assistant"):
    """A model's result. `id` is the effect of its step; `result` names a ResultBody; `calls` are bound in call order."""

    id: str
    turn: str
    run: str
    step: int
    result: Digest
    calls: tuple[CallBinding, ...] = ()


class ResultEntry(Struct, frozen=True, tag="result"):
    """What one call came to; `id` is the call's. pending, waiting and executing: not finished, nothing to send yet.

    `outcome` names a ToolOutcome (None: only `message`). ok, error, ... are the words of session records.
    """

    id: str
    turn: str
    run: str
    name: str
    provider_id: str = ""
    status: ResultStatus = "pending"
    outcome: Digest | None = None
    message: str = ""
    cls: FailureClass | None = None
    effects: Effects = "none"
    superseded: bool = False

    @property
    def finished(self) -> bool:
        """Whether the call is terminal."""
        return self.status not in ("pending", "waiting", "executing")


class KeptEntry(Struct, frozen=True, tag="kept"):
    """Text that was streamed before a run was stopped, kept as plain assistant text. `id` is the run's."""

    id: str
    turn: str
    text: Digest


class SummaryEntry(Struct, frozen=True, tag="summary"):
    """A checkpoint's summary, a user message. `id` is the checkpoint's."""

    id: str
    summary: Digest
    turn: str = ""


Entry = InputEntry | AssistantEntry | ResultEntry | KeptEntry | SummaryEntry


class TurnView(Struct):
    """A turn as lists show it. `inputs`: digests of what was said; `seq`: the commit that started it; times UTC s."""

    turn: str
    run: str
    attempt: int
    seq: int
    time: float
    state: Literal["active", "completed", "attempt_failed", "failed", "stopped", "refused", "superseded"] = "active"
    inputs: list[Digest] = []
    changes: list[FileChange] = []
    runs: list[str] = []


class Frame(Struct):
    """The context a checkpoint stands on: entry numbers before it, and how many its own start has."""

    checkpoint: str
    former: list[int]
    start: int


class Context(Struct):
    """The chat context. Iterate it for the entries in order; `digest()` names it for a checkpoint."""

    entries: list[Entry] = []
    order: list[int] = []
    frames: list[Frame] = []
    numbers: dict[str, int] = {}
    tail: int = 0
    held: int = 0

    def __iter__(self) -> Iterator[Entry]:
        return (self.entries[number] for number in self.order)

    def __len__(self) -> int:
        return len(self.order)

    def digest(self) -> Digest:
        """The digest of what the context holds now."""
        raise NotImplementedError

    def from_end(self, count: int) -> tuple[Entry, ...]:
        """The last `count` entries, oldest first."""
        return tuple(self.entries[number] for number in self.order[-count:]) if count else ()


class View(Struct):
    """All folds beside the machines. Readers only look; `evolve` in `fold` is the only writer.

    `files`: real path to the digest last read or written there (None: known to be absent). `cost` in USD, None while
    no price is known. `metadata`: message id to JSON text. `extensions`: owner to (kind, value digest), in order.
    """

    context: Context
    turns: list[TurnView] = []
    files: dict[str, Digest | None] = {}
    usage: Usage = Usage()
    cost: float | None = None
    metadata: dict[str, str] = {}
    extensions: dict[str, list[tuple[str, Digest]]] = {}

    def fresh(self) -> Mapping[str, Digest | None]:
        """What this session last saw in each file."""
        return self.files
