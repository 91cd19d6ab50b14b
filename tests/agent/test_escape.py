"""Escape at every moment: within a second, every call with one result, nothing started, the next prompt just works."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from panto.agent.hooks import Block, NoHooks, Rewrite
from panto.schema import ops
from panto.schema.bodies import TextBody, ToolOutcome
from panto.schema.errors import ToolFailure, ToolStop
from panto.schema.events import (
    CheckpointMade,
    InterruptRequested,
    ModelStepStarted,
    RunEnded,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    TurnStarted,
    TurnStopped,
)
from panto.schema.messages import Message
from panto.schema.signals import InputReturned, TextStreamed
from panto.session import stage
from panto.session.commands import ApproveCall, StartCall
from panto.tools.tool import Progress, ToolContext
from tests.agent.test_compaction import paired
from tests.agent.test_turns import requests, roles, told
from tests.scheduler.house import Hand, House, call, house, scripted

SLOW = {"text": ["word "] * 2_000, "each_s": 0.05}


async def escape(at: House) -> None:
    """Interrupt."""
    await at.client.submit(ops.Interrupt())
    assert at.agent.session.state.turn is None


async def escape_at_once(at: House) -> None:
    """Interrupt, with so much time for what runs that the end of it cannot be what ends the turn."""
    before = time.monotonic()
    await at.agent.mailbox.interrupt(before + 60)
    assert time.monotonic() - before < 30
    assert at.agent.session.state.turn is None


async def forever(arguments: Mapping[str, Any], context: ToolContext) -> str:
    await asyncio.sleep(600)
    return ""


class Hooks(NoHooks):
    """Hooks that never answer, of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.asked = 0

    def watches(self, event: str) -> bool:
        return event == self.kind

    async def _hang(self) -> None:
        self.asked += 1
        await asyncio.sleep(600)

    async def tool_call(
        self, agent: str, call: str, name: str, arguments: str, progress: Progress
    ) -> Block | Rewrite | None:
        if self.kind == "tool_call":
            await self._hang()
        return None

    async def tool_result(
        self, agent: str, call: str, name: str, outcome: ToolOutcome, progress: Progress
    ) -> ToolOutcome | None:
        await self._hang()
        return None

    async def context(self, agent: str) -> Sequence[Message]:
        await self._hang()
        return ()

    async def before_compact(self, agent: str, instructions: str) -> str | None:
        if self.kind == "before_compact":
            await self._hang()
        return None


@pytest.mark.parametrize("kind", ["tool_call", "context", "tool_result"])
def test_escape_does_not_wait_for_a_hook(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        hooks = Hooks(kind)
        async with house(tmp_path, scripted({"calls": [call("ls")]}, {"text": "?"}), hooks=hooks) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: hooks.asked)
            await escape_at_once(at)
            status = {"tool_call": ["cancelled"], "tool_result": ["ok"], "context": []}[kind]
            assert [r["status"] for r in at.results()] == status
            assert at.records()[-1]["status"] == "interrupted"

    asyncio.run(main())


def test_escape_while_a_call_is_shown_before_the_question_starts_and_asks_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        looking = asyncio.Event()

        async def look() -> None:
            looking.set()
            await asyncio.sleep(600)

        tool = Hand("peek", forever, approval="command", look=look)
        async with house(tmp_path, scripted({"calls": [call("peek")]}), tools=[tool], mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(looking.is_set)
            await escape_at_once(at)
            assert not at.events(ToolCallStarted) and not tool.ran

    asyncio.run(main())


def test_escape_during_compaction_leaves_the_context_as_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        run = {"calls": [call("bash", command="seq 1 4000")]}
        tables = scripted(run, run, SLOW, {"text": "Fine."}, context=9_000)
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("count"))
            await at.until(lambda: len(requests(at)) == 3)
            assert requests(at)[2].tool_choice.kind == "none"
            await escape_at_once(at)
            assert not at.events(CheckpointMade)
            assert at.records()[-1]["status"] == "interrupted"

    asyncio.run(main())


