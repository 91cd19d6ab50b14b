"""Tools in a process of their own: results, failures, limits, kills; nothing lost, nothing left, nothing mixed up."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from panto.schema.errors import ToolFailure
from panto.tools.frames import Source
from panto.tools.sandbox import Sandbox
from panto.tools.worker import WorkerPool, WorkerSettings
from tests.tools.lab import Lab, lab, processes, run, text_of, until

ROOT = str(Path(__file__).parents[2])
START = f"""import sys, runpy
sys.path.insert(0, {ROOT!r})
runpy.run_module("tests.tools.worker_program", run_name="__main__")"""


def mark(tmp_path: Path) -> str:
    """What the command lines of this test's workers hold, and no others."""
    return f"worker-of:{tmp_path}:"


@asynccontextmanager
async def pool(tmp_path: Path, **more: Any) -> AsyncIterator[tuple[Lab, WorkerPool]]:
    async with lab(tmp_path / "ws") as work:
        sandbox = more.pop("sandbox", Sandbox())
        argv = more.pop("argv", (sys.executable, "-c", START, mark(tmp_path)))
        made = WorkerPool(WorkerSettings(argv, **more), work.settings.spawner, sandbox)
        try:
            yield work, made
        finally:
            await made.close()


async def call(workers: WorkerPool, work: Lab, tool: str, timeout: float | None = 30, **arguments: object) -> str:
    reply = await workers.run(tool, json.dumps(arguments), work.context(), timeout)
    return text_of(reply)


async def failing(
    workers: WorkerPool, work: Lab, tool: str, timeout: float | None = 30, **given: object
) -> ToolFailure:
    try:
        text = await call(workers, work, tool, timeout, **given)
    except ToolFailure as failure:
        return failure
    raise AssertionError(text)


def test_a_call_runs_in_its_own_directory_and_environment_and_inherits_only_the_pipe(tmp_path: Path) -> None:
    async def check() -> None:
        os.environ["MARK"] = "canary-123"
        try:
            async with pool(tmp_path) as (work, workers):
                assert await call(workers, work, "say", text="hi") == "hi|c"
                text = await call(workers, work, "where")
                assert text.startswith(f"{work.cwd} canary-123 {os.environ['HOME']} c e [0, 1, 2]")
                work.env_drop = frozenset(("MARK",))
                assert await call(workers, work, "where") != text and "canary" not in await call(workers, work, "where")
        finally:
            del os.environ["MARK"]

    run(check())


def test_progress_arrives_while_it_runs_and_a_warm_worker_is_used_again(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path) as (work, workers):
            await call(workers, work, "slow", steps=3)
            assert work.said == ["step 0\n", "step 1\n", "step 2\n"]
            before = set(processes(mark(tmp_path)))
            assert await call(workers, work, "say", text="again") == "again|c"
            assert set(processes(mark(tmp_path))) == before

    run(check())


def test_the_tools_own_failure_is_told_and_the_worker_lives_on(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path) as (work, workers):
            failure = await failing(workers, work, "fail")
            assert (failure.message, failure.cls, failure.effects) == ("it said no", "conflict", "unknown")
            assert failure.outcome is not None
            before = set(processes(mark(tmp_path)))
            assert await call(workers, work, "say", text="x") == "x|c"
            assert set(processes(mark(tmp_path))) == before

    run(check())


def test_what_a_tool_prints_does_not_reach_the_protocol(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path) as (work, workers):
            assert await call(workers, work, "noise", text="quiet") == "quiet|c"
            assert await call(workers, work, "say", text="x") == "x|c"

    run(check())


def test_a_worker_that_dies_or_breaks_the_protocol_leaves_the_outcome_unknown_and_is_replaced(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path) as (work, workers):
            for tool in ("die", "garbage"):
                failure = await failing(workers, work, tool)
                assert (failure.cls, failure.effects, failure.retry_allowed) == ("internal", "unknown", False)
                assert failure.lost
                assert await call(workers, work, "say", text=tool) == f"{tool}|c"
            with pytest.raises(ToolFailure) as caught:
                await workers.run("die", "{}", work.context(), 30, replay=True)
            assert caught.value.retry_allowed

    run(check())


def test_escape_ends_the_wait_for_a_worker_and_for_a_turn(tmp_path: Path) -> None:
    async def check() -> None:
        never = (sys.executable, "-c", "import time; time.sleep(300)", mark(tmp_path))
        async with pool(tmp_path, size=0, argv=never) as (work, workers):
            context = work.context()
            calls = [asyncio.ensure_future(workers.run("say", "{}", context, None))]
            await until(lambda: bool(processes(mark(tmp_path))))
            context.cancelled.set()
            with pytest.raises(ToolFailure, match="before it began") as caught:
                await asyncio.wait_for(calls[0], 30)
            assert (caught.value.cls, caught.value.effects) == ("cancelled", "none")
            await until(lambda: not processes(mark(tmp_path)))
        async with pool(tmp_path, size=0, most=1) as (work, workers):
            busy, waiting = work.context(), work.context()
            calls = [asyncio.ensure_future(workers.run("busy", "{}", busy, None))]
            await until(lambda: bool(processes(mark(tmp_path))))
            calls.append(asyncio.ensure_future(workers.run("say", '{"text":"x"}', waiting, None)))
            await asyncio.sleep(0.05)
            waiting.cancelled.set()
            with pytest.raises(ToolFailure, match="before it began"):
                await asyncio.wait_for(calls[1], 30)
            busy.cancelled.set()
            with pytest.raises(ToolFailure, match="may have had effects|before it began"):
                await asyncio.wait_for(calls[0], 30)
            assert await call(workers, work, "say", text="the slot is free again") == "the slot is free again|c"

    run(check())


