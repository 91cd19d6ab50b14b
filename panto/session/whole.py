"""How sessions as a whole are put out and in, proven, mended, swept. All work is done in the disk's threads."""

from __future__ import annotations

import asyncio
import pathlib
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from panto.schema.codec import Digest
from panto.schema.errors import UsageError
from panto.session import collect as collecting
from panto.session import connect, importing, lease, ownership, transfer
from panto.session import repair as repairing
from panto.session import rescue as rescuing
from panto.session import verify as verifying
from panto.session.bodies import MANIFEST, Staged
from panto.session.disk import Failed
from panto.session.importing import Draft, Imported
from panto.session.read import Lineage, lineage
from panto.session.repair import Repaired
from panto.session.rescue import Rescued
from panto.session.verify import Finding, Report

if TYPE_CHECKING:
    import sqlite3

    from panto.session.collect import Collected
    from panto.session.store import Store

STORE = "store"
"""The name that means all sessions where one is to be repaired; no id begins like this."""

PIECE = 200
"""Commits, or lines, that are handled at a time."""


async def export(store: Store, name: str) -> AsyncIterator[bytes]:
    """A session's lines, in pieces; bodies that are missing or damaged are left out. Raises Missing, Corrupt."""
    id = await store.resolve(name)

    def first(db: sqlite3.Connection) -> tuple[transfer.Header, Lineage]:
        return transfer.begin(db, id), lineage(db, id)

    header, line = await store.reader.run(first, plain=True)
    yield msgspec.json.encode(header) + b"\n"
    seen: set[Digest] = set()
    last, bodies, commits = -1, 0, 0
    while last < header.head:
        out, last = await store.reader.run(
            lambda db, after=last: transfer.lines(db, store.bodies, line, after, seen, PIECE),  # type: ignore[misc]
            plain=True,
        )
        if not out:
            break
        commits += sum(each.startswith(b'{"type":"commit"') for each in out)
        bodies += sum(each.startswith(b'{"type":"body"') for each in out)
        yield b"".join(out)
    yield msgspec.json.encode(transfer.EndLine(commits, bodies)) + b"\n"


async def import_(store: Store, path: pathlib.Path) -> Imported:
    """Read a file of JSON lines. Raises UsageError (no such file, no session in it), Conflict."""
    draft = Draft()
    try:
        with await asyncio.to_thread(open, path, "rb") as file:
            while lines := await asyncio.to_thread(_some, file):
                await _keep(store, draft, await asyncio.to_thread(draft.take, lines))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    holder = store.holder()

    def job(db: sqlite3.Connection) -> str:
        id = importing.finish(db, store.bodies, draft, holder)
        db.execute("DELETE FROM claim WHERE lease = ?", (holder.id,))
        return id

    id = await store.writer.run(job)
    warnings, aside = draft.warnings(), ""
    if draft.bad:
        aside = await _aside(store, id, [data for _, _, data in draft.bad])
    return Imported(id, len(draft.commits), draft.bodies, tuple(warnings), aside)


def _some(file: BinaryIO) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while len(lines) < PIECE and size < 4 * 1024 * 1024 and (line := file.readline()):
        lines.append(line)
        size += len(line)
    return lines


async def _keep(store: Store, draft: Draft, staged: list[Staged]) -> None:
    """Store bodies that no commit names yet, claimed until the import is finished."""
    large = tuple(each for each in staged if store.bodies.large(each))
    if large:
        await store.place(large)
    if not staged:
        return
    holder = store.holder()

    def job(db: sqlite3.Connection) -> None:
        lease.put(db, holder)
        for each in staged:
            manifest = each.data.endswith(MANIFEST)
            store.bodies.put(db, each, holder.id, draft.manifest if manifest else None)
            draft.manifest = each if manifest else draft.manifest
        store.bodies.claim(db, holder.id, (each.digest for each in staged))

    await store.writer.run(job)


async def _aside(store: Store, id: str, lines: list[bytes]) -> str:
    """Keep what could not be used, in a file of its own; its path ("" where it cannot be written)."""
    if store.memory:
        return ""
    path = store.root / "aside" / f"{id[:8]}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"

    def write() -> str:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))
        except OSError:
            return ""
        return str(path)

    return await asyncio.to_thread(write)


