"""Jobs: a turn of an agent that somebody opened, pulled without waiting, ended with its owner, always settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.agent.ports import Limits
from panto.scheduler import Agent, Job
from panto.schema import ops
from panto.schema.errors import PantoError, UsageError
from panto.schema.events import InputSubmitted, ToolCallFailed, TurnStarted, TurnStopped
from panto.schema.messages import ToolSpec
from panto.session.commands import ChangeModel, ChangeTitle
from panto.tools.tool import ToolContext
from tests.agent.test_turns import requests, told
from tests.scheduler.house import Hand, House, call, house, scripted

SLOW = {"text": ["word "] * 2_000, "each_s": 0.05}


async def child(at: House, **more: Any) -> Agent:
    return await at.scheduler.open_agent(opener=at.agent.id, **more)


def records(job: Job) -> list[Mapping[str, object]]:
    """All that waits."""
    out: list[Mapping[str, object]] = []
    while (record := job.next_event()) is not None:
        out.append(record)
    return out


def test_a_job_is_pulled_while_it_runs_and_settles_with_its_result(tmp_path: Path) -> None:
    async def main() -> None:
        wakes: list[bool] = []
        async with house(tmp_path, scripted({"text": ["a", "b", "c"], "usage": {"input": 7, "output": 3}})) as at:
            agent = await child(at)
            job = at.scheduler.run(agent, "go")
            job.on_ready(wakes.append)
            result = await job.wait()
            assert (result.status, result.text, result.usage.input) == ("completed", "abc", 7)
            kinds = [r["type"] for r in records(job)]
            assert kinds == [
                "turn_started",
                "message",
                "step_started",
                "text_delta",
                "message",
                "step_ended",
                "turn_ended",
            ]
            assert wakes == [False] * 7 + [True]  # merging wakes nobody
            assert job.next_event() is None
            await job.close()
            await job.close()

    asyncio.run(main())


def test_a_reader_that_never_pulls_costs_little_and_deltas_are_whole(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": ["0123456789"] * 20_000})) as at:
            job = at.scheduler.run(await child(at), "go")
            result = await job.wait()
            deltas = [r for r in records(job) if r["type"] == "text_delta"]
            assert len(deltas) == 1 and deltas[0]["text"] == result.text == "0123456789" * 20_000

    asyncio.run(main())


def test_only_one_turn_of_an_agent_at_a_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW, {"text": "x"})) as at:
            agent = await child(at)
            job = at.scheduler.run(agent, "go")
            with pytest.raises(UsageError, match="agent is in a turn"):
                at.scheduler.run(agent, "go too")
            await at.until(lambda: requests(at))
            job.request_cancel()
            assert (await job.wait()).status == "cancelled"
            assert (await at.scheduler.run(agent, "again").wait()).text == "x"

    asyncio.run(main())


def test_a_job_that_is_cancelled_before_it_began_never_begins(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW)) as at:
            job = at.scheduler.run(await child(at), "go")
            job.request_cancel()
            assert (await asyncio.wait_for(job.wait(), 30)).status == "cancelled"
            assert not requests(at)

    asyncio.run(main())


@pytest.mark.parametrize("rounds", range(0, 40, 3))
def test_a_job_that_is_cancelled_as_it_begins_is_cancelled(tmp_path: Path, rounds: int) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW)) as at:
            job = at.scheduler.run(await child(at), "go")
            for _ in range(rounds):
                await asyncio.sleep(0.0003)
            job.request_cancel()
            assert (await asyncio.wait_for(job.wait(), 30)).status == "cancelled"
            await asyncio.wait_for(job.close(), 30)

    asyncio.run(main())


def test_a_known_id_submits_nothing_again_and_has_the_settled_result_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        name = "ab" * 16
        async with house(tmp_path, scripted({"text": "First."}, {"text": "Second."}, {"text": "Third?"})) as at:
            agent = await child(at)
            await at.scheduler.run(agent, "one", id=name).wait()
            await at.scheduler.run(agent, "two").wait()
            again = await at.scheduler.run(agent, "one", id=name).wait()
            assert (again.status, again.text) == ("completed", "First.")
            other = await at.scheduler.run(agent, "said differently", id=name).wait()
            assert other.text == "First."
            assert len(requests(at)) == 2 and len(at.events(InputSubmitted)) == 2

    asyncio.run(main())


def test_a_parked_turn_is_continued_by_its_id_in_another_process(tmp_path: Path) -> None:
    async def main() -> None:
        name, kid = "ab" * 16, "cd" * 16
        async with house(tmp_path, scripted(SLOW)) as at:
            agent = await child(at, session_id=kid)
            job = at.scheduler.run(agent, "one", id=name)
            await at.until(lambda: len(requests(at)) == 1)
            primary = at.agent.id
        result = await job.wait()
        assert (result.status, result.resumable) == ("cancelled", True)
        async with house(tmp_path, scripted({"text": "Here I am."}), resume=primary) as at:
            agent = await child(at, session_id=kid)
            result = await at.scheduler.run(agent, "one", id=name).wait()
            assert (result.status, result.text) == ("completed", "Here I am.")
            assert [told(m) for m in requests(at)[0].messages] == ["one"]
            assert not at.events(TurnStarted)

    asyncio.run(main())


def test_without_dispatch_the_calls_come_back_unresolved_also_when_asked_for_again(tmp_path: Path) -> None:
    async def main() -> None:
        name = "ab" * 16
        async with house(tmp_path, scripted({"text": "I would.", "calls": [call("bash", command="touch x")]})) as at:
            agent = await child(at)
            for _ in range(2):
                result = await at.scheduler.run(agent, "go", id=name, dispatch_tools=False).wait()
                assert result.status == "completed" and len(result.tool_calls) == 1
                assert result.tool_calls[0][1:] == ("bash", '{"command": "touch x"}')
            assert not (at.cwd / "x").exists()

    asyncio.run(main())


def test_calls_that_were_run_are_not_told_as_unresolved(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("ls")]}, {"text": "?"})) as at:
            result = await at.scheduler.run(await child(at), "go", limits=Limits(steps=1)).wait()
            assert (result.status, result.limited, result.tool_calls) == ("failed", True, ())

    asyncio.run(main())


@pytest.mark.parametrize("what", ["tool", "stream", "hook"])
def test_a_limit_of_seconds_ends_what_runs(tmp_path: Path, what: str) -> None:
    async def main() -> None:
        async def forever(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await asyncio.sleep(600)
            return ""

        tool = Hand("forever", forever, mutates=False)
        reply = {"calls": [call("forever")]} if what == "tool" else SLOW
        async with house(tmp_path, scripted(reply), tools=[tool]) as at:
            before = time.monotonic()
            result = await at.scheduler.run(await child(at), "go", limits=Limits(seconds=0.2)).wait()
            assert time.monotonic() - before < 30
            assert (result.status, result.limited) == ("failed", True)
            assert result.error and "0.2 s" in str(result.error["message"])
            (stopped,) = at.events(TurnStopped)
            assert isinstance(stopped, TurnStopped) and stopped.reason == "budget"

    asyncio.run(main())


def test_a_job_whose_turn_cannot_go_on_fails_and_says_why(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "x"})) as at:
            agent = await child(at, model="fake:m")
            await agent.session.commit(ChangeModel(model="gone:m"))  # a config that has changed since
            result = await asyncio.wait_for(at.scheduler.run(agent, "go").wait(), 30)
            assert result.status == "failed" and result.resumable
            assert result.error and "gone" in str(result.error["message"])

    asyncio.run(main())


def test_a_failed_attempt_of_a_primary_ends_its_job_and_stays_to_be_retried(tmp_path: Path) -> None:
    async def main() -> None:
        broken = {"error": {"kind": "auth", "status": 401, "message": "bad key"}}
        async with house(tmp_path, scripted(broken, {"text": "Now."})) as at:
            result = await asyncio.wait_for(at.scheduler.run(at.agent, "go").wait(), 30)
            assert result.status == "failed" and result.error == {"kind": "auth", "message": "bad key"}
            await at.client.submit(ops.Continue())
            await at.rest()
            assert at.records()[-1]["text"] == "Now."

    asyncio.run(main())


def test_a_job_whose_beginning_breaks_ends_all_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "x"})) as at:
            agent = await child(at)
            job = at.scheduler.run(agent, "go", metadata={"what": object()})  # it cannot be written
            result = await asyncio.wait_for(job.wait(), 30)
            assert result.status == "failed" and agent.job is None

    asyncio.run(main())


def test_closing_the_last_handle_settles_the_job_as_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW)) as at:
            agent, again = await child(at, session_id="cd" * 16), await child(at, session_id="cd" * 16)
            assert agent is again and agent.handles == 2
            job = at.scheduler.run(agent, "go")
            await at.until(lambda: requests(at))
            await at.scheduler.close_agent(agent)
            assert job.result is None and agent.in_turn
            await at.scheduler.close_agent(agent)
            assert (await asyncio.wait_for(job.wait(), 30)).status == "cancelled"
            assert agent.id not in at.scheduler.agents

    asyncio.run(main())


def test_opening_one_session_many_times_at_once_gives_one_agent(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted()) as at:
            agents = await asyncio.gather(*(child(at, session_id="cd" * 16) for _ in range(8)))
            assert len({id(agent) for agent in agents}) == 1 and agents[0].handles == 8
            closing = [at.scheduler.close_agent(agents[0]) for _ in range(8)]
            await asyncio.gather(*closing, child(at, session_id="cd" * 16))

    asyncio.run(main())


def test_a_session_of_another_primary_is_not_opened_as_a_child(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted()) as at:
            stranger = await at.scheduler.create(cwd=str(at.cwd))
            await stranger.session.commit(ChangeTitle(title="kept"))  # else nothing of it would be
            await at.scheduler.close_agent(stranger)
            with pytest.raises(UsageError, match="does not belong"):
                await child(at, session_id=stranger.id)
            again = await at.scheduler.open(stranger.id)  # and it is not held
            await at.scheduler.close_agent(again)

    asyncio.run(main())


def test_a_stored_child_takes_on_what_it_is_opened_with_and_keeps_the_rest(tmp_path: Path) -> None:
    async def main() -> None:
        kid = "cd" * 16
        specs = [ToolSpec("ls", "lists", '{"type":"object"}')]
        both = {name: {"id": name, "context": 100_000} for name in "mn"}
        tables = {"fake": {"protocol": "scripted", "models": both, "replies": [{"text": "a"}, {"text": "b"}]}}
        async with house(tmp_path, tables) as at:
            agent = await child(at, session_id=kid, tools=specs)
            await at.scheduler.run(agent, "one").wait()
            await at.scheduler.close_agent(agent)
            agent = await child(at, session_id=kid, model="fake:n")
            await at.scheduler.run(agent, "two").wait()
            head = agent.session.head
            await at.scheduler.close_agent(agent)
            agent = await child(at, session_id=kid, model="fake:n", tools=specs)
            assert agent.session.head == head  # nothing was new
            assert [(r.model, [t.name for t in r.tools]) for r in requests(at)] == [("m", ["ls"]), ("n", ["ls"])]

    asyncio.run(main())


# --- owners -----------------------------------------------------------------------------------------------------


def spawning(at: list[House], depth: int, ran: list[str]) -> Hand:
    """A tool that runs a child and waits for it, as deep as that; its result names what the child came to."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
        scheduler = at[0].scheduler
        agent = await scheduler.open_agent(opener=context.agent)
        deep = agent.session.depth
        ran.append(f"{deep}")
        job = scheduler.run(agent, "spawn" if deep < depth else "talk", owner=context.effect)
        result = await asyncio.shield(job.wait())
        return f"depth {deep} was {result.status}"

    return Hand("spawn", run, replay=True)


