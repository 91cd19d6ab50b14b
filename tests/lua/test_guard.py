"""Code that runs for ever, eats memory or hangs in C: interrupted, and the rest goes on."""

import asyncio
import time

import pytest

from panto.lua.api import time as clock
from panto.lua.driver import Outcome
from panto.lua.tasks import GREEDY
from tests.lua.lab import DEBIAN, Lab, in_lab

LOOPS = {
    "plain": "while true do end",
    "swallowing": "while true do pcall(function() while true do end end) end",
    "nested": "coroutine.wrap(function() while true do pcall(function() while true do end end) end end)()",
    "deeply nested": """local function deep(n) if n == 0 then while true do end end
        return coroutine.wrap(deep)(n - 1) end deep(20)""",
    "resumed": "local co = coroutine.create(function() while true do end end) while true do coroutine.resume(co) end",
    "always new coroutines": "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "a handler that loops": "xpcall(function() while true do end end, function() while true do end end)",
    "making things": "local t = {} while true do t[#t % 100 + 1] = { tostring(#t), function() return t end } end",
    "while closing": """do local x <close> = setmetatable({}, { __close = function() while true do end end })
        end""",
    "after a wait": "require('panto').sleep(1) while true do end",
}


async def still_works(lab: Lab) -> None:
    code = """local p, n = require('panto'), 0 p.sleep(1)
      for i = 1, 1000 do n = n + coroutine.wrap(function() return i end)() end return n"""
    assert await lab.value(code) == 500500


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_without_a_yield_is_interrupted_and_the_state_stays_usable(loop: str) -> None:
    async def work(lab: Lab) -> None:
        outcome = await lab.run(loop)
        assert outcome.kind == "runaway"
        assert "/ext/init.lua" in outcome.place
        await still_works(lab)

    in_lab(work)


def test_a_finalizer_that_could_not_be_stopped_is_not_run() -> None:
    async def work(lab: Lab) -> None:
        code = """local mt = { __gc = function() while true do end end, __index = { x = 5 } }
          local kept = setmetatable({}, mt)
          for i = 1, 10 do setmetatable({}, mt) end
          collectgarbage() collectgarbage()
          return { kept.x, getmetatable(kept) == mt, type(mt.__gc) }"""
        assert await lab.value(code) == [5, True, "function"]
        lab.host.lua.gccollect()
        protected = await lab.run("setmetatable(setmetatable({}, { __metatable = 1 }), { __gc = print })")
        assert "init.lua:1: cannot change a protected metatable" in protected.message

    in_lab(work)


def test_a_callback_that_loops_is_interrupted() -> None:
    async def work(lab: Lab) -> None:
        await lab.value("require('panto').ext.on('tick', function() while true do end end)")
        ref = lab.posts[0][3]["handler"].id
        outcome: Outcome = lab.driver.call(
            "observer", ref, "tick", lab.driver.bridge.to_lua({}), owner="ext", lane="primary", what="an observer"
        )
        assert outcome.kind == "runaway"
        await still_works(lab)

    in_lab(work)


def test_a_task_that_loops_while_it_is_closed_is_interrupted() -> None:
    async def work(lab: Lab) -> None:
        code = """local x <close> = setmetatable({}, { __close = function() while true do end end })
          require('panto').sleep(60000)"""
        task = lab.driver.start("code", code, "@x.lua", scope=lab.scope, what="x")
        lab.driver.close(task)
        assert (await task.done).kind == "cancelled"
        await still_works(lab)

    in_lab(work)


def test_honest_long_work_that_yields_is_left_alone() -> None:
    code = """local p, n = require('panto'), 0
      for i = 1, 60 do for j = 1, 100000 do n = n + 1 end p.sleep(0) end return n"""
    assert in_lab(lambda lab: lab.value(code)) == 6000000


def test_code_that_eats_memory_is_interrupted_and_what_it_held_is_freed() -> None:
    async def work(lab: Lab) -> None:
        outcome = await lab.run("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(100000) .. i end")
        assert outcome.kind in GREEDY
        lab.host.lua.gccollect()
        assert lab.driver.counts()["memory_kb"] < 20_000
        await still_works(lab)

    in_lab(work, memory_kb=64 * 1024)


BOMBS = {
    "doubling": "local s = 'x' while true do s = s .. s end",
    "repeating": "local s = 'x' while true do s = s:rep(2) end",
    "joining": "local s = 'x' while true do s = table.concat { s, s } end",
    "swallowing": "local s = 'x' while true do pcall(function() s = s .. s end) end",
    "at once": "local s = ('x'):rep(2e9)",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_string_that_doubles_ends_at_the_limit_and_not_with_the_machine(bomb: str) -> None:
    async def work(lab: Lab) -> None:
        outcome = await lab.run(bomb)
        assert outcome.kind in GREEDY or "at most 256 MB at once" in outcome.message
        assert "/ext/init.lua" in outcome.place
        lab.host.lua.gccollect()
        assert lab.driver.counts()["memory_kb"] < 20_000
        assert await lab.value("return #('x'):rep(4e6)") == 4_000_000
        await still_works(lab)

    in_lab(work, memory_kb=64 * 1024)


def test_a_state_that_is_left_without_memory_is_usable_again() -> None:
    async def work(lab: Lab) -> None:
        def squeeze(task: object) -> None:
            """From here on every allocation fails, until the entry ends."""
            lab.host.lua.set_max_memory(1)
            lab.guard._limited = True

        lab.driver.ops["sleep"] = lambda task, ms: squeeze(task)
        outcome = await lab.run("local p = require('panto') p.sleep(1) local t = {} for i = 1, 1e6 do t[i] = { i } end")
        assert outcome.kind == "memory"
        clock.install(lab.driver)
        await still_works(lab)
        assert lab.driver.counts()["tasks"] == lab.driver.counts()["coroutines"] == 0

    in_lab(work)


def test_memory_is_named_where_it_is_the_reason() -> None:
    async def work(lab: Lab) -> None:
        code = "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(100000) .. i end"
        task = lab.driver.start("code", code, "@/ext/init.lua", scope=lab.scope, what="x", guard_s=60)
        outcome = await task.done  # a watchdog that comes late finds it at the hard limit
        assert outcome.kind in GREEDY and "memory" in outcome.message and outcome.place == "/ext/init.lua:1"

    in_lab(work, memory_kb=32 * 1024)


def test_many_interruptions_in_a_row_hit_only_the_code_past_its_limit() -> None:
    async def work(lab: Lab) -> None:
        for loop in list(LOOPS.values()) * 2:
            task = lab.driver.start("code", loop, "@x.lua", scope=lab.scope, what="x", guard_s=0.01)
            assert (await task.done).kind == "runaway"
            await still_works(lab)

    in_lab(work)


def test_code_that_hangs_in_c_is_named() -> None:
    async def work(lab: Lab) -> None:
        package = f"package.cpath = '{DEBIAN}'"
        outcome = await lab.run(
            f"{package} local uv = require('luv') uv.sleep(3000) local n = 0 while true do n = n + 1 end"
        )
        assert outcome.kind == "runaway"
        assert lab.stuck == ["ext"]
        await still_works(lab)

    in_lab(work)


def test_the_watchdog_rests_while_nothing_runs() -> None:
    async def work(lab: Lab) -> None:
        await lab.value("return 1")
        end = time.monotonic() + 20
        while not lab.guard._asleep and time.monotonic() < end:
            await asyncio.sleep(0.05)
        assert lab.guard._asleep
        assert (await lab.run("while true do end")).kind == "runaway"

    in_lab(work)