def test_escape_stops_a_compaction_by_hand_and_a_persons_own_command(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": "One."}, {"text": "Two."}, SLOW, {"text": "Three."})
        async with house(tmp_path, tables, compact_at=0) as at:
            for text in ("a" * 400, "b" * 400):
                await at.prompt(text)
            work = asyncio.ensure_future(at.client.submit(ops.Compact()))
            await at.until(lambda: len(requests(at)) == 3)
            assert at.agent.status().busy
            await at.client.submit(ops.Interrupt())
            await asyncio.wait_for(work, 30)
            work = asyncio.ensure_future(at.client.submit(ops.RunShell("touch begun; sleep 600")))
            await at.until(lambda: (at.cwd / "begun").exists())
            await at.client.submit(ops.Interrupt())
            await asyncio.wait_for(work, 30)
            assert not at.agent.status().busy and not at.events(CheckpointMade)
            await at.client.submit(ops.RunShell("echo after"))
            await at.prompt("go on")
            said = [told(m) for m in requests(at)[3].messages]
            assert any("begun" in text for text in said) and any("\nafter" in text for text in said), said

    asyncio.run(main())


def test_a_persons_own_command_runs_after_an_interrupted_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW, {"text": "Fine."})) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: any(isinstance(u, TextStreamed) for u in at.seen))
            await escape(at)
            await at.client.submit(ops.RunShell("echo hello"))
            await at.prompt("go on")
            assert any("hello" in told(m) for m in requests(at)[1].messages)

    asyncio.run(main())


def test_tools_that_do_not_let_go_are_left_behind_within_the_second(tmp_path: Path) -> None:
    async def main() -> None:
        over = asyncio.Event()

        async def stubborn(arguments: Mapping[str, Any], context: ToolContext) -> str:
            while not over.is_set():
                try:
                    await over.wait()
                except asyncio.CancelledError:
                    pass  # it hears and goes on
            return "late"

        tool = Hand("stubborn", stubborn)
        tables = scripted({"calls": [call("stubborn", n=n) for n in range(16)]}, {"text": "Fine."})
        async with house(tmp_path, tables, tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: len(tool.ran) == 16)
            before = time.monotonic()
            await escape(at)
            assert time.monotonic() - before < 30  # within a second, where the machine has nothing else to do
            assert [r["effects"] for r in at.results()] == ["unknown"] * 16
            over.set()
            await at.prompt("go on")
            assert at.records()[-1]["text"] == "Fine." and len(at.results()) == 16

    asyncio.run(main())


