"""Isolated tools: in a process that can be killed, whatever they do."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from tests.lua.home import Home, home
from tests.scheduler.house import scripted


def tool(body: str, more: str = "") -> dict[str, str]:
    return {
        "iso": f"""local panto = require('panto')
local ext, part = panto.ext, require('iso.part')
ext.on('turn_start', function() end)
ext.register_tool {{ name = 'far', description = 'x', isolate = true, {more} handler = function(args, ctx)
  {body}
end }}"""
    }


def run(
    root: Path, body: str, work: Callable[[Home], Awaitable[Any]] | None = None, more: str = "", times: int = 1
) -> Any:
    calls = [{"calls": [{"name": "far", "arguments": {"n": n}}]} for n in range(times)]

    async def main() -> Any:
        folder = root / "extensions" / "iso"
        folder.mkdir(parents=True)
        (folder / "part.lua").write_text("return { word = 'part' }")
        async with home(root, scripted(*calls, {"text": "done"}), tool(body, more)) as at:
            assert at.extensions.rows()[0].state == "active", at.extensions.rows()
            if work:
                return await work(at)
            await at.house.prompt("go")
            return at.house.results()[0]

    return asyncio.run(main())


def test_a_tool_runs_elsewhere_with_its_modules_files_programs_and_progress(tmp_path: Path) -> None:
    body = """ctx:progress('working')
      panto.fs.write('made.txt', part.word .. args.n)
      local out = panto.exec { argv = { 'cat', 'made.txt' } }.stdout
      panto.sleep(1)
      return table.concat({ out, ctx.cwd:match('[^/]*$'), tostring(os.getenv('PATH') ~= nil) }, ' ')"""
    result = run(tmp_path, body)
    assert (result["status"], result["text"]) == ("ok", "part0 work true")
    assert (tmp_path / "work/made.txt").read_text() == "part0"


def test_a_warm_worker_serves_the_next_call(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.prompt("go")
        texts = [str(r["text"]) for r in at.house.results()]
        assert texts == ["1", "2", "3"]

    run(tmp_path, "count = (count or 0) + 1 return tostring(count)", work, times=3)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("panto.agent {}", "not possible in a worker"),
        ("ext.session.append('x', 1)", "not possible in a worker"),
        ("error('no such thing')", "no such thing"),
    ],
)
def test_what_does_not_work_there_says_so(tmp_path: Path, body: str, said: str) -> None:
    result = run(tmp_path, body)
    assert result["status"] == "error" and said in result["text"]


@pytest.mark.parametrize(
    "body", ["while true do end", "('x'):rep(60):find(('x*'):rep(30) .. 'y')", "os.execute('sleep 60')"]
)
def test_a_time_limit_kills_what_does_not_end(tmp_path: Path, body: str) -> None:
    begun = time.monotonic()
    result = run(tmp_path, body, more="timeout = 700,")
    assert result["status"] in ("error", "unknown") and "timed out after 0.7 s and was killed" in result["text"]
    assert time.monotonic() - begun < 20


def test_escape_kills_it_within_the_window(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: any(r["type"] == "progress" for r in at.house.records()))
        begun = time.monotonic()
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        assert time.monotonic() - begun < 20
        assert at.house.results()[0]["status"] == "cancelled"

    run(tmp_path, "ctx:progress('x') panto.sleep(1) while true do end", work)


def test_one_that_dies_takes_nobody_with_it(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.prompt("go")
        first, second = at.house.results_in_call_order()
        assert first["status"] == first["effects"] == "unknown" and "worker was lost" in str(first["text"])
        assert second["status"] == "ok"

    body = """if args.n == 0 then
        local pid = io.open('/proc/self/stat'):read('n') panto.exec { argv = { 'kill', '-9', tostring(pid) } }
        panto.sleep(5000)
      end
      return 'alive'"""
    run(tmp_path, body, work, times=2)


def test_a_changed_extension_is_not_run(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        pool = at.extensions._workers()
        (at.folder / "iso" / "part.lua").write_text("return { word = 'changed' }")
        await at.house.prompt("go")
        result = at.house.results()[0]
        assert result["status"] == "error" and "was changed since it was loaded" in str(result["text"])
        assert pool is at.extensions._workers()
        await at.extensions.reload()
        assert pool is not at.extensions._workers()

    run(tmp_path, "return part.word", work)
