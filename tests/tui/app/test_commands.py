"""Slash commands of the screen: which open a list, and which go on to the engine."""

from __future__ import annotations

import asyncio

import pytest

from panto.schema.ops import RunCommand
from panto.schema.queries import AskCommands, AskExtensions, AskPrompts, CommandRow, PromptText
from tests.tui.app.stage import stage
from tests.tui.stub_client import COMMANDS, StubClient


@pytest.mark.parametrize("command", ["/extensions reload", "/extensions off todo", "/rewind 2 files"])
def test_words_behind_a_command_that_opens_a_list_go_to_the_engine(command: str) -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskCommands] = (*COMMANDS, CommandRow("extensions", "what is loaded"))
        async with stage(client) as on:
            await on.typed(command)
            await on.press("enter")
            await on.until(lambda: on.client.ops)
            assert on.client.ops == [RunCommand(command)]

    asyncio.run(run())


def test_without_words_extensions_are_listed() -> None:
    async def run() -> None:
        client = StubClient()
        client.answers[AskExtensions] = ()
        async with stage(client) as on:
            await on.typed("/extensions")
            await on.press("enter")
            await on.see("none is loaded")
            assert on.client.ops == []

    asyncio.run(run())


def test_while_words_are_searched_the_rule_says_what_n_and_p_do() -> None:
    async def run() -> None:
        async with stage() as on:
            on.client.begin("find the needle")
            await on.see("find the needle")
            await on.typed("/search needle")
            await on.press("enter")
            await on.see("1 found · n p to the next")
            await on.see("searching · n p to the next · Esc ends it")
            await on.press("escape")
            await on.until(lambda: "searching" not in on.text())

    asyncio.run(run())


def test_an_earlier_prompt_is_listed_as_wide_as_the_screen() -> None:
    async def run() -> None:
        client = StubClient()
        prompt = "fix the total of every basket, whoever owns it, and then run the tests"
        client.answers[AskPrompts] = (PromptText(prompt),)
        async with stage(client, size=(80, 24)) as on:
            await on.press("ctrl+r")
            await on.see(prompt)

    asyncio.run(run())
