"""Sessions that another process holds: looked at, forked, taken over, and lost to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops, queries
from panto.schema.errors import Missing, Owned, ViewOnly
from panto.schema.events import InputAccepted, ModelStepCompleted, TurnSettled
from panto.schema.signals import Fact, Noticed, SessionOpened, StatusChanged
from panto.session import Store
from tests.scheduler.house import House, house, scripted
from tests.session.processes import Other

WORK = """
session = await store.create(cwd="/theirs", title="theirs", model="fake:m")
await turn(session, "first", "one")
say(session.id)
while (word := await hear()):
    try:
        if word == "turn":
            await turn(session, "second", "two")
        elif word == "begin":
            await begin(session, "third")
            await send(session)
        elif word == "title":
            await session.commit(c.ChangeTitle(title="named anew"))
        elif word == "close":
            await session.close()
        say("done")
    except PantoError as error:
        say(type(error).__name__)
"""

HOUSE = """
from tests.scheduler.test_viewing import open_house
from panto.schema import ops
from panto.schema.errors import ViewOnly
from panto.schema.signals import Noticed, SessionOpened
async with open_house(pathlib.Path(sys.argv[2]), {"text": "Hello."}, {"text": "Again."}) as at:
    await at.prompt("hello")
    say(at.client.primary)
    await hear()
    try:
        await at.client.submit(ops.Rename("mine"))
    except PantoError as error:
        say(type(error).__name__)
    await at.until(lambda: any(isinstance(u, SessionOpened) and u.read_only for u in at.seen))
    await at.until(lambda: any(isinstance(u, Noticed) and "took this session over" in u.text for u in at.seen))
    await at.until(lambda: any("theirs now" in str(u) for u in at.seen), 60)
    try:
        await at.prompt("still mine?")
    except ViewOnly as error:
        say(error.message)
    await at.client.submit(ops.NewSession())
    await at.prompt("go on elsewhere")
    say("went on")