async def verify(store: Store, name: str) -> Report:
    """Prove a session. Where something does not, its row says so from then on."""
    id = await store.resolve(name)

    def job(db: sqlite3.Connection) -> Report:
        report = verifying.verify(db, store.bodies, id)
        file = verifying.whole(db) if report.intact else ""
        if file:
            return msgspec.structs.replace(report, findings=(Finding(f"the database file is damaged: {file}", id),))
        return report

    report = await store.reader.run(job, plain=True)
    broken = report.findings[0].text if report.findings else ""

    def tell(db: sqlite3.Connection) -> None:
        db.execute("UPDATE session SET broken = ?1 WHERE id = ?2 AND (broken = '') <> (?1 = '')", (broken, id))

    try:
        await store.writer.run(tell)
    except Failed:
        pass  # a store that cannot be written can still be proven
    return report


async def repair(store: Store, name: str) -> Repaired:
    """Mend a session that nobody has open; where the file itself is damaged, first the file. Raises Owned, Missing."""
    found: list[Finding] = []
    if await _file(store) or rescuing.aside(store.root):
        rescued = await store.rescue()
        much = "" if rescued.whole or rescued.broken else ", and nothing of it can be read"
        found = [Finding(f"the database file was damaged; the old one is {path}{much}", "") for path in rescued.aside]
        if name == STORE:
            broken = [Finding(f"session {id[:8]} has lost parts: panto session repair {id[:8]}", id)
                      for id in rescued.broken]  # fmt: skip
            gone = [Finding(f"nothing of session {id[:8]} can be read", id) for id in rescued.gone]
            return Repaired(STORE, "mended", rescued.commits, (*found, *gone, *broken))
    if name == STORE:
        return Repaired(STORE, "intact", 0)
    id = await store.resolve(name)
    done = await _mend(store, id)
    if not found:
        return done
    outcome = "mended" if done.outcome == "intact" else done.outcome
    return msgspec.structs.replace(done, outcome=outcome, lost=(*found, *done.lost))


async def rescue(store: Store) -> Rescued:
    """Put a damaged file aside, and carry over all that can be read of files that lie aside. Raises UsageError."""
    damaged = await _file(store)
    mine = await store.disconnect()
    try:
        if damaged:
            await asyncio.to_thread(rescuing.put_aside, store.root, mine)
        return await asyncio.to_thread(rescuing.rescue, store.root)
    finally:
        await store.connect()


async def begin_anew(store: Store, damage: Failed) -> None:
    """Put a damaged file aside and begin a new one; where another process still uses it, go on in memory."""
    before = rescuing.identity(store.root)
    mine = await store.disconnect()
    try:
        if rescuing.identity(store.root) == before:  # else somebody else has been here
            await asyncio.to_thread(rescuing.put_aside, store.root, mine)
    except (UsageError, OSError) as error:
        await store.connect(memory=True)
        why = error.message if isinstance(error, UsageError) else error.strerror
        store.notice = f"{damage.message}, and {why}; this session lives in memory and is gone when panto ends"
        return
    await store.connect()
    store.notice = f"{damage.message}. It was put aside and a new one begun; {connect.BRING_BACK}"


async def _file(store: Store) -> str:
    """What is wrong with the database file ("" nothing)."""
    if store.memory:
        return "it cannot be opened" if (store.root / connect.FILE).exists() else ""
    try:
        return await store.reader.run(verifying.whole, plain=True)
    except Failed as error:
        return error.message


async def _mend(store: Store, id: str) -> Repaired:
    report = await verify(store, id)
    if report.intact:
        return Repaired(id, "intact", report.commits)
    holder = store.holder()
    taken = await store.writer.run(lambda db: ownership.take(db, id, holder, take_over=False))
    try:
        kept = await store.reader.run(lambda db: repairing.salvage(db, id), plain=True)
        lost_bodies = tuple(finding for finding in report.findings if finding.body)
        if not kept.findings:
            await store.writer.run(lambda db: repairing.reindex(db, id))
            return Repaired(id, "mended", report.commits, report.findings)
        aside = await _aside(store, id, list(kept.aside)) if kept.aside else ""
        new = await store.writer.run(lambda db: repairing.record(db, store.bodies, id, kept, holder))
        count = (kept.shared.seq + 1 if kept.shared else 0) + len(kept.later)
        return Repaired(new, "replaced", count, kept.findings + lost_bodies, aside, id)
    finally:
        await store.writer.run(lambda db: ownership.let_go(db, taken.handle))


async def collect(store: Store) -> Collected:
    """Remove what nothing reaches. Raises Corrupt where a damaged commit stands in the way."""
    return await store.writer.run(lambda db: collecting.collect(db, store.bodies))
