"""The composer in the application: sending, completion, history, pastes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace
from textual import events

from panto.schema.errors import UsageError
from panto.schema.ops import Continue, NewSession, Prompt, RunCommand, RunShell, Withdraw
from panto.schema.queries import AskCommands, AskCompletions, CommandRow
from panto.schema.signals import InputReturned, Noticed
from panto.tui.prompt import READING_S
from tests.tui.app.stage import Stage, stage
from tests.tui.stub_client import COMMANDS, ME, STATUS, StubClient

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


async def paste(on: Stage, text: str) -> None:
    on.app.composer.post_message(events.Paste(text))
    await on.pilot.pause()


def test_enter_sends_and_empties_the_prompt() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("fix it")
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Prompt("fix it")]
            assert on.app.composer.draft.text == ""

    asyncio.run(run())


def test_every_new_line_key_breaks_the_line_and_sends_nothing() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("a")
            await on.press("shift+enter", "b", "ctrl+j", "c", "ctrl+enter", "d", "alt+enter", "e")
            await on.press("backslash", "enter", "f")
            assert on.app.composer.draft.text == "a\nb\nc\nd\ne\nf"
            assert on.client.ops == []
            assert on.app.composer.size.height == 6

    asyncio.run(run())


def test_while_a_turn_runs_enter_steers_and_alt_enter_queues() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            await on.until(lambda: on.app.now.busy)
            await on.press("a", "enter", "b", "alt+enter")
            await on.until(lambda: len(on.client.ops) == 2)
            assert on.client.ops == [Prompt("a"), Prompt("b", when="turn")]

    asyncio.run(run())


def test_the_prompt_grows_to_twelve_rows_then_scrolls() -> None:
    async def run() -> None:
        async with stage(size=(60, 40)) as on:
            await paste(on, "\n".join(str(number) for number in range(11)))
            await on.pilot.pause()
            assert on.app.composer.size.height == 11
            await on.press("ctrl+j", "x", "ctrl+j", "y", "ctrl+j", "z")
            assert on.app.composer.size.height == 12
            assert on.rows()[-2].strip() == "z"
            assert on.rows()[-1].strip().startswith("sonnet")

    asyncio.run(run())


def test_a_long_paste_is_a_chip_that_one_backspace_takes_and_a_second_paste_opens() -> None:
    async def run() -> None:
        body = "\n".join(f"{number:02} pasted line" for number in range(1, 31))
        async with stage() as on:
            await paste(on, body)
            await on.see("[30 lines: 01 pasted line]")
            await on.press("backspace")
            assert on.app.composer.draft.text == ""
            await paste(on, body)
            await paste(on, body)
            assert on.app.composer.draft.text == body
            await on.press("ctrl+u")

    asyncio.run(run())


def test_a_chip_is_sent_as_what_it_stands_for() -> None:
    async def run() -> None:
        body = "\n".join("x" for _ in range(40))
        async with stage() as on:
            await on.typed("see ")
            await paste(on, body)
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Prompt("see " + body)]

    asyncio.run(run())


def test_a_pasted_image_path_is_a_chip_and_goes_along(tmp_path: Path) -> None:
    async def run() -> None:
        file = tmp_path / "a shot.png"
        file.write_bytes(PNG)
        async with stage() as on:
            await paste(on, str(file).replace(" ", "\\ "))
            await on.see("[image: a shot.png]")
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            (op,) = on.client.ops
            assert isinstance(op, Prompt) and op.images[0].data == PNG and op.images[0].media_type == "image/png"

    asyncio.run(run())


def test_a_paste_that_could_steer_the_terminal_is_only_its_text() -> None:
    async def run() -> None:
        async with stage() as on:
            await paste(on, "a\x1b]52;c;QQ==\x07b\x1b[2Jc")
            assert on.app.composer.draft.text == "abc"

    asyncio.run(run())


def test_what_is_typed_before_the_engine_is_there_is_kept_and_sent_then() -> None:
    async def run() -> None:
        wait = asyncio.Event()
        async with stage(wait=wait) as on:
            await on.typed("early")
            await on.press("enter")
            await on.see("sent as soon as panto is ready")
            assert on.client.ops == []
            wait.set()
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Prompt("early")]
            assert "sent as soon" not in on.text()

    asyncio.run(run())


def test_escape_takes_an_early_prompt_back() -> None:
    async def run() -> None:
        async with stage(wait=asyncio.Event()) as on:
            await on.typed("early")
            await on.press("enter", "escape")
            assert on.app.composer.draft.text == "early"
            assert on.app.link.early == []

    asyncio.run(run())


def test_a_refused_prompt_comes_back_with_the_reason() -> None:
    async def run() -> None:
        client = StubClient()
        client.refuse[Prompt] = UsageError("no model yet", "/login sets one up")
        async with stage(client) as on:
            await on.press("h", "enter")
            await on.see("no model yet")
            await on.see("/login sets one up")
            assert on.app.composer.draft.text == "h"

    asyncio.run(run())


def test_an_unknown_command_is_said_so_and_never_sent() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("/nosuch thing")
            await on.press("enter")
            await on.see("no command /nosuch")
            assert on.client.ops == []
            assert on.app.composer.draft.text == "/nosuch thing"

    asyncio.run(run())


def test_a_known_command_goes_to_the_engine_and_a_path_is_a_prompt() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("/compact keep names")
            await on.press("enter")
            await on.typed("/etc/hosts has what")
            await on.press("enter")
            await on.typed("/new")
            await on.press("enter")
            await on.until(lambda: len(on.client.ops) == 3)
            assert on.client.ops == [RunCommand("/compact keep names"), Prompt("/etc/hosts has what"), NewSession()]

    asyncio.run(run())


def test_a_shell_command_is_run_and_two_marks_hide_it() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("!ls -l")
            await on.press("enter")
            await on.typed("!!env")
            await on.press("enter")
            await on.until(lambda: len(on.client.ops) == 2)
            assert on.client.ops == [RunShell("ls -l"), RunShell("env", hidden=True)]

    asyncio.run(run())


def test_the_list_of_commands_opens_over_the_transcript_and_moves_nothing() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("/mo")
            await on.see("/mode <mode>")
            rows = on.rows()
            assert rows[-2].startswith("› /mo")
            assert rows[-3].endswith("2 of 19 ──")
            assert rows[-5].split()[0] == "/mode" and rows[-4].split()[0] == "/model"
            await on.press("escape")
            assert "/model" not in on.text()
            assert on.app.composer.draft.text == "/mo"

    asyncio.run(run())


def test_enter_runs_what_is_typed_or_what_an_arrow_chose_and_tab_takes_the_first() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("/cos")
            await on.press("enter")
            await on.see("no command /cos")
            assert on.client.ops == []
            await on.press("tab")
            assert on.app.composer.draft.text == "/cost"
            await on.press("ctrl+u")
            await on.typed("/co")
            await on.press("down", "down", "down", "down", "enter")
            await on.see("── cost")
            assert on.client.ops == []

    asyncio.run(run())


def test_a_command_with_arguments_is_completed_not_run() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("/mod")
            await on.press("down", "enter")
            assert on.app.composer.draft.text == "/mode "
            assert on.client.ops == []

    asyncio.run(run())


def test_files_are_completed_where_an_at_sign_stands() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("look at @ma")
            await on.see("makers.md")
            assert "3 of 214 files" in on.text()
            await on.press("tab")
            assert on.app.composer.draft.text == "look at @docs/makers.md "
            assert on.client.ops == []

    asyncio.run(run())


def test_a_list_of_files_that_is_still_being_read_comes_by_itself() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.files_unread = 6  # more than keys that ask
            await on.typed("look at @ma")
            await on.see("makers.md")
            await on.see("3 of 214 files")
            on.client.files_unread = 1_000
            await on.typed("k")
            await on.see("reading the list of files")
            await on.press("escape")
            left = on.client.files_unread
            await asyncio.sleep(2 * READING_S)
            assert "reading the list of files" not in on.text()
            assert on.client.files_unread >= left - 1  # a look that was under way

    asyncio.run(run())


def test_up_goes_into_the_past_and_down_comes_back_to_the_draft() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("draft")
            await on.press("up")
            assert on.app.composer.draft.text == "the second prompt"
            await on.press("up")
            assert on.app.composer.draft.text == "the first prompt"
            await on.press("up")
            assert on.app.composer.draft.text == "the first prompt"
            await on.press("down", "down")
            assert on.app.composer.draft.text == "draft"

    asyncio.run(run())


def test_the_past_is_searched_and_escape_gives_the_draft_back() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.typed("mine")
            await on.press("ctrl+r", "f", "i", "r")
            await on.see("the first prompt")
            assert "search earlier prompts" in on.text()
            await on.press("escape")
            assert on.app.composer.draft.text == "mine"
            await on.press("ctrl+r", "s", "e", "c", "enter")
            assert on.app.composer.draft.text == "the second prompt"
            assert on.client.ops == []

    asyncio.run(run())


def test_a_message_taken_back_stands_before_the_draft() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin()
            await on.press("q", "enter")
            await on.until(lambda: on.app.now.waiting)
            await on.typed("more")
            await on.press("alt+up")
            await on.until(lambda: on.ops(Withdraw))
            on.client.say(InputReturned(ME, "q"))
            await on.until(lambda: on.app.composer.draft.text == "q\nmore")

    asyncio.run(run())


def test_enter_in_an_empty_prompt_goes_on_with_a_parked_turn() -> None:
    async def run() -> None:
        status = replace(STATUS, parked=True)
        async with stage(StubClient(status=status)) as on:
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [Continue()]

    asyncio.run(run())


def test_a_notice_of_the_engine_is_shown() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.say(Noticed(ME, "the config has a wrong line", "attention", "config.toml:3"))
            await on.see("the config has a wrong line")

    asyncio.run(run())


def test_enter_never_takes_a_row_that_was_listed_for_something_else() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCommands] = (*COMMANDS, CommandRow("rename", "give a title", "title"))
        client.answers[AskCompletions] = ("echo:parrot",)
        async with stage(client) as on:
            on.client.unanswered.add(AskCompletions)
            await on.typed("/rename one")
            await on.pilot.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops.pop() == RunCommand("/rename one")
            on.client.unanswered.clear()
            await on.typed("/model echo")
            await on.see("  echo:parrot")
            on.client.unanswered.add(AskCompletions)
            await on.typed(":cat")
            await on.pilot.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops.pop() == RunCommand("/model echo:cat")

    asyncio.run(run())
