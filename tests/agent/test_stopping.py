"""Escape, quitting and crashes: what is kept, what is known, and that the next request is sendable."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from panto.schema import ops
from panto.schema.bodies import ToolOutcome
from panto.schema.events import (
    InterruptRequested,
    ModelStepStarted,
    RunEnded,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    TurnSettled,
    TurnStarted,
    TurnStopped,
)
from panto.schema.queries import AskHistory
from panto.schema.signals import InputReturned, RetryWaiting, TextStreamed, ToolProgressed
from tests.agent.test_turns import requests, roles, told
from tests.scheduler.house import House, call, house, scripted


async def escape(at: House) -> float:
    """Interrupt; the seconds it took."""
    before = time.monotonic()
    await at.client.submit(ops.Interrupt())
    assert at.agent.session.state.turn is None
    return time.monotonic() - before


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_escape_while_the_model_streams_keeps_its_text_and_the_next_prompt_works(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": ["Half a "] * 1_000, "each_s": 0.05}, {"text": "Fine."})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: any(isinstance(u, TextStreamed) for u in at.seen))
            await escape(at)
            names = [type(e) for e in at.events(InterruptRequested, RunEnded, TurnStopped)]
            assert names == [InterruptRequested, RunEnded, TurnStopped]
            assert at.records()[-1]["status"] == "interrupted"
            await at.prompt("go on")
            assert roles(requests(at)[1]) == ["user", "assistant", "user"]
            assert told(requests(at)[1].messages[1]).startswith("Half a ")

    asyncio.run(main())


def test_escape_during_reasoning_leaves_no_empty_message(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"reasoning": ["hm"] * 1_000, "each_s": 0.05}, {"text": "Fine."})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ModelStepStarted))
            await asyncio.sleep(0.1)
            await escape(at)
            await at.prompt("go on")
            assert roles(requests(at)[1]) == ["user", "user"]

    asyncio.run(main())


def test_escape_between_three_calls_gives_each_exactly_one_result_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        calls = [
            call("bash", command="echo one"),
            call("bash", command="echo partial; echo $$ > pid; sleep 300"),
            call("bash", command="trap '' TERM; echo $$ > pid2; sleep 300 & sleep 300"),
        ]
        async with house(tmp_path, scripted({"calls": calls}, {"text": "I see."})) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: (at.cwd / "pid").exists() and (at.cwd / "pid2").exists() and at.results())
            pids = [int((at.cwd / name).read_text()) for name in ("pid", "pid2")]
            await at.client.submit(ops.Prompt("typed meanwhile", when="turn"))
            await escape(at)
            await at.until(lambda: not any(alive(pid) for pid in pids))
            assert [r["status"] for r in at.results()] == ["ok", "cancelled", "cancelled"]
            assert [u.text for u in at.seen if isinstance(u, InputReturned)] == ["typed meanwhile"]
            await at.prompt("go on")
            results = requests(at)[1].messages[2]
            assert [part.is_error for part in results.parts if hasattr(part, "is_error")] == [False, True, True]
            assert "partial" in told(results) and "Cancelled by user" in told(results)

    asyncio.run(main())


def test_escape_while_a_question_waits_cancels_the_call_and_its_answer_comes_too_late(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("bash", command="echo x")]}), mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            (held,) = at.events(ToolCallHeld)
            assert isinstance(held, ToolCallHeld)
            await escape(at)
            with pytest.raises(Exception, match="answered already"):
                await at.client.submit(ops.Decide(held.call, "once"))
            assert not at.events(ToolCallStarted)

    asyncio.run(main())


def test_escape_ends_a_wait_before_a_retry_and_enter_cuts_it_short(tmp_path: Path) -> None:
    async def main() -> None:
        busy = {"error": {"kind": "rate_limited", "status": 429, "retry_after": 60, "message": "slow down"}}
        async with house(tmp_path, scripted(busy, {"text": "At last."}, busy)) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: any(isinstance(u, RetryWaiting) for u in at.seen))
            await at.client.submit(ops.RetryNow())
            await at.rest()
            assert at.records()[-1]["text"] == "At last."
            at.seen.clear()
            await at.client.submit(ops.Prompt("again"))
            await at.until(lambda: any(isinstance(u, RetryWaiting) for u in at.seen))
            await escape(at)
            assert at.records()[-1]["status"] == "interrupted"

    asyncio.run(main())


def test_an_escape_starts_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": ["a"] * 1_000, "each_s": 0.05}, {"text": "?"})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.client.submit(ops.Prompt("queued", when="turn"))
            await at.client.submit(ops.Prompt("steer", when="step"))
            await escape(at)
            await asyncio.sleep(0.1)
            assert len(requests(at)) == 1
            assert len(at.events(TurnStarted)) == 1
            assert [u.text for u in at.seen if isinstance(u, InputReturned)] == ["queued\nsteer"]

    asyncio.run(main())


# --- parking and coming back ------------------------------------------------------------------------------------


def test_closing_parks_the_turn_and_a_later_start_continues_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": ["a"] * 1_000, "each_s": 0.05})) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ModelStepStarted))
            name = at.agent.id
        async with house(tmp_path, scripted({"text": "Here I am again."}), resume=name) as at:
            assert at.agent.mailbox.parked
            await asyncio.sleep(0.05)
            assert not requests(at)
            await at.client.submit(ops.Continue())
            await at.rest()
            assert [told(m) for m in requests(at)[0].messages] == ["go"]
            assert [e.status for e in at.events(TurnSettled) if isinstance(e, TurnSettled)] == ["completed"]

    asyncio.run(main())


def test_a_new_prompt_to_a_parked_turn_ends_its_calls_and_joins_it(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("bash", command="echo half; sleep 300"), call("ls")]})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: any(isinstance(u, ToolProgressed) for u in at.seen) and at.results())
            name = at.agent.id
        async with house(tmp_path, scripted({"text": "On we go."}), resume=name) as at:
            await at.prompt("what happened?")
            assert roles(requests(at)[0]) == ["user", "assistant", "tool", "user"]
            said = told(requests(at)[0].messages[2])
            assert "panto was ended" in said and "half" in said and "by user" not in said and "the user" not in said
            assert at.records()[-1]["text"] == "On we go."
            facts = (await at.client.ask(AskHistory())).facts
            (failed,) = [fact for fact in facts if isinstance(fact.event, ToolCallFailed)]
            assert isinstance(failed.event, ToolCallFailed) and isinstance(failed.body, ToolOutcome)
            assert (failed.event.cls, failed.event.cause, failed.event.effects) == ("cancelled", "left", "unknown")
            assert failed.event.message == "panto was ended while this ran; it may have had effects"
            assert failed.body.fact.startswith("panto was ended after ") and "stopped" not in str(failed.body.parts)

    asyncio.run(main())


def test_a_question_that_was_open_is_asked_again_when_continued(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("bash", command="echo x")]}), mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            name = at.agent.id
        async with house(tmp_path, scripted({"text": "Thanks."}), resume=name, mode="ask") as at:
            run = at.agent.session.state.run
            assert run is not None
            (waiting,) = run.unfinished
            await at.client.submit(ops.Decide(waiting.call, "once"))
            await at.rest()
            assert [r["status"] for r in at.results()] == ["ok"]
            assert at.records()[-1]["text"] == "Thanks."

    asyncio.run(main())


def test_unattended_a_question_that_was_open_is_refused_when_continued(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("bash", command="echo x")]}), mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            name = at.agent.id
        tables = scripted({"text": "Then not."})
        async with house(tmp_path, tables, resume=name, mode="ask", attended=False) as at:
            await at.client.submit(ops.Continue())
            await at.rest()
            failed = [e for e in at.events(ToolCallFailed) if isinstance(e, ToolCallFailed)]
            assert [e.unattended for e in failed] == [True]
            assert at.records()[-1]["status"] == "refused"

    asyncio.run(main())
