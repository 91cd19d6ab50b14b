"""The lists: what they show and what their keys submit."""

from __future__ import annotations

import asyncio
import time

from panto.schema.bodies import MessageBody
from panto.schema.events import InputSubmitted, InputWithdrawn
from panto.schema.messages import Message, Text
from panto.schema.ops import (
    DeleteSession,
    Fork,
    Interrupt,
    OpenSession,
    Prompt,
    Rename,
    Rewind,
    SetModel,
    Withdraw,
)
from panto.schema.queries import (
    AgentRow,
    AskAgents,
    AskContext,
    AskHistory,
    AskModels,
    AskPreview,
    AskSessions,
    AskSettings,
    AskTurns,
    History,
    ModelRow,
    PromptPart,
    SessionRow,
    SettingRow,
    TurnRow,
)
from panto.schema.signals import InputReturned, TextStreamed
from panto.tui.screens.pager import PagerScreen
from panto.tui.screens.sessions import age
from tests.tui.app.stage import stage
from tests.tui.stub_client import DIGEST, ME, StubClient

MODELS = (
    ModelRow("fake:big", "b", "fake", 200_000, 3.0, 15.0, ("low", "medium", "high")),
    ModelRow("fake:small", "s", "fake", 32_000, 0.0, 0.0),
    ModelRow("other:x", "x", "other", 1000, usable="no key"),
)
SESSIONS = (
    SessionRow("aaaa1111", "aaaa", "Fix the total", "/tmp/shop", time.time(), "m", 3, 100, 0.12, "also the README"),
    SessionRow("bbbb2222", "bbbb", "Add a discount", "/tmp/shop", time.time() - 90_000, "m", 3, 100, 0.84),
    SessionRow("cccc3333", "cccc", "", "/tmp/shop", time.time(), "m", 0, 0),
)


def client() -> StubClient:
    made = StubClient()
    made.answers |= {
        AskModels: MODELS, AskSessions: SESSIONS, AskPreview: History((), None),
        AskTurns: (TurnRow("t1", "first", "completed", 1.0, ("a.py",)), TurnRow("t2", "second", "stopped", 2.0)),
        AskAgents: (AgentRow("x1", "reviewer", "running", "m:a"),),
        AskSettings: (SettingRow("model", "anthropic:sonnet-5.5", "config.toml:1"),),
        AskContext: (PromptPart("base", 100, "panto"), PromptPart("rules", 900, "AGENTS.md")),
    }  # fmt: skip
    return made


def test_only_usable_models_are_listed_with_prices_and_the_cost_of_a_switch() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            await on.press("alt+p")
            await on.see("fake:big")
            text = on.text()
            assert "$3.00 in  $15.00 out" in text and "200k" in text and "other:x" not in text
            assert "26k tokens are sent again: about $0.08" in text
            await on.press("right", "enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [SetModel("fake:big", "high")]

    asyncio.run(run())


def test_ctrl_s_in_the_models_writes_the_default_and_typing_filters() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            await on.press("alt+p")
            await on.see("fake:big")
            await on.typed("sma")
            assert "fake:big" not in on.text()
            await on.press("ctrl+s")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [SetModel("fake:small", "", default=True)]

    asyncio.run(run())


def test_sessions_are_opened_forked_renamed_and_deleted_after_asking() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            await on.press("ctrl+x", "s")
            await on.see("Add a discount")
            assert "› also the README" in on.text() and "yesterday" in on.text() and "1 of 2 ──" in on.text()
            await on.press("down", "ctrl+r", "!", "enter")
            await on.until(lambda: on.ops(Rename))
            assert on.ops(Rename) == [Rename("Add a discount!", "bbbb2222")]
            await on.press("ctrl+d")
            await on.see("delete “Add a discount” for good?")
            await on.press("n")
            await on.press("ctrl+d", "y")
            await on.until(lambda: on.ops(DeleteSession))
            assert on.ops(DeleteSession) == [DeleteSession("bbbb2222")]
            await on.press("ctrl+f")
            await on.until(lambda: on.ops(OpenSession))
            assert on.ops(OpenSession) == [OpenSession("bbbb2222", "fork")]  # wherever it is open
            await on.press("ctrl+x", "s")
            await on.see("Fix the total")
            await on.press("enter")
            await on.until(lambda: len(on.ops(OpenSession)) == 2)
            assert on.ops(OpenSession)[-1] == OpenSession("aaaa1111")

    asyncio.run(run())


def test_going_back_asks_about_files_and_brings_the_text_into_the_prompt() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.app.action_tree()
            await on.see("second")
            await on.press("up", "enter")
            await on.see("restore 1 changed file, too?")
            await on.press("y")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Rewind("t1", files=True)]
            assert on.app.composer.draft.text == "first"
            on.app.action_tree()
            await on.see("second")
            await on.press("ctrl+f")
            await on.until(lambda: on.ops(Fork))
            assert on.ops(Fork) == [Fork("t2")]

    asyncio.run(run())


def test_a_child_agent_is_stopped_or_its_transcript_followed() -> None:
    async def run() -> None:
        made = client()
        made.answers[AskHistory] = History((), None)
        async with stage(made) as on:
            on.app.action_agents()
            await on.see("reviewer")
            await on.press("ctrl+d")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Interrupt("x1")]
            await on.press("enter")
            await on.see("Esc back")
            on.client.say(TextStreamed("x1", 1, "what the child says"))
            on.client.say(TextStreamed("x2", 1, "another one"))
            await on.see("what the child says")
            assert "another one" not in on.text()
            await on.press("escape")
            await on.see("── agents ──")

    asyncio.run(run())


