"""Trust is given to a list that was seen, by a key that means nothing else, and can be taken back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from panto.schema.errors import Conflict, UsageError
from panto.schema.ops import SetTrust
from panto.schema.queries import AskTrust, ProjectTrust, TrustRow
from tests.tui.app.stage import Stage, stage
from tests.tui.stub_client import StubClient

ROWS = (
    TrustRow(".panto/config.toml", "mode auto"),
    TrustRow(".panto/config.toml", "runs `pass show corp/models | head -1` for the key of corp", True),
    TrustRow(".panto/extensions/hello/init.lua", "Lua that runs inside panto"),
)


def client(shown: ProjectTrust) -> StubClient:
    made = StubClient()
    made.answers[AskTrust] = shown
    return made


async def opened(on: Stage, words: str) -> None:
    await on.typed("/trust")
    await on.press("enter")
    await on.see(words)
    await on.pilot.pause(0.5)  # no key counts at once


def test_everything_is_listed_with_its_exact_words_and_what_changed_is_marked() -> None:
    async def run() -> None:
        async with stage(client(ProjectTrust("/tmp/shop", ROWS, seen="d1"))) as on:
            await opened(on, "/tmp/shop brings 2 files.")
            text = on.text()
            assert "runs `pass show corp/models | head -1` for the key of corp" in text
            assert "It has changed since you agreed to it" in text
            marked = [row for row in on.rows() if row.endswith("changed")]
            assert len(marked) == 1 and ".panto/config.toml" in marked[0]

    asyncio.run(run())


def test_neither_enter_nor_y_agrees_and_escape_leaves_a_working_session() -> None:
    async def run() -> None:
        async with stage(client(ProjectTrust("/tmp/shop", ROWS, seen="d1"))) as on:
            await opened(on, "a agree to exactly this")
            for key in ("enter", "y", "space", "s", "w"):
                await on.pilot.press(key)
            assert on.app.screen is not on.app.main
            await on.pilot.press("escape")
            await on.until(lambda: on.app.screen is on.app.main)
            assert on.client.ops == []
            await on.typed("go")
            assert on.app.composer.draft.text == "go"

    asyncio.run(run())


def test_a_agrees_to_the_list_that_was_shown_but_not_in_the_first_moment() -> None:
    async def run() -> None:
        async with stage(client(ProjectTrust("/tmp/shop", ROWS, seen="d1"))) as on:
            on.app.action_trust()
            await on.see("a agree to exactly this")
            on.app.screen.query_one("TrustSheet").alive_at += 30.0  # type: ignore[attr-defined]
            await on.pilot.press("a")
            assert on.client.ops == []
            on.app.screen.query_one("TrustSheet").alive_at = 0.0  # type: ignore[attr-defined]
            await on.pilot.press("a")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [SetTrust(True, "d1")]

    asyncio.run(run())


def test_a_list_longer_than_the_screen_is_agreed_to_only_at_its_end() -> None:
    async def run() -> None:
        rows = tuple(TrustRow(f"agents/{n}.md", "an agent's instructions") for n in range(12))
        async with stage(client(ProjectTrust("/tmp/shop", rows, seen="d2")), (60, 20)) as on:
            await opened(on, "brings 12 files")
            pages = 0
            while not on.client.ops:
                await on.pilot.press("a")
                await on.pilot.pause(0.02)
                pages += 1
                assert pages < 10
            assert pages > 2 and on.client.ops == [SetTrust(True, "d2")]

    asyncio.run(run())


def test_an_agreement_is_withdrawn_in_the_same_place() -> None:
    async def run() -> None:
        async with stage(client(ProjectTrust("/tmp/shop", ROWS[:1], agreed=True, seen="d1"))) as on:
            await opened(on, "You agreed to exactly this.")
            await on.pilot.press("a")
            assert on.client.ops == []
            await on.pilot.press("w")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [SetTrust(False)]

    asyncio.run(run())


def test_what_cannot_be_agreed_to_says_why_and_offers_nothing() -> None:
    async def run() -> None:
        async with stage(client(ProjectTrust("/tmp/shop", ROWS, why="it is more than can be looked through"))) as on:
            await opened(on, "it is more than can be looked through")
            assert "agree to exactly" not in on.text()
            await on.pilot.press("a")
            assert on.client.ops == []

    asyncio.run(run())


def test_a_list_that_is_another_by_now_is_not_agreed_to_and_that_is_said() -> None:
    async def run() -> None:
        stub = client(ProjectTrust("/tmp/shop", ROWS, seen="d1"))
        stub.refuse[SetTrust] = Conflict("what the project brings has changed", "/trust shows it again")
        async with stage(stub) as on:
            await opened(on, "a agree to exactly this")
            await on.pilot.press("a")
            await on.see("what the project brings has changed")
            assert on.app.screen is on.app.main

    asyncio.run(run())


def test_a_project_that_brings_nothing_says_so() -> None:
    async def run() -> None:
        async with stage(client(ProjectTrust())) as on:
            await opened(on, "brings nothing that would run")

    asyncio.run(run())


def test_a_list_that_cannot_be_read_is_not_called_empty() -> None:
    async def run() -> None:
        stub = StubClient()
        stub.answers[AskTrust] = UsageError("the folder cannot be read")
        async with stage(stub) as on:
            await opened(on, "not known: what went wrong stands in the transcript")
            await on.pilot.press("a")
            assert "brings nothing" not in on.text() and on.client.ops == []

    asyncio.run(run())


def test_the_files_themselves_can_be_read_before_one_agrees(tmp_path: Path) -> None:
    async def run() -> None:
        (tmp_path / ".panto").mkdir()
        (tmp_path / ".panto/config.toml").write_text('mode = "auto"\n# \x1b[2Jharmless\n')
        (tmp_path / ".panto/lib.so").write_bytes(b"\x7fELF\0")
        os.mkfifo(tmp_path / ".panto/pipe")
        rows = tuple(TrustRow(f".panto/{name}", "x") for name in ("config.toml", "lib.so", "pipe"))
        async with stage(client(ProjectTrust(str(tmp_path), rows, seen="d1"))) as on:
            await opened(on, "r read the files")
            await on.pilot.press("r")
            await on.see('mode = "auto"')
            text = on.text()
            assert "harmless" in text and "(no text)" in text and "(no file that could be shown)" in text
            await on.press("escape")
            await on.see("a agree to exactly this")
            assert on.client.ops == []

    asyncio.run(run())
