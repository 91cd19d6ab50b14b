"""Keys always go somewhere, and never end panto or move the reader against their meaning."""

from __future__ import annotations

import asyncio

from textual.events import AppBlur

from panto.schema.bodies import Question, ToolOutcome
from panto.schema.ops import Shutdown
from panto.schema.view import TextView
from tests.tui.app.scenes import script_of
from tests.tui.app.stage import stage


def test_a_key_after_ctrl_c_means_that_the_person_stays() -> None:
    async def run() -> None:
        async with stage() as on:
            await on.press("a", "ctrl+c", "b", "ctrl+c")
            assert on.app.composer.draft.text == "" and not on.app.leaving
            await on.press("ctrl+c")
            await on.until(lambda: on.client.ops == [Shutdown()])

    asyncio.run(run())


def test_keys_find_the_screen_after_focus_was_lost_by_blur_or_by_a_mouse_outside() -> None:
    async def run() -> None:
        async with stage() as on:
            on.app.post_message(AppBlur())
            await on.typed("a")
            on.app.action_help()
            await on.see("── help")
            on.app.screen.set_focus(None)  # what Textual does when a mouse is reported outside
            await on.press("escape")
            await on.see("ask before running")
            on.app.screen.set_focus(None)
            await on.typed("b")
            assert on.app.composer.draft.text == "ab"

    asyncio.run(run())


def test_a_question_that_opens_and_a_prompt_that_grows_fold_no_card() -> None:
    async def run() -> None:
        async with stage(size=(100, 36)) as on:
            script = script_of(on)
            script.prompt("Run it.")
            (call,) = script.answer("", [("bash", {"command": "seq 40"})])
            script.start(call)
            script.complete(call, ToolOutcome((), False, "seq 40", "", TextView("\n".join(map(str, range(40))))), 0.1)
            await on.see("… 37 lines above")
            on.client.hold(Question("approval", "bash", "npm install", "no rule allows it", "{}"))
            await on.see("run this command?")
            assert "… 37 lines above" in on.text()

    asyncio.run(run())


def test_who_reads_above_and_sends_something_is_brought_to_the_end() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin("go")
            on.client.answer("\n\n".join(f"line {n}" for n in range(80)))
            on.client.end()
            for text, end in (("more", "line 79"), ("/nosuch", "nothing was sent")):
                await on.see("line 79" if end == "line 79" else "more")
                await on.press("ctrl+home")
                await on.see("line 1")
                await on.typed(text)
                await on.press("escape", "enter")
                await on.see(end)

    asyncio.run(run())