def test_settings_and_context_say_what_is_and_from_where() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.app.action_settings()
            await on.see("config.toml:1")
            await on.press("escape")
            await on.typed("/context")
            await on.press("enter")
            await on.see("rules")
            rows = [row for row in on.rows() if "%" in row]
            assert "1k" in rows[0] and "100 %" in rows[0] and "instructions" in rows[0]  # a group and its sum
            assert "rules" in rows[1] and "90 %" in rows[1] and "AGENTS.md" in rows[1] and "panto's own" in rows[2]

    asyncio.run(run())


def test_a_theme_is_seen_while_moving_and_escape_brings_the_old_one_back() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            before = on.app.palette
            on.app.action_theme()
            await on.see("high contrast")
            await on.press("up")
            assert on.app.palette.name == "light"
            await on.press("escape")
            assert on.app.palette == before
            on.app.action_theme()
            await on.see("high contrast")
            await on.press("up", "enter")
            assert on.app.palette.name == "light" and on.app.theme_name == "light"

    asyncio.run(run())


def test_messages_that_wait_are_ordered_dropped_and_taken_back() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.client.begin()
            for name in ("a", "b"):
                on.client.fact(InputSubmitted(input=name, body=DIGEST, when="turn"),
                               MessageBody(Message("user", (Text(f"text {name}"),))))  # fmt: skip
            await on.until(lambda: len(on.app.now.waiting) == 2)
            await on.typed("/queue")
            await on.press("enter")
            await on.see("after this turn")
            await on.press("down", "ctrl+up")
            await on.until(lambda: len(on.client.ops) == 4)
            assert on.client.ops == [Withdraw("b"), Withdraw("a"), Prompt("text b", when="turn"),
                                     Prompt("text a", when="turn")]  # fmt: skip
            for name in ("a", "b"):
                on.client.fact(InputWithdrawn(input=name))
                on.client.say(InputReturned(ME, f"text {name}"))
            await on.until(lambda: "a" not in on.app.now.waiting)
            assert on.app.composer.draft.text == ""

    asyncio.run(run())


def test_the_pager_scrolls_searches_and_wraps() -> None:
    async def run() -> None:
        async with stage(size=(60, 20)) as on:
            text = "\n".join(f"row {number} " + "x" * (100 if number == 5 else 0) for number in range(1000))
            on.app.push_screen(PagerScreen(text))
            await on.see("row 0")
            assert "1–18 of 1001" in on.text()
            await on.press("G")
            await on.see("row 999")
            await on.press("g", "slash", "7", "7", "7", "enter")
            await on.see("row 777")
            await on.press("w")
            await on.see("of 1000")
            await on.press("escape")
            assert on.rows()[-2].startswith("›")

    asyncio.run(run())


def test_an_age_is_a_word_or_two() -> None:
    now = time.time()
    assert [age(now - seconds) for seconds in (5, 600, 7200, 90_000, 300_000)] == [
        "now", "10 min", "2 h", "yesterday", "3 days",
    ]  # fmt: skip


def test_pages_of_a_list_pass_over_no_row() -> None:
    async def run() -> None:
        many = tuple(ModelRow(f"fake:m{at:02}", "m", "fake", 1000) for at in range(60))
        made = client()
        made.answers[AskModels] = many
        async with stage(made, size=(80, 24)) as on:
            await on.press("alt+p")
            await on.see("fake:m00")
            seen: set[str] = set()
            for _ in range(60):
                seen |= {word for word in on.text().split() if word.startswith("fake:m")}
                await on.press("pagedown")
            assert seen == {row.label for row in many}

    asyncio.run(run())


def test_a_question_in_a_list_shows_its_answers_in_a_narrow_window() -> None:
    async def run() -> None:
        made = client()
        title = "Fix the total of the whole shop and of every basket in it, whoever owns it"
        made.answers[AskSessions] = (SessionRow("aaaa1111", "aaaa", title, "/tmp/shop", time.time(), "m", 3, 100),)
        async with stage(made, size=(60, 20)) as on:
            await on.typed("/sessions")
            await on.press("enter")
            await on.see("Fix the total")
            await on.press("ctrl+d")
            await on.see("y  yes   n  no")
            assert "delete “Fix" in on.rows()[-1] and "for good?" in on.rows()[-1]

    asyncio.run(run())


def test_escape_right_behind_the_key_that_opens_a_list_stops_no_turn() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.client.begin()
            await on.until(lambda: on.app.now.busy)
            on.app.action_help()
            on.app.action_escape()  # before the list takes the keys
            await on.until(lambda: on.app.screen is on.app.main)
            await on.pilot.pause(0.05)
            assert on.client.ops == []

    asyncio.run(run())


def test_the_session_that_is_open_here_is_not_deleted_and_the_list_says_so() -> None:
    async def run() -> None:
        made = client()
        here = SessionRow(ME, "here", "This one", "/tmp/shop", time.time(), "m", 3, 100)
        made.answers[AskSessions] = (here, *SESSIONS)
        async with stage(made) as on:
            await on.typed("/sessions")
            await on.press("enter")
            await on.see("This one")
            await on.press("ctrl+d")
            await on.see("this session is open here")
            await on.press("y")
            await on.press("escape")
            await on.until(lambda: on.app.screen is on.app.main)
            assert on.client.ops == []

    asyncio.run(run())
