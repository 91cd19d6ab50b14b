"""python -m tests.bench.tools_bench: what a tool call costs, without the rest of the house.

Goals: `bash true` under 25 ms end to end, a warm worker under 5 ms more than the call in process, ten parallel calls
started within 20 ms of each other.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from panto.agent.approval import ApprovalRequest, Policy, Rule, decide
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.files import FileIndex
from panto.tools.registry import Registry
from panto.tools.sandbox import Sandbox
from panto.tools.shell_rules import parse
from panto.tools.tool import ToolContext
from panto.tools.worker import WorkerPool, WorkerSettings
from tests.bench.figures import HEAD, Figure, line

RUNS = 30
WORKER = (
    "import asyncio; from panto.tools.serve import serve\n"
    "from panto.tools.tool import ToolReply; from panto.schema.bodies import ToolOutcome\n"
    "class P:\n"
    "    async def activate(self, extensions): return ()\n"
    "    async def call(self, tool, arguments, around, progress): return ToolReply(ToolOutcome())\n"
    "asyncio.run(serve(P()))"
)


def context(folder: Path) -> ToolContext:
    return ToolContext("s", "r", "c", "e", "a", str(folder), lambda text, view: None, {}, f"{folder}-spool")


async def timed(work: Callable[[], Awaitable[object]], runs: int = RUNS) -> list[float]:
    """Milliseconds of each run, the first (which warms up) left out."""
    out = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        await work()
        out.append((time.perf_counter() - start) * 1_000)
    return out[1:]


async def measure(folder: Path) -> list[Figure]:
    """All rows. `folder` is scratch."""
    settings = ToolSettings()
    tools = Registry(builtin_tools(settings))
    boxed = Registry(builtin_tools(ToolSettings(settings.spawner, settings.jobs, Sandbox("auto"))))
    around = context(folder)
    (folder / "f").write_text("".join(f"line {n}\n" for n in range(1_000)))

    def call(name: str, registry: Registry = tools, **arguments: object) -> Callable[[], Awaitable[object]]:
        tool = registry.get(name)
        assert tool is not None
        return lambda: tool.run(arguments, around)

    start = time.perf_counter()
    await call("bash", command="true")()
    first = (time.perf_counter() - start) * 1_000
    figures = [
        Figure("bash true, the first", [first], "ms", 60, note="starts the keeper"),
        Figure("bash true", await timed(call("bash", command="true")), "ms", 25),
        Figure("bash true in the sandbox", await timed(call("bash", boxed, command="true")), "ms", 25),
        Figure("bash: 50 MB of output", await timed(call("bash", command="yes | head -c 50M"), 3), "ms"),
        Figure("read 1,000 lines", await timed(call("read", path="f")), "ms", 5),
        Figure("grep in one file", await timed(call("grep", pattern="line 77")), "ms", 25),
        Figure("ten parallel starts, spread", await spread(call, folder), "ms", 20),
    ]
    figures += await edits(tools, around, folder)
    figures += await worker(settings, around, folder)
    figures += await approval()
    figures += await index(settings, folder)
    await settings.jobs.close()
    settings.spawner.close()
    return figures


async def spread(call: Callable[..., Callable[[], Awaitable[object]]], folder: Path) -> list[float]:
    """How far apart ten commands started at once begin, by their own clocks."""
    out = []
    for _ in range(10):
        marks = [folder / f"started{n}" for n in range(10)]
        await asyncio.gather(*(call("bash", command=f"date +%s%N > {mark}")() for mark in marks))
        stamps = [int(mark.read_text()) for mark in marks]
        out.append((max(stamps) - min(stamps)) / 1e6)
    return out


async def edits(tools: Registry, around: ToolContext, folder: Path) -> list[Figure]:
    edit = tools.get("edit")
    assert edit is not None
    words = iter(f"line {n}\n" for n in range(100, 900))

    def work() -> Awaitable[object]:
        word = next(words)
        return edit.run({"path": "f", "edits": [{"old": word, "new": "x" + word}]}, around)

    return [Figure("edit, durable", await timed(work), "ms", 10, note="one fsync")]


async def worker(settings: ToolSettings, around: ToolContext, folder: Path) -> list[Figure]:
    pool = WorkerPool(WorkerSettings((sys.executable, "-c", WORKER)), settings.spawner)
    start = time.perf_counter()
    await pool.run("x", "{}", around, 30)
    cold = (time.perf_counter() - start) * 1_000
    warm = await timed(lambda: pool.run("x", "{}", around, 30), 100)
    await pool.close()
    return [Figure("worker, cold", [cold], "ms"), Figure("worker, warm", warm, "ms", 5)]


async def approval() -> list[Figure]:
    text = "cd src && git status && for f in *.py; do grep -n $(cat pattern) \"$f\"; done | sort | head -20 > /dev/null"
    policy = Policy("ask", tuple(Rule.parse(f"bash(tool{n} *)") for n in range(50)), "/")

    async def read() -> None:
        parse.cache_clear()
        decide(ApprovalRequest("bash", "command", {"command": text}, (), "/", text), policy)

    return [Figure("approval of a long command line", await timed(read), "ms", 5)]


async def index(settings: ToolSettings, folder: Path) -> list[Figure]:
    root = folder / "tree"
    for outer in range(50):
        (root / f"part{outer}").mkdir(parents=True)
        for n in range(100):
            (root / f"part{outer}/module_{n}.py").touch()
    files = FileIndex(str(root), settings.spawner)
    start = time.perf_counter()
    while not (await files.search("module_7")).complete:
        await asyncio.sleep(0.001)
    built = (time.perf_counter() - start) * 1_000
    asked = await timed(lambda: files.search("part7/mod99"))
    files.close()
    return [Figure("5,000 files indexed", [built], "ms"), Figure("completion among them", asked, "ms", 50)]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="panto-bench-") as place:
        print(HEAD)
        folder = Path(place, "workspace")
        folder.mkdir()
        for figure in asyncio.run(measure(folder)):
            print(line(figure, {}, 0), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