def test_escape_reaches_children_at_every_depth_within_the_second_and_each_parent_hears_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        at: list[House] = []
        ran: list[str] = []

        async def stubborn(arguments: Mapping[str, Any], context: ToolContext) -> str:
            ran.append("leaf")
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    if over:
                        raise

        over: list[bool] = []
        leaf = Hand("leaf", stubborn)
        spawn = {"calls": [call("spawn")]}
        tables = scripted(spawn, spawn, spawn, {"calls": [call("leaf")]})
        async with house(tmp_path, tables, tools=[spawning(at, 3, ran), leaf]) as opened:
            at.append(opened)
            await opened.client.submit(ops.Prompt("go"))
            await opened.until(lambda: "leaf" in ran)
            assert ran == ["1", "2", "3", "leaf"]
            before = time.monotonic()
            await opened.client.submit(ops.Interrupt())
            assert time.monotonic() - before < 30
            over.append(True)
            failed = [e for e in opened.events(ToolCallFailed) if isinstance(e, ToolCallFailed)]
            assert [(e.outcome, e.cls) for e in failed] == [("unknown", "cancelled")]  # the leaf's alone
            results = [str(r["text"]) for r in opened.results() if r["status"] == "ok"]
            assert results == ["depth 3 was cancelled", "depth 2 was cancelled", "depth 1 was cancelled"]
            assert len(opened.events(TurnStopped)) == 4

    asyncio.run(main())


