"""Questions: what they show, which key means what, and that nothing is agreed to by accident."""

from __future__ import annotations

import asyncio

import pytest
from textual.events import Paste

from panto.schema.bodies import Question
from panto.schema.errors import UsageError
from panto.schema.ops import Answer, Decide, Interrupt
from panto.schema.signals import Asked
from panto.schema.view import DiffView, Hunk
from tests.tui.app.stage import Stage, stage
from tests.tui.stub_client import ME, StubClient

INSTALL = Question(
    "approval", "bash", "npm install", "no rule allows npm install", '{"command": "npm install", "t": 1}',
    rule="bash(npm install *)",
)  # fmt: skip
REMOVE = Question(
    "approval", "bash", "rm -rf build", "rm -r deletes files", '{"command": "rm -rf build"}', dangerous=True
)
EDIT = Question("approval", "edit", "shop.py", "mode ask", '{"path": "shop.py"}',
                view=DiffView("shop.py", (Hunk(20, 20, (("-", "t = 0"), ("+", "return 1"))),), 1, 1))  # fmt: skip
PICK = Question("ask", "ask", "Which colour?", choices=("red", "green", "blue"))


async def put(on: Stage, question: Question, call: str = "c1") -> None:
    on.client.begin()
    on.client.hold(question, call)
    await on.until(lambda: on.app.question.held is not None)


def test_no_key_counts_in_the_first_moment_and_letters_go_into_the_draft() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("my dra")
            on.client.begin()
            on.client.hold(INSTALL)
            await on.until(lambda: on.app.question.held is not None)
            await on.press("f", "t", "enter", "y")
            assert on.client.ops == []
            assert on.app.composer.draft.text == "my drafty"
            await on.alive()
            await on.press("y")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Decide("c1", "once", agent=ME)]
            await on.until(lambda: on.app.composer.display)
            assert "my drafty" in on.text()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("keys", "op"),
    [
        (("enter",), Decide("c1", "once", agent=ME)),
        (("y",), Decide("c1", "once", agent=ME)),
        (("s",), Decide("c1", "session", agent=ME)),
        (("a", "enter"), Decide("c1", "always", agent=ME)),
        (("n",), Decide("c1", "no", agent=ME)),
        (("escape",), Interrupt()),
        (("tab", "t", "o", "o", "enter"), Decide("c1", "no", "too", agent=ME)),
        (("tab", "x", "escape", "y"), Decide("c1", "once", agent=ME)),
        (("a", "escape", "n"), Decide("c1", "no", agent=ME)),
        (("e", "x", "enter"), Decide("c1", "once", "", '{"command": "npm installx", "t": 1}', ME)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_each_key_of_an_approval_means_one_thing(keys: tuple[str, ...], op: object) -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, INSTALL)
            await on.alive()
            await on.press(*keys)
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [op]

    asyncio.run(run())


@pytest.mark.parametrize("key", ["enter", "s", "a", "space", "o"])
def test_a_dangerous_call_is_allowed_by_y_alone(key: str) -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, REMOVE)
            await on.alive()
            await on.press(key)
            await on.pilot.pause(0.05)
            assert on.client.ops == []
            assert "s  this session" not in on.text() and "Enter or y" not in on.text()
            await on.alive()
            await on.press("y")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Decide("c1", "once", agent=ME)]

    asyncio.run(run())


def test_the_question_stands_where_the_prompt_was_with_all_it_asks_about_and_why() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, REMOVE)
            await on.alive()
            text = on.text()
            assert "── dangerous: run this command? ──" in text
            assert "$ rm -rf build" in text and "asks because  rm -r deletes files" in text and "Esc  no, stop" in text
            assert on.rows()[-1].strip().startswith("sonnet-5.5")

    asyncio.run(run())


def test_an_edit_is_shown_as_its_diff() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, EDIT)
            await on.see("make this edit?")
            assert "shop.py  +1 −1 ──" in on.text()
            assert "t = 0" in on.text() and "return 1" in on.text()

    asyncio.run(run())


def test_always_shows_the_rule_before_it_is_saved() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, INSTALL)
            await on.alive()
            await on.press("a")
            assert "from now on allowed:  bash(npm install *)" in on.text()
            assert on.client.ops == []

    asyncio.run(run())


