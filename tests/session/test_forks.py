"""Forks share history without copying it; deleting a parent takes nothing from them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from panto.schema.errors import Conflict, Missing, Refused
from panto.schema.events import InputSubmitted
from panto.session import Session, Store
from panto.session import commands as c
from panto.session.recovery import recovery
from tests.session.world import begin, number, opened, play, reply, said, send, start, turn


def count(root: Path, table: str) -> int:
    db = sqlite3.connect(root / "sessions.db")
    try:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        db.close()


async def turns(store: Store, n: int) -> Session:
    session = await store.create(cwd="/w", model="fake:small", title="first")
    for k in range(n):
        await turn(session, f"say {k}", f"answer {k}")
    return session


@pytest.mark.parametrize("length", [1, 20])
def test_a_fork_copies_no_commit_and_costs_the_same_at_any_place(tmp_path: Path, length: int) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, length)
            before = count(tmp_path, "commits"), count(tmp_path, "body"), count(tmp_path, "command")
            fork = await store.fork(session.id)
            after = count(tmp_path, "commits"), count(tmp_path, "body"), count(tmp_path, "command")
            assert [b - a for a, b in zip(before, after, strict=True)] == [1, 0, 1]
            assert [e.id for e in fork.view.context] == [e.id for e in session.view.context]
            assert fork.state.settings == session.state.settings
            assert len((await fork.history()).facts) == len((await session.history()).facts) + 1

    play(script)


def test_after_a_fork_neither_sees_what_the_other_commits(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, 2)
            fork = await store.fork(session.id)
            await turn(session, "in the parent")
            await turn(fork, "in the fork")
            assert [len(s.view.turns) for s in (session, fork)] == [3, 3]
            assert session.view.turns[:2] == fork.view.turns[:2]
            assert session.view.turns[2] != fork.view.turns[2]
            for one in (session, fork):
                assert (await store.verify(one.id)).intact
                id = one.id
                await one.close()
                again = await store.open_session(id)
                assert again.view.turns[2] == one.view.turns[2]
                await again.close()
            grandchild = await store.fork(fork.id)
            await turn(grandchild)
            assert (await store.verify(grandchild.id)).intact
            assert len(grandchild.view.turns) == 4

    play(script)


def test_a_fork_where_a_turn_is_active_is_refused(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, 1)
            active = await begin(session)
            with pytest.raises(Refused) as refused:
                await store.fork(session.id)
            assert refused.value.reason == "active"
            fork = await store.fork(session.id, before_turn=active)
            assert len(fork.view.turns) == 1
            with pytest.raises(Refused) as refused:
                await store.fork(session.id, before_turn=number(9))
            assert refused.value.reason == "unknown_turn"

    play(script)


def test_forking_before_a_turn_submits_what_it_began_with_again_to_regenerate_or_edit(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, 3)
            middle = session.view.turns[1]
            fork = await store.fork(session.id, before_turn=middle.turn)
            assert [t.turn for t in fork.view.turns] == [session.view.turns[0].turn]
            assert [waiting.body for waiting in fork.state.inputs.values()] == middle.inputs
            # deliver it: regenerate
            (again,) = fork.state.inputs
            await fork.commit(c.CreateTurn(turn=number(1), run=number(2), inputs=(again,)))
            await send(fork)
            await reply(fork, "another answer")
            assert fork.view.turns[1].inputs == middle.inputs
            # withdraw it and say something else: edit
            other = await store.fork(session.id, before_turn=middle.turn)
            (again,) = other.state.inputs
            await other.commit(c.WithdrawInput(input=again, returned=False))
            await turn(other, "say it better")
            assert other.view.turns[1].inputs == [said("say it better").digest]
            assert [len(s.view.turns) for s in (session, fork, other)] == [3, 2, 2]

    play(script)


def test_a_fork_that_recovers_leaves_the_runs_and_jobs_of_its_parent_alone(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, 1)
            await session.commit(c.StartJob(job="j1", kind="command", title="make"))
            active = await begin(session)
            await send(session)
            (call,) = await reply(session, "", "bash")
            await start(session, call)
            fork = await store.fork(session.id, before_turn=active)
            await fork.commit(*recovery(fork.state))
            assert session.state.run is not None and session.state.run.calls[call].state == "executing"
            assert list(session.state.jobs) == ["j1"] and fork.state.jobs == {}
            assert fork.state.run is None

    play(script)


def test_an_inherited_command_is_found_in_the_fork_and_appending_it_conflicts(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, 1)
            body = said("x")
            submit = c.SubmitInput(input=number(1), body=body.digest)
            await session.commit(submit, bodies=(body,))
            fork = await store.fork(session.id)
            with pytest.raises(Conflict):
                await fork.commit(submit)
            later = c.SubmitInput(input=number(2), body=body.digest)
            await session.commit(later)
            await fork.commit(later)  # after the fork: none of its history

    play(script)


def test_a_deleted_parents_prefix_and_bodies_stay_as_long_as_a_fork_reaches_them(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await turns(store, 3)
            parent = session.id
            fork = await store.fork(parent, before_turn=session.view.turns[2].turn)
            await session.close()
            wanted = [(f.seq, f.index, f.body) for f in (await fork.history(limit=1000)).facts]
            assert any("say 1" in str(body) for _, _, body in wanted)
            await store.delete([parent])
            removed = await store.collect()
            assert removed.bodies == 2  # the last turn's request and answer; what it was asked waits in the fork
            assert [row.id for row in await store.list()] == [fork.id]
            assert [(f.seq, f.index, f.body) for f in (await fork.history(limit=1000)).facts] == wanted
            assert (await store.verify(fork.id)).intact
            assert [row.id for row in await store.list(words="say 1")] == [fork.id]
            assert [hit.session for hit in await store.search("say 1")] == [fork.id]
            with pytest.raises(Missing):
                await store.open_session(parent)
            fork_id = fork.id
            await fork.close()
            again = await store.open_session(fork_id)
            assert isinstance((await again.history()).facts[-1].event, InputSubmitted)
            await again.close()
            await store.delete([fork_id])
            await store.collect()
            assert [count(tmp_path, t) for t in ("commits", "body", "segment", "command", "said")] == [0] * 5

    play(script)
