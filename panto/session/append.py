"""Appending: the one job that adds commits to a segment. It runs in the writer's thread, in a transaction.

Order for each commit: epoch, bodies, command ids (a replay is answered first), then what decide gave is written.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from panto.schema.bodies import Body, MessageBody, ResultBody
from panto.schema.codec import Digest
from panto.schema.errors import Conflict, OwnershipLost, PantoError, Refused
from panto.schema.events import AnyEvent, InputSubmitted, ModelStepCompleted, TurnStarted
from panto.schema.messages import Text
from panto.session.bodies import MANIFEST, Bodies, Staged
from panto.session.digests import named, shown
from panto.session.ledger import Recorded, freeze, groups_of, records, seal
from panto.session.read import Lineage, commit_at
from panto.session.state import Settings

if TYPE_CHECKING:
    import sqlite3

LONGEST = 100_000
"""Characters of one message that the word index takes."""


class Handle(Struct, frozen=True):
    """The right to write: a segment with its ancestors, under one epoch, by one lease."""

    id: str
    lineage: Lineage
    epoch: int
    lease: str


class Entry(Struct, frozen=True):
    """One commit to append: command ids with intents, and the events of each (None: decide refused, with `refusal`).

    `settings` as they are after it; `tokens` and `cost` what it adds; `manifest` the request recorded before it.
    """

    commands: tuple[tuple[str, str], ...]
    events: tuple[tuple[AnyEvent, ...], ...] | None
    refusal: PantoError | None
    staged: tuple[Staged, ...]
    settings: Settings
    tokens: int = 0
    cost: float | None = None
    manifest: Staged | None = None


class Landing(Struct, frozen=True):
    """What became of an entry.

    written: `seq`, `digest` and `records` are new. known: all commands were committed before; `records` are theirs.
    failed: nothing was written, `error` says why. again: an earlier entry was not what it seemed; decide anew.
    `values`: bodies that the records show and that were not staged.
    """

    status: Literal["written", "known", "failed", "again"]
    seq: int = -1
    digest: str = ""
    records: tuple[Recorded, ...] = ()
    values: dict[Digest, Body] = {}
    error: PantoError | None = None


def append(db: sqlite3.Connection, handle: Handle, bodies: Bodies, entries: tuple[Entry, ...]) -> tuple[Landing, ...]:
    """Append entries in order. Raises OwnershipLost, and then nothing of any of them is written."""
    row = db.execute("SELECT epoch, head, digest FROM session WHERE id = ?", (handle.id,)).fetchone()
    if row is None or row[0] != handle.epoch:
        raise lost(handle.id)
    head, prev = row[1], row[2].hex()
    landings: list[Landing] = []
    for entry in entries:
        landing = _known(db, handle, bodies, entry)
        if landing is None and entry.refusal is not None:
            landing = Landing("failed", error=entry.refusal)
        if landing is None:
            landing = _write(db, handle, bodies, entry, head + 1, prev)
        landings.append(landing)
        if landing.status == "written":
            head, prev = landing.seq, landing.digest
        elif entry.events is not None:
            # Later entries were decided on the state this one would have left.
            landings += [Landing("again")] * (len(entries) - len(landings))
            break
    return tuple(landings)


def lost(id: str) -> OwnershipLost:
    """The error of a handle that another process has taken over."""
    return OwnershipLost(
        f"session {id[:8]} was taken over by another process", f"open it again: panto --resume {id[:8]}"
    )


def _known(db: sqlite3.Connection, handle: Handle, bodies: Bodies, entry: Entry) -> Landing | None:
    """The landing of an entry of which commands are known already."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for name, _ in entry.commands:
        for segment, last in reversed(handle.lineage):
            row = db.execute(
                "SELECT seq, intent FROM command WHERE segment = ? AND id = ? AND seq <= ?",
                (segment, bytes.fromhex(name), last),
            ).fetchone()
            if row is not None:
                found[name] = (segment, row[0], row[1])
                break
    if not found:
        return None
    same = all(name in found and found[name][2].hex() == intent for name, intent in entry.commands)
    if not same or any(segment != handle.id for segment, _, _ in found.values()):
        known = next(iter(found))
        return Landing("failed", error=Conflict(f"command {known[:8]} was committed before, with another meaning"))
    mine: list[Recorded] = []
    for seq in sorted({seq for _, seq, _ in found.values()}):
        commit = commit_at(db, handle.id, seq)
        wanted = {group.id: len(tuple(group.events())) for group in commit.groups()}
        index = 0
        every = tuple(records(commit))
        for name, size in wanted.items():
            mine += every[index : index + size] if name in found else ()
            index += size
    return Landing("known", records=tuple(mine), values=_values(db, bodies, mine, ()))