def test_arguments_that_are_no_json_any_more_are_not_run() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, EDIT)
            await on.alive()
            await on.press("e", "x", "enter")
            await on.see("not valid JSON")
            assert on.client.ops == []

    asyncio.run(run())


def test_questions_come_one_after_the_other_and_say_how_many_wait() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, INSTALL)
            on.client.hold(REMOVE, "c2")
            await on.see("1 of 2 waiting")
            await on.alive()
            await on.press("y")
            await on.see("rm -rf build")
            await on.pilot.press("y")
            assert on.client.ops == [Decide("c1", "once", agent=ME)]
            await on.alive()
            await on.press("y")
            await on.until(lambda: len(on.client.ops) == 2)
            assert on.client.ops[1] == Decide("c2", "once", agent=ME)

    asyncio.run(run())


def test_a_choice_is_picked_by_arrow_or_digit() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, PICK)
            await on.alive()
            await on.press("down", "enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Answer("c1", choices=("green",), agent=ME)]

    asyncio.run(run())


def test_several_choices_and_own_words_and_no_answer() -> None:
    async def run() -> None:
        many = Question("ask", "ask", "Which?", choices=("a", "b", "c"), multiple=True)
        async with stage() as on:
            await put(on, many)
            await on.alive()
            await on.press("1", "3", "enter")
            await on.until(lambda: on.client.ops)
            on.client.hold(PICK, "c2")
            await on.until(lambda: on.app.question.held is not None and on.app.question.held.call == "c2")
            await on.alive()
            await on.press("tab", "p", "i", "n", "k", "enter")
            await on.until(lambda: len(on.client.ops) == 2)
            on.client.hold(PICK, "c3")
            await on.until(lambda: on.app.question.held is not None and on.app.question.held.call == "c3")
            await on.alive()
            await on.press("escape")
            await on.until(lambda: len(on.client.ops) == 3)
            assert on.client.ops == [
                Answer("c1", choices=("a", "c"), agent=ME),
                Answer("c2", "pink", agent=ME),
                Answer("c3", refused=True, agent=ME),
            ]

    asyncio.run(run())


def test_an_extensions_question_outside_any_call_is_asked_and_taken_back() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.say(Asked(ME, "q1", PICK))
            await on.see("Which colour?")
            on.client.say(Asked(ME, "q1", PICK, over=True))
            await on.until(lambda: on.app.composer.display)

    asyncio.run(run())


def test_a_refused_answer_brings_the_question_back_with_the_reason() -> None:
    async def run() -> None:
        client = StubClient()
        client.refuse[Decide] = UsageError("that cannot be", "try n")
        async with stage(client) as on:
            await put(on, INSTALL)
            await on.alive()
            await on.press("y")
            await on.see("that cannot be")
            assert on.app.question.display

    asyncio.run(run())


def test_the_transcript_can_be_read_while_a_question_waits_and_the_question_comes_back() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, INSTALL)
            await on.alive()
            await on.press("ctrl+t")
            assert on.app.focused is on.app.transcript
            await on.press("escape")
            assert on.app.focused is on.app.question
            assert on.client.ops == []

    asyncio.run(run())


def test_words_typed_over_a_question_answer_nothing_and_stay_in_the_draft() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, INSTALL)
            await on.alive()
            await on.typed("say no")
            await on.pilot.press("enter")
            await on.see("typed into the prompt, which comes back: say no")
            await on.alive()
            await on.press("enter")
            assert on.client.ops == [] and "Enter or y" not in on.text()
            await on.press("n")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Decide("c1", "no", agent=ME)]
            await on.until(lambda: on.app.composer.display)
            assert on.app.composer.draft.text == "say no"

    asyncio.run(run())


def test_a_question_that_comes_while_someone_types_waits_for_a_pause() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("wri")
            await put(on, INSTALL)
            assert on.app.question.alive_at >= on.app.last_key + 0.8
            on.app.question.alive_at += 30  # the machine may be slower than a person is
            await on.pilot.press("y")
            assert on.app.composer.draft.text == "wriy" and on.client.ops == []

    asyncio.run(run())


