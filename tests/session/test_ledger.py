"""Rules of the ledger on disk: atomic commits, the chain, refusals, replay, poisoned writers, unknown facts."""

from __future__ import annotations

import asyncio
import gc
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from panto.schema.bodies import Question, ResultBody
from panto.schema.codec import canonical, digest
from panto.schema.errors import Conflict, Corrupt, Refused, StorageFailed, ViewOnly
from panto.schema.events import AnyEvent, ModeChanged, RunCreated, TitleChanged, TurnStarted
from panto.session import Store, stage
from panto.session import commands as c
from panto.session.ids import new_id
from panto.session.ledger import Batch, Group, Unknown, freeze, groups_of, seal, thaw
from panto.session.read import ENDLESS, commits, lineage
from tests.session.world import answer, begin, number, opened, outcome, play, reply, said, send, turn

DATABASE = "sessions.db"


def rows(root: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Look into the database, from outside."""
    db = sqlite3.connect(root / DATABASE)
    try:
        return db.execute(query, values).fetchall()
    finally:
        db.close()


def tamper(root: Path, *statements: str) -> None:
    """Change the database behind panto's back, without its triggers."""
    db = sqlite3.connect(root / DATABASE)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


async def three_turns(root: Path, close: bool = True) -> str:
    """A session of three turns; its id."""
    async with opened(root) as store:
        session = await store.create(cwd="/w", model="fake:small")
        for n in range(3):
            await turn(session, f"say {n}", f"answer {n}")
        return session.id


# --- commits and the chain --------------------------------------------------------------------------------------


def test_seq_is_contiguous_and_each_previous_digest_equals_the_digest_before(tmp_path: Path) -> None:
    id = play(lambda: three_turns(tmp_path))
    found = rows(tmp_path, "SELECT seq, prev, digest FROM commits WHERE segment = ? ORDER BY seq", id)
    (seed,) = rows(tmp_path, "SELECT seed FROM segment WHERE id = ?", id)
    assert [row[0] for row in found] == list(range(len(found)))
    assert [row[1] for row in found] == [seed[0], *(row[2] for row in found[:-1])]


TAMPERED = {
    "payload": "UPDATE commits SET body = CAST(replace(body, 'fake:small', 'fake:large') AS BLOB) WHERE seq = 0",
    "type": "UPDATE commits SET body = replace(body, 'model_changed', 'title_changed') WHERE seq = 0",
    "time": "UPDATE commits SET time = time + 1 WHERE seq = 2",
    "stream": "UPDATE commits SET body = replace(body, '[[\"input\",', '[[\"turn\",') WHERE seq = 1",
    "epoch": "UPDATE commits SET epoch = 7 WHERE seq = 3",
    "digest": "UPDATE commits SET digest = zeroblob(32) WHERE seq = 3",
    "previous": "UPDATE commits SET prev = zeroblob(32) WHERE seq = 3",
    "intent": "intent",
    "order": "order",
    "gone": "DELETE FROM commits WHERE seq = 2",
    "tail": "DELETE FROM commits WHERE seq = (SELECT max(seq) FROM commits)",
    "creation": "UPDATE segment SET created = created + 1",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_stored_commit_altered_in_any_part_is_reported_corrupt_with_its_coordinates(
    tmp_path: Path, what: str
) -> None:
    id = play(lambda: three_turns(tmp_path))
    statement = TAMPERED[what]
    if what in ("intent", "order"):
        ((body,),) = rows(tmp_path, "SELECT body FROM commits WHERE seq = 1")
        groups = msgspec.json.decode(body)
        if what == "intent":
            groups[0][1] = "0" * 64
        else:
            groups.reverse()
        statement = f"UPDATE commits SET body = x'{canonical(groups).hex()}' WHERE seq = 1"
    last = rows(tmp_path, "SELECT max(seq) FROM commits")[0][0]
    tamper(tmp_path, "PRAGMA foreign_keys = OFF", statement)
    bad = {"time": 2, "epoch": 3, "digest": 3, "previous": 3, "payload": 0, "type": 0, "gone": 2, "creation": 0}.get(
        what, 1
    )

    async def script() -> tuple[str, int]:
        async with opened(tmp_path) as store:
            report = await store.verify(id)
            with pytest.raises(Corrupt) as corrupt:
                await store.open_session(id)
            assert (corrupt.value.segment, corrupt.value.seq) == (report.findings[0].segment, report.findings[0].seq)
            assert (await store.list())[0].broken
            return report.findings[0].segment, report.findings[0].seq

    # A clean close left a cache, which saves the proof of what lies before it.
    tamper(tmp_path, "DELETE FROM projection")
    assert play(script) == (id, last if what == "tail" else bad)


def test_after_a_clean_close_nothing_before_the_mark_is_rehashed_yet_the_marked_commit_is_proven(
    tmp_path: Path,
) -> None:
    id = play(lambda: three_turns(tmp_path))

    async def load() -> int:
        async with opened(tmp_path) as store:
            return (await store.open_session(id)).view.turns[-1].attempt

    tamper(tmp_path, "UPDATE commits SET time = time + 1 WHERE seq = 1")
    assert play(load) == 1  # not looked at
    tamper(tmp_path, "UPDATE commits SET time = time + 1 WHERE seq = (SELECT max(seq) FROM commits)")
    with pytest.raises(Corrupt):
        play(load)


def test_what_was_recorded_is_never_updated_and_only_deleted_with_its_session(tmp_path: Path) -> None:
    play(lambda: three_turns(tmp_path))
    db = sqlite3.connect(tmp_path / DATABASE)
    for statement in (
        "UPDATE commits SET time = 0",
        "UPDATE command SET seq = 0",
        "UPDATE segment SET depth = 1",
        "DELETE FROM commits WHERE seq = 3",
        "DELETE FROM command",
        "DELETE FROM segment",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="recorded"):
            db.execute(statement)
    db.close()


def test_each_commit_is_durable_before_it_is_told(tmp_path: Path) -> None:
    async def pragma() -> tuple[object, ...]:
        async with opened(tmp_path) as store:
            return await store.writer.run(
                lambda db: tuple(db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("journal_mode", "synchronous")),
                plain=True,
            )

    assert play(pragma) == ("wal", 2)  # 2: FULL
    script = (
        "import asyncio, pathlib, sys\n"
        "from panto.session import Store, commands as c\n"
        "async def main():\n"
        "    store = await Store.open(pathlib.Path(sys.argv[1]))\n"
        "    session = await store.create(cwd='/w')\n"
        "    await asyncio.sleep(0.1)\n"
        "    sys.stdout.write('before\\n'); sys.stdout.flush()\n"
        "    await session.commit(c.ChangeTitle(title='t'))\n"
        "    sys.stdout.write('after\\n'); sys.stdout.flush()\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    watch = ["strace", "-f", "-e", "trace=fsync,fdatasync,write", "-e", "signal=none"]
    trace = subprocess.run(
        [*watch, sys.executable, "-c", script, str(tmp_path / "s")], capture_output=True, text=True, check=True
    ).stderr
    told = trace[trace.index('"before') : trace.index('"after')]
    assert re.search(r"\bf(data)?sync\(\d+", told)


def test_a_seq_at_or_above_the_head_gives_an_empty_page(tmp_path: Path) -> None:
    id = play(lambda: three_turns(tmp_path))
    db = sqlite3.connect(tmp_path / DATABASE)
    line = lineage(db, id)
    head = max(commit.seq for commit in commits(db, line))
    for after in (head, head + 1, ENDLESS - 1, ENDLESS):
        assert list(commits(db, line, after)) == []
    db.close()


# --- refusals ---------------------------------------------------------------------------------------------------

ID, INTENT = "a" * 32, "b" * 64
TITLE = TitleChanged(session=number(5), title="t")


def wrong() -> Iterator[tuple[str, tuple[Group, ...]]]:
    good = Batch("session", number(5), (TITLE,))
    yield "empty", ()
    yield "empty", (Group(ID, INTENT, ()),)
    yield "empty", (Group(ID, INTENT, (Batch("session", number(5), ()),)),)
    yield "repeated", (Group(ID, INTENT, (good, good)),)
    yield "repeated", (Group(ID, INTENT, (good,)), Group(ID, INTENT, (good,)))
    yield "id", (Group("xyz", INTENT, (good,)),)
    yield "id", (Group(ID.upper(), INTENT, (good,)),)
    yield "id", (Group(ID, "b", (good,)),)
    yield "id", (Group(ID, INTENT, (Batch("session", "a b", (TitleChanged(session="a b", title=""),)),)),)
    yield "payload", (Group(ID, INTENT, (Batch("session", number(5), ({"title": "t"},)),)),)  # type: ignore[arg-type]
    yield (
        "payload",
        (Group(ID, INTENT, (Batch("session", number(5), (TitleChanged(session=number(5), title="\ud800"),)),)),),
    )
    yield "stream", (Group(ID, INTENT, (Batch("run", number(5), (TITLE,)),)),)
    yield "stream", (Group(ID, INTENT, (Batch("session", number(6), (TITLE,)),)),)


@pytest.mark.parametrize(("reason", "groups"), list(wrong()))
def test_a_proposal_that_is_not_well_formed_is_refused(reason: str, groups: tuple[Group, ...]) -> None:
    with pytest.raises(Refused) as refused:
        freeze(groups)
    assert refused.value.reason == reason


def test_when_one_machines_part_refuses_no_part_is_written(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w", title="kept")
            head, state = session.head, session.state
            body = said("x")
            with pytest.raises(Refused):
                await session.commit(
                    c.SubmitInput(input=number(1), body=body.digest),
                    c.ChangeTitle(title="t"),
                    c.StopRun(run=number(2)),
                    bodies=(body,),
                )
            assert (session.head, session.state) == (head, state)
            assert await store.list(words="x") == ()

    play(script)
    assert rows(tmp_path, "SELECT count(*) FROM commits") == [(1,)]


def test_a_fact_that_names_a_body_not_stored_is_refused(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            with pytest.raises(Refused) as refused:
                await session.commit(c.SubmitInput(input=number(1), body=said("never stored").digest))
            assert refused.value.reason == "missing_body"
            assert session.state.inputs == {}

    play(script)


def test_a_command_id_that_is_not_derived_from_its_subject_is_refused(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            body = said("x")
            right = c.SubmitInput(input=number(1), body=body.digest)
            with pytest.raises(Refused) as refused:
                await session.commit(
                    c.SubmitInput(input=number(1), body=body.digest, command_id=number(9)), bodies=(body,)
                )
            assert refused.value.reason == "misnamed"
            named = c.SubmitInput(input=number(1), body=body.digest, command_id=right.id)
            first = await session.commit(named, bodies=(body,))
            assert await session.commit(right) == first  # the same operation, however it is said

    play(script)


# --- replay -----------------------------------------------------------------------------------------------------


def test_a_known_command_with_equal_intent_gives_the_original_facts_and_writes_nothing(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            body = said("x")
            submit = c.SubmitInput(input=number(1), body=body.digest)
            create = c.CreateTurn(turn=number(2), run=number(3), inputs=(number(1),))
            told: list[object] = []
            session.subscribe(told.append)
            first = await session.commit(submit, create, bodies=(body,))
            head = session.head
            assert await session.commit(submit, create, bodies=(body,)) == first
            assert await session.commit(create) == first[1:]
            assert await session.commit(submit) == first[:1]
            await asyncio.sleep(0)
            assert session.head == head
            assert told == list(first)  # replays are not told

    play(script)


def test_a_known_command_with_another_intent_is_a_conflict_and_so_is_a_mix_of_known_and_new(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            body, other = said("x"), said("y")
            await session.commit(c.SubmitInput(input=number(1), body=body.digest), bodies=(body,))
            head = session.head
            with pytest.raises(Conflict):
                await session.commit(c.SubmitInput(input=number(1), body=other.digest), bodies=(other,))
            with pytest.raises(Conflict):
                await session.commit(c.ChangeTitle(title="t"), c.SubmitInput(input=number(1), body=body.digest))
            assert session.head == head

    play(script)


def test_after_a_run_has_ended_a_replay_is_still_answered_and_a_new_command_gets_terminal(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            run = session.state.run
            assert run is not None
            made = answer("hi")
            body = stage(ResultBody(result=made))
            submit = c.SubmitResult.of(run.run, run.step, run.effect, made, body.digest)
            first = await session.commit(submit, bodies=(body,))
            assert await session.commit(submit) == first
            with pytest.raises(Refused) as refused:
                await session.commit(c.RequestInterrupt(run=run.run))
            assert refused.value.reason == "terminal"

    play(script)


def test_two_settlements_of_one_effect_with_different_content_conflict(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            (call,) = await reply(session, "", "bash")
            run = session.state.run
            assert run is not None
            effect = run.call_effect(call)
            arguments, question = said("args"), stage(Question(kind="approval", tool="bash", title="ls"))
            await session.commit(
                c.HoldCall(run=run.run, call=call, kind="approval", question=question.digest), bodies=(question,)
            )
            approve = c.ApproveCall(run=run.run, call=call, question=question.digest)
            reject = c.RejectCall(run=run.run, call=call, question=question.digest, message="no")
            results = await asyncio.gather(session.commit(approve), session.commit(reject), return_exceptions=True)
            assert [type(r).__name__ for r in results] == ["tuple", "Conflict"]
            await session.commit(
                c.StartCall(run=run.run, call=call, effect=effect, arguments=arguments.digest), bodies=(arguments,)
            )
            one, two = outcome("one"), outcome("two")
            results = await asyncio.gather(
                session.commit(
                    c.SubmitCallResult(run=run.run, call=call, effect=effect, outcome=one.digest), bodies=(one,)
                ),
                session.commit(
                    c.SubmitCallResult(run=run.run, call=call, effect=effect, outcome=two.digest), bodies=(two,)
                ),
                return_exceptions=True,
            )
            assert [type(r).__name__ for r in results] == ["tuple", "Conflict"]

    play(script)


def test_looking_a_command_up_costs_the_same_in_a_long_log(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            for n in range(50):
                await session.commit(c.ChangeTitle(title=str(n)))
            plan = await store.writer.run(
                lambda db: db.execute(
                    "EXPLAIN QUERY PLAN SELECT seq, intent FROM command WHERE segment = ? AND id = ? AND seq <= ?",
                    ("", b"", 0),
                ).fetchall(),
                plain=True,
            )
            assert len(plan) == 1 and "PRIMARY KEY (segment=? AND id=?)" in plan[0][3]

    play(script)


def test_the_writer_holds_no_memory_for_each_commit(tmp_path: Path) -> None:
    async def retained(commits: int) -> int:
        async with opened(tmp_path / str(commits)) as store:
            session = await store.create(cwd="/w")
            await asyncio.gather(*(session.commit(c.ChangeMode(mode="ask")) for _ in range(200)))
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(commits // 50):
                await asyncio.gather(*(session.commit(c.ChangeMode(mode="ask")) for _ in range(50)))
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            return grown

    short, long = play(lambda: retained(400)), play(lambda: retained(3200))
    assert long < short + 2800 * 30  # less than any object that each commit would leave behind


# --- a writer that fails midway ---------------------------------------------------------------------------------


def test_after_a_failed_write_every_append_is_refused_until_reopening_asks_storage(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)
            handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            big = stage(b"x" * 200_000)
            title = c.ChangeTitle(title="kept in hand")
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
            try:
                with pytest.raises(StorageFailed, match="session store"):
                    for _ in range(5):
                        await session.commit(title, bodies=(big,))
                assert session.poisoned
                with pytest.raises(StorageFailed):
                    await session.commit(c.ChangeMode(mode="plan"))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
                signal.signal(signal.SIGXFSZ, handled)
            with pytest.raises(StorageFailed):  # still: only reopening knows what exists
                await session.commit(c.ChangeMode(mode="plan"))
            await session.reopen()
            facts = await session.commit(title, bodies=(big,))  # under its own id: new, or answered as a replay
            assert session.state.settings.title == "kept in hand"
            assert [fact.event.__class__ for fact in facts] == [TitleChanged]
            report = await store.verify(session.id)
            assert report.intact

    play(script)


def test_cancelling_the_caller_does_not_take_a_commit_back(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            for size in (10, 300_000):  # a row, and a file that is written first
                body = stage(b"y" * size)
                title = c.ChangeTitle(title=str(size))
                task = asyncio.create_task(session.commit(title, bodies=(body,)))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                facts = await session.commit(title)  # the same operation: whatever came first, it exists once
                assert [fact.event.title for fact in facts if isinstance(fact.event, TitleChanged)] == [str(size)]
                await session.settled()

    play(script)
    found = rows(tmp_path, "SELECT count(*) FROM commits")
    assert found == [(3,)]


def test_a_caller_that_is_gone_takes_nothing_from_those_whose_commits_travel_with_its_own(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            tasks = [asyncio.create_task(session.commit(c.ChangeTitle(title=str(n)))) for n in range(6)]
            await asyncio.sleep(0)  # the first is on its way, the others wait and will travel together
            for gone in (tasks[0], tasks[2], tasks[4]):
                gone.cancel()
            came = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
            assert [type(each) for each in came] == [asyncio.CancelledError, tuple] * 3
            assert session.head[0] == 6 and session.state.settings.title == "5" and not session.poisoned
            await session.commit(c.ChangeTitle(title="on it goes"))

    play(script)
    assert rows(tmp_path, "SELECT count(*) FROM commits") == [(8,)]


def test_commits_of_many_tasks_are_decided_in_order_and_share_transactions(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            sessions = [await store.create(cwd="/w") for _ in range(3)]
            told: dict[str, list[int]] = {session.id: [] for session in sessions}
            for session in sessions:
                session.subscribe(lambda fact: told[fact.agent].append(fact.seq))
            await asyncio.gather(*(s.commit(c.ChangeTitle(title=str(n))) for n in range(40) for s in sessions))
            await asyncio.sleep(0)
            for session in sessions:
                assert told[session.id] == list(range(1, 41))
                assert session.state.settings.title == "39"
                assert (await store.verify(session.id)).intact

    play(script)


# --- what this version does not know ----------------------------------------------------------------------------


def smuggle(root: Path, id: str, machine: str, event: dict[str, object]) -> None:
    """Append a commit as a newer panto would."""
    db = sqlite3.connect(root / DATABASE)
    head, prev = db.execute("SELECT head, digest FROM session WHERE id = ?", (id,)).fetchone()
    command, intent = new_id(), digest(b"x")
    body = canonical([[command, intent, [[machine, number(7), [event]]]]])
    sealed = bytes.fromhex(seal(id, head + 1, 1, 5, prev.hex(), body))
    db.execute("INSERT INTO commits VALUES(?, ?, 1, 5, ?, ?, ?)", (id, head + 1, prev, sealed, body))
    db.execute("INSERT INTO command VALUES(?, ?, ?, ?)", (id, bytes.fromhex(command), head + 1, bytes.fromhex(intent)))
    db.execute("UPDATE session SET head = ?, digest = ? WHERE id = ?", (head + 1, sealed, id))
    db.commit()
    db.close()


@pytest.mark.parametrize("machine", ["run", "turn", "input", "checkpoint"])
@pytest.mark.parametrize(
    "event", [{"type": "run_teleported", "v": 1}, {"type": "run_created", "v": 9, "run": "r", "x": 1}]
)
def test_an_unknown_type_or_version_in_a_machines_stream_makes_the_session_view_only(
    tmp_path: Path, machine: str, event: dict[str, object]
) -> None:
    id = play(lambda: three_turns(tmp_path))
    smuggle(tmp_path, id, machine, event)

    async def script() -> None:
        async with opened(tmp_path) as store:
            with pytest.raises(ViewOnly, match=str(event["type"])):
                await store.open_session(id)
            viewer = await store.view(id)
            assert "does not know" in viewer.state.unknown
            assert len(viewer.view.turns) == 3
            assert len((await viewer.history()).facts) > 10
            assert (await store.verify(id)).intact
            await viewer.close()

    play(script)


@pytest.mark.parametrize("machine", ["extension", "job", "message", "weather"])
def test_any_other_unknown_event_is_kept_and_skipped(tmp_path: Path, machine: str) -> None:
    id = play(lambda: three_turns(tmp_path))
    smuggle(tmp_path, id, machine, {"type": "weather_changed", "v": 3, "to": "rain"})

    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.open_session(id)
            await session.commit(c.ChangeTitle(title="still writable"))
            exported = b"".join([piece async for piece in store.export(id)])
            assert b"weather_changed" in exported
            assert (await store.verify(id)).intact

    play(script)


def test_version_one_payloads_are_upcast_on_read_and_stored_bytes_never_change() -> None:
    old = canonical(
        [[ID, INTENT, [["session", number(5), [{"type": "mode_changed", "v": 0, "session": number(5), "way": "ask"}]]]]]
    )

    def newer(payload: dict[str, object]) -> dict[str, object]:
        return {**{k: v for k, v in payload.items() if k != "way"}, "mode": payload["way"]}

    (group,) = thaw(old, {("mode_changed", 0): newer})
    assert tuple(group.events()) == (ModeChanged(session=number(5), mode="ask"),)
    (group,) = thaw(old)
    assert [type(event) for event in group.events()] == [Unknown]


def test_facts_come_back_as_they_were_written() -> None:
    events: tuple[AnyEvent, ...] = (
        TurnStarted(turn=number(1), run=number(2)), RunCreated(run=number(2), turn=number(1)),
    )  # fmt: skip
    groups = groups_of([(ID, INTENT, events)])
    data = freeze(groups)
    assert thaw(data) == groups
    assert freeze(thaw(data)) == data


def test_store_is_told_apart_from_a_newer_one(tmp_path: Path) -> None:
    play(lambda: three_turns(tmp_path))
    tamper(tmp_path, "PRAGMA user_version = 99")

    async def script() -> str:
        store = await Store.open(tmp_path)
        notice = store.notice
        await store.close()
        return notice

    assert "newer panto" in play(script)
