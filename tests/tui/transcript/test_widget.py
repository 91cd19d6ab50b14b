"""The widget under Textual's pilot: keys, mouse, messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Text
from panto.schema.queries import History
from panto.tui.widgets.scroll import Transcript
from tests.tui.transcript.scenes import MARKDOWN, children, done
from tests.tui.transcript.script import Script, main_screen
from tests.tui.transcript.stage import Stage

Test = Callable[[Stage, Any], Awaitable[None]]


def run(test: Test, width: int = 100, height: int = 30) -> None:
    async def inside() -> None:
        stage = Stage()
        async with stage.run_test(size=(width, height)) as pilot:
            await test(stage, pilot)

    asyncio.run(inside())


def row_of(stage: Stage, words: str) -> int:
    return next(y for y, row in enumerate(stage.rows()) if words in row)


def test_what_is_said_is_on_the_screen() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        stage.script.prompt("hello")
        stage.script.stream("hi there")
        await stage.settled()
        await pilot.pause()
        assert stage.rows()[:3] == ["› hello", "", "  hi there"]

    run(test)


def test_a_click_opens_a_card_and_another_folds_it() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        done(stage.script)
        await stage.settled()
        await pilot.click(Transcript, offset=(20, row_of(stage, "pytest -q")))
        await stage.settled()
        assert any(row.startswith("▾ run") for row in stage.rows())
        await asyncio.sleep(0.6)  # else it is a double click
        await pilot.click(Transcript, offset=(20, row_of(stage, "pytest -q")))
        await stage.settled()
        assert any(row.startswith("✓ run") for row in stage.rows())

    run(test)


def test_a_click_on_a_childs_row_asks_for_its_transcript() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        children(stage.script)
        await pilot.pause(0.1)
        await pilot.click(Transcript, offset=(10, row_of(stage, "tester")))
        await pilot.pause()
        assert [one.agent for one in stage.heard if isinstance(one, Transcript.OpenChild)] == ["job-tester"]

    run(test)


def test_dragging_selects_and_a_double_click_takes_the_word() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        stage.script.prompt("hello")
        stage.script.answer("one two three\n\nfour five")
        await stage.settled()
        await pilot.mouse_down(Transcript, offset=(6, 2))
        await pilot.hover(Transcript, offset=(6, 4))
        await pilot.mouse_up(Transcript, offset=(6, 4))
        assert stage.transcript.selected_text() == "two three\n\nfour"
        await pilot.click(Transcript, offset=(7, 2), times=2)
        assert stage.transcript.selected_text() == "two"
        await pilot.click(Transcript, offset=(7, 2), times=3)
        assert stage.transcript.selected_text() == "one two three"

    run(test)


def test_the_keys_of_the_transcript() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        main_screen(stage.script)
        await pilot.pause(0.1)
        transcript = stage.transcript
        await pilot.press("k")
        assert transcript.view.current_item() is transcript.story.items[-1]
        await pilot.press("k", "k")
        item = transcript.view.current_item()
        assert item is transcript.story.items[-3]
        await pilot.press("o")
        assert item.open
        await pilot.press("y")
        assert stage.copied and stage.copied[-1].startswith("read part-0.txt")
        await pilot.press("enter")
        await pilot.pause()
        assert [one.text for one in stage.heard if isinstance(one, Transcript.OpenPager)][-1].startswith("read part-0")
        ends = []
        for key in ("p", "G", "g"):
            await pilot.press(key)
            ends.append(transcript.at_end)
        assert ends == [False, True, False]
        assert transcript.view.top == 0

    run(test, height=20)


def test_the_wheel_scrolls_and_what_comes_below_is_counted() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        for n in range(20):
            stage.script.prompt(f"prompt {n}")
            stage.script.answer("answer")
        await stage.settled()
        stage.transcript.scroll_rows(-9)
        await stage.settled()
        before = stage.rows()
        stage.script.stream("new\n\nnewer\n\n")
        await stage.settled()
        await pilot.pause()
        assert stage.rows() == before
        assert stage.transcript.unseen == 4
        assert [one.count for one in stage.heard if isinstance(one, Transcript.Unseen)][-1] == 4
        stage.transcript.to_end()
        await stage.settled()
        assert stage.transcript.unseen == 0

    run(test)


def test_near_the_beginning_an_older_page_is_asked_for_once() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        script = Script()
        for n in range(30):
            script.prompt(f"prompt {n}")
            script.answer("answer")
        facts = script.history().facts
        stage.transcript.load(History(facts[80:], (facts[80].seq, 0)))
        await stage.settled()
        stage.transcript.to_start()
        for _ in range(5):
            stage.transcript.scroll_rows(-1)
            await pilot.pause()
        asked = [one.before for one in stage.heard if isinstance(one, Transcript.NeedOlder)]
        assert asked == [(facts[80].seq, 0)]
        stage.transcript.prepend(History(facts[:80], None))
        await stage.settled()
        stage.transcript.to_start()
        await stage.settled()
        await pilot.pause()
        assert stage.rows()[0] == "› prompt 0"

    run(test)


def test_search_goes_to_what_it_finds_and_opens_what_hides_it() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        done(stage.script)
        for n in range(20):
            stage.script.prompt(f"prompt {n}")
            stage.script.answer("answer")
        await stage.settled()
        assert stage.transcript.search("test_case_190") == 1
        await stage.settled()
        await pilot.pause()
        assert any("test_case_190" in row for row in stage.rows())
        assert stage.transcript.search("prompt 1") == 11
        assert stage.transcript.search("nowhere at all") == 0

    run(test)


def test_opening_the_last_card_and_then_all_of_the_turn() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        main_screen(stage.script)
        stage.script.complete("call15", ToolOutcome())
        await pilot.pause(0.1)
        cards = [item for item in stage.transcript.story.items if item.kind == "card"]
        stage.transcript.toggle_last()
        assert [item.open for item in cards] == [False] * 5 + [True]
        stage.transcript.toggle_last(all=True)
        assert all(item.open for item in cards)
        stage.transcript.toggle_last()
        assert [item.open for item in cards] == [True] * 5 + [False]

    run(test)


def test_a_resize_redraws_everything_in_place() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        main_screen(stage.script)
        await pilot.pause(0.2)
        fresh = stage.rows()
        await pilot.resize_terminal(60, 17)
        await pilot.pause(0.1)
        assert all(len(row) <= 60 for row in stage.rows())
        await pilot.resize_terminal(100, 30)
        await pilot.pause(0.1)
        assert stage.rows() == fresh

    run(test)


def test_frames_stop_when_nothing_moves_and_go_on_while_something_runs() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        stage.script.prompt("x")
        (call,) = stage.script.answer(MARKDOWN, [("bash", {"command": "sleep 9"})])
        stage.script.start(call)
        await pilot.pause(0.3)
        assert stage.transcript._handle is not None
        stage.script.stop()
        stage.script.fail(call, "cancelled", "", effect="x")
        await stage.settled()
        assert stage.transcript._handle is None

    run(test)


def test_code_is_coloured_after_it_was_shown_plain() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        stage.script.prompt("x")
        stage.script.answer("```python\nimport os\n```")
        await stage.settled()
        strip = stage.transcript._shown.strips[2]
        styles = {segment.text: segment.style for segment in strip}
        keyword = stage.palette.syntax["keyword"].color
        assert any(style is not None and style.color == keyword for style in styles.values())

    run(test)


def test_the_rows_of_children_are_walked_one_by_one_and_enter_opens_one() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        children(stage.script)
        await pilot.pause(0.2)
        await pilot.press("k")  # chooses the card
        await pilot.press("j", "j", "j", "k", "enter")
        await pilot.pause()
        assert [one.agent for one in stage.heard if isinstance(one, Transcript.OpenChild)] == ["job-tester"]
        await pilot.press("k", "k", "k")
        assert stage.transcript.view.current_item() is stage.transcript.story.items[0]

    run(test)


def test_long_lines_wrap_on_request() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        stage.script.prompt("x")
        (call,) = stage.script.answer("", [("bash", {"command": "x"})])
        stage.script.start(call)
        stage.script.complete(call, ToolOutcome((Text("word " * 40),)))
        await stage.settled()
        await pilot.press("k", "w")
        await stage.settled()
        await pilot.pause()
        assert sum(row.count("word") for row in stage.rows()) == 40

    run(test)


def test_while_searching_n_and_p_go_from_place_to_place_and_escape_ends_it() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        for n in range(12):
            stage.script.prompt(f"prompt {n}")
            stage.script.answer(f"needle {n}\n\nother\n\nneedle again {n}")
        await stage.settled()
        assert stage.transcript.search("needle") == 12
        search = stage.transcript.view.search
        assert search is not None
        places = [(search.here, search.row)]
        for key in ("p", "p", "n", "n", "n"):
            await pilot.press(key)
            places.append((search.here, search.row))
        last, before = places[0][0], places[2][0]
        first = stage.transcript.story.items[1].serial
        assert places == [(last, 4), (last, 0), (before, 4), (last, 0), (last, 4), (first, 0)]
        await pilot.press("escape")
        assert stage.transcript.view.search is None

    run(test)


def test_a_card_that_is_folded_at_the_end_is_followed_again() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        done(stage.script)
        await stage.settled()
        await pilot.press("k", "o")
        await stage.settled()
        assert any(row.startswith("▾ run") for row in stage.rows())
        await pilot.press("o")
        await stage.settled()
        assert stage.transcript.at_end

    run(test, height=14)


def test_another_session_and_none_are_shown_in_place_of_a_long_one() -> None:
    async def test(stage: Stage, pilot: Any) -> None:
        long, short = Script(), Script()
        for n in range(40):
            long.prompt(f"prompt {n}")
            long.answer("answer")
        short.prompt("the only one")
        stage.transcript.load(long.history())
        await stage.settled()
        stage.transcript.load(short.history())
        await pilot.resize_terminal(80, 20)
        await stage.settled()
        await pilot.pause()
        assert stage.rows()[0] == "› the only one"
        stage.transcript.load(long.history())
        await stage.settled()
        stage.transcript.clear()
        await stage.settled()
        await pilot.pause()
        assert not any(stage.rows())

    run(test)