"""


@contextlib.asynccontextmanager
async def open_house(root: Path, *replies: Mapping[str, Any]) -> AsyncIterator[House]:
    """A house of which `seen` is what a reader of its client is told."""
    async with house(root, scripted(*replies)) as at:
        at.scheduler.readers.pop()

        async def read() -> None:
            async for update in at.client.subscribe():
                at.seen.append(update)

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        yield at
        reading.cancel()


def facts(at: House, id: str) -> list[Fact]:
    return [u for u in at.seen if isinstance(u, Fact) and u.agent == id]


def test_a_session_held_elsewhere_is_followed_live_each_fact_once_and_in_order(tmp_path: Path) -> None:
    other = Other(tmp_path / "sessions", WORK)
    id = other.hear()

    async def main() -> None:
        async with open_house(tmp_path) as at:
            mine = at.client.primary
            with pytest.raises(Owned) as owned:
                await at.client.submit(ops.OpenSession(id))
            said = owned.value.owner
            assert (said.session, said.pid, said.host, said.alive, said.title) == (
                id, other.process.pid, os.uname().nodename, True, "theirs"
            )  # fmt: skip
            assert at.client.primary == mine
            await at.client.submit(ops.OpenSession(id[:8], "view"))
            assert at.client.primary == id
            await at.until(lambda: SessionOpened(id, read_only=True) in at.seen)
            shown = (await at.client.ask(queries.AskHistory())).facts
            assert any(isinstance(f.event, TurnSettled) for f in shown)
            other.tell("turn")
            assert other.hear() == "done"
            await at.until(lambda: any(isinstance(f.event, TurnSettled) for f in facts(at, id)), 30)
            live = facts(at, id)
            places = [(f.seq, f.index) for f in live]
            assert places == sorted(set(places)) and places[0] == (shown[-1].seq + 1, 0)
            everything = (await at.client.ask(queries.AskHistory())).facts
            assert [(f.seq, f.index, f.event, f.body) for f in (*shown, *live)] == [
                (f.seq, f.index, f.event, f.body) for f in everything
            ]
            assert {type(f.event) for f in live} >= {InputAccepted, ModelStepCompleted}

    asyncio.run(main())
    other.tell("")
    assert other.end() == 0


def test_a_viewed_session_answers_everything_and_changes_nothing(tmp_path: Path) -> None:
    other = Other(tmp_path / "sessions", WORK)
    id = other.hear()

    async def main() -> None:
        async with open_house(tmp_path, {"text": "Mine."}) as at:
            await at.client.submit(ops.OpenSession(id, "view"))
            status = await at.client.ask(queries.AskStatus())
            assert (status.title, status.cwd, status.busy, status.parked) == ("theirs", "/theirs", False, False)
            assert [t.text for t in await at.client.ask(queries.AskTurns())] == ["first"]
            assert any(p.name == "answers" and p.tokens for p in await at.client.ask(queries.AskContext()))
            assert await at.client.ask(queries.AskAgents()) == ()
            every: tuple[ops.Op, ...] = (
                ops.Prompt("no"), ops.Continue(), ops.Interrupt(), ops.Withdraw(), ops.RetryNow(), ops.Compact(),
                ops.SetModel("fake:m"), ops.SetReasoning("low"), ops.SetMode("plan"), ops.Rewind("x"),
                ops.Rename("no"), ops.Rename("no", id), ops.RunShell("echo no"), ops.StopJob("x"),
                ops.Decide("x", "once"), ops.Answer("x"), ops.RunCommand("/compact"), ops.RunCommand("/init"),
            )  # fmt: skip
            for op in every:
                with pytest.raises(ViewOnly) as refused:
                    await at.client.submit(op)
                where = f"process {other.process.pid} on {os.uname().nodename}"
                assert refused.value.message == f"this session is viewed; it is held by {where}", op
                assert "fork" in refused.value.hint and "take it over" in refused.value.hint
            other.tell("begin")
            assert other.hear() == "done"
            await at.until(lambda: at.agent.status().busy, 30)
            await at.client.submit(ops.NewSession())
            assert at.client.primary != id and at.agent.cwd == str(at.cwd)
            assert id not in at.scheduler.agents
            await at.prompt("hello")
            assert at.events(TurnSettled)

    asyncio.run(main())
    other.tell("title")
    assert other.hear() == "done"  # it never lost its right
    other.tell("")
    assert other.end() == 0


def test_a_viewed_session_that_nobody_holds_any_more_says_so_and_can_be_opened_for_work(tmp_path: Path) -> None:
    other = Other(tmp_path / "sessions", WORK)
    id = other.hear()
    other.tell("begin")
    assert other.hear() == "done"

    async def main() -> None:
        async with open_house(tmp_path, {"text": "Mine."}) as at:
            await at.client.submit(ops.OpenSession(id, "view"))
            assert at.agent.status().busy
            other.kill()
            await at.until(lambda: any(isinstance(u, StatusChanged) and u.parked for u in at.seen), 30)
            with pytest.raises(ViewOnly, match="nobody holds it any more"):
                await at.client.submit(ops.Prompt("mine?"))
            await at.client.submit(ops.OpenSession(id))
            await at.prompt("mine")
            assert at.client.primary == id
            assert [t.state for t in await at.client.ask(queries.AskTurns())] == ["completed"] * 2

    asyncio.run(main())


def test_a_session_held_elsewhere_is_forked_from_what_is_settled_in_it(tmp_path: Path) -> None:
    other = Other(tmp_path / "sessions", WORK)
    id = other.hear()
    other.tell("begin")
    assert other.hear() == "done"

    async def main() -> None:
        async with open_house(tmp_path, {"text": "Mine."}) as at:
            await at.client.submit(ops.OpenSession(id, "fork"))
            one = at.client.primary
            assert one != id
            await at.until(lambda: SessionOpened(one) in at.seen)
            assert [t.text for t in await at.client.ask(queries.AskTurns())] == ["first"]
            assert not at.agent.session.state.inputs  # what runs there goes on there
            await at.client.submit(ops.OpenSession(id, "view"))
            await at.client.submit(ops.RunCommand("/fork"))
            assert at.client.primary not in (id, one)
            await at.prompt("go on")
            assert [t.text for t in await at.client.ask(queries.AskTurns())] == ["first", "go on"]

    asyncio.run(main())
    other.tell("title")
    assert other.hear() == "done"
    other.tell("")
    assert other.end() == 0


def test_a_session_taken_over_is_lost_to_its_former_process_which_is_told_and_follows_it(tmp_path: Path) -> None:
    other = Other(tmp_path / "unused", HOUSE, str(tmp_path))
    id = other.hear()

    async def main() -> None:
        async with open_house(tmp_path, {"text": "theirs now"}) as at:
            await at.client.submit(ops.OpenSession(id, "view"))
            await at.client.submit(ops.OpenSession(id, "take_over"))
            assert at.client.primary == id
            await at.until(lambda: SessionOpened(id) in at.seen)
            other.tell("write")
            assert other.hear() == "OwnershipLost"
            await at.prompt("and now?")
            where = f"process {os.getpid()} on {os.uname().nodename}"
            assert other.hear() == f"this session is viewed; it is held by {where}"
            assert other.hear() == "went on"
            assert [t.text for t in await at.client.ask(queries.AskTurns())] == ["hello", "and now?"]

    asyncio.run(main())
    assert other.end() == 0


def test_a_lost_session_can_be_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_house(tmp_path, {"text": "One."}, {"text": "Two."}) as at:
            await at.prompt("hello")
            id = at.client.primary
            thief = Other(
                tmp_path / "sessions",
                """
                session = await store.open_session(sys.argv[2], take_over=True)
                await session.commit(c.ChangeTitle(title="stolen"))
                say("taken")
                await hear()
                try:
                    await session.commit(c.ChangeTitle(title="again"))
                except OwnershipLost:
                    say("lost")
                """,
                id,
            )
            assert await asyncio.to_thread(thief.hear) == "taken"
            await at.until(lambda: SessionOpened(id, read_only=True) in at.seen, 30)  # by itself, within a beat
            await at.client.submit(ops.OpenSession(id, "take_over"))
            await at.prompt("mine again")
            assert [t.text for t in await at.client.ask(queries.AskTurns())] == ["hello", "mine again"]
            thief.tell("go")
            assert await asyncio.to_thread(thief.hear) == "lost"
            assert thief.end() == 0

    asyncio.run(main())


def test_a_session_that_cannot_be_gone_on_with_is_let_go_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted()) as at:
            await at.agent.change_setup(base_prompt=False)
            await at.prompt("hello")
            name, store = at.agent.id, at.scheduler.shared.store
            setup = at.agent.session.state.settings.setup
            await at.client.submit(ops.NewSession())
            await store.writer.run(
                lambda db: db.execute("DELETE FROM body WHERE digest = ?", (bytes.fromhex(str(setup)),)) and None
            )
            for _ in range(2):  # not: it is open in this very process
                with pytest.raises(Missing):
                    await at.client.submit(ops.OpenSession(name))

    asyncio.run(main())


def test_a_session_that_was_taken_over_and_is_gone_leaves_word_and_a_way_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_house(tmp_path, {"text": "Hello."}) as at:
            other = await Store.open(tmp_path / "sessions")
            await (await other.open_session(at.agent.id, take_over=True)).close()  # nothing was said in it
            at.scheduler.shared.store._renew()
            await at.until(lambda: any("cannot be viewed" in u.text for u in at.seen if isinstance(u, Noticed)))
            await at.client.submit(ops.NewSession())
            await at.prompt("go on")
            assert at.records()[-1]["text"] == "Hello."
            await other.close()

    asyncio.run(main())


def test_a_viewed_session_that_can_be_followed_no_further_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_house(tmp_path) as at:
            other = await Store.open(tmp_path / "sessions")
            session = await other.create(cwd="/theirs", title="theirs")
            await at.client.submit(ops.OpenSession(session.id, "view"))

            def damage(db: sqlite3.Connection) -> None:
                columns = "segment, seq + 1, epoch, time, digest, digest, x'00'"
                db.execute(f"INSERT INTO commits SELECT {columns} FROM commits WHERE segment = ?", (session.id,))
                db.execute("UPDATE session SET head = head + 1 WHERE id = ?", (session.id,))

            await other.writer.run(damage)
            await at.until(lambda: any("cannot be shown" in u.text for u in at.seen if isinstance(u, Noticed)))
            await other.close()

    asyncio.run(main())
