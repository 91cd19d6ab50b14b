"""The ledger's form: commits of command groups, chained by digest. What is checked before anything is written.

A commit's body is canonical JSON, `[[command id, intent, [[machine, entity, [event, ...]], ...]], ...]`; its digest
covers segment, seq, epoch, time, the previous digest and that body. Events may be unknown: they are kept and skipped.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from panto.schema.codec import BadText, canonical
from panto.schema.errors import Corrupt, Refused
from panto.schema.events import AnyEvent, Event
from panto.session.command import Position
from panto.session.ids import is_digest, is_entity, is_id

CORE = frozenset({"run", "turn", "input", "checkpoint"})
"""Machines whose unknown events make a session view-only."""

CURRENT = 1
"""The payload version that every event of this version of panto has."""

Upcast = Callable[[dict[str, object]], dict[str, object]]
UPCASTS: Mapping[tuple[str, int], Upcast] = {}
"""From (event type, stored version): how a payload of that version becomes one of the next. Stored bytes stay."""


class Unknown(Struct, frozen=True):
    """An event this version does not know. `data` is its payload, as stored."""

    machine: str
    entity: str
    type: str
    v: int
    data: bytes


AnyRecord = AnyEvent | Unknown


class Batch(Struct, frozen=True):
    """The events of one stream in one command."""

    machine: str
    entity: str
    events: tuple[AnyRecord, ...]


class Group(Struct, frozen=True):
    """What one command led to. No stream occurs twice."""

    id: str
    intent: str
    batches: tuple[Batch, ...]

    def events(self) -> Iterator[AnyRecord]:
        """The events in order."""
        for batch in self.batches:
            yield from batch.events


class Commit(Struct, frozen=True):
    """A stored commit. `time` in UTC milliseconds; digests in hex."""

    segment: str
    seq: int
    epoch: int
    time: int
    prev: str
    digest: str
    body: bytes

    def groups(self) -> tuple[Group, ...]:
        """The command groups. Raises Corrupt."""
        try:
            return thaw(self.body)
        except BadText as error:
            raise Corrupt(
                f"commit {self.seq} of session {self.segment[:8]} cannot be read: {error}", self.segment, self.seq
            ) from None

    def proven(self) -> bool:
        """Whether the digest is the digest of what is stored."""
        return seal(self.segment, self.seq, self.epoch, self.time, self.prev, self.body) == self.digest


class Recorded(Struct, frozen=True):
    """An event where it stands. `time` in UTC milliseconds."""

    position: Position
    time: int
    event: AnyRecord


def records(commit: Commit) -> tuple[Recorded, ...]:
    """The events of a commit with their positions. Raises Corrupt."""
    return tuple(Recorded((commit.seq, n), commit.time, event) for n, event in enumerate(events(commit)))


def events(commit: Commit) -> list[AnyRecord]:
    """The events of a commit, without their groups: what replay needs. Raises Corrupt."""
    try:
        known = _reader(_Known).decode(commit.body)
    except msgspec.DecodeError:
        return [event for group in commit.groups() for event in group.events()]
    flat: list[AnyRecord] = [event for _, _, batches in known for _, _, each in batches for event in each]
    for event in flat:
        if event.v != CURRENT:
            return [event for group in commit.groups() for event in group.events()]
    return flat


def seal(segment: str, seq: int, epoch: int, time: int, prev: str, body: bytes) -> str:
    """The digest of a commit."""
    head = f'["{segment}",{seq},{epoch},{time},"{prev}"]\n'  # canonical: ids and digests need no escapes
    return hashlib.sha256(head.encode("utf-8", "surrogateescape") + body).hexdigest()


def seed(
    segment: str, parent: str | None, parent_seq: int, parent_digest: str, created: int, under: str, opener: str,
    depth: int,
) -> str:  # fmt: skip
    """The digest of a segment's creation record: the first commit's previous digest."""
    record = [segment, parent or "", parent_seq, parent_digest, created, under, opener, depth]
    return hashlib.sha256(canonical(record)).hexdigest()


def groups_of(decided: list[tuple[str, str, tuple[AnyEvent, ...]]]) -> tuple[Group, ...]:
    """Sort each command's events (id, intent, events) into batches of one stream each, order kept."""
    groups = []
    for name, intent, events in decided:
        batches: list[Batch] = []
        for event in events:
            stream = (event.machine, event.entity)
            if batches and (batches[-1].machine, batches[-1].entity) == stream:
                batches[-1] = Batch(*stream, (*batches[-1].events, event))
            else:
                batches.append(Batch(*stream, (event,)))
        groups.append(Group(name, intent, tuple(batches)))
    return tuple(groups)


