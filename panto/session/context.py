"""The chat context: an ordered list of entries that name bodies, which the agent turns into messages.

It is always sendable: a call's result stands directly after its assistant entry, in call order; superseded turns are
not in it; a checkpoint puts its summary and exactly the retained entries in the place of what came before it.
Each event costs O(1): entries are numbered as they come, the order is a list of numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from panto.schema.codec import Digest
from panto.schema.errors import FailureClass
from panto.schema.events import CallBinding, Effects
from panto.session.refusal import need

ResultStatus = Literal["pending", "waiting", "executing", "ok", "error", "cancelled", "denied", "unknown"]


class InputEntry(Struct, frozen=True, tag="input"):
    """A delivered input. `body` names a MessageBody."""

    id: str
    turn: str
    run: str
    body: Digest


class AssistantEntry(Struct, frozen=True, tag="assistant"):
    """A model's result. `id` is the effect of its step; `result` names a ResultBody; `calls` in call order."""

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


class Frame(Struct):
    """What a checkpoint stands on: the order before it, and how many entries its own order began with."""

    checkpoint: str
    former: list[int]
    start: int


class Context(Struct):
    """The chat context. Iterate it for the entries in order; `digest()` names it for a checkpoint.

    `numbers`: entry id to its place in `entries`. `tail`: how many entries at the end are inputs that no request has
    consumed, `held`: the same for the prepared request.
    """

    entries: list[Entry] = []
    order: list[int] = []
    frames: list[Frame] = []
    numbers: dict[str, int] = {}
    tail: int = 0
    held: int = 0
    turn: str = ""

    def __iter__(self) -> Iterator[Entry]:
        return map(self.entries.__getitem__, self.order)

    def __len__(self) -> int:
        return len(self.order)

    def last(self, count: int) -> tuple[Entry, ...]:
        """The last `count` entries, oldest first."""
        return tuple(self.entries[number] for number in self.order[-count:]) if count else ()

    def find(self, id: str) -> Entry | None:
        """The entry with this id, in the context or not."""
        number = self.numbers.get(id)
        return None if number is None else self.entries[number]

    def digest(self) -> Digest:
        """The digest of what the context holds now."""
        whole = hashlib.sha256()
        for entry in self:
            whole.update(msgspec.json.encode(entry))
        return whole.hexdigest()

    def copy(self) -> Context:
        """A context of its own that starts out equal."""
        frames = [Frame(frame.checkpoint, list(frame.former), frame.start) for frame in self.frames]
        return replace(
            self, entries=list(self.entries), order=list(self.order), frames=frames, numbers=dict(self.numbers)
        )

    def closed(self, retained: tuple[str, ...]) -> None:
        """Refuse retained entries that no checkpoint may keep: unknown, out of order, or not a closed set."""
        kept = set(retained)
        need(len(kept) == len(retained), "retained", "an entry is retained twice")
        need([e.id for e in self if e.id in kept] == list(retained), "retained", "retained entries are not in order")
        for entry in self:
            if not isinstance(entry, AssistantEntry):
                continue
            parts = [call.call in kept for call in entry.calls]
            whole = all(part == (entry.id in kept) for part in parts)
            need(whole, "retained", f"call and result must be retained together (step {entry.id[:8]})")
            results = [self.entries[self.numbers[call.call]] for call in entry.calls]
            due = any(isinstance(result, ResultEntry) and not result.finished for result in results)
            need(entry.id in kept or not due, "retained", "a step whose calls have no results yet must be retained")
        for entry in self.last(self.tail):
            need(entry.id in kept, "retained", "input that was not sent yet must be retained")

    # --- the fold; called by `fold` only ---

    def add(self, entry: Entry, at: int | None = None) -> None:
        """Place an entry: at the end, or at a place of the order."""
        self.numbers[entry.id] = len(self.entries)
        if at is None:
            self.order.append(len(self.entries))
        else:
            self.order.insert(at, len(self.entries))
        self.entries.append(entry)

    def before_tail(self, entry: Entry) -> None:
        """Place an entry before the inputs that no request has consumed: they came after what it answers."""
        self.add(entry, len(self.order) - self.tail)

    def put(self, entry: Entry) -> None:
        """Replace the entry with this id."""
        self.entries[self.numbers[entry.id]] = entry

    def result(self, id: str) -> ResultEntry | None:
        """The result entry of a call."""
        entry = self.find(id)
        return entry if isinstance(entry, ResultEntry) else None

    def begin(self, turn: str) -> None:
        """A run begins."""
        self.turn, self.tail, self.held = turn, 0, 0

    def take(self) -> None:
        """A request consumes what waits."""
        self.tail, self.held = 0, self.tail

    def give_back(self) -> None:
        """The request is not counted: what it consumed waits again."""
        self.tail, self.held = self.tail + self.held, 0

    def compact(self, summary: SummaryEntry, retained: tuple[str, ...]) -> None:
        """A checkpoint's context takes the place of this one."""
        former = self.order
        self.order = []
        self.add(summary)
        self.order.extend(self.numbers[id] for id in retained)
        self.frames.append(Frame(summary.id, former, len(self.order)))

    def uncompact(self) -> None:
        """The newest checkpoint no longer holds: what it stood on, and what came after it."""
        if self.frames:
            frame = self.frames.pop()
            self.order = frame.former + self.order[frame.start :]

    def drop_turn(self, turn: str) -> None:
        """The last turn is superseded."""
        while self.order and self.entries[self.order[-1]].turn == turn:
            self.order.pop()
