"""What a newcomer stumbled over, one test each."""

from __future__ import annotations

import asyncio

from panto.schema.bodies import MessageBody, ToolOutcome
from panto.schema.contributions import Contributions, Shortcut
from panto.schema.errors import UsageError
from panto.schema.events import CheckpointMade, JobEnded, JobStarted, ToolCallCompleted, TurnSuperseded
from panto.schema.messages import Message, Text, Usage
from panto.schema.ops import Login, Prompt, Rewind, RunCommand, SetMode, SetReasoning, StopJob
from panto.schema.queries import (
    AskCommands,
    AskCompletions,
    AskContext,
    AskContributions,
    AskModels,
    AskSettings,
    AskStatus,
    AskTurns,
    CommandRow,
    ModelRow,
    PromptPart,
    SettingRow,
    TurnRow,
)
from panto.schema.signals import Left, Noticed
from panto.schema.view import DiffView, Hunk
from panto.tui.calls import Call
from panto.tui.completing import shown
from panto.tui.farewell import farewell
from panto.tui.items_calls import CallItem
from panto.tui.now import Now
from tests.tui.app.stage import SETTINGS, stage
from tests.tui.stub_client import COMMANDS, DIGEST, ME, STATUS, StubClient

PARKED = STATUS.__class__(agent=ME, model="a:m", reasoning="", mode="ask", cwd="/tmp/shop", parked=True)


def test_arguments_of_the_screens_own_commands_ask_nobody_and_raise_nothing() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCompletions] = UsageError("there is no command /theme", "/help lists all")
        async with stage(client) as on:
            for text in ("/theme dark", "/search xx", "/export x"):
                await on.typed(text)
                await on.pilot.pause(0.05)
                assert "there is no command" not in on.text()
                on.app.composer.clear()
            await on.typed("/theme dark")
            await on.press("enter")
            await on.until(lambda: on.app.theme_name == "dark")
            await on.pilot.pause(0.05)
            assert not on.app.completion.is_open

    asyncio.run(run())


def test_enter_takes_the_only_model_that_matches() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCommands] = (*COMMANDS, CommandRow("model", "choose", "[name]"))
        client.answers[AskCompletions] = ("echo:parrot",)
        async with stage(client) as on:
            await on.typed("/model echo")
            await on.see("  echo:parrot")
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [RunCommand("/model echo:parrot")]

    asyncio.run(run())


def test_a_counter_goes_with_its_list() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("see @shop")
            await on.see("of 214 files")
            await on.press("tab")
            await on.until(lambda: "of 214 files" not in on.text(), "no counter")
            assert "ask before running" in on.text()

    asyncio.run(run())


def test_a_turn_left_unfinished_says_so_when_its_session_is_opened() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskStatus] = PARKED
        async with stage(client) as on:
            await on.see("stopped here: this turn is not finished   Enter continues")

    asyncio.run(run())


def test_a_notice_of_several_lines_keeps_them() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.say(Noticed(ME, "read   panto\nwrite  panto"))
            await on.see("write  panto")
            rows = [row.strip() for row in on.rows()]
            assert "read   panto" in rows and "write  panto" in rows

    asyncio.run(run())


def test_what_is_typed_over_the_transcript_goes_into_the_prompt_whole() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("ctrl+t")
            assert on.app.focused is on.app.transcript
            await on.typed("x now is o")
            assert on.app.composer.draft.text == "x now is o"
            on.app.composer.clear()
            await on.press("ctrl+t")
            await on.typed("/add")
            assert on.app.composer.draft.text == "/search add"

    asyncio.run(run())