def test_what_a_call_answers_within_the_window_is_what_is_recorded(tmp_path: Path) -> None:
    async def main() -> None:
        async def done(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await context.cancelled.wait()
            await asyncio.sleep(0.1)
            return "finished all the same"

        async def broken(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await context.cancelled.wait()
            raise ToolStop("the disk is gone")

        async def partial(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await context.cancelled.wait()
            raise ToolFailure("stopped halfway", "cancelled", effects="unknown")

        tools = [Hand("done", done), Hand("broken", broken), Hand("partial", partial)]
        tables = scripted({"calls": [call(t.spec.name) for t in tools]}, {"text": "Fine."})
        async with house(tmp_path, tables, tools=tools) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: all(t.ran for t in tools))
            await escape_at_once(at)
            assert sorted((r["status"], r["text"]) for r in at.results()) == [
                ("cancelled", "stopped halfway"), ("error", "the disk is gone"), ("ok", "finished all the same"),
            ]  # fmt: skip
            assert at.records()[-1]["status"] == "interrupted"

    asyncio.run(main())


@pytest.mark.parametrize("rounds", range(0, 12, 2))
def test_a_call_that_breaks_everything_just_as_escape_comes_is_recorded_as_what_it_is(
    tmp_path: Path, rounds: int
) -> None:
    async def main() -> None:
        async def broken(arguments: Mapping[str, Any], context: ToolContext) -> str:
            pressed.append(asyncio.ensure_future(at.client.submit(ops.Interrupt())))
            for _ in range(rounds):  # the interrupt is on its way to the disk
                await asyncio.sleep(0)
            raise ToolStop("the disk is gone")

        pressed: list[asyncio.Future[None]] = []
        tool = Hand("broken", broken)
        async with house(tmp_path, scripted({"calls": [call("broken")]}, {"text": "Fine."}), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: pressed and pressed[0].done())
            assert [(r["status"], r["text"]) for r in at.results()] == [("error", "the disk is gone")]
            await at.rest()
            await at.prompt("go on")
            assert at.records()[-1]["text"] == "Fine." and len(tool.ran) == 1

    asyncio.run(main())


def test_a_second_escape_joins_the_first_and_does_not_prolong_it(tmp_path: Path) -> None:
    async def main() -> None:
        tool = Hand("forever", forever)
        async with house(tmp_path, scripted({"calls": [call("forever")]}, {"text": "Fine."}), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            presses = []
            for _ in range(8):
                presses.append(asyncio.ensure_future(at.client.submit(ops.Interrupt())))
                await asyncio.sleep(0.1)
            await asyncio.gather(*presses)
            assert len(at.events(InterruptRequested)) == len(at.events(TurnStopped)) == 1
            await at.prompt("go on")
            assert at.records()[-1]["text"] == "Fine."

    asyncio.run(main())


def test_what_is_said_right_after_escape_begins_the_next_turn(tmp_path: Path) -> None:
    async def main() -> None:
        tool = Hand("forever", forever)
        async with house(tmp_path, scripted({"calls": [call("forever")]}, {"text": "Fine."}), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            stopping = asyncio.ensure_future(at.client.submit(ops.Interrupt()))
            await asyncio.sleep(0.05)
            await at.prompt("rather this")
            await stopping
            assert at.records()[-1]["text"] == "Fine."
            assert roles(requests(at)[1]) == ["user", "assistant", "tool", "user"]
            assert not [u for u in at.seen if isinstance(u, InputReturned)]

    asyncio.run(main())


def test_escape_right_behind_the_prompt_stops_the_turn_that_is_about_to_begin(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW, {"text": "Fine."})) as at:
            said = asyncio.ensure_future(at.client.submit(ops.Prompt("go")))
            await asyncio.sleep(0)
            await at.client.submit(ops.Interrupt())
            await said
            await at.rest()
            assert at.agent.session.state.turn is None
            assert [type(e) for e in at.events(TurnStarted, TurnStopped)] == [TurnStarted, TurnStopped]

    asyncio.run(main())


def test_a_call_that_was_to_start_when_escape_came_is_known_to_have_done_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        tool = Hand("forever", forever, approval="command")
        async with house(tmp_path, scripted({"calls": [call("forever")]}), tools=[tool], mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            session, run = at.agent.session, at.agent.session.state.run
            assert run is not None
            (held,) = run.unfinished
            body = stage(TextBody("{}"))  # its start is recorded, and nobody has told the drive yet
            approve = ApproveCall(run=run.run, call=held.call, question=held.question or "")
            start = StartCall(run=run.run, call=held.call, effect=run.call_effect(held.call), arguments=body.digest)
            await session.commit(approve, start, bodies=(body,))
            await escape(at)
            failed = [e for e in at.events(ToolCallFailed) if isinstance(e, ToolCallFailed)]
            assert [(e.outcome, e.effects, e.cls) for e in failed] == [("known", "none", "cancelled")]
            assert not tool.ran

    asyncio.run(main())


@pytest.mark.long(sample=6)
@pytest.mark.parametrize("seed", range(60))
def test_escape_at_any_moment_leaves_every_call_with_one_result_and_the_next_prompt_works(
    tmp_path: Path, seed: int
) -> None:
    async def main() -> None:
        dice = random.Random(seed)

        async def work(arguments: Mapping[str, Any], context: ToolContext) -> str:
            try:
                await asyncio.wait_for(context.cancelled.wait(), float(arguments["s"]))
            except TimeoutError:
                return "done"
            raise ToolFailure("stopped", "cancelled")

        def some() -> dict[str, Any]:
            calls = [call("work", s=dice.choice([0, 0.01, 0.03]), n=dice.random()) for _ in range(dice.randint(1, 4))]
            return {"text": ["a "] * 3, "each_s": 0.002, "calls": calls}

        tool = Hand("work", work)
        tables = scripted(*[some() for _ in range(4)], {"text": ["b "] * 5, "each_s": 0.004}, {"text": "c"})
        async with house(tmp_path, tables, tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await asyncio.sleep(dice.random() * 0.25)
            if dice.random() < 0.5:
                await at.client.submit(ops.Prompt("queued", when=dice.choice(["step", "turn"])))
            await asyncio.gather(*(at.client.submit(ops.Interrupt()) for _ in range(dice.randint(1, 2))))
            await at.rest()
            assert at.agent.session.state.turn is None and not at.agent.session.state.inputs
            started = [e.call for e in at.events(ToolCallStarted) if isinstance(e, ToolCallStarted)]
            assert len(started) == len(set(started))
            assert len(tool.ran) <= len(started)
            ids = [r["id"] for r in at.results()]
            assert len(ids) == len(set(ids))
            await at.prompt("go on")
            assert all(paired(request) for request in requests(at))
            ended = [e.run for e in at.events(RunEnded) if isinstance(e, RunEnded)]
            assert len(ended) == len(set(ended))
            assert len(at.events(ModelStepStarted)) <= len(requests(at)) + 1
            assert (await at.scheduler.shared.store.verify(at.agent.id)).findings == ()

    asyncio.run(main())
