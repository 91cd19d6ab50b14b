"""Escape, failures and crowds: what children come to when something ends them."""

import asyncio
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.events import TurnStarted, TurnStopped
from panto.schema.messages import Request, ToolResult
from panto.schema.signals import Fact
from tests.rocks.crew import child_call, crew, inside, results_of, said


def quick_or_slow(request: Request) -> Mapping[str, Any]:
    """The child that was told to be slow says a word and then nothing."""
    if said(request).startswith("slow"):
        return {"text": ["half ", "of it"], "stall_s": 60}
    return {"text": f"answer to {said(request)}"}


def finished(at: Any, count: int) -> bool:
    ended = [r for r in at.house.records() if r["type"] == "turn_ended" and "agent" in r]
    return len(ended) >= count


def streaming(at: Any) -> int:
    return len({r["agent"] for r in at.house.records() if r["type"] == "text_delta" and "agent" in r})


def test_escape_keeps_what_is_done_cancels_the_rest_and_the_next_prompt_carries_all(tmp_path: Path) -> None:
    requests: list[Request] = []

    async def work(at: Any) -> None:
        catalog = at.house.scheduler.shared.catalog
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: finished(at, 1) and streaming(at) == 3)
        begun = time.monotonic()
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        assert time.monotonic() - begun < 30  # the window itself is measured in the benchmark
        rows = results_of(at)
        assert [r["status"] for r in rows] == ["completed", "cancelled", "cancelled"]
        assert rows[0]["text"] == "answer to quick" and all(r["resumable"] for r in rows)
        call = next(r for r in at.house.results() if "agent" not in r)
        assert call["status"] == "cancelled"
        assert [r["status"] for r in at.house.records() if r["type"] == "turn_ended" and "agent" not in r] == [
            "interrupted"
        ]
        assert len(at.house.events(TurnStopped)) == 3
        await at.house.prompt("and now?")
        requests.extend(catalog._providers["fake"].requests[-1:])
        (result,) = [p for m in requests[0].messages for p in m.parts if isinstance(p, ToolResult)]
        told = "".join(part.text for part in result.parts if hasattr(part, "text"))
        assert "answer to quick" in told and told.count('"cancelled"') == 2

    inside(tmp_path, crew(child_call("quick", "slow a", "slow b"), {"text": "ok"}, child=quick_or_slow), work)


def test_a_child_stopped_by_escape_goes_on_later_where_it_was(tmp_path: Path) -> None:
    seen: list[Request] = []

    def child(request: Request) -> Mapping[str, Any]:
        seen.append(request)
        return quick_or_slow(request)

    async def begin(at: Any) -> tuple[str, str]:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: streaming(at) == 1)
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        return at.house.client.primary, str(results_of(at)[0]["id"])

    primary, id = inside(tmp_path, crew(child_call("slow a"), child=child), begin)

    async def later(at: Any) -> None:
        await at.house.prompt("again")
        assert results_of(at)[0]["text"] == "answer to go on"
        assert [m.role for m in seen[-1].messages] == ["user", "assistant", "user"]

    script = crew(child_call({"prompt": "go on", "session_id": id}), child=child)
    inside(tmp_path, script, later, resume=primary)


def test_escape_reaches_children_that_wait_for_a_slot_and_those_three_deep(tmp_path: Path) -> None:
    nesting = tmp_path / "config" / "agents" / "deep.md"
    nesting.parent.mkdir(parents=True)
    nesting.write_text("---\nname: deep\ndescription: x\ntools: [read, 'subagents.*']\n---\nGo deep.")

    def child(request: Request) -> Mapping[str, Any]:
        if said(request) == "3" or not any(t.name == "subagents.run" for t in request.tools):
            return {"text": ["half ", "of it"], "stall_s": 60}
        return child_call({"prompt": str(int(said(request)) + 1), "profile": "deep"})

    async def work(at: Any) -> None:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: streaming(at) == 1)
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        rows = results_of(at)
        assert [r["status"] for r in rows] == ["cancelled"] * 3
        deepest = [r for r in at.house.records() if r["type"] == "turn_ended" and "agent" in r]
        assert {r["status"] for r in deepest} == {"interrupted"} and len(deepest) >= 3

    script = crew(child_call(*({"prompt": "1", "profile": "deep"} for _ in range(3))), child=child)
    settings = {"places": {"config_dir": str(tmp_path / "config")}}
    inside(tmp_path, script, work, config={"max_running": 1}, settings=settings)


