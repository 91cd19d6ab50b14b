"""What panto-subagents costs: python -m tests.bench.subagents_bench [ROW...]

Goals: the gate's overhead for a child, start to first request, < 3 ms; 100 children of one token each through 8 slots
< 2 s; 50 children at once, 1,000 deltas each, keep the loop's lag (p99) < 20 ms; Escape < 1 s, with three children
and with fifty; the tools' declarations < 1,640 bytes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from panto.schema import ops
from panto.schema.messages import Request
from tests.bench.figures import Figure, line, percentile
from tests.lua.home import Home, home
from tests.rocks.crew import NAME, ROCK, child_call, crew, said, scripted

BARE = """
local panto = require('panto')
panto.ext.register_tool { name = 'bare', description = 'One child without the rock.', approval = 'read',
  handler = function(args, ctx)
    local tools = ctx.agent:tools()
    local child = panto.agent { session_id = panto.derive_id(ctx.effect_id, 1), tools = tools, config = 'fake:m',
      system_messages = { 'You are a child.' } }
    local job = child:run_async { prompt = args.prompt, id = panto.derive_id(ctx.effect_id, 1, 'turn'),
      metadata = { model = 'fake:m' } }
    local text = job:await().text
    job:close() child:close()
    return text
  end }
"""


async def with_rock(script: Mapping[str, Any], work: Callable[[Home], Awaitable[Any]], slots: int = 8) -> Any:
    """Run `work` in a house with the rock and, beside it, the bare tool."""
    tables, provider = scripted(script)
    settings = {
        "rocks": ((NAME, ""),), "shipped_rocks": {NAME: ROCK / "src"}, "tables": {NAME: {"max_running": slots}},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        async with home(Path(folder), tables, {"bare": BARE}, settings=settings) as at:
            at.house.scheduler.shared.catalog.protocols.register("crew", lambda settings, http: provider)
            at.house.scheduler.readers.remove(at.house.seen.append)
            return await work(at)


async def gate() -> list[Figure]:
    rounds, begun, first = 30, [0.0], {}

    def child(request: Request) -> Mapping[str, Any]:
        first[said(request)] = (time.thread_time() - begun[0]) * 1000
        return {"text": "x"}

    def calls(tool: str) -> list[Mapping[str, Any]]:
        one = {"calls": [{"name": "bare", "arguments": {"prompt": tool}}]} if tool == "bare" else child_call(tool)
        return [one, {"text": "done"}]

    async def work(at: Home) -> dict[str, list[float]]:
        out: dict[str, list[float]] = {"bare": [], "rock": []}
        for _ in range(rounds):
            for tool in out:
                begun[0] = time.thread_time()
                await at.house.prompt("go")
                out[tool].append(first[tool])
        return out

    turns = [turn for _ in range(rounds) for tool in ("bare", "rock") for turn in calls(tool)]
    out = await with_rock(crew(*turns, child=child), work)
    low, high = (sorted(out[tool])[rounds // 4] for tool in ("bare", "rock"))  # the quieter quarter of a noisy machine
    return [
        Figure("prompt to a child's first request without the rock, CPU", out["bare"], "ms"),
        Figure("prompt to a child's first request with it, CPU", out["rock"], "ms"),
        Figure("what the gate and the rock add to a child, CPU", [high - low], "ms", 3),
    ]


async def hundred() -> list[Figure]:
    async def work(at: Home) -> tuple[float, float]:
        begun, used = time.perf_counter(), time.process_time()
        await at.house.prompt("go")
        return time.perf_counter() - begun, time.process_time() - used

    script = crew(child_call(*map(str, range(100))), child=lambda request: {"text": "x"})
    took = [await with_rock(script, work) for _ in range(3)]
    return [
        Figure("100 children of one token, 8 slots", [wall for wall, _ in took], "s", 2),
        Figure("100 children of one token, 8 slots, CPU", [cpu for _, cpu in took], "s"),
    ]


async def fifty() -> list[Figure]:
    lags: list[float] = []
    busy: list[float] = []

    def child(request: Request) -> Mapping[str, Any]:
        return {"text": ["word "] * 1000, "each_s": 0.01}

    async def lag() -> None:
        while True:
            begun, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.005)
            lags.append((time.perf_counter() - begun - 0.005) * 1000)
            busy.append((time.thread_time() - used) * 1000)

    async def work(at: Home) -> float:
        watch = asyncio.create_task(lag())
        begun = time.perf_counter()
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: not at.house.agent.in_turn, 120)
        watch.cancel()
        return time.perf_counter() - begun

    took = await with_rock(crew(child_call(*map(str, range(50))), child=child), work, slots=50)
    return [
        Figure("50 children, 1,000 deltas each: lag of the loop, p99", [percentile(lags, 0.99)], "ms", 20),
        Figure("50 children: CPU between two turns of the loop, p99", [percentile(busy, 0.99)], "ms", 20),
        Figure("50 children, 1,000 deltas each: whole", [took], "s"),
    ]


async def escape() -> list[Figure]:
    began = [0]

    def child(request: Request) -> Mapping[str, Any]:
        began[0] += 1
        return {"text": "done"} if said(request) == "quick" else {"text": ["half ", "of it"], "stall_s": 60}

    async def work(at: Home) -> float:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: began[0] == 3)
        await asyncio.sleep(0.2)
        begun = time.perf_counter()
        await at.house.client.submit(ops.Interrupt())
        await at.house.until(lambda: not at.house.agent.in_turn)
        return time.perf_counter() - begun

    took = []
    for _ in range(5):
        began[0] = 0
        took.append(await with_rock(crew(child_call("quick", "slow", "slow too"), child=child), work))
    return [Figure("Escape with one child done and two running", took, "s", 1)]


async def crowd() -> list[Figure]:
    began = [0]

    def child(request: Request) -> Mapping[str, Any]:
        began[0] += 1
        return {"text": ["half ", "of it"], "stall_s": 60}

    async def work(at: Home) -> float:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: began[0] == 50)
        await asyncio.sleep(0.2)
        begun = time.perf_counter()
        await at.house.client.submit(ops.Interrupt())
        await at.house.until(lambda: not at.house.agent.in_turn)
        return time.perf_counter() - begun

    took = []
    for _ in range(3):
        began[0] = 0
        took.append(await with_rock(crew(child_call(*map(str, range(50))), child=child), work, slots=50))
    return [Figure("Escape with 50 children running", took, "s", 1)]


async def size() -> list[Figure]:
    async def work(at: Home) -> int:
        tools = [tool for tool in at.house.agent.tools() if tool.name.startswith("subagents.")]
        return sum(len((tool.name + tool.description + tool.schema).encode()) for tool in tools)

    return [Figure("what the rock's tools add to every request", [await with_rock(crew(), work)], "bytes", 1640)]


async def load() -> list[Figure]:
    async def work(at: Home) -> list[float]:
        out = []
        for _ in range(10):
            await at.extensions.reload()
            out.append(next(row.cost_ms for row in at.extensions.rows() if row.name == NAME))
        return out

    return [Figure("the rock is loaded, profiles and workflows read", await with_rock(crew(), work), "ms", 60)]


ROWS: dict[str, Callable[[], Coroutine[Any, Any, list[Figure]]]] = {
    "gate": gate, "hundred": hundred, "fifty": fifty, "escape": escape, "crowd": crowd, "size": size, "load": load,
}  # fmt: skip


def main() -> None:
    """Measure the rows named, or all."""
    for name in sys.argv[1:] or ROWS:
        for figure in asyncio.run(ROWS[name]()):
            print(line(figure, {}, 0), flush=True)


if __name__ == "__main__":
    main()