def _values(
    db: sqlite3.Connection, bodies: Bodies, found: list[Recorded], staged: tuple[Staged, ...]
) -> dict[Digest, Body]:
    have = {each.digest for each in staged}
    values: dict[Digest, Body] = {}
    for record in found:
        name = shown(record.event) if isinstance(record.event, AnyEvent) else None
        if name is not None and name not in have and name not in values:
            value = bodies.value(db, name)
            if value is not None:
                values[name] = value
    return values


def _write(db: sqlite3.Connection, handle: Handle, bodies: Bodies, entry: Entry, seq: int, prev: str) -> Landing:
    assert entry.events is not None
    groups = groups_of([(*command, events) for command, events in zip(entry.commands, entry.events, strict=True)])
    try:
        data = freeze(groups)
        for staged in entry.staged:
            bodies.put(db, staged, handle.lease, entry.manifest if staged.data.endswith(MANIFEST) else None)
        staged_names = {staged.digest for staged in entry.staged}
        every = [event for events in entry.events for event in events]
        for name in {name for event in every for name in named(event)} - staged_names:
            if not bodies.has(db, name):
                raise Refused("missing_body", f"body {name} must be stored before a fact may name it")
    except Refused as refusal:
        # Only bodies can have been written so far; unnamed ones are collected.
        return Landing("failed", error=refusal)
    now = time.time_ns() // 1_000_000
    digest = seal(handle.id, seq, handle.epoch, now, prev, data)
    db.execute(
        "INSERT INTO commits VALUES(?, ?, ?, ?, ?, ?, ?)",
        (handle.id, seq, handle.epoch, now, bytes.fromhex(prev), bytes.fromhex(digest), data),
    )
    db.executemany(
        "INSERT INTO command VALUES(?, ?, ?, ?)",
        [(handle.id, bytes.fromhex(name), seq, bytes.fromhex(intent)) for name, intent in entry.commands],
    )
    found = [Recorded((seq, index), now, event) for index, event in enumerate(every)]
    values = _values(db, bodies, found, entry.staged)
    shown_values = {s.digest: s.value for s in entry.staged if s.value is not None} | values
    said = _index(db, handle.id, seq, every, shown_values)
    _row(db, handle.id, entry, seq, digest, len(every), now, said, sum(isinstance(e, TurnStarted) for e in every))
    return Landing("written", seq, digest, tuple(found), values)


def index_words(db: sqlite3.Connection, bodies: Bodies, id: str, seq: int, events: list[AnyEvent]) -> None:
    """Put what a stored commit says into the word index."""
    names = {shown(event) for event in events if isinstance(event, InputSubmitted | ModelStepCompleted)}
    values = {name: bodies.value(db, name) for name in names if name is not None}
    _index(db, id, seq, events, {name: value for name, value in values.items() if value is not None})


def _index(
    db: sqlite3.Connection, id: str, seq: int, events: list[AnyEvent], values: dict[Digest, Body]
) -> tuple[str, str]:
    """Put what was said into the word index; the last text of a person, and of anybody else ("" none)."""
    prompt = other = ""
    for event in events:
        text, kind = "", "answer"
        if isinstance(event, InputSubmitted):
            kind = "prompt" if event.source == "person" else "input"
            body = values.get(event.body)
            if isinstance(body, MessageBody):
                text = "\n".join(part.text for part in body.message.parts if isinstance(part, Text))
            prompt, other = (text or prompt, other) if kind == "prompt" else (prompt, text or other)
        elif isinstance(event, ModelStepCompleted):
            body = values.get(event.result)
            text = body.result.text() if isinstance(body, ResultBody) else ""
        if text.strip():
            cursor = db.execute("INSERT INTO said(segment, seq, kind) VALUES(?, ?, ?)", (id, seq, kind))
            db.execute("INSERT INTO words(rowid, text) VALUES(?, ?)", (cursor.lastrowid, text[:LONGEST]))
    return prompt, other


def _row(
    db: sqlite3.Connection, id: str, entry: Entry, seq: int, digest: str, count: int, now: int,
    said: tuple[str, str], turns: int,
) -> None:  # fmt: skip
    """`said` by a person and by others: what others said stands only where no person has said anything."""
    settings = entry.settings
    db.execute(
        "UPDATE session SET head = ?, digest = ?, count = ?, time = ?, title = ?, cwd = ?, model = ?,"
        " turns = turns + ?, tokens = tokens + ?, cost = CASE WHEN ? IS NULL THEN cost ELSE coalesce(cost, 0) + ? END,"
        " prompt = coalesce(nullif(?, ''), nullif(prompt, ''), ?) WHERE id = ?",
        (
            seq, bytes.fromhex(digest), count, now, settings.title, settings.cwd, settings.model, turns, entry.tokens,
            entry.cost, entry.cost, said[0][:400], said[1][:400], id,
        ),
    )  # fmt: skip