def test_background_children_go_on_after_escape(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        return {"text": ["half ", "and half"], "stall_s": 3} if said(request) == "back" else quick_or_slow(request)

    async def work(at: Any) -> None:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: streaming(at) == 2)
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        rows = results_of(at)
        assert [r["status"] for r in rows] == ["running", "cancelled"]
        await at.house.until(lambda: any("agent has finished" in text for text in at.notices()))
        assert not at.house.agent.in_turn, "after Escape nothing starts a turn unasked"

    inside(tmp_path, crew(child_call({"prompt": "back", "background": True}, "slow"), child=child), work)


def test_one_failed_child_cancels_nobody(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        if said(request) == "down":
            return {"error": {"kind": "network", "message": "connection refused"}}
        if said(request) == "half":
            return {
                "text": ["a", "b", "c"],
                "error": {"kind": "invalid_request", "status": 400, "message": "broke", "after": 3},
            }
        return {"text": "fine", "delay_s": 0.1}

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        down, half, fine = results_of(at)
        assert (down["status"], down["error"]["kind"]) == ("failed", "network")
        assert (half["status"], half["error"]["message"]) == ("failed", "broke")
        assert (fine["status"], fine["text"]) == ("completed", "fine")

    inside(tmp_path, crew(child_call("down", "half", "fine"), child=child), work)


class Watch:
    """How many children have a turn at one time, and how many turns a session has at one time."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.most = 0

    def __call__(self, update: Any) -> None:
        if not isinstance(update, Fact):
            return
        name = type(update.event).__name__
        if name == "TurnStarted" and update.agent not in self.primary:
            assert update.agent not in self.running, "two turns of one session"
            self.running.add(update.agent)
            self.most = max(self.most, len(self.running))
        elif name in ("TurnSettled", "TurnStopped"):
            self.running.discard(update.agent)

    primary: tuple[str, ...] = ()


@pytest.mark.parametrize(("count", "slots"), [(100, 8), (50, 50)])
def test_a_crowd_passes_the_gate_and_leaves_nothing(tmp_path: Path, count: int, slots: int) -> None:
    async def work(at: Any) -> None:
        watch = Watch()
        watch.primary = (at.house.client.primary,)
        at.house.scheduler.readers.append(watch)
        await at.house.prompt("go")
        rows = results_of(at)
        assert [r["text"] for r in rows] == [f"answer to {n}" for n in range(count)]
        assert 1 < watch.most <= slots
        assert len({r["id"] for r in rows}) == count

    inside(tmp_path, crew(child_call(*map(str, range(count)))), work, config={"max_running": slots})


@pytest.mark.parametrize("seed", range(12))
def test_escape_at_any_moment_settles_everything(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    def child(request: Request) -> Mapping[str, Any]:
        if chance.random() < 0.2 and not any(m.role == "tool" for m in request.messages):
            return {"calls": [{"name": "bash", "arguments": {"command": "sleep 0.05"}}]}
        return {"text": ["a ", "b"], "stall_s": chance.choice((0, 0.02, 60)), "delay_s": chance.choice((0, 0.01))}

    async def work(at: Any) -> None:
        watch = Watch()
        watch.primary = (at.house.client.primary,)
        at.house.scheduler.readers.append(watch)
        await at.house.client.submit(ops.Prompt("go"))
        await asyncio.sleep(chance.random() * 0.25)
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        rows = results_of(at) if [r for r in at.house.results() if "agent" not in r] else []
        for row in rows:
            assert row["status"] in ("completed", "cancelled", "failed")
        assert len(rows) in (0, 20) and not watch.running and watch.most <= 5
        assert at.house.agent.session.state.run is None

    inside(tmp_path, crew(child_call(*map(str, range(20))), child=child), work, config={"max_running": 5})


def test_a_session_in_use_takes_no_second_turn(tmp_path: Path) -> None:
    async def begin(at: Any) -> tuple[str, str]:
        await at.house.prompt("go")
        return at.house.client.primary, str(results_of(at)[0]["id"])

    primary, id = inside(tmp_path, crew(child_call("first")), begin)

    async def twice(at: Any) -> None:
        await at.house.prompt("again")
        one, other = results_of(at)
        assert (one["status"], other["status"]) == ("completed", "failed")
        assert other["error"]["kind"] == "busy"
        assert len(at.house.events(TurnStarted)) == 2

    script = crew(child_call({"prompt": "a", "session_id": id}, {"prompt": "b", "session_id": id}))
    inside(tmp_path, script, twice, resume=primary)
