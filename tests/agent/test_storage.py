"""The disk is full in the middle: what ran ends and is kept, nothing starts, Enter writes it. Another takes over."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.errors import StorageFailed, ToolFailure, ViewOnly
from panto.schema.events import ModelStepStarted, ToolCallHeld, ToolCallStarted
from panto.schema.signals import Noticed, TextStreamed
from panto.session import Store
from panto.session.commands import ChangeTitle
from panto.tools.tool import ToolContext
from tests.agent.test_compaction import paired
from tests.agent.test_turns import requests, roles, told
from tests.scheduler.house import Hand, House, call, house, scripted

BIG = "x" * 20_000
"""More than the last page of a full database holds."""


async def fill(at: House, full: bool = True) -> None:
    """Let the disk be full, as far as SQLite is concerned; or free again."""

    def job(db: sqlite3.Connection) -> None:
        pages = db.execute("PRAGMA page_count").fetchone()[0] if full else 1_000_000
        db.execute(f"PRAGMA max_page_count = {pages}")

    await at.scheduler.shared.store.writer.run(job, plain=True)
    for size in (3000, 100, 1, 1) if full else ():  # the last pages are full too
        with contextlib.suppress(StorageFailed):
            while True:
                await at.agent.session.commit(ChangeTitle(title="t" * size))
        await at.agent.session.reopen()


def gated(gate: asyncio.Event) -> Hand:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
        await gate.wait()
        await asyncio.sleep(float(arguments.get("s", 0)))
        return f"{arguments.get('n')} {BIG}"

    return Hand("gated", run)


def test_calls_that_run_when_the_disk_is_full_finish_are_kept_and_enter_writes_them(tmp_path: Path) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        tool = gated(gate)
        calls = [call("gated", n=1, s=0.1), call("gated", n=2)]
        async with house(tmp_path, scripted({"calls": calls}, {"text": "Done."}), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: len(tool.ran) == 2)
            await fill(at)
            gate.set()
            await at.until(lambda: any(isinstance(u, Noticed) and u.level == "wrong" for u in at.seen))
            await at.rest()
            assert at.agent.mailbox.parked and not at.results()
            with pytest.raises(StorageFailed, match="full"):
                await at.client.submit(ops.Continue())
            assert len(requests(at)) == 1
            await fill(at, False)
            await at.client.submit(ops.Continue())
            await at.rest()
            assert len(tool.ran) == 2
            assert sorted(str(r["text"])[:1] for r in at.results()) == ["1", "2"]
            assert at.records()[-1] | {"usage": 0} == at.records()[-1] | {"usage": 0, "status": "completed"}
            assert (await at.scheduler.shared.store.verify(at.agent.id)).findings == ()

    asyncio.run(main())


def test_a_reply_that_cannot_be_written_is_kept_and_not_asked_for_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": [BIG, BIG], "each_s": 1}, {"text": "Again?"})) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: any(isinstance(u, TextStreamed) for u in at.seen))
            await fill(at)
            await at.rest()
            assert at.agent.mailbox.parked
            await fill(at, False)
            await at.client.submit(ops.Continue())
            await at.rest()
            assert len(requests(at)) == len(at.events(ModelStepStarted)) == 1
            assert at.records()[-1]["text"] == BIG + BIG

    asyncio.run(main())


def test_a_new_prompt_also_opens_the_ledger_again_and_carries_what_was_kept(tmp_path: Path) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        tool = gated(gate)
        async with house(tmp_path, scripted({"calls": [call("gated")]}, {"text": "Done."}), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            await fill(at)
            gate.set()
            await at.rest()
            await fill(at, False)
            await at.prompt("go on")
            assert len(tool.ran) == 1 and [r["status"] for r in at.results()] == ["ok"]
            assert roles(requests(at)[1]) == ["user", "assistant", "tool", "user"]

    asyncio.run(main())


def test_nothing_starts_once_the_disk_is_full(tmp_path: Path) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        tool = gated(gate)
        tables = scripted({"calls": [call("gated", n=n) for n in range(20)]}, {"text": "Done."})
        async with house(tmp_path, tables, tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: len(tool.ran) == 16)  # as many as run at once
            await fill(at)
            gate.set()
            await at.rest()
            assert len(tool.ran) == 16
            await fill(at, False)
            await at.client.submit(ops.Continue())
            await at.rest()
            assert len(tool.ran) == 20 and [r["status"] for r in at.results()] == ["ok"] * 20
            assert paired(requests(at)[1])

    asyncio.run(main())


@pytest.mark.parametrize("phase", ["tool", "question", "stream"])
def test_escape_with_a_full_disk_stops_what_runs_and_says_why_it_is_not_recorded(tmp_path: Path, phase: str) -> None:
    async def main() -> None:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await context.cancelled.wait()
            raise ToolFailure("stopped", "cancelled")

        tool = Hand("waits", run, approval="command")
        reply: dict[str, Any] = {"text": ["word "] * 2_000, "each_s": 0.05}
        if phase != "stream":
            reply = {"calls": [call("waits")]}
        mode = "ask" if phase == "question" else "yolo"
        async with house(tmp_path, scripted(reply, {"text": "Fine."}), tools=[tool], mode=mode) as at:
            await at.client.submit(ops.Prompt("go"))
            kinds = {"tool": lambda: tool.ran, "question": lambda: at.events(ToolCallHeld)}
            await at.until(kinds.get(phase, lambda: any(isinstance(u, TextStreamed) for u in at.seen)))
            await fill(at)
            before = time.monotonic()
            with pytest.raises(StorageFailed):
                await at.client.submit(ops.Interrupt())
            assert time.monotonic() - before < 30 and not at.agent.in_turn and at.agent.mailbox.parked
            await fill(at, False)
            await at.prompt("go on")
            assert at.records()[-1]["text"] == "Fine." and len(tool.ran) <= 1
            assert all(paired(request) for request in requests(at))

    asyncio.run(main())


def test_a_lost_session_stops_everything_at_once_and_nothing_more_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        ended: list[dict[str, object]] = []
        stopped: list[str] = []

        class Observer:
            def observe(self, name: str, event: dict[str, object]) -> None:
                if name == "turn_end":
                    ended.append(event)

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                stopped.append("")
                raise
            return ""

        tool, gate = Hand("long", run), asyncio.Event()
        tables = scripted({"calls": [call("long", n=1), call("long", n=2), call("gated")]})
        async with house(tmp_path, tables, tools=[tool, gated(gate)], observer=Observer()) as at:
            job = at.scheduler.run(at.agent, "go")
            await at.until(lambda: len(tool.ran) == 2)
            other, lost = await Store.open(tmp_path / "sessions"), at.agent.session
            taken = await other.open_session(at.agent.id, take_over=True)
            gate.set()
            result = await asyncio.wait_for(job.wait(), 30)
            assert (result.status, result.resumable) == ("failed", False)
            assert result.error and result.error["kind"] == "ownership_lost"
            await at.rest()
            assert len(stopped) == 2 and [e["reason"] for e in ended] == ["ownership_lost"]
            await at.until(lambda: at.agent.session is not lost)
            with pytest.raises(ViewOnly, match="it is held by process"):
                await at.client.submit(ops.Prompt("more"))
            run_now = taken.state.run
            assert run_now is not None and len(run_now.unfinished) == 3
            await taken.close()
            await other.close()

    asyncio.run(main())


def test_a_loss_that_only_the_renewal_notices_stops_the_turn_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": ["a"] * 1000, "each_s": 0.05})) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: any(isinstance(u, TextStreamed) for u in at.seen))
            other = await Store.open(tmp_path / "sessions")
            taken = await other.open_session(at.agent.id, take_over=True)
            at.scheduler.shared.store._renew()  # the beat of every ten seconds
            await at.until(lambda: not at.agent.in_turn)
            assert any("taken over" in u.text for u in at.seen if isinstance(u, Noticed))
            await taken.close()
            await other.close()

    asyncio.run(main())


def test_a_call_that_was_started_is_never_run_again_however_its_drive_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await asyncio.sleep(600)
            return ""

        tool = Hand("long", run)
        async with house(tmp_path, scripted({"calls": [call("long")]}, {"text": "I see."}), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            drive = at.agent.mailbox._task
            assert drive is not None
            drive.cancel()  # as if panto itself had broken off
            await at.rest()
            await at.client.submit(ops.Continue())
            await at.rest()
            assert len(tool.ran) == len(at.events(ToolCallStarted)) == 1
            assert at.records()[-1]["text"] == "I see."
            assert "effects" in told(requests(at)[1].messages[-1])

    asyncio.run(main())