def test_a_key_is_asked_for_in_the_prompts_place_and_never_shown_nor_kept() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCompletions] = ("anthropic", "openai")
        async with stage(client) as on:
            await on.typed("/login anthropic")
            await on.press("enter")
            await on.see("key for anthropic")
            await on.until(lambda: on.app.focused is on.app.reply)
            await on.typed("sk-1")
            await on.see("› ••••")
            assert "sk-1" not in on.text()
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Login("anthropic", "sk-1")]
            assert on.app.focused is on.app.composer and on.app.composer.draft.text == ""
            assert "sk-1" not in repr(vars(on.app.reply.draft)) and on.app.desk.past[-1] == "/login anthropic"
            await on.typed("/login nobody")
            await on.press("enter")
            await on.see("no provider nobody")
            await on.typed("/login openai")
            await on.press("enter")
            await on.see("key for openai")
            await on.press("x", "escape")
            assert on.app.focused is on.app.composer and len(on.client.ops) == 1

    asyncio.run(run())


def test_end_and_home_go_through_a_list() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("f1")
            await on.see("1 of")
            panel = on.app.screen.focused
            await on.press("end")
            assert panel.at == len(panel.shown()) - 1  # type: ignore[union-attr]
            await on.press("home")
            assert panel.at < 2  # type: ignore[union-attr]

    asyncio.run(run())


def test_going_back_asks_about_files_that_a_later_turn_changed() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskTurns] = (
            TurnRow("t1", "look", "completed", 0.0), TurnRow("t2", "change", "completed", 0.0, ("a.py",)),
        )  # fmt: skip
        async with stage(client) as on:
            on.app.action_tree()
            await on.see("› look")
            await on.press("up", "enter")
            await on.see("changed file")
            await on.press("z")
            assert on.client.ops == []
            await on.press("y")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Rewind("t1", True)]

    asyncio.run(run())


def test_escape_that_closes_something_is_not_the_first_of_two() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            on.client.end()
            await on.until(lambda: on.app.now.turns and not on.app.now.busy)
            await on.press("ctrl+t", "escape", "escape")
            assert on.app.screen is on.app.main
            await on.press("escape")
            assert on.app.screen is not on.app.main

    asyncio.run(run())


def test_a_shortcut_whose_key_is_taken_is_said_so() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskContributions] = Contributions(shortcuts=(Shortcut("ctrl+x", "mine", "/mine"),))
        async with stage(client) as on:
            await on.see("Ctrl+X is taken by panto")

    asyncio.run(run())


def test_a_model_whose_name_another_provider_has_too_is_named_in_full() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCompletions] = ("anthropic:sonnet-5.5", "proxy:sonnet-5.5")
        async with stage(client) as on:
            await on.until(lambda: "anthropic:sonnet-5.5" in on.rows()[-1], "the provider")

    asyncio.run(run())


def test_settings_show_key_and_value_at_sixty_columns() -> None:
    async def run() -> None:
        client = StubClient()
        where = "/home/someone/.config/panto/config.toml:4"
        client.answers[AskSettings] = (SettingRow("providers.fake.base_url", "http://127.0.0.1:1", where),)
        async with stage(client, (60, 20)) as on:
            on.app.action_settings()
            await on.see("config.toml:4")
            assert "  providers.fake\n" in on.text() and "▸ base_url  http://127.0.0.1:1" in on.text()

    asyncio.run(run())


def test_a_theme_chosen_repaints_the_status_line() -> None:
    async def run() -> None:
        async with stage() as on:
            before = on.app.status.render_line(0)
            on.app.set_theme("light")
            await on.until(lambda: on.app.status.render_line(0) != before)

    asyncio.run(run())


def test_the_farewell_of_an_unfinished_turn_says_so() -> None:
    now = Now(primary="3f2a9c0e", turns=1, unfinished=True)
    lines = "\n".join(farewell(now, None, SETTINGS, []))
    assert "this turn is not finished" in lines and "panto --resume 3f2a9c0e" in lines


def test_a_prompt_is_still_a_prompt() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("go")
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Prompt("go")]

    asyncio.run(run())


