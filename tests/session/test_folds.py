"""The folds and their cache: wrong caches are no error, good ones save the folding, readers agree with the owner."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from panto.schema.events import (
    FileChange,
    InputAccepted,
    ModelStepCompleted,
    ModelStepPrepared,
    RunCreated,
    TurnStarted,
)
from panto.session import Session
from panto.session import commands as c
from panto.session.context import Context
from panto.session.fold import fold
from panto.session.projection import load
from panto.session.read import lineage
from panto.session.session import INTERVAL
from panto.session.view import View
from tests.session.world import begin, number, opened, outcome, play, reply, said, send, start, turn


async def made(root: Path) -> str:
    async with opened(root) as store:
        session = await store.create(cwd="/w", model="fake:small")
        for n in range(3):
            await turn(session, f"say {n}")
        return session.id


def spoil(root: Path, statement: str) -> None:
    db = sqlite3.connect(root / "sessions.db")
    db.execute(statement)
    db.commit()
    db.close()


WRONG = {
    "missing": "DELETE FROM projection",
    "undecodable": "UPDATE projection SET data = x'c1c1c1'",
    "beyond the log": "UPDATE projection SET seq = 10000",
    "off its commit": "UPDATE projection SET seq = seq - 1",
    "with another digest": "UPDATE projection SET digest = zeroblob(32)",
    "of another fold": "UPDATE projection SET fold = fold + 1",
    "of another session": "UPDATE projection SET segment = 'nobody'",
}


@pytest.mark.parametrize("how", WRONG)
def test_a_cache_that_is_not_right_means_folding_from_the_start_with_the_same_result(tmp_path: Path, how: str) -> None:
    id = play(lambda: made(tmp_path))

    async def look() -> tuple[object, object, int]:
        async with opened(tmp_path) as store:
            viewer = await store.view(id)
            await viewer.close()
            return viewer.state, viewer.view, viewer._live.folded

    right = play(look)
    assert right[2] == 0
    spoil(tmp_path, WRONG[how])
    state, view, folded = play(look)
    assert (state, view) == right[:2]
    assert folded > 10


def test_after_a_clean_close_no_event_is_folded_and_after_a_crash_at_most_the_interval(tmp_path: Path) -> None:
    id = play(lambda: made(tmp_path))

    async def crash() -> int:
        async with opened(tmp_path) as store:
            session = await store.open_session(id)
            assert session._live.folded == 0
            for n in range(INTERVAL + 150):
                await session.commit(c.ChangeTitle(title=str(n)))
            line = await store.reader.run(lambda db: lineage(db, id), plain=True)
            loaded = await store.reader.run(lambda db: load(db, id, line), plain=True)  # as a crash would leave it
            return loaded.folded

    assert 0 < play(crash) <= INTERVAL


def test_an_owner_and_a_reader_at_the_same_head_have_equal_states(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store, opened(tmp_path) as other:
            session = await store.create(cwd="/w")
            viewer = await other.view(session.id)
            for step in (begin, send):
                await step(session)
                await viewer.look()
                assert (viewer.head, viewer.state, viewer.view) == (session.head, session.state, session.view)
            (call,) = await reply(session, "", "bash")
            await start(session, call)
            await viewer.look()
            assert (viewer.head, viewer.state, viewer.view) == (session.head, session.state, session.view)
            await viewer.close()

    play(script)


def test_saving_the_cache_may_fail_or_be_slow_without_touching_commits(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await store.writer.run(lambda db: db.execute("DROP TABLE projection") and None)
            for n in range(INTERVAL + 10):
                await session.commit(c.ChangeTitle(title=str(n)))
            assert session.state.settings.title == str(INTERVAL + 9)
            assert not session.poisoned

    play(script)


def test_a_failing_observer_disturbs_neither_commits_nor_other_observers_nor_their_order(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            reported: list[dict[str, object]] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
            seen: list[int] = []

            def broken(_: object) -> None:
                raise RuntimeError("broken fold")

            session.subscribe(broken)
            stop = session.subscribe(lambda fact: seen.append(fact.seq))
            await asyncio.gather(*(session.commit(c.ChangeTitle(title=str(n))) for n in range(5)))
            await asyncio.sleep(0)
            assert seen == [1, 2, 3, 4, 5]
            assert len(reported) == 5
            stop()
            await session.commit(c.ChangeTitle(title="later"))
            await asyncio.sleep(0)
            assert seen == [1, 2, 3, 4, 5]
            assert (await store.verify(session.id)).intact

    play(script)


def synthetic(turns: int) -> list[object]:
    events: list[object] = []
    for n in range(turns):
        run, name = number(10_000 + n), number(n)
        events += [
            TurnStarted(turn=number(20_000 + n), run=run),
            RunCreated(run=run, turn=number(20_000 + n)),
            InputAccepted(run=run, input=name, body="0" * 64),
            ModelStepPrepared(run=run, step=1, request="0" * 64, inputs=(name,)),
            ModelStepCompleted(run=run, step=1, effect=number(30_000 + n), result="0" * 64),
        ]
    return events


def test_twice_the_events_fold_without_copying_what_is_there() -> None:
    # Counted, not timed: the lists that grow are the same objects before and after.
    view = View(Context())
    tables = [id(view.context.entries), id(view.context.order), id(view.context.numbers), id(view.turns)]
    for event in synthetic(400):
        fold(view, event, 0, 0.0)  # type: ignore[arg-type]
    assert tables == [id(view.context.entries), id(view.context.order), id(view.context.numbers), id(view.turns)]
    assert len(view.context) == 800


def test_files_keep_what_was_last_seen_and_turns_what_they_changed(tmp_path: Path) -> None:
    async def run_call(session: Session, *files: FileChange) -> None:
        (call,) = await reply(session, "", "edit")
        effect = await start(session, call)
        run = session.state.run
        assert run is not None
        done = outcome("ok")
        await session.commit(
            c.SubmitCallResult(run=run.run, call=call, effect=effect, outcome=done.digest, files=files), bodies=(done,)
        )
        await send(session)

    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            a, b, z = "a" * 64, "b" * 64, None
            await begin(session)
            await send(session)
            await run_call(
                session, FileChange(path="/w/f", before=a, after=a), FileChange(path="/w/n", before=z, after=z)
            )
            await run_call(session, FileChange(path="/w/f", before=a, after=b))
            await reply(session, "done")
            assert session.view.files == {"/w/f": b, "/w/n": None}
            assert session.view.turns[0].changes == [FileChange(path="/w/f", before=a, after=b)]
            id = session.id
            await session.close()
            again = await store.open_session(id)
            assert again.view.files == {"/w/f": b, "/w/n": None}
            assert again.view.usage.input == 30 and again.view.usage.output == 15

    play(script)


def test_metadata_grants_settings_and_extension_facts_fold_to_the_latest(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w", model="fake:small", mode="ask", reasoning="low")
            value = said("value")
            await session.commit(
                c.SetMetadata(message="m1", metadata="{}"),
                c.SetMetadata(message="m1", metadata='{"a":1}'),
                c.GrantApproval(grant="g1", rule="bash(ls *)"),
                c.GrantApproval(grant="g2", rule="read"),
                c.RevokeApproval(grant="g1"),
                c.ChangeModel(model="fake:large"),
                c.ChangeReasoning(reasoning="high"),
                c.ChangeMode(mode="auto"),
                c.ChangeTitle(title="a title"),
                c.ChangeCwd(cwd="/elsewhere"),
                c.AppendFact(owner="todo", kind="item", value=value.digest),
                bodies=(value,),
            )
            id = session.id
            await session.close()
            again = await store.open_session(id)
            assert again.view.metadata == {"m1": '{"a":1}'}
            assert again.state.grants == {"g2": "read"}
            s = again.state.settings
            assert (s.model, s.reasoning, s.mode, s.title, s.cwd) == (
                "fake:large",
                "high",
                "auto",
                "a title",
                "/elsewhere",
            )
            assert again.view.extensions == {"todo": [("item", value.digest)]}

    play(script)


def test_the_newest_page_of_history_is_read_without_what_lies_before_it(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            for n in range(30):
                await turn(session, f"say {n}", f"answer {n}")
            pages, before = [], None
            while True:
                page = await session.history(before, limit=40)
                pages.append(page)
                assert len(page.facts) <= 60
                if page.start is None:
                    break
                first = page.facts[0]
                assert (first.seq, first.index) == page.start
                before = page.start
            every = [fact for page in reversed(pages) for fact in page.facts]
            assert every == list((await session.history(limit=10**6)).facts)
            assert len(pages) > 5
            assert type(pages[0].facts[0].event).__name__ == "InputSubmitted"  # a page begins with a whole turn
            middle = await session.history((every[7].seq, every[7].index), limit=100)
            assert middle.facts == tuple(every[:7])
            far = await session.history((2**63 - 1, 5), limit=5)
            assert far.facts == pages[0].facts[-len(far.facts) :]

    play(script)
