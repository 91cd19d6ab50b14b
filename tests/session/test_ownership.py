"""Who may write a session: one owner, told apart by epochs; dead ones make room; readers need nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from panto.schema.errors import Owned, OwnershipLost
from panto.schema.events import TitleChanged
from panto.schema.signals import Fact
from panto.session import Store, lease, ownership
from panto.session import commands as c
from tests.session.processes import Other
from tests.session.world import begin, opened, play, turn

OWN = """
session = await store.open_session(sys.argv[2])
say("open", session.handle.epoch)
while (word := await hear()):
    try:
        if word == "title":
            await session.commit(c.ChangeTitle(title="other"))
            say("done")
        elif word == "close":
            await session.close()
            say("closed")
        elif word == "lost":
            lost = asyncio.Event()
            session.on_lost(lost.set)
            say("waiting")
            await asyncio.wait_for(lost.wait(), 60)
            say("lost")
    except PantoError as error:
        say(type(error).__name__)
"""


async def made(root: Path) -> str:
    async with opened(root) as store:
        session = await store.create(cwd="/w")
        await turn(session)
        return session.id


def dump(root: Path) -> list[object]:
    db = sqlite3.connect(root / "sessions.db")
    try:
        return db.execute("SELECT segment, seq, digest, body FROM commits ORDER BY 1, 2").fetchall()
    finally:
        db.close()


def test_a_live_session_opened_elsewhere_is_owned_and_the_first_is_untouched(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))
    other = Other(tmp_path, OWN, id)
    assert other.hear() == "open 2"

    async def script() -> None:
        async with opened(tmp_path) as store:
            with pytest.raises(Owned) as owned:
                await store.open_session(id)
            owner = owned.value.owner
            assert (owner.session, owner.pid, owner.host) == (id, other.process.pid, os.uname().nodename)
            assert owner.alive and owner.title
            assert str(other.process.pid) in owned.value.message
            assert "fork" in owned.value.hint and "take it over" in owned.value.hint and "follow" in owned.value.hint
            assert (await store.list())[0].owner

    play(script)
    other.tell("title")
    assert other.hear() == "done"
    other.tell("")
    assert other.end() == 0


def test_every_open_raises_the_epoch_by_one_and_stores_it(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))

    async def script() -> list[int]:
        epochs = []
        for _ in range(3):
            async with opened(tmp_path) as store:
                session = await store.open_session(id)
                stored = await store.reader.run(
                    lambda db: db.execute("SELECT epoch FROM session WHERE id = ?", (id,)).fetchone()[0], plain=True
                )
                assert stored == session.handle.epoch
                epochs.append(stored)
        return epochs

    assert play(script) == [2, 3, 4]


def test_a_superseded_handle_gets_ownership_lost_and_the_ledger_stays_as_it_is(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))
    other = Other(tmp_path, OWN, id)
    assert other.hear() == "open 2"

    async def take() -> list[object]:
        async with opened(tmp_path) as store:
            session = await store.open_session(id, take_over=True)
            await session.commit(c.ChangeTitle(title="mine"))
            before = dump(tmp_path)
            other.tell("title")
            assert await asyncio.to_thread(other.hear) == "OwnershipLost"
            assert session.state.settings.title == "mine"
            return before

    before = play(take)
    assert dump(tmp_path) == before
    other.tell("title")
    assert other.hear() == "OwnershipLost"
    other.tell("")
    other.end()


def test_a_superseded_owner_is_told_when_it_renews(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            session = await one.create(cwd="/w")
            told: list[int] = []
            session.on_lost(lambda: told.append(1))
            await two.open_session(session.id, take_over=True)
            one._renew()
            await asyncio.wait_for(one.writer.run(lambda db: None), 30)
            await asyncio.sleep(0)
            assert told == [1]
            with pytest.raises(OwnershipLost):
                await session.commit(c.ChangeTitle(title="t"))

    play(script)


def test_a_killed_owner_needs_no_takeover_flag(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))
    other = Other(tmp_path, OWN, id)
    assert other.hear() == "open 2"
    other.kill()

    async def script() -> int:
        async with opened(tmp_path) as store:
            return (await store.open_session(id)).handle.epoch

    assert play(script) == 3


def test_a_killed_owner_that_its_parent_has_not_waited_for_is_dead_all_the_same(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))
    other = Other(tmp_path, OWN, id)
    assert other.hear() == "open 2"
    os.kill(other.process.pid, signal.SIGKILL)
    stat = Path(f"/proc/{other.process.pid}/stat")
    deadline = time.monotonic() + 30
    while stat.exists() and b") Z " not in stat.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)

    async def script() -> int:
        async with opened(tmp_path) as store:
            return (await store.open_session(id)).handle.epoch

    assert play(script) == 3
    other.end()


def holder(**changes: object) -> lease.Holder:
    import msgspec

    return msgspec.structs.replace(lease.own("x" * 32, 1000.0), **changes)


def test_who_is_alive() -> None:
    now = 1000.0
    assert lease.alive(holder(), now)
    assert not lease.alive(holder(until=now), now)  # run out
    assert not lease.alive(holder(pid=2**22 + 1), now)  # no such process
    assert not lease.alive(holder(started="1"), now)  # another process with its number
    assert lease.alive(holder(machine="another", pid=2**22 + 1), now)  # elsewhere nothing is proven
    assert lease.alive(holder(pid=1, started=lease.started(1)), now)


def test_a_lease_that_ran_out_but_was_not_superseded_still_appends(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await store.writer.run(lambda db: db.execute("UPDATE lease SET until = 0") and None)
            await session.commit(c.ChangeTitle(title="late"))
            assert session.state.settings.title == "late"

    play(script)


def test_a_lease_that_ran_out_is_taken_over_unasked(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            session = await one.create(cwd="/w")
            with pytest.raises(Owned):
                await two.open_session(session.id)
            await one.writer.run(lambda db: db.execute("UPDATE lease SET until = 0") and None)
            assert (await two.open_session(session.id)).handle.epoch == 2

    play(script)


def test_when_an_append_is_fenced_all_that_wait_are_told_at_once_and_nothing_more_is_committed(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            session = await one.create(cwd="/w")
            taken = await two.open_session(session.id, take_over=True)
            waiting = [session.commit(c.ChangeTitle(title=str(n))) for n in range(50)]
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(result) for result in results} == {OwnershipLost}
            assert taken.head == session.head
            with pytest.raises(OwnershipLost):
                await session.reopen()

    play(script)


def test_a_superseded_owner_plans_on_its_own_view_and_is_stopped_at_commit(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            session = await one.create(cwd="/w")
            taken = await two.open_session(session.id, take_over=True)
            await begin(taken)
            assert session.state.run is None
            assert session.preview(c.ChangeTitle(title="t")).state.settings.title == "t"
            with pytest.raises(OwnershipLost):
                await begin(session)

    play(script)


def test_reading_needs_no_lease_and_changes_none(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            session = await one.create(cwd="/w")
            await turn(session)
            viewer = await two.view(session.id)
            assert len((await viewer.history()).facts) > 5
            await two.verify(session.id)
            _ = [piece async for piece in two.export(session.id)]
            leases = await one.reader.run(lambda db: db.execute("SELECT count(*) FROM lease").fetchone()[0], plain=True)
            assert leases == 1
            assert session.handle.epoch == 1
            await turn(session)
            await viewer.close()

    play(script)


def test_in_one_process_a_second_open_fails_also_while_closing_and_an_old_close_leaves_a_newer_handle(
    tmp_path: Path,
) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w", title="kept")
            with pytest.raises(Owned):
                await store.open_session(session.id)
            with pytest.raises(Owned):
                await store.open_session(session.id, take_over=True)
            gate = threading.Event()
            busy = store.writer.run(lambda db: gate.wait(30), plain=True)  # so that closing takes its time
            closing = asyncio.create_task(session.close())
            await asyncio.sleep(0)
            with pytest.raises(Owned):
                await store.open_session(session.id)
            gate.set()
            await busy
            await closing
            newer = await store.open_session(session.id)
            await session.close()
            await store.writer.run(lambda db: ownership.let_go(db, session.handle))
            await newer.commit(c.ChangeTitle(title="t"))
            async with opened(tmp_path) as other:
                with pytest.raises(Owned):
                    await other.open_session(session.id)

    play(script)


def test_the_lease_is_renewed_every_third_of_its_time_and_a_failed_renewal_is_tried_at_the_next_beat(
    tmp_path: Path,
) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            beat = store._beat
            assert beat is not None
            assert abs(beat.when() - asyncio.get_running_loop().time() - lease.DURATION / 3) < 5

            async def until() -> float:
                row = await store.reader.run(lambda db: db.execute("SELECT until FROM lease").fetchone(), plain=True)
                return float(row[0])

            first = await until()
            await store.writer.run(lambda db: db.execute("ALTER TABLE lease RENAME TO away") and None)
            store._renew()
            assert store._beat is not None and store._beat is not beat
            await store.writer.run(lambda db: db.execute("ALTER TABLE away RENAME TO lease") and None)
            await store.writer.run(lambda db: db.execute("UPDATE lease SET until = 1") and None)
            store._renew()
            await store.writer.run(lambda db: None)
            assert await until() >= first
            await session.commit(c.ChangeTitle(title="t"))

    play(script)


def test_a_viewer_follows_a_session_that_is_live_in_another_process(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))
    other = Other(tmp_path, OWN, id)
    assert other.hear() == "open 2"

    async def script() -> None:
        async with opened(tmp_path) as store:
            viewer = await store.view(id)
            seen: list[Fact] = []
            came = asyncio.Event()

            def look(fact: Fact) -> None:
                seen.append(fact)
                if len(seen) == 3:
                    came.set()

            viewer.subscribe(look)
            for _ in range(3):
                other.tell("title")
                assert await asyncio.to_thread(other.hear) == "done"
            await asyncio.wait_for(came.wait(), 30)
            assert [type(fact.event) for fact in seen] == [TitleChanged] * 3
            assert [fact.seq for fact in seen] == sorted(fact.seq for fact in seen)
            assert viewer.state.settings.title == "other"
            await viewer.close()

    play(script)
    other.tell("")
    other.end()


ALTERNATE = """
me, rounds = sys.argv[3], int(sys.argv[4])
for n in range(rounds):
    while True:
        try:
            session = await store.open_session(sys.argv[2])
            break
        except Owned:
            await asyncio.sleep(0.002)
    await session.commit(c.ChangeTitle(title=f"{me}:{n}"))
    await session.close()