def test_the_end_of_an_owner_ends_its_jobs_and_no_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW, SLOW, SLOW)) as at:
            jobs = [at.scheduler.run(await child(at), "go", owner=owner) for owner in ("a", "a", "b")]
            await at.until(lambda: len(requests(at)) == 3)
            await asyncio.wait_for(at.scheduler.end_owner("a"), 30)
            assert [job.result.status if job.result else None for job in jobs] == ["cancelled", "cancelled", None]
            jobs[2].detach()
            await at.scheduler.end_owner("b")
            assert jobs[2].result is None

    asyncio.run(main())


def test_quitting_parks_children_and_the_parents_call_can_continue_them(tmp_path: Path) -> None:
    async def main() -> None:
        kid, name = "cd" * 16, "ab" * 16

        def tool(at: list[House]) -> Hand:
            async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
                agent = await at[0].scheduler.open_agent(opener=context.agent, session_id=kid)
                job = at[0].scheduler.run(agent, "talk", id=name, owner=context.effect)
                while not (context.cancelled.is_set() or job.result):
                    await asyncio.sleep(0.01)
                if context.cancelled.is_set():
                    await asyncio.sleep(600)  # a handler that does not answer in time
                return (await job.wait()).text

            return Hand("spawn", run, replay=True)

        first: list[House] = []
        async with house(tmp_path, scripted({"calls": [call("spawn")]}, SLOW), tools=[tool(first)]) as at:
            first.append(at)
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: len(requests(at)) == 2)
            primary = at.agent.id
        second: list[House] = []
        tables = scripted({"text": "The child's answer."}, {"text": "Done."})
        async with house(tmp_path, tables, tools=[tool(second)], resume=primary) as at:
            second.append(at)
            assert not requests(at)
            await at.client.submit(ops.Continue())
            await at.rest()
            assert [(r["status"], r["text"]) for r in at.results()] == [("ok", "The child's answer.")]
            assert at.records()[-1]["text"] == "Done."
            assert not at.events(TurnStarted) and not at.events(TurnStopped)

    asyncio.run(main())


