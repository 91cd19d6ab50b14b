"""What an agent does with a session: plan ahead, share commits, keep what cannot be committed now."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.schema.bodies import ResultBody, TextBody
from panto.schema.errors import Corrupt, Missing, Refused
from panto.schema.events import ModelStepStarted
from panto.session import Session, delta, stage
from panto.session import commands as c
from panto.session.bodies import DEEPEST
from panto.session.ids import bind, call_id
from panto.session.recovery import recovery
from tests.session.world import (
    ARGUMENTS,
    answer,
    begin,
    opened,
    outcome,
    play,
    reply,
    request,
    said,
    send,
    settle,
    start,
    turn,
)


def active(session: Session) -> str:
    assert session.state.run is not None
    return session.state.run.run


def test_a_preview_is_what_the_commit_gives_and_leaves_the_session_as_it_is(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session)
            await begin(session)
            await send(session)
            (call,) = await reply(session, "", "bash")
            effect = await start(session, call)
            before = session.state, session.view.copy(), session.head
            done = outcome("ok")
            settled = c.SubmitCallResult(run=active(session), call=call, effect=effect, outcome=done.digest)
            preview = session.preview(settled)
            assert (session.state, session.view, session.head) == before
            await session.commit(settled, bodies=(done,))
            assert preview.state == session.state
            assert list(preview.view.context) == list(session.view.context)
            with pytest.raises(Refused):
                session.preview(settled)

    play(script)


def test_the_last_settlement_the_next_request_and_its_start_share_a_commit(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            run = session.state.run
            assert run is not None
            # a result, and the start of an allowed call
            made = answer("", "read")
            body = stage(ResultBody(result=made))
            submit = c.SubmitResult.of(run.run, run.step, run.effect, made, body.digest)
            call = submit.calls[0].call
            assert call == call_id(run.run, run.step, 0) == bind(run.run, run.step, made)[0].call
            ahead = session.preview(submit).state.run
            assert ahead is not None
            effect = ahead.call_effect(call)
            started = c.StartCall(run=run.run, call=call, effect=effect, arguments=ARGUMENTS.digest)
            await session.commit(submit, started, bodies=(body, ARGUMENTS))
            # its settlement, the next request, and its start
            done, frozen = outcome("ok"), request(note="next")
            settled = c.SubmitCallResult(run=run.run, call=call, effect=effect, outcome=done.digest)
            ahead = session.preview(settled).state.run
            assert ahead is not None
            facts = await session.commit(
                settled,
                c.PrepareStep(run=run.run, position=ahead.position, request=frozen.digest, inputs=ahead.pending),
                c.StartModel(run=run.run, effect=ahead.next_effect),
                bodies=(done, frozen),
            )
            assert len({fact.seq for fact in facts}) == 1 and isinstance(facts[-1].event, ModelStepStarted)
            assert session.head == (4, 3)

    play(script)


def test_a_plan_that_something_overtook_is_stale_and_nothing_of_its_commit_is_written(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            (call,) = await reply(session, "", "bash")
            effect = await start(session, call)
            done, frozen = outcome("ok"), request(note="x")
            settled = c.SubmitCallResult(run=active(session), call=call, effect=effect, outcome=done.digest)
            ahead = session.preview(settled).state.run
            assert ahead is not None
            body = said("meanwhile")
            await session.commit(c.SubmitInput(input="a" * 32, body=body.digest), bodies=(body,))
            await session.commit(c.DeliverInputs(run=ahead.run, inputs=("a" * 32,)))
            plan = c.PrepareStep(run=ahead.run, position=ahead.position, request=frozen.digest, inputs=ahead.pending)
            with pytest.raises(Refused) as refused:
                await session.commit(settled, plan, bodies=(done, frozen))
            assert refused.value.reason == "stale"
            assert session.state.run is not None and session.state.run.calls[call].state == "executing"

    play(script)


def test_a_preview_counts_what_is_on_its_way(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            waiting = [asyncio.ensure_future(session.commit(c.ChangeTitle(title=str(n)))) for n in range(3)]
            await asyncio.sleep(0)
            refused = asyncio.ensure_future(session.commit(c.StopRun(run="b" * 32)))
            await asyncio.sleep(0)
            assert session.preview().state.settings.title == "2"
            assert session.state.settings.title == ""
            await asyncio.gather(*waiting)
            with pytest.raises(Refused):
                await refused

    play(script)


def test_facts_carry_the_bodies_they_show_also_when_stored_earlier(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            body = said("hello")
            (submitted,) = await session.commit(c.SubmitInput(input="a" * 32, body=body.digest), bodies=(body,))
            id = session.id
            await session.close()
            session = await store.open_session(id)
            facts = await session.commit(c.CreateTurn(turn="b" * 32, run="c" * 32, inputs=("a" * 32,)))
            assert submitted.body == facts[-1].body == body.value
            assert [fact.body for fact in facts[:-1]] == [None, None]
            assert [fact.agent for fact in facts] == [id] * 3
            assert facts == (await session.history()).facts[-3:]

    play(script)


def test_an_outcome_kept_outside_the_ledger_settles_its_call_at_recovery(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            one, two = await reply(session, "", "bash", "bash")
            effect = await start(session, one)
            await start(session, two)
            done = stage(TextBody(text="x" * 300_000))
            settled = c.SubmitCallResult(run=active(session), call=one, effect=effect, outcome=done.digest)
            await session.keep(settled, done)
            await store.collect()
            id = session.id
            await session.close()
            session = await store.open_session(id)
            assert session.parked
            await session.commit(*recovery(session.state, await session.kept()))
            results = {e.id: getattr(e, "status", "") for e in session.view.context}
            assert (results[one], results[two]) == ("ok", "unknown")
            assert await session.body(done.digest) == done.value
            await session.commit(c.StopRun(run=active(session)))
            await session.close()
            again = await store.open_session(id)
            assert await again.kept() == {}

    play(script)


def test_the_last_page_is_there_without_opening_or_folding(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            for n in range(5):
                await turn(session, f"say {n}")
            assert await store.history(session.id[:6], limit=30) == await session.history(limit=30)
            await store.writer.run(lambda db: db.execute("DELETE FROM projection") and None)
            await session.close()
            page = await store.history(session.id, limit=10)
            assert 0 < len(page.facts) <= 20 and page.start is not None
            with pytest.raises(Missing):
                await store.history("ffff")

    play(script)


# --- requests as differences ------------------------------------------------------------------------------------


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_a_difference_leads_back_to_what_it_was_made_of(a: bytes, b: bytes, shared: bytes, more: bytes) -> None:
    for base, data in (
        (a, b),
        (shared + a + more, shared + b + more),
        (shared, shared + more),
        (a + shared, shared),
        (a, a),
    ):
        assert delta.apply(base, delta.between(base, data)) == data


def test_requests_of_a_long_turn_are_kept_as_differences_and_read_whole(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await begin(session)
            names: list[str] = []
            made = []
            for n in range(DEEPEST + 30):
                names += [outcome(f"message {n} {k}").digest for k in range(2)]
                frozen = request(*names)
                made.append(frozen)
                run = session.state.run
                assert run is not None
                await session.commit(
                    c.PrepareStep(run=run.run, position=run.position, request=frozen.digest, inputs=run.pending),
                    c.StartModel(run=run.run, effect=run.next_effect),
                    bodies=(frozen,),
                )
                (call,) = await reply(session, "", "read")
                await start(session, call)
                await settle(session, call)
            await store.collect()
            for frozen in made:
                assert await session.raw(frozen.digest) == frozen.data
            kept, whole, depth = await store.reader.run(
                lambda db: db.execute(
                    "SELECT sum(length(data)), sum(size), max(depth) FROM body WHERE size > 2000"
                ).fetchone(),
                plain=True,
            )
            assert kept < whole / 10 and depth == DEEPEST
            data = b"".join([piece async for piece in store.export(session.id)])
            (tmp_path / "out.jsonl").write_bytes(data)
            async with opened(tmp_path / "other") as other:
                await other.import_(tmp_path / "out.jsonl")
                assert b"".join([piece async for piece in other.export(session.id)]) == data
                grown = await other.reader.run(
                    lambda db: db.execute("SELECT sum(length(data)) FROM body").fetchone()[0], plain=True
                )
                assert grown < whole / 2
            # what a difference stands on may be damaged: then it is too, and says so
            db = sqlite3.connect(tmp_path / "sessions.db")
            db.execute("UPDATE body SET data = zeroblob(length(data)) WHERE depth = 3")
            db.commit()
            db.close()
            with pytest.raises(Corrupt, match=made[-40].digest):
                await session.raw(made[-40].digest)

    play(script)


def test_what_a_kept_request_stands_on_outlives_the_session_that_recorded_it(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            names = [outcome(f"message {n}").digest for n in range(40)]
            first, second = request(*names), request(*names, outcome("one more").digest)
            sessions = [await store.create(cwd="/w") for _ in range(2)]
            for session, requests in zip(sessions, ((first, second), (second,)), strict=True):
                await begin(session)
                for frozen in requests:
                    run = session.state.run
                    assert run is not None
                    await session.commit(
                        c.PrepareStep(run=run.run, position=run.position, request=frozen.digest, inputs=run.pending),
                        c.StartModel(run=run.run, effect=run.next_effect),
                        bodies=(frozen,),
                    )
                    (call,) = await reply(session, "", "read")
                    await start(session, call)
                    await settle(session, call)
            gone = sessions[0].id
            await sessions[0].close()
            await store.delete([gone])
            await store.collect()
            assert await sessions[1].raw(second.digest) == second.data

    play(script)
