"""Killed at any moment: nothing that was decided is lost, nothing is done twice, the record proves."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

from panto.session.context import InputEntry
from panto.session.recovery import recovery
from tests.session.drive import Driver, sendable
from tests.session.processes import Other
from tests.session.world import opened, play, reply, send

WORK = """
import random
from tests.session.drive import Driver
session = await store.open_session(sys.argv[2]) if sys.argv[2] else await store.create(cwd="/w")
say(session.id)
if session.state.run is not None or session.state.jobs:
    commands = recovery(session.state)
    if commands:
        await session.commit(*commands)
    assert recovery(session.state) == ()
driver = Driver(session, random.Random(int(sys.argv[3])), pathlib.Path(sys.argv[4]), pathlib.Path(sys.argv[5]))
while True:
    await driver.step()
"""


@pytest.mark.long(sample=2)
@pytest.mark.parametrize("seed", range(30))
def test_after_sigkill_anywhere_all_that_was_accepted_is_there_and_nothing_ran_twice(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root, done, said = tmp_path / "store", tmp_path / "done", tmp_path / "said"
    done.touch()
    said.touch()
    id = ""
    for round in range(10):
        other = Other(root, WORK, id, str(seed * 100 + round), str(done), str(said))
        id = other.hear()
        assert id
        time.sleep(chance.uniform(0, 0.25))
        other.kill()

        async def look() -> None:
            async with opened(root) as store:
                report = await store.verify(id)  # noqa: B023
                assert report.intact, report.findings
                session = await store.open_session(id)  # noqa: B023
                commands = recovery(session.state)
                if commands:
                    await session.commit(*commands)
                assert recovery(session.state) == ()
                sendable(session)
                driver = Driver(session, random.Random(round), done, said)  # noqa: B023
                if round % 2:  # noqa: B023
                    await driver.prompt_parked()
                    sendable(session)
                await session.close()

        play(look)

    effects = [line.split() for line in done.read_text().splitlines()]
    twice = [effect for (effect, name), n in Counter(map(tuple, effects)).items() if n > 1]
    assert twice == []  # a driver never repeats a replay-safe call either: it only settles it
    accepted = said.read_text().split()

    async def whole() -> None:
        async with opened(root) as store:
            viewer = await store.view(id)
            facts = (await viewer.history(limit=10**7)).facts
            submitted = [fact.event.entity for fact in facts if fact.event.machine == "input"]
            assert set(accepted) <= set(submitted)
            started = {getattr(f.event, "effect", "") for f in facts if type(f.event).__name__ == "ToolCallStarted"}
            assert {effect for effect, _ in effects} <= started  # durable before any side effect
            await viewer.close()

    play(whole)


ONE_COMMIT = """
session = await store.open_session(sys.argv[2])
say("ready")
n = 0
while True:
    body, more = said(f"input {n}"), stage(TextBody(text=str(n) * 50_000))
    name = f"{n:032x}"
    await session.commit(
        c.SubmitInput(input=name, body=body.digest), c.AppendFact(owner="x", kind=str(n), value=more.digest),
        bodies=(body, more),
    )
    say(n)
    n += 1
"""


@pytest.mark.long(sample=2)
@pytest.mark.parametrize("seed", range(25))
def test_a_commit_is_there_whole_or_not_at_all_and_the_next_takes_its_seq(tmp_path: Path, seed: int) -> None:
    async def made() -> str:
        async with opened(tmp_path) as store:
            return (await store.create(cwd="/w", title="kept")).id

    id = play(made)
    other = Other(tmp_path, ONE_COMMIT, id)
    assert other.hear() == "ready"
    told = -1
    for _ in range(random.Random(seed).randint(0, 12)):
        told = int(other.hear())
    time.sleep(random.Random(seed + 1000).uniform(0, 0.004))
    other.kill()

    async def look() -> None:
        async with opened(tmp_path) as store:
            session = await store.open_session(id)
            inputs = len(session.state.inputs)
            assert inputs == len(session.view.extensions.get("x", ()))  # all of a commit or nothing
            assert inputs >= told + 1  # what was told is there
            assert session.head[0] == inputs
            for digest in (waiting.body for waiting in session.state.inputs.values()):
                await session.body(digest)
            from tests.session.world import begin

            await begin(session)
            assert session.head[0] == inputs + 1
            assert (await store.verify(id)).intact

    play(look)


def test_the_file_as_a_crash_leaves_it_at_any_byte_of_the_log_opens_with_whole_commits(tmp_path: Path) -> None:
    """The write-ahead log is cut at many places, as a power cut may do; each time a prefix of commits is there."""
    root = tmp_path / "store"

    async def script() -> tuple[str, bytes, bytes]:
        async with opened(root) as store:
            session = await store.create(cwd="/w")
            await store.writer.run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)") and None, plain=True)
            driver = Driver(session, random.Random(3), tmp_path / "done", tmp_path / "said")
            for _ in range(25):
                await driver.step()
            return session.id, (root / "sessions.db").read_bytes(), (root / "sessions.db-wal").read_bytes()

    id, database, log = play(script)
    heads = []
    for n, cut in enumerate([*range(0, len(log), len(log) // 40), len(log)]):
        copy = tmp_path / f"copy{n}"
        copy.mkdir()
        (copy / "sessions.db").write_bytes(database)
        (copy / "sessions.db-wal").write_bytes(log[:cut])

        async def look() -> int:
            async with opened(copy) as store:  # noqa: B023
                session = await store.open_session(id, take_over=True)
                head = session.head[0]
                sendable(session)
                await session.commit(*recovery(session.state)) if recovery(session.state) else None
                if session.state.turn is None:
                    from tests.session.world import begin

                    await begin(session)
                    await send(session)
                    await reply(session, "fine")
                report = await store.verify(id)
                assert not [f for f in report.findings if not f.body]
                return head

        heads.append(play(look))
    assert heads == sorted(heads) and heads[0] < heads[-1]


def test_inputs_stand_in_the_context_once(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path / "store") as store:
            session = await store.create(cwd="/w")
            driver = Driver(session, random.Random(11), tmp_path / "done", tmp_path / "said")
            for _ in range(400):
                await driver.step()
                sendable(session)
                names = [entry.id for entry in session.view.context if isinstance(entry, InputEntry)]
                assert len(names) == len(set(names))
            assert (await store.verify(session.id)).intact

    play(script)


def test_the_database_is_sound_after_all_that(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path / "store") as store:
            session = await store.create(cwd="/w")
            driver = Driver(session, random.Random(5), tmp_path / "done", tmp_path / "said")
            for _ in range(60):
                await driver.step()

    play(script)
    db = sqlite3.connect(tmp_path / "store/sessions.db")
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    db.close()
