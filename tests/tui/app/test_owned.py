"""A session that another process writes: who it is, three ways to it, and a view that says that it is one."""

from __future__ import annotations

import asyncio

from panto.schema.errors import Owned
from panto.schema.ops import DeleteSession, Interrupt, OpenSession, Prompt
from panto.schema.queries import AskSessions, AskStatus, SessionRow
from panto.schema.signals import Noticed, SessionOpened, SessionOwner
from tests.tui.app.stage import Stage, stage
from tests.tui.stub_client import ME, STATUS, StubClient

THERE = SessionOwner("77aa", 4711, "build3", title="Fix the total")


def elsewhere(owner: SessionOwner = THERE) -> StubClient:
    made = StubClient()
    made.refuse[OpenSession] = Owned("it is open in process 4711", owner)
    return made


async def refused(on: Stage) -> None:
    await on.typed("/resume 77")
    await on.press("enter")
    await on.see("open elsewhere")
    await on.pilot.pause(0.5)  # no key counts at once
    on.client.refuse.clear()
    on.client.ops.clear()


def test_who_holds_it_is_named_and_each_way_is_one_key() -> None:
    async def run() -> None:
        for keys, how in ((["v"], "view"), (["enter"], "view"), (["f"], "fork"), (["t", "y"], "take_over")):
            async with stage(elsewhere()) as on:
                await refused(on)
                assert "Fix the total" in on.text() and "process 4711 on build3 is running" in on.text()
                for key in keys:
                    await on.pilot.press(key)
                await on.until(lambda on=on: on.client.ops)  # type: ignore[misc]
                assert on.client.ops == [OpenSession("77aa", how)]  # type: ignore[arg-type]

    asyncio.run(run())


def test_taking_over_is_asked_twice_and_escape_takes_no_way() -> None:
    async def run() -> None:
        async with stage(elsewhere()) as on:
            await refused(on)
            await on.pilot.press("t")
            await on.see("take it over from process 4711?")
            await on.pilot.press("enter", "n", "escape")
            await on.until(lambda: on.app.screen is on.app.main)
            assert on.client.ops == []

    asyncio.run(run())


def test_a_holder_that_cannot_be_seen_from_here_is_not_called_running() -> None:
    async def run() -> None:
        async with stage(elsewhere(SessionOwner("77aa", 9, "far", alive=False))) as on:
            await refused(on)
            assert "is running" not in on.text() and "whether it still runs" in on.text()

    asyncio.run(run())


def test_a_start_that_meets_a_held_session_offers_the_ways_unless_something_is_being_typed() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.say(Noticed(ME, "77aa is open in process 4711", "attention", owner=THERE))
            await on.see("open elsewhere")
        async with stage() as on:
            await on.typed("already")
            on.client.say(Noticed(ME, "77aa is open in process 4711", "attention", owner=THERE))
            await on.see("77aa is open in process 4711   /resume 77aa: view, fork or take it over")
            assert on.app.screen is on.app.main and on.app.composer.draft.text == "already"

    asyncio.run(run())


def viewed() -> StubClient:
    made = StubClient(status=STATUS.__class__(**{**{n: getattr(STATUS, n) for n in STATUS.__struct_fields__},
                                                 "busy": True, "parked": True}))  # fmt: skip
    made.answers[AskSessions] = (
        SessionRow(ME, "3f2a", "Fix it", "/tmp/shop", 0.0, "m", 1, 1, owner="process 4711 on build3"),
    )
    return made


def test_a_viewed_session_says_so_and_keeps_what_is_written_for_it() -> None:
    async def run() -> None:
        async with stage(viewed()) as on:
            on.client.say(SessionOpened(ME, read_only=True))
            await on.see("viewing · held by process 4711 on build3")
            assert "only viewed here   Enter:" in on.text() and "Enter continues" not in on.text()
            await on.typed("hello")
            await on.press("enter")
            await on.see("not sent: this session is only viewed here, process 4711 on build3 writes it")
            assert on.app.composer.draft.text == "hello" and not on.ops(Prompt)

    asyncio.run(run())


def test_escape_stops_nothing_in_a_view_and_enter_in_an_empty_prompt_asks_for_the_session() -> None:
    async def run() -> None:
        async with stage(viewed()) as on:
            on.client.say(SessionOpened(ME, read_only=True))
            await on.see("viewing · held by")
            assert "Esc stops" not in on.text()
            await on.press("escape")
            assert not on.ops(Interrupt)
            on.client.refuse[OpenSession] = Owned("held", SessionOwner(ME, 4711, "build3"))
            await on.press("enter")
            await on.see("Esc go on viewing")
            assert "v  view" not in on.text() and on.client.ops == [OpenSession(ME)]

    asyncio.run(run())


def test_a_session_that_is_ones_own_again_loses_the_words_of_the_view() -> None:
    async def run() -> None:
        async with stage(viewed(), (60, 20)) as on:
            on.client.say(SessionOpened(ME, read_only=True))
            await on.see("viewing")
            on.client.answers[AskStatus] = STATUS
            on.client.say(SessionOpened(ME))
            await on.see("ask before running")
            await on.until(lambda: "only viewed here   Enter:" not in on.text(), "an inviting prompt")

    asyncio.run(run())


def test_what_is_refused_while_a_list_lies_above_is_said_in_the_list() -> None:
    async def run() -> None:
        client = StubClient()
        rows = (SessionRow("77aa", "77aa", "Fix the total", "/tmp/shop", 0.0, "m", 1, 1, owner="process 4711 on x"),)
        client.answers[AskSessions] = rows
        client.refuse[DeleteSession] = Owned("session 77aa is open in process 4711", THERE)
        async with stage(client) as on:
            on.app.action_sessions()
            await on.see("Fix the total")
            await on.press("ctrl+d", "y")
            await on.see("session 77aa is open in process 4711")
            assert on.app.screen is not on.app.main and "delete (asks)" not in on.text()
            await on.press("down")
            await on.see("delete (asks)")

    asyncio.run(run())
