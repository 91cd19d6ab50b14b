"""Slash commands of the screen: which open a list, and which go on to the engine."""

from __future__ import annotations

import asyncio

import pytest

from panto.schema.ops import RunCommand
from panto.schema.queries import AskCommands, AskExtensions, CommandRow
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
