"""The screen of child agents: how each stands, telling one something, stopping it."""

from __future__ import annotations

import asyncio

from panto.schema.ops import Interrupt, Prompt, RunCommand
from panto.schema.queries import AgentRow, AskAgents, AskCommands, AskHistory, CommandRow, History
from tests.tui.app.stage import stage
from tests.tui.stub_client import COMMANDS, StubClient

ROWS = (
    AgentRow("x1", "reviewer", "running", "m:a", 12_000),
    AgentRow("x2", "explore", "completed", "m:b", 3_000),
    AgentRow("x3", "worker", "cancelled", "m:b"),
    AgentRow("x4", "docs", "parked", "m:b"),
)
RESUME = CommandRow("agents.resume", "goes on with an agent of this session", "ID TEXT")


def client() -> StubClient:
    made = StubClient()
    made.answers |= {AskAgents: ROWS, AskCommands: (*COMMANDS, RESUME), AskHistory: History((), None)}
    return made


def test_each_agent_is_shown_as_it_stands() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.app.action_agents()
            await on.see("reviewer")
            text = on.text()
            assert "1 running" in text and "12k" in text
            for state in ("completed", "cancelled", "parked"):
                assert state in text

    asyncio.run(run())


def test_a_running_agent_is_steered_and_stopped_from_the_list() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.app.action_agents()
            await on.see("reviewer")
            await on.press("ctrl+t")
            await on.see("tell it")
            await on.typed("only the tests")
            await on.press("enter")
            await on.until(lambda: on.ops(Prompt))
            assert on.ops(Prompt) == [Prompt("only the tests", agent="x1")]
            await on.press("ctrl+d")
            await on.until(lambda: on.ops(Interrupt))
            assert on.ops(Interrupt) == [Interrupt(agent="x1")]
            await on.press("down", "ctrl+d")
            assert len(on.ops(Interrupt)) == 1, "what does not run is not stopped"

    asyncio.run(run())


def test_an_agent_that_rests_goes_on_by_the_extensions_command() -> None:
    async def run() -> None:
        async with stage(client()) as on:
            on.app.show_child("x2", "explore")
            await on.see("tell it something")
            await on.press("t")
            await on.typed("and the docs?")
            await on.see("› and the docs?")
            await on.press("enter")
            await on.until(lambda: on.ops(RunCommand))
            assert on.ops(RunCommand) == [RunCommand("/agents.resume x2 and the docs?")]
            await on.press("t", "x", "escape")
            await on.see("tell it something")
            await on.press("escape")
            assert len(on.ops(RunCommand)) == 1

    asyncio.run(run())


def test_without_the_command_it_is_said_that_nothing_goes_on_with_it() -> None:
    async def run() -> None:
        made = client()
        made.answers[AskCommands] = COMMANDS
        async with stage(made) as on:
            on.app.show_child("x2", "explore")
            await on.press("t")
            await on.typed("go on")
            await on.press("enter", "escape")
            await on.see("no extension here goes on with one")
            assert not on.ops(RunCommand)

    asyncio.run(run())
