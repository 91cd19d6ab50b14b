"""The rows around the transcript: always three at the bottom, always true."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Literal

import pytest
from msgspec.structs import replace

from panto.schema.bodies import ToolOutcome
from panto.schema.contributions import Contributions, Shortcut, StatusItem, Theme
from panto.schema.errors import Missing, StorageFailed
from panto.schema.events import TitleChanged, ToolCallCompleted, TurnAttemptFailed
from panto.schema.messages import Usage
from panto.schema.ops import Continue, Interrupt, RetryNow, RunCommand, SetMode, Shutdown
from panto.schema.signals import ContributionsChanged, RetryResumed, RetryWaiting, SessionOpened
from panto.schema.view import DiffView
from panto.tui.farewell import farewell
from panto.tui.now import MODES
from panto.tui.printed import last_answer
from panto.tui.settings import ScreenSettings
from tests.tui.app.stage import SETTINGS, Stage, stage
from tests.tui.stub_client import DIGEST, ME, STATUS, StubClient

BUSY = replace(STATUS, jobs=2, usage=Usage(input=100, cache_read=91), busy=True,
               cwd="/srv/work/customers/shop")  # fmt: skip


def bottom(on: Stage) -> list[str]:
    return on.rows()[-3:]


def test_an_idle_screen_has_three_rows_at_the_bottom() -> None:
    async def run() -> None:
        async with stage() as on:
            rule, prompt, status = bottom(on)
            assert rule.startswith("────") and rule.endswith("── ask before running ──")
            assert prompt == "›"
            assert status.startswith("  sonnet-5.5 medium   /tmp/shop main") and status.endswith("▰▱▱▱▱▱▱▱ 26k of 200k")
            assert on.rows()[0] == "  panto 0.1   ~/shop  main"

    asyncio.run(run())


def test_the_prompts_row_stays_where_it_is_over_a_whole_turn() -> None:
    async def run() -> None:
        async with stage() as on:

            def stands() -> None:
                rows = on.rows()
                assert rows[-2].startswith("›") and rows[-3].startswith("──"), on.text()

            stands()
            await on.press("g", "o", "enter")
            on.client.begin()
            await on.see("Esc stops")
            stands()
            on.client.stream("word " * 400)
            await on.see("word word")
            stands()
            on.client.say(RetryWaiting(ME, "rate_limited", 429, 3.0, 2, 6))
            await on.see("try 2 of 6")
            stands()
            on.client.answer("done")
            on.client.end()
            await on.until(lambda: not on.app.now.busy)
            stands()

    asyncio.run(run())


def test_waiting_for_a_retry_has_a_cause_a_countdown_a_count_and_ways_out() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            on.client.say(RetryWaiting(ME, "rate_limited", 429, 30.0, 2, 6))
            await on.see("try 2 of 6 · Enter now · Esc stops")
            assert re.search(r"429.*again in (30|29|28) s", bottom(on)[0])
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [RetryNow()]
            on.client.say(RetryResumed(ME))
            await on.until(lambda: "again in" not in bottom(on)[0])

    asyncio.run(run())


@pytest.mark.parametrize(
    ("width", "left", "right"),
    [
        (120, "  sonnet-5.5 medium   /srv/work/customers/shop main", "$0.12   cache 91%   ▰▱▱▱▱▱▱▱ 26k of 200k"),
        (80, "  sonnet-5.5 medium   main", "2 jobs  $0.12  cache 91%  ▰▱▱▱ 26k"),
        (60, "  sonnet-5.5", "26k"),
        (30, "  sonnet-5.5", "26k"),
    ],
)
def test_the_status_line_drops_the_least_first(width: int, left: str, right: str) -> None:
    async def run() -> None:
        async with stage(StubClient(status=BUSY), size=(width, 24)) as on:
            assert bottom(on)[2].startswith(left), bottom(on)
            assert bottom(on)[2].endswith(right), bottom(on)

    asyncio.run(run())


def test_lines_changed_are_counted_in_the_status_line() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            on.client.fact(
                ToolCallCompleted(run="r1", call="c", effect="e", outcome=DIGEST),
                ToolOutcome(view=DiffView("shop.py", (), 2, 4)),
            )
            await on.see("main +2 −4")

    asyncio.run(run())


def test_a_full_context_changes_its_colour() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.say(replace(STATUS, context_used=150_000))
            await on.see("150k of 200k")
            line = on.app.status.lines(120, 1)[0]
            assert line.segments[-2].style == on.app.palette.attention
            on.client.say(replace(STATUS, context_used=190_000))
            await on.see("190k of 200k")
            assert on.app.status.lines(120, 1)[0].segments[-2].style == on.app.palette.wrong

    asyncio.run(run())


def test_escape_stops_the_turn_once_and_says_so() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            await on.see("Esc stops")
            await on.press("escape")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Interrupt()]
            await on.see("stopping")
            on.client.end()
            await on.until(lambda: "stopping" not in on.text())

    asyncio.run(run())


def test_escape_in_an_idle_empty_prompt_twice_opens_the_turns() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            on.client.answer("x")
            on.client.end()
            await on.until(lambda: on.app.now.turns and not on.app.now.busy)
            await on.press("escape")
            assert "── turns ──" not in on.text()
            await on.press("escape")
            await on.see("── turns ──")
            await on.press("escape")
            await on.see("ask before running")
            assert on.client.ops == []

    asyncio.run(run())


def test_ctrl_c_stops_then_clears_then_leaves() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("draft")
            await on.press("ctrl+c")
            assert on.app.composer.draft.text == ""
            await on.see("Ctrl+C again leaves")
            await on.press("ctrl+c")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Shutdown()]

    asyncio.run(run())


def test_ctrl_d_deletes_in_a_text_and_leaves_an_empty_prompt() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("a", "b", "home", "ctrl+d")
            assert on.app.composer.draft.text == "b"
            await on.press("delete", "ctrl+d")
            await on.until(lambda: on.client.ops == [Shutdown()])

    asyncio.run(run())


def test_ctrl_d_asks_first_while_jobs_run() -> None:
    async def run() -> None:
        async with stage(StubClient(status=replace(STATUS, jobs=2))) as on:
            await on.press("ctrl+d")
            assert on.client.ops == []
            await on.press("ctrl+d")
            await on.until(lambda: on.client.ops == [Shutdown()])

    asyncio.run(run())


def test_shift_tab_goes_round_plan_ask_and_auto_and_never_to_yolo() -> None:
    async def run() -> None:
        async with stage() as on:
            rounds: tuple[Literal["auto", "plan", "ask"], ...] = ("auto", "plan", "ask")
            for after in rounds:
                count = len(on.client.ops)
                await on.press("shift+tab")
                await on.until(partial(lambda before: len(on.client.ops) > before, count))
                assert on.client.ops[-1] == SetMode(after)
                on.client.say(replace(STATUS, mode=after))
                await on.see(MODES[after])

    asyncio.run(run())


def test_ctrl_x_and_a_letter_open_a_list_and_type_nothing() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("ctrl+x")
            await on.see("s sessions")
            await on.press("m")
            await on.see("── model ──")
            await on.press("escape", "ctrl+x", "escape")
            assert on.app.composer.draft.text == ""

    asyncio.run(run())


def test_a_question_mark_in_an_empty_prompt_opens_the_help() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("question_mark")
            await on.see("── help ──")
            await on.typed("steer")
            await on.see("steer it")
            await on.press("escape", "a", "question_mark")
            assert on.app.composer.draft.text == "a?"

    asyncio.run(run())


def test_what_extensions_add_is_shown_and_works() -> None:
    async def run() -> None:
        brought = Contributions(
            (Theme("night", True, {"accent": "#ff00ff"}),),
            (Shortcut("ctrl+alt+x", "does it", "/cost"),),
            (StatusItem("n", "3 todos"),),
        )
        async with stage() as on:
            on.client.say(ContributionsChanged(ME, brought))
            await on.see("3 todos")
            await on.press("ctrl+alt+x")
            await on.until(lambda: on.client.ops == [RunCommand("/cost")])
            await on.typed("/theme night")
            await on.press("enter")
            assert on.app.palette.name == "night"

    asyncio.run(run())


def test_another_session_is_drawn_anew() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin("the old one")
            await on.see("the old one")
            on.client.say(SessionOpened(ME))
            await on.until(lambda: "the old one" not in on.text())
            assert on.app.now.turns == 0

    asyncio.run(run())


def test_enter_tries_a_failed_turn_again() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            on.client.end()
            on.client.fact(TurnAttemptFailed(turn="t1", run="r1"))
            await on.until(lambda: on.app.now.failed)
            await on.press("enter")
            await on.until(lambda: on.client.ops == [Continue()])

    asyncio.run(run())


def test_an_engine_that_cannot_be_built_is_a_message_and_the_prompt_lives() -> None:
    async def run() -> None:
        from panto.schema.errors import PantoError
        from panto.tui.app import PantoApp
        from panto.tui.widgets.scroll import Transcript

        async def fails() -> StubClient:
            raise PantoError("the disk said no", "free some space")

        app = PantoApp(fails, SETTINGS, Transcript(id="transcript"))
        async with app.run_test(size=(100, 24)) as pilot:
            on = Stage(app, pilot, StubClient())
            await on.see("the disk said no")
            await on.see("free some space")
            await on.press("x")
            assert app.composer.draft.text == "x"

    asyncio.run(run())


@pytest.mark.parametrize("error", [Missing("no session abcd"), StorageFailed("read only")])
def test_a_session_that_cannot_be_opened_ends_the_screen_with_its_reason(error: Exception) -> None:
    async def run() -> None:
        from panto.tui.app import PantoApp
        from panto.tui.widgets.scroll import Transcript

        async def fails() -> StubClient:
            raise error

        app = PantoApp(fails, SETTINGS, Transcript(id="transcript"))
        async with app.run_test(size=(100, 24)) as pilot:
            on = Stage(app, pilot, StubClient())
            await on.until(lambda: app.return_code == 2)
            assert app.unfit is error

    asyncio.run(run())


def test_after_sizes_the_screen_is_as_freshly_drawn() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("a draft that is long enough to be broken over two rows at sixty columns, surely")
            before = on.text()
            await on.pilot.resize_terminal(60, 20)
            await on.pilot.pause()
            assert on.app.composer.size.height == 2
            await on.pilot.resize_terminal(120, 36)
            await on.pilot.pause()
            assert on.text() == before

    asyncio.run(run())


def test_every_screen_opens_at_every_size_and_escape_comes_back() -> None:
    async def run() -> None:
        for size in ((120, 36), (80, 24), (40, 10)):
            async with stage(size=size) as on:
                for name in ("help", "model", "sessions", "agents", "tree", "settings", "theme"):
                    getattr(on.app, f"action_{name}")()
                    await on.pilot.pause()
                    assert on.rows()[0].startswith("── "), (name, size)
                    await on.press("escape")
                    assert on.rows()[-2].startswith("›")

    asyncio.run(run())


def test_no_row_is_wider_than_the_screen_with_wide_characters_everywhere() -> None:
    async def run() -> None:
        wide = "漢字🇨🇭👩‍👩‍👧" * 20
        async with stage(StubClient(status=replace(STATUS, model="x:" + wide, branch=wide)), size=(60, 20)) as on:
            await on.typed(wide[:30])
            on.client.fact(TitleChanged(session=ME, title=wide))
            await on.pilot.pause()
            for strip in on.app.screen._compositor.render_strips():
                assert strip.cell_length == 60

    asyncio.run(run())


def test_keys_can_be_set_and_a_wrong_action_is_named() -> None:
    async def run() -> None:
        settings = ScreenSettings(theme="dark", keys=(("help", "f2"), ("nonsense", "f3")))
        async with stage(settings=settings) as on:
            await on.see("[keys] nonsense: no such action")
            await on.press("f1")
            assert "── help ──" not in on.text()
            await on.press("f2")
            await on.see("── help ──")

    asyncio.run(run())


def test_the_farewell_is_the_answer_what_it_cost_and_the_way_back() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin("Fix the total")
            on.client.answer("\n\n".join(f"line {number}" for number in range(30)))
            on.client.end()
            await on.until(lambda: on.app.now.answer and not on.app.now.busy)
            shown = last_answer(on.app.transcript.story.items, on.app.look)
            lines = farewell(on.app.now, None, SETTINGS, shown)
            assert lines[1] == "  line 0" and "  … 40 more lines" in lines
            assert "1 turn" in lines[-3] and "$0.12" in lines[-3]
            assert lines[-1] == f"  panto --resume {ME[:8]}"
            assert farewell(on.app.now, None, SETTINGS._replace(leave="nothing"), shown) == ()

    asyncio.run(run())