def test_lines_changed_follow_the_file_and_not_the_edits() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            for call, hunk in (("c1", (("-", "a"), ("+", "b"))), ("c2", (("-", "b"), ("+", "c")))):
                outcome = ToolOutcome((), view=DiffView("shop.py", (Hunk(5, 5, hunk),), 1, 1))
                on.client.fact(ToolCallCompleted(run="r1", call=call, effect="e", outcome=DIGEST), outcome)
            await on.see("main +1 −1")
            on.client.end()
            on.client.fact(TurnSuperseded(turn="t1"))
            await on.until(lambda: "+1" not in on.rows()[-1], "no change counted")

    asyncio.run(run())


def test_the_farewell_counts_what_differs() -> None:
    now = Now(primary="3f2a9c0e", turns=2)
    now.changes.add("t1", DiffView("shop.py", (Hunk(5, 5, (("-", "a"), ("+", "b"))),), 1, 1))
    now.changes.add("t2", DiffView("shop.py", (Hunk(5, 5, (("-", "b"), ("+", "c"))),), 1, 1))
    assert "shop.py +1 −1 · 2 turns" in "\n".join(farewell(now, None, SETTINGS, []))


def test_a_hint_that_passes_never_leaves_a_counter_behind() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("ctrl+c")
            await on.see("Ctrl+C again leaves")
            await on.typed("/doct")
            await on.see("of ")
            await on.press("ctrl+u")
            await on.until(lambda: on.rows()[-3].endswith("ask before running ──"), "the mode again")

    asyncio.run(run())


def test_mode_and_reasoning_without_a_value_show_the_values() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskModels] = (ModelRow(STATUS.model, "s", "anthropic", 200_000, reasoning=("low", "high")),)
        client.answers[AskCommands] = (*COMMANDS, CommandRow("reasoning", "how long", "level"))
        async with stage(client) as on:
            await on.typed("/mode")
            await on.press("enter")
            await on.see("what panto may do unasked")
            assert "edits files here, asks before commands" in on.text()
            await on.press("down", "enter")
            await on.until(lambda: on.client.ops)
            await on.typed("/reasoning")
            await on.press("enter")
            await on.see("how long the model thinks")
            await on.press("down", "enter")
            await on.until(lambda: len(on.client.ops) == 2)
            assert on.client.ops == [SetMode("auto"), SetReasoning("high")]

    asyncio.run(run())


def test_settings_open_the_values_there_are_and_say_the_line_for_the_others() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskSettings] = (
            SettingRow("mode", "ask", "default"), SettingRow("limits.steps", "200", "default"),
            SettingRow("limits.file", '""', "default"),
        )  # fmt: skip
        async with stage(client) as on:
            on.app.action_settings()
            await on.see("Tab: 1 empty one")
            await on.press("enter")
            await on.see("what panto may do unasked")
            await on.press("escape")
            await on.see("settings in force")
            await on.press("down", "enter")
            await on.see("[limits] steps = 200 in config.toml")
            await on.press("tab")
            await on.see("file")

    asyncio.run(run())


def test_the_cost_is_set_out_by_turn_and_the_changes_are_whole() -> None:
    async def run() -> None:
        client = StubClient(status=STATUS.__class__(agent=ME, model="a:m", reasoning="", mode="ask", cwd="/tmp/shop",
                            usage=Usage(input=52_000, output=3_100, cache_read=26_000, reasoning=400),
                            prefix_broken="the tool edit was changed"))  # fmt: skip
        client.answers[AskTurns] = (TurnRow("t1", "fix the total", "completed", 0.0),)
        async with stage(client) as on:
            await on.typed("/cost")
            await on.press("enter")
            await on.see("50 % read from the cache")
            assert "no price is known for a:m" in on.text() and "fix the total" in on.text()
            assert "because the tool edit was changed" in on.text()
            await on.press("escape")
            for turn, count in (("t1", 3), ("t2", 40)):
                call = Call(turn, "write")
                lines = tuple(("+", f"line {n}") for n in range(count))
                call.settle("done", ToolOutcome((), view=DiffView(f"{turn}.py", (Hunk(1, 1, lines),), count, 0)))
                on.app.transcript.story.items.append(CallItem(turn, call))
            await on.typed("/diff")
            await on.press("enter")
            await on.see("changes of the last turn")
            assert "t2.py" in on.text() and "t1.py" not in on.text() and "1 file  +40 −0" in on.text()
            await on.press("end")
            await on.see("line 39")

    asyncio.run(run())