def test_the_path_is_said_with_several_waiting_and_the_limit_of_a_command() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, EDIT)
            on.client.hold(REMOVE, "c2")
            await on.see("shop.py  +1 −1 · 1 of 2 waiting")
            await on.alive()
            await on.press("n")
            await on.see("rm -rf build")
        limited = Question("approval", "bash", "make", "", '{"command": "make", "timeout": 90}')
        async with stage() as on:
            await put(on, limited)
            await on.see("/tmp/shop · up to 1 m 30 s")

    asyncio.run(run())


def test_words_typed_at_a_question_are_the_answer_and_choose_nothing() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, PICK)
            await on.alive()
            await on.typed("pink")
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Answer("c1", "pink", agent=ME)]

    asyncio.run(run())


def test_what_bounds_a_call_is_said_and_every_reason_stands_on_its_own_row() -> None:
    async def run() -> None:
        question = Question("approval", "bash", "rm -r a; git push --force", "rm -r deletes files\ngit push --force",
                            '{"command": "rm -r a; git push --force", "timeout": 90}', dangerous=True,
                            limits="sandbox: no network, writes only here · up to 90 s")  # fmt: skip
        async with stage() as on:
            await put(on, question)
            await on.see("/tmp/shop · sandbox: no network, writes only here · up to 90 s")
            rows = on.rows()
            first = next(at for at, row in enumerate(rows) if "asks because" in row)
            assert rows[first].index("rm -r") == rows[first + 1].index("git push") and "1 m 30 s" not in on.text()

    asyncio.run(run())


def test_pages_of_a_long_question_leave_no_row_out() -> None:
    async def run() -> None:
        command = "\n".join(f"echo row-{at:02}" for at in range(1, 41))
        async with stage(size=(60, 20)) as on:
            await put(on, Question("approval", "bash", command, "no rule allows echo", '{"command": ""}'))
            await on.alive()
            seen: set[str] = set()
            for _ in range(40):
                seen |= {word for word in on.text().split() if word.startswith("row-")}
                await on.press("pagedown")
            assert seen == {f"row-{at:02}" for at in range(1, 41)}

    asyncio.run(run())


def test_what_is_to_be_written_is_shown_with_its_longest_line() -> None:
    async def run() -> None:
        long = " ".join(f"word-{at:02}" for at in range(60))
        view = DiffView("a.txt", (Hunk(0, 1, (("+", long),)),), 12, 0)
        async with stage(size=(60, 30)) as on:
            await put(on, Question("approval", "write", "a.txt", "mode ask", '{"path": "a.txt"}', view=view))
            await on.alive()
            for _ in range(3):
                await on.press("pagedown")
            assert "word-59" in on.text() and "11 more changed lines   e shows everything" in on.text()

    asyncio.run(run())


def test_the_keys_stay_in_sight_however_small_the_window_becomes_and_after_it() -> None:
    async def run() -> None:
        async with stage(size=(120, 36)) as on:
            await put(on, INSTALL)
            await on.alive()
            for size in ((40, 10), (200, 50), (60, 20)):
                await on.pilot.resize_terminal(*size)
                await on.until(lambda: "Esc  no, stop" in on.text() and "Enter or y  once" in on.text())

    asyncio.run(run())


def test_choices_are_shown_whole() -> None:
    async def run() -> None:
        choice = "PostgreSQL, because it grows with many users and has all the features one could wish for"
        async with stage(size=(60, 20)) as on:
            await put(on, Question("ask", "ask", "Which?", choices=("SQLite", choice)))
            await on.see("a question")
            assert choice in " ".join(on.text().split())

    asyncio.run(run())


def test_a_paste_answers_nothing_and_is_not_lost() -> None:
    async def run() -> None:
        async with stage() as on:
            await put(on, INSTALL)
            await on.alive()
            on.app.question.post_message(Paste("y\nand more"))
            await on.see("typed into the prompt, which comes back: y and more")
            await on.press("enter")
            assert on.client.ops == []
            await on.alive()
            await on.press("n")
            await on.until(lambda: on.client.ops)
            assert on.app.composer.draft.text == "y\nand more"
        async with stage() as on:
            await put(on, PICK)
            await on.alive()
            on.app.question.post_message(Paste("violet"))
            await on.see("› violet")
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Answer("c1", "violet", agent=ME)]

    asyncio.run(run())
