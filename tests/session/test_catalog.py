"""The list of sessions, without reading a body; names, search, prefixes, deletion."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import pytest

from panto.schema.bodies import TextBody
from panto.schema.errors import Conflict, Missing, Owned, Refused, UsageError
from panto.session import commands as c
from panto.session import stage
from panto.session.ids import new_id
from tests.session.processes import Other
from tests.session.world import begin, number, opened, play, said, turn


def test_rows_say_title_directory_model_counts_and_what_was_said_last_newest_first(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            one = await store.create(cwd="/one", model="fake:small", title="first")
            await turn(one, "hello there", "general")
            two = await store.create(cwd="/two")
            await turn(two, "anything else?")
            await turn(two, "and more")
            await one.close()
            rows = await store.list()
            assert [(r.id, r.title, r.cwd, r.model, r.turns, r.tokens, r.last_prompt) for r in rows] == [
                (two.id, "", "/two", "", 2, 30, "and more"),
                (one.id, "first", "/one", "fake:small", 1, 15, "hello there"),
            ]
            assert [bool(r.owner) for r in rows] == [True, False]
            assert [r.id for r in await store.list(cwd="/one")] == [one.id]
            assert [r.id for r in await store.list(limit=1)] == [two.id]
            await one.close()
            await store.rename(one.id[:8], "renamed")
            await store.rename(two.id, "open, and renamed")
            assert {r.title for r in await store.list()} == {"renamed", "open, and renamed"}
            assert two.state.settings.title == "open, and renamed"
            assert await store.prompts() == ("and more", "anything else?", "hello there")
            assert await store.prompts("/one") == ("hello there",)

    play(script)


def test_what_nobody_said_is_not_called_the_last_prompt(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            one = await store.create(cwd="/one")

            async def told(text: str) -> str:
                body = said(text)
                await one.commit(c.SubmitInput(input=new_id(), body=body.digest, source="command"), bodies=(body,))
                return (await store.list())[0].last_prompt

            assert await told("a note of panto's own") == "a note of panto's own"  # better than nothing
            await turn(one, "a prompt")
            assert await told("another note") == "a prompt"

    play(script)


def test_children_are_hidden_unless_asked_for(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            primary = await store.create(cwd="/w", title="primary")
            child = await store.create(
                cwd="/w", id=number(9), title="child", under=primary.id, opener=primary.id, depth=1
            )
            assert (child.under, child.opener, child.depth) == (primary.id, primary.id, 1)
            assert [r.id for r in await store.list()] == [primary.id]
            assert {r.id for r in await store.list(all=True)} == {primary.id, child.id}
            assert [r.id for r in await store.list(under=primary.id)] == [child.id]
            with pytest.raises(Conflict):
                await store.create(cwd="/w", id=number(9))
            with pytest.raises(Refused):
                await store.create(cwd="/w", id="short")
            await child.close()
            again = await store.open_session(number(9))
            assert (again.under, again.opener, again.depth) == (primary.id, primary.id, 1)
            await again.close()
            await primary.close()
            await store.delete([primary.id])
            assert await store.list(all=True) == ()

    play(script)


def test_an_id_may_be_given_by_any_unique_prefix_and_candidates_are_listed_otherwise(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            ids = ["abcd" + "0" * 28, "abce" + "0" * 28, "abce" + "1" * 28, "f" * 32]
            for n, id in enumerate(ids):
                await store.create(cwd="/w", id=id, title=f"session {n}")
            shorts = {r.id: r.short for r in await store.list()}
            assert [shorts[id] for id in ids] == ["abcd", "abce0", "abce1", "ffff"]
            for id in ids:
                assert await store.resolve(shorts[id]) == id
                assert await store.resolve(id.upper()) == id
            assert await store.resolve("f") == "f" * 32
            with pytest.raises(UsageError) as ambiguous:
                await store.resolve("abce")
            assert "abce0  session 1" in ambiguous.value.message and "abce1  session 2" in ambiguous.value.message
            for nothing in ("abcf", "", "%", "zz"):
                with pytest.raises(Missing):
                    await store.resolve(nothing)

    play(script)


@pytest.mark.parametrize(
    "words", ["naïve", "NAIVE", "quick fox", "fox quick", "bro", 'say "brown', "日本", "c++ (x)", "it's"]
)
def test_messages_are_found_by_their_words(tmp_path: Path, words: str) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session, "naïve quick brown fox", 'I say "brown" 日本語 c++ (x) it\'s')
            other = await store.create(cwd="/w")
            await turn(other, "nothing of the kind")
            assert [r.id for r in await store.list(words=words)] == [session.id]
            hits = await store.search(words)
            assert hits and {hit.session for hit in hits} == {session.id}

    play(script)


def test_titles_are_found_too_and_signs_are_taken_as_they_are(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w", title="100% of it_")
            await store.create(cwd="/w", title="1000 of it")
            assert [r.id for r in await store.list(words="100% of it_")] == [session.id]
            assert await store.list(words="nothing") == ()
            assert len(await store.list(words="  ")) == 2

    play(script)


def test_an_open_session_is_not_deleted(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store, opened(tmp_path) as other:
            session = await store.create(cwd="/w")
            for each in (store, other):
                with pytest.raises(Owned):
                    await each.delete([session.id])
            with pytest.raises(Owned):
                await other.rename(session.id, "t")
            with pytest.raises(Missing):
                await store.delete(["0123"])
            await session.commit(c.ChangeTitle(title="t"))

    play(script)


def test_listing_reads_no_body_and_writes_nothing(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            for n in range(5):
                session = await store.create(cwd="/w")
                await turn(session, f"say {n}")
                await session.close()
            touched: list[str] = []

            def watch(action: int, table: str | None, *_: object) -> int:
                if action == sqlite3.SQLITE_READ and table:
                    touched.append(table)
                return sqlite3.SQLITE_OK

            await store.reader.run(lambda db: db.set_authorizer(watch), plain=True)
            assert len(await store.list()) == 5
            assert set(touched) == {"session", "segment", "lease"}
            assert len(await store.list(words="say")) == 5
            assert not {"body", "commits"} & set(touched)
            state = await store.reader.run(
                lambda db: (db.execute("PRAGMA query_only").fetchone()[0], db.total_changes), plain=True
            )
            assert state == (1, 0)

    play(script)


def test_damaged_sessions_show_as_such(tmp_path: Path) -> None:
    async def script() -> tuple[str, str]:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session)
            other = await store.create(cwd="/w", title="intact")
            return session.id, other.id

    id, other = play(script)
    db = sqlite3.connect(tmp_path / "sessions.db")
    db.execute("DROP TRIGGER commits_kept")
    db.execute("UPDATE commits SET time = 1 WHERE segment = ? AND seq = 1", (id,))
    db.commit()
    db.close()

    async def look() -> dict[str, str]:
        async with opened(tmp_path) as store:
            assert not (await store.verify(id)).intact
            return {r.id: r.broken for r in await store.list()}

    assert play(look) == {id: "commit 1 is damaged", other: ""}


def test_a_session_in_which_nothing_was_said_is_not_kept(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            empty = await store.create(cwd="/w", model="fake:small", mode="plan")
            await empty.commit(c.ChangeModel(model="fake:large"), c.ChangeReasoning(reasoning="low"))
            kept = [await store.create(cwd="/w", title="named")]
            for _ in range(4):
                kept.append(await store.create(cwd="/w"))
            await begin(kept[1])
            await kept[2].commit(c.SubmitInput(input=number(7), body=said("x").digest), bodies=(said("x"),))
            fact = stage(TextBody("a fact"))
            await kept[3].commit(c.AppendFact(owner="x", kind="k", value=fact.digest), bodies=(fact,))
            await store.create(cwd="/w", id=number(9), under=kept[4].id, title="child")
            assert empty.id not in {r.id for r in await store.list()}
            for session in (empty, *kept):
                await session.close()
            assert {r.id for r in await store.list(all=True)} == {*(s.id for s in kept), number(9)}
            with pytest.raises(Missing):
                await store.open_session(empty.id)
            assert all([(await store.verify(s.id)).intact for s in kept])

    play(script)


def test_a_session_that_a_killed_process_left_empty_goes_at_the_next_start(tmp_path: Path) -> None:
    other = Other(
        tmp_path,
        """
        empty = await store.create(cwd="/w")
        said = await store.create(cwd="/w")
        await begin(said)
        say(empty.id, said.id)
        await hear()
        """,
    )
    empty, said_in = other.hear().split()

    async def look() -> set[str]:
        async with opened(tmp_path) as store:
            await (await store.create(cwd="/w")).close()
            return {r.id for r in await store.list(all=True)}

    assert play(look) == {empty, said_in}  # it lives
    other.kill()
    assert play(look) == {said_in}


def test_an_empty_session_of_a_process_that_is_stopped_is_kept(tmp_path: Path) -> None:
    other = Other(
        tmp_path,
        """
        empty = await store.create(cwd="/w")
        say(empty.id)
        await hear()
        await begin(empty)
        say("said")
        """,
    )
    empty = other.hear()
    other.process.send_signal(signal.SIGSTOP)

    async def look() -> set[str]:
        async with opened(tmp_path) as store:
            await store.writer.run(lambda db: db.execute("UPDATE lease SET until = 0") and None)
            await (await store.create(cwd="/w")).close()
            return {r.id for r in await store.list(all=True)}

    assert play(look) == {empty}
    other.process.send_signal(signal.SIGCONT)
    other.tell("go on")
    assert other.hear() == "said"
    assert other.end() == 0


def test_an_empty_session_that_was_taken_over_is_its_new_owners_to_keep(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            session = await one.create(cwd="/w")
            taken = await two.open_session(session.id, take_over=True)
            await session.close()
            await begin(taken)
            assert (await two.verify(taken.id)).intact

    play(script)