def freeze(groups: tuple[Group, ...]) -> bytes:
    """The canonical bytes of a commit's groups. Raises Refused for what may not be recorded."""
    if not groups:
        raise Refused("empty", "a commit needs at least one command")
    if len({group.id for group in groups}) != len(groups):
        raise Refused("repeated", "a commit names a command twice")
    for group in groups:
        _check(group)
    plain = [
        [group.id, group.intent, [[batch.machine, batch.entity, list(batch.events)] for batch in group.batches]]
        for group in groups
    ]
    try:
        return canonical(plain)
    except (BadText, TypeError) as error:
        raise Refused("payload", f"an event has no canonical form: {error}") from None


def _check(group: Group) -> None:
    if not is_id(group.id) or not is_digest(group.intent):
        raise Refused("id", f"{group.id!r} is not a command id with an intent")
    if not group.batches or any(not batch.events for batch in group.batches):
        raise Refused("empty", f"command {group.id[:8]} has no events")
    streams = [(batch.machine, batch.entity) for batch in group.batches]
    if len(set(streams)) != len(streams):
        raise Refused("repeated", f"command {group.id[:8]} names a stream twice")
    for batch in group.batches:
        if not is_entity(batch.entity):
            raise Refused("id", f"{batch.entity!r} cannot name a stream")
        for event in batch.events:
            if not isinstance(event, Event):
                raise Refused("payload", "only events can be recorded")
            if (event.machine, event.entity) != (batch.machine, batch.entity):
                raise Refused("stream", f"a fact of {event.machine} {event.entity[:8]} stands in another's stream")


_Known: Any = list[tuple[str, str, list[tuple[str, str, list[AnyEvent]]]]]
_Raw: Any = list[tuple[str, str, list[tuple[str, str, list[msgspec.Raw]]]]]


@functools.cache
def _reader(kind: Any) -> msgspec.json.Decoder[Any]:
    """A decoder, made once: making one costs far more than a commit."""
    return msgspec.json.Decoder(kind)


def _read(data: bytes, kind: Any) -> Any:
    try:
        return _reader(kind).decode(data)
    except msgspec.DecodeError as error:
        raise BadText(str(error)) from None


class _Peek(Struct):
    type: str
    v: int


def thaw(body: bytes, upcasts: Mapping[tuple[str, int], Upcast] = UPCASTS) -> tuple[Group, ...]:
    """A commit's groups from its bytes. Raises BadText where they are no groups at all."""
    try:
        known = _read(body, _Known)
        if all(event.v == CURRENT for _, _, batches in known for _, _, events in batches for event in events):
            return tuple(
                Group(name, intent, tuple(Batch(machine, entity, tuple(events)) for machine, entity, events in batches))
                for name, intent, batches in known
            )
    except BadText:
        pass  # something in it is not known: each event for itself
    return tuple(
        Group(
            name,
            intent,
            tuple(
                Batch(machine, entity, tuple(_event(machine, entity, bytes(raw), upcasts) for raw in events))
                for machine, entity, events in batches
            ),
        )
        for name, intent, batches in _read(body, _Raw)
    )


def _event(machine: str, entity: str, data: bytes, upcasts: Mapping[tuple[str, int], Upcast]) -> AnyRecord:
    try:
        peek = _read(data, _Peek)
    except BadText:
        return Unknown(machine, entity, "", 0, data)
    version, raw = peek.v, data
    while (peek.type, version) in upcasts:
        payload = _read(raw, dict[str, object])
        raw = msgspec.json.encode({**upcasts[peek.type, version](payload), "v": version + 1})
        version += 1
    try:
        event: AnyEvent = _read(raw, AnyEvent)
    except BadText:
        return Unknown(machine, entity, peek.type, peek.v, data)
    if version != getattr(type(event), "current", CURRENT):
        return Unknown(machine, entity, peek.type, peek.v, data)
    return event