def test_arguments_are_shown_as_needed_or_optional() -> None:
    assert shown("mode") == "<mode>" and shown("provider:alias [reasoning]") == "<provider:alias> [reasoning]"
    assert shown("[a b] <c> D") == "[a b] <c> <D>" and shown("") == ""


def test_the_farewell_of_a_session_of_which_only_the_end_was_loaded_counts_all_of_it() -> None:
    status = STATUS.__class__(agent=ME, model="a:m", reasoning="", mode="ask", cwd="/tmp/shop",
                              usage=Usage(input=250_000, output=4_000))  # fmt: skip
    now = Now(primary=ME, turns=3, tokens=9_000, status=status, partial=True)
    lines = "\n".join(farewell(now, Left(ME, ("40 turns · 254k tokens", "panto --resume 3f2a")), SETTINGS, []))
    assert "40 turns · 254k tokens" in lines and "panto --resume 3f2a" in lines


def test_tools_are_listed_with_their_owners_and_sizes() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskContext] = (PromptPart("base", 100, "panto"), PromptPart("tool:read", 61, "panto"),
                                      PromptPart("tool:subagents.workflow", 131, "panto-subagents"))  # fmt: skip
        client.answers[AskCommands] = (*COMMANDS, CommandRow("tools", "what the model may call"))
        async with stage(client) as on:
            await on.typed("/tools")
            await on.press("enter")
            await on.see("2 tools · 0.2k tokens")
            rows = [row for row in on.rows() if "panto" in row]
            assert rows[0].index("panto") == rows[1].index("panto-subagents") and "base" not in on.text()

    asyncio.run(run())


def test_background_jobs_are_listed_and_ended() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCommands] = (*COMMANDS, CommandRow("jobs", "background jobs"))
        async with stage(client) as on:
            for job, title in (("j1", "npm run dev"), ("j2", "make watch")):
                on.client.fact(JobStarted(job=job, kind="command", title=title))
            on.client.fact(JobStarted(job="k1", kind="child", title="reviewer"))
            await on.until(lambda: len(on.app.now.jobs) == 2)
            await on.typed("/jobs")
            await on.press("enter")
            await on.see("make watch")
            assert "reviewer" not in on.text().split("── background jobs")[1]
            await on.press("down", "ctrl+d")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [StopJob("j2")]
            on.client.fact(JobEnded(job="j2", status="cancelled"))
            await on.until(lambda: len(on.app.now.jobs) == 1)

    asyncio.run(run())


def test_settings_tell_what_this_session_has_where_that_is_another() -> None:
    async def run() -> None:
        client = StubClient()
        rows = (SettingRow("model", '"a:other"', "config.toml:1"), SettingRow("mode", "ask", "default"))
        client.answers[AskSettings] = rows
        async with stage(client) as on:
            on.app.action_settings()
            await on.see("this session")
            shown = [row for row in on.rows() if "this session" in row]
            assert len(shown) == 1 and STATUS.model in shown[0] and "a:other" not in on.text()

    asyncio.run(run())


def test_a_compaction_is_told_once_by_the_line_that_holds_the_summary() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.say(Noticed(ME, "compacting…", key="compact"))
            await on.see("compacting…")
            summary = MessageBody(Message("user", (Text("What was said so far."),)))
            on.client.fact(CheckpointMade(checkpoint="c1", base=DIGEST, summary=DIGEST), summary)
            on.client.say(Noticed(ME, "compacted", key="compact"))
            await on.until(lambda: "compacting" not in on.text(), "no more compacting")
            assert on.text().count("compacted") == 1 and "context compacted   · Ctrl+O opens" in on.text()

    asyncio.run(run())