say("done")
"""


@pytest.mark.long(sample=1)
@pytest.mark.parametrize(("processes", "rounds"), [(2, 60), (2, 500), (4, 250)])
def test_no_commit_is_lost_when_processes_take_turns_on_one_session(
    tmp_path: Path, processes: int, rounds: int
) -> None:
    id = play(lambda: made(tmp_path))
    others = [Other(tmp_path, ALTERNATE, id, str(n), str(rounds)) for n in range(processes)]
    for other in others:
        assert other.hear() == "done"
        assert other.end() == 0

    async def script() -> list[str]:
        async with opened(tmp_path) as store:
            report = await store.verify(id)
            assert report.intact
            facts = (await (await store.view(id)).history(limit=10**6)).facts
            return [fact.event.title for fact in facts if isinstance(fact.event, TitleChanged)]

    titles = play(script)
    for n in range(processes):
        assert [t for t in titles if t.startswith(f"{n}:")] == [f"{n}:{k}" for k in range(rounds)]


def test_one_lease_row_serves_all_sessions_of_a_process(tmp_path: Path) -> None:
    async def script() -> int:
        async with opened(tmp_path) as store:
            primary = await store.create(cwd="/w")
            for _ in range(5):
                await store.create(cwd="/w", under=primary.id, opener=primary.id, depth=1)
            row = await store.reader.run(lambda db: db.execute("SELECT count(*) FROM lease").fetchone(), plain=True)
            return int(row[0])

    assert play(script) == 1


def test_a_symbolic_link_to_the_store_is_the_same_store(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    async def script() -> None:
        async with opened(tmp_path / "real") as one, opened(tmp_path / "link") as two:
            session = await one.create(cwd="/w")
            with pytest.raises(Owned):
                await two.open_session(session.id)

    play(script)


def test_store_is_open_and_close_leave_no_lease_behind(tmp_path: Path) -> None:
    async def script() -> None:
        store = await Store.open(tmp_path)
        await store.create(cwd="/w")
        await store.close()
        async with opened(tmp_path) as again:
            row = await again.reader.run(lambda db: db.execute("SELECT count(*) FROM lease").fetchone(), plain=True)
            assert row == (0,)

    play(script)
