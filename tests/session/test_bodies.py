"""The content store: stored before it is named, once, proven on reading, kept as long as a commit reaches it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from panto.schema.bodies import TextBody
from panto.schema.codec import digest
from panto.schema.errors import Corrupt, Missing, Refused
from panto.session import Store, stage
from panto.session import commands as c
from panto.session.bodies import INLINE
from tests.session.processes import Other
from tests.session.world import number, opened, play, said, turn

LARGE = stage(TextBody(text="long " * 80_000))


def query(root: Path, text: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(root / "sessions.db")
    try:
        found = db.execute(text).fetchall()
        db.commit()
        return found
    finally:
        db.close()


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "blobs").glob("*/*")) if (root / "blobs").exists() else []


async def with_large(root: Path) -> str:
    async with opened(root) as store:
        session = await store.create(cwd="/w")
        await session.commit(c.AppendFact(owner="x", kind="k", value=LARGE.digest), bodies=(LARGE,))
        return session.id


def test_a_visible_fact_names_a_stored_body_whose_digest_is_right(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            body = said("hello")
            seen: list[bytes] = []

            async def look() -> None:
                seen.append(await session.raw(body.digest))

            session.subscribe(lambda fact: tasks.append(asyncio.ensure_future(look())))
            tasks: list[asyncio.Future[None]] = []
            await session.commit(c.SubmitInput(input=number(1), body=body.digest), bodies=(body,))
            await asyncio.gather(*tasks)
            assert digest(seen[0]) == body.digest
            assert await session.body(body.digest) == body.value

    play(script)


def test_large_bodies_are_files_and_small_ones_rows(tmp_path: Path) -> None:
    assert len(LARGE.data) > INLINE
    id = play(lambda: with_large(tmp_path))
    assert files(tmp_path) == [LARGE.digest]
    assert (tmp_path / "blobs" / LARGE.digest[:2] / LARGE.digest).read_bytes() == LARGE.data
    assert query(tmp_path, "SELECT size, data FROM body WHERE data IS NULL") == [(len(LARGE.data), None)]
    assert query(tmp_path, "SELECT * FROM claim") == []

    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.open_session(id)
            assert await session.body(LARGE.digest) == LARGE.value
            assert (await session.history()).facts[-1].body == LARGE.value

    play(script)


def test_the_same_bytes_twice_are_one_body(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            for _ in range(2):
                session = await store.create(cwd="/w")
                for _ in range(2):
                    await session.commit(c.AppendFact(owner="x", kind="k", value=LARGE.digest), bodies=(LARGE,))
                    small = said("small")
                    await session.commit(c.AppendFact(owner="x", kind="k", value=small.digest), bodies=(small,))

    play(script)
    assert query(tmp_path, "SELECT count(*) FROM body") == [(2,)]
    assert files(tmp_path) == [LARGE.digest]


@pytest.mark.parametrize("how", ["cut", "changed", "gone", "row"])
def test_a_damaged_body_is_reported_never_returned_and_the_folds_work_without_it(tmp_path: Path, how: str) -> None:
    id = play(lambda: with_large(tmp_path))
    path = tmp_path / "blobs" / LARGE.digest[:2] / LARGE.digest
    match how:
        case "cut":
            path.write_bytes(LARGE.data[:1000])
        case "changed":
            path.write_bytes(b"x" + LARGE.data[1:])
        case "gone":
            path.unlink()
        case "row":
            query(tmp_path, "DELETE FROM body WHERE data IS NULL")

    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.open_session(id)
            assert session.view.extensions == {"x": [("k", LARGE.digest)]}
            with pytest.raises((Missing, Corrupt), match=LARGE.digest):
                await session.body(LARGE.digest)
            page = await session.history()
            assert page.facts[-1].body is None and page.facts[-1].event.entity == "x"
            report = await store.verify(id)
            assert [finding.body for finding in report.findings] == [LARGE.digest]
            await turn(session)  # life goes on
            # The same bytes, staged again, mend a file that is short or gone.
            if how in ("cut", "gone", "row"):
                await session.commit(c.AppendFact(owner="x", kind="k", value=LARGE.digest), bodies=(LARGE,))
                assert await session.body(LARGE.digest) == LARGE.value

    play(script)


def test_bodies_of_reachable_commits_stay_and_unnamed_ones_of_failed_commits_go(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session)
            before = query(tmp_path, "SELECT count(*) FROM body")
            stray = stage(b"s" * (INLINE + 1))
            with pytest.raises(Refused):
                await session.commit(c.StopRun(run=number(9)), bodies=(said("never named"), LARGE, stray))
            await session.commit(c.ChangeTitle(title="t"), bodies=(said("named by nothing"),))
            assert LARGE.digest in files(tmp_path)
            collected = await store.collect()
            assert collected.bodies == 1
            assert query(tmp_path, "SELECT count(*) FROM body") == before
            assert (await store.verify(session.id)).intact

    play(script)

    async def later() -> None:
        async with opened(tmp_path) as store:
            await store.collect()

    play(later)
    assert files(tmp_path) == []


ORPHAN = """
import os
from panto.session import stage
large = stage(b"z" * 300_000)
await store.place((large,))
say(large.digest)
await asyncio.sleep(600)
"""


def test_a_claim_protects_a_file_before_its_commit_and_is_released_when_its_writer_is_dead(tmp_path: Path) -> None:
    other = Other(tmp_path, ORPHAN)
    name = other.hear()

    async def script() -> list[str]:
        async with opened(tmp_path) as store:
            await store.collect()
        return files(tmp_path)

    assert play(script) == [name]  # its writer lives
    other.kill()

    async def reopen() -> None:
        store = await Store.open(tmp_path)
        session = await store.create(cwd="/w")
        await session.close()
        await store.close()

    play(reopen)
    assert files(tmp_path) == []
    assert query(tmp_path, "SELECT * FROM claim") == []


def test_what_a_file_held_before_a_change_outlives_a_collection(tmp_path: Path) -> None:
    from panto.schema.events import FileChange
    from tests.session.world import begin, outcome, reply, send, start

    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            (call,) = await reply(session, "", "edit")
            effect = await start(session, call)
            run = session.state.run
            assert run is not None
            before, done = stage(b"old bytes \xff"), outcome("ok")
            change = FileChange(path="/w/f", before=before.digest, after="b" * 64)
            await session.commit(
                c.SubmitCallResult(run=run.run, call=call, effect=effect, outcome=done.digest, files=(change,)),
                bodies=(done, before),
            )
            await store.collect()
            assert await session.raw(session.view.turns[0].changes[0].before or "") == b"old bytes \xff"

    play(script)