def test_closing_while_everything_runs_settles_every_job_and_leaves_nothing_open(tmp_path: Path) -> None:
    async def main() -> None:
        async def forever(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await asyncio.sleep(600)
            return ""

        tool = Hand("forever", forever)
        replies = [SLOW if n % 2 else {"calls": [call("forever")]} for n in range(12)]
        async with house(tmp_path, scripted(*replies), tools=[tool]) as at:
            jobs = [at.scheduler.run(await child(at), f"go {n}") for n in range(11)]
            await at.client.submit(ops.Prompt("me too"))
            await at.until(lambda: len(requests(at)) == 12)
            before = time.monotonic()
            closing = asyncio.ensure_future(at.scheduler.close())
            await asyncio.sleep(0)
            with pytest.raises(PantoError):
                await at.client.submit(ops.Prompt("too late"))
            await closing
            assert time.monotonic() - before < 30
            assert {job.result.status if job.result else None for job in jobs} == {"cancelled"}
            assert not at.scheduler.agents
            left = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            assert not left, left

    asyncio.run(main())


def test_what_a_child_may_call_is_what_it_was_given(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("bash", command="touch x")]}, {"text": "."})) as at:
            specs = [ToolSpec("ls", "lists", '{"type":"object"}')]
            agent = await child(at, tools=specs)
            await at.scheduler.run(agent, "go").wait()
            assert [t.name for t in requests(at)[0].tools] == ["ls"]
            assert not (at.cwd / "x").exists()

    asyncio.run(main())