def test_time_limit_and_escape_kill_the_worker_and_all_it_started(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path, size=0) as (work, workers):
            failure = await failing(workers, work, "children", timeout=2)
            assert (failure.cls, failure.effects) == ("timeout", "unknown")
            await until(lambda: not processes(mark(tmp_path)))
            context = work.context()
            busy = asyncio.ensure_future(workers.run("busy", "{}", context, None))
            await until(lambda: bool(processes(mark(tmp_path))))
            await asyncio.sleep(0.3)
            context.cancelled.set()
            start = time.monotonic()
            with pytest.raises(ToolFailure) as caught:
                await busy
            assert caught.value.cls == "cancelled" and time.monotonic() - start < 30  # it would never end by itself
            await until(lambda: not processes(mark(tmp_path)))

    run(check())


def test_a_worker_that_refuses_or_never_answers_is_known_to_have_done_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path, extensions=(Source("refuse", "/x", "0"),)) as (work, workers):
            failure = await failing(workers, work, "say")
            assert (failure.cls, failure.effects) == ("unavailable", "none") and "refuse has changed" in failure.message
            assert not failure.lost
        async with pool(tmp_path, argv=("/nowhere/at/all",)) as (work, workers):
            assert (await failing(workers, work, "say")).effects == "none"
        async with pool(tmp_path, argv=("true",)) as (work, workers):
            assert (await failing(workers, work, "say")).cls == "unavailable"

    run(check())


def test_memory_beyond_the_limit_is_refused_to_the_worker(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path, memory=1 << 30) as (work, workers):
            assert await call(workers, work, "hog", bytes=1000) == "1000|c"
            failure = await failing(workers, work, "hog", bytes=2 << 30)
            assert failure.cls == "internal"
            assert await call(workers, work, "say", text="x") == "x|c"

    run(check())


def test_a_worker_runs_in_the_sandbox_where_there_is_one(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path, sandbox=Sandbox("require"), workspace=str(tmp_path / "ws")) as (work, workers):
            assert (await call(workers, work, "where")).startswith(str(work.cwd))

    run(check())


def test_no_more_than_the_bound_run_at_once(tmp_path: Path) -> None:
    async def check() -> None:
        async with pool(tmp_path, most=3, size=2) as (work, workers):
            most = 0

            async def watch() -> None:
                nonlocal most
                while True:
                    most = max(most, len(workers._busy))
                    await asyncio.sleep(0.005)

            watching = asyncio.ensure_future(watch())
            answers = await asyncio.gather(*(call(workers, work, "slow", steps=2, text=str(n)) for n in range(12)))
            watching.cancel()
            assert answers == [f"{n}|c" for n in range(12)] and most == 3

    run(check())


@pytest.mark.long(sample=1)
@pytest.mark.parametrize("calls", [60, 1_000])
def test_calls_under_random_kills_are_answered_rightly_or_known_to_be_lost(tmp_path: Path, calls: int) -> None:
    async def check() -> None:
        dice = random.Random(calls)
        ends: Counter[str] = Counter()
        async with pool(tmp_path, most=4, size=3) as (work, workers):

            async def one(number: int) -> None:
                context = work.context(call=f"call{number}", effect=f"effect{number}")
                timeout = 0.05 if dice.random() < 0.05 else 60
                if dice.random() < 0.05:
                    asyncio.get_running_loop().call_later(dice.random() * 0.05, context.cancelled.set)
                given = {"text": str(number), "steps": dice.randint(0, 3), "seconds": dice.random() * 0.03}
                arguments = json.dumps(given)
                try:
                    reply = await workers.run(dice.choice(["say", "slow", "slow"]), arguments, context, timeout)
                    assert text_of(reply) == f"{number}|call{number}"
                    ends["ok"] += 1
                except ToolFailure as failure:
                    assert failure.cls in ("internal", "timeout", "cancelled", "unavailable"), failure.message
                    unbegun = failure.cls == "unavailable" or "before it began" in failure.message
                    assert failure.effects == ("none" if unbegun else "unknown")
                    ends[failure.cls] += 1

            async def killer() -> None:
                while True:
                    await asyncio.sleep(0.08 + dice.random() * 0.3)
                    alive = processes(mark(tmp_path))
                    if alive:
                        os.kill(dice.choice(alive), signal.SIGKILL)

            killing = asyncio.ensure_future(killer())
            await asyncio.gather(*(one(number) for number in range(calls)))
            killing.cancel()
            assert sum(ends.values()) == calls and ends["ok"] > calls // 2
            assert await call(workers, work, "say", text="still") == "still|c"
        await until(lambda: not processes(mark(tmp_path)))

    run(check())
    assert not [line for line in children_of_this_process() if " Z" in line]


def children_of_this_process() -> list[str]:
    import subprocess

    me = str(os.getpid())
    listing = subprocess.run(["ps", "-o", "pid=,stat=,args=", "--ppid", me], capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if "ps -o" not in line]
