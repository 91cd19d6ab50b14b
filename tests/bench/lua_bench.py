"""What the Lua seam costs: python -m tests.bench.lua_bench [ROW...]

Goals: an op that answers at once < 10 µs; 1,000 waiting coroutines < 5 MB; all shipped extensions ready < 60 ms; a Lua
tool's round < 1 ms more than a built-in one's; 100 children streaming at once keep the loop's lag (p99) < 20 ms.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, line, percentile
from tests.lua.home import home
from tests.lua.lab import Lab
from tests.scheduler.house import scripted

SHIPPED = Path(__file__).resolve().parent.parent.parent / "extensions"
NAMES = sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())


def _resident() -> float:
    """Kilobytes of this process in memory."""
    return float(Path("/proc/self/statm").read_text().split()[1]) * 4


async def op() -> list[Figure]:
    lab = Lab()
    code = "local p = require('panto') local n = ... for i = 1, n do p.sleep(0) end"
    lab.driver.ops["sleep"] = lambda task, ms: None
    samples = []
    for _ in range(7):
        begun = time.process_time()
        await lab.value(code, 5000)
        samples.append((time.process_time() - begun) / 5000 * 1e6)
    now = []
    lab.host.lua.gccollect()
    for _ in range(5):
        begun = time.process_time()
        await lab.value(
            'local j = require(\'panto\').json for i = 1, 2000 do j.decode(\'{"type":"x","text":"abc"}\') end'
        )
        now.append((time.process_time() - begun) / 2000 * 1e6)
    lab.close()
    return [
        Figure("await that answers at once, CPU", samples, "µs", 10),
        Figure("json.decode of a small object, CPU", now, "µs"),
    ]


async def waiting() -> list[Figure]:
    lab = Lab()
    await lab.value("return 1")
    gc.collect()
    lab.host.lua.gccollect()
    before = _resident()
    await lab.value(
        "local p = require('panto') for i = 1, 1000 do p.spawn(function() p.sleep(60000) end) end p.sleep(50)"
    )
    grown = (_resident() - before) / 1024
    lab.close()
    return [Figure("1,000 waiting coroutines", [grown], "MB", 5)]


READY = """
import asyncio, sys, tempfile, time
from pathlib import Path
from tests.lua.home import home
from tests.scheduler.house import scripted
async def main():
    with tempfile.TemporaryDirectory() as root:
        import panto.lua.extensions as e
        before = time.perf_counter()
        old = e.Extensions.__init__
        def init(self, *a, **k):
            global begun
            begun = time.perf_counter()
            old(self, *a, **k)
        e.Extensions.__init__ = init
        settings = {"shipped": Path(sys.argv[1]), "active": tuple(sys.argv[2:])}
        async with home(Path(root), scripted({"text": "a"}), settings=settings) as at:
            print((time.perf_counter() - begun) * 1000, sum(r.cost_ms for r in at.extensions.rows()))
asyncio.run(main())
"""


async def ready() -> list[Figure]:
    state, chunks = [], []
    for _ in range(5):
        argv = [sys.executable, "-c", READY, str(SHIPPED), *NAMES]
        done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, check=True)
        whole, mains = done.stdout.split()
        state.append(float(whole))
        chunks.append(float(mains))
    return [
        Figure("state and all shipped extensions", state, "ms", 60, note="lupa's import included"),
        Figure("their main chunks", chunks, "ms"),
    ]


async def round_trip() -> list[Figure]:
    code = """require('panto').ext.register_tool { name = 'mine', description = 'x', mutates = false,
      handler = function(args) return 'ok' end }"""
    out = []
    for name, more in (("mine", "n"), ("read", "offset")):  # calls that differ, or the loop guard asks
        calls = [{"name": name, "arguments": {"path": "lines.txt", more: n + 1}} for n in range(60)]
        replies: list[dict[str, Any]] = [*({"calls": [call]} for call in calls), {"text": "done"}]
        with tempfile.TemporaryDirectory() as root:
            async with home(Path(root), scripted(*replies), {"mine": code}) as at:
                (at.house.cwd / "lines.txt").write_text("line\n" * 70)
                begun = time.thread_time()
                await at.house.prompt("go")
                out.append((time.thread_time() - begun) / 60 * 1000)
    return [
        Figure("a Lua tool's round, CPU", [out[0]], "ms"),
        Figure("a built-in tool's round (read), CPU", [out[1]], "ms"),
        Figure("more than a built-in one", [out[0] - out[1]], "ms", 1),
    ]


CHILDREN = """
local ext = require('panto').ext
ext.register_protocol { name = 'many', models = { m = { id = 'm', context = 100000 } }, open = function(request, handle)
  local n, ready = 0, 0
  ext.spawn(function() while ready < 200 do ext.sleep(5) ready = ready + 1 handle:wake() end end)
  return { next = function()
    if n >= 200 then return { type = 'finish', reason = 'stop' } end
    if n >= ready then return ext.pending() end
    n = n + 1
    return { type = 'text', text = 'word ' }
  end }
end }
"""

RUN = """local panto, n = require('panto'), ...
  local jobs = {}
  for i = 1, n do
    local a = panto.agent { config = 'many:m' }
    jobs[i] = { a, a:run_async('go') }
  end
  for i = 1, n do jobs[i][2]:await() jobs[i][2]:close() jobs[i][1]:close() end"""


async def children() -> list[Figure]:
    lags: list[float] = []

    async def beat() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append((time.perf_counter() - begun - 0.005) * 1000)

    with tempfile.TemporaryDirectory() as root:
        async with home(Path(root), scripted({"text": "a"}), {"many": CHILDREN}) as at:
            beating = asyncio.create_task(beat())
            begun = time.perf_counter()
            await at.value(RUN, 100)
            took = time.perf_counter() - begun
            beating.cancel()
    return [
        Figure("lag with 100 children, p99", [percentile(lags, 0.99)], "ms", 20),
        Figure("lag with 100 children, median", [percentile(lags, 0.5)], "ms"),
        Figure("100 children, 200 words each", [took], "s"),
    ]


ROWS: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
    "op": op, "waiting": waiting, "ready": ready, "round": round_trip, "children": children,
}  # fmt: skip


def main() -> int:
    """Measures and prints the rows named, or all."""
    names: list[Any] = sys.argv[1:] or [*ROWS]
    for name in names:
        figures: list[Figure] = asyncio.run(ROWS[name]())  # type: ignore[arg-type]
        for figure in figures:
            print(line(figure, {}, 0), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
