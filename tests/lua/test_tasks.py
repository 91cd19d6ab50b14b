"""Tasks: waiting, spawning, parking, cancelling, and what cannot wait."""

import asyncio

import pytest

from tests.lua.lab import Lab, in_lab


def value(code: str, *args: object) -> object:
    return in_lab(lambda lab: lab.value(code, *args))


def test_a_spawned_task_gives_its_results_and_its_error() -> None:
    code = """local p = require('panto')
      local good = p.spawn(function() p.sleep(1) return 1, nil, 3 end)
      local bad = p.spawn(function() p.sleep(1) error({ code = 7 }) end)
      local before = good:result()
      local a, b, c = good:await()
      local ok, e = pcall(bad.await, bad)
      return { before == nil, a, b == nil, c, ok, e.code, (bad:result()) }"""
    assert value(code) == [True, 1, True, 3, False, 7, False]


def test_waiting_works_inside_an_extensions_own_coroutines() -> None:
    code = """local p = require('panto')
      local function numbers() return coroutine.wrap(function()
        for i = 1, 3 do p.sleep(1) coroutine.yield(i) end end) end
      local out = {}
      for i in numbers() do out[#out + 1] = i end
      local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) p.sleep(1) return b * 2 end)
      local _, first = coroutine.resume(co, 1)
      local _, second = coroutine.resume(co, 10)
      return { out, first, second, coroutine.status(co), (coroutine.resume(co)) }"""
    assert value(code) == [[1, 2, 3], 2, 20, "dead", False]


def test_an_awaits_failure_is_caught_in_the_coroutine_that_waited() -> None:
    code = """local p = require('panto')
      local co = coroutine.wrap(function() local ok, e = pcall(p.fs.read, '') return ok, e.kind end)
      return { co() }"""
    assert value(code) == [False, "usage"]


def test_a_parked_task_is_woken_by_resume_from_anywhere() -> None:
    code = """local p = require('panto')
      local co = coroutine.running()
      p.spawn(function() p.sleep(5) assert(coroutine.resume(co, 'a', nil, 'c')) end)
      return { select('#', coroutine.yield()), (select(2, coroutine.running())) }"""
    assert value(code) == [3, False]


def test_a_resume_that_comes_before_the_park_is_remembered_once() -> None:
    code = """local co = coroutine.running()
      coroutine.resume(co, 'early') coroutine.resume(co, 'lost')
      return { coroutine.yield() }"""
    assert value(code) == ["early"]


def test_resuming_a_finished_task_returns_false_and_a_message() -> None:
    code = """local p = require('panto') local co
      p.spawn(function() co = coroutine.running() end):await()
      local ok, message = coroutine.resume(co)
      return { ok, message }"""
    assert value(code) == [False, "cannot resume a task that has ended"]


@pytest.mark.parametrize(
    "place",
    [
        "table.sort({3, 2, 1}, function(a, b) p.sleep(1) return a < b end)",
        ";('x'):gsub('x', function() p.sleep(1) end)",
        "local co = coroutine.wrap(function() p.sleep(1) end) table.sort({2, 1}, function() co() end)",
    ],
)
def test_waiting_where_it_is_not_possible_is_an_error_that_says_so(place: str) -> None:
    async def work(lab: Lab) -> None:
        outcome = await lab.run(f"local p = require('panto')\n{place}")
        assert not outcome.ok
        assert "/ext/init.lua:2" in outcome.place + outcome.message
        assert "wait" in outcome.message

    in_lab(work)


def test_a_callback_that_is_no_task_may_not_wait_and_is_told_its_line() -> None:
    async def work(lab: Lab) -> None:
        await lab.value("require('panto').ext.on('session_start', function()\n require('panto').sleep(1) end)")
        ref = lab.posts[0][3]["handler"].id
        outcome = lab.driver.call(
            "observer",
            ref,
            "session_start",
            lab.driver.bridge.to_lua({}),
            owner="ext",
            lane="primary",
            what="an observer",
        )
        assert not outcome.ok
        assert outcome.message.startswith("/ext/init.lua:2: sleep waits, so it works only in a task")
        assert "this is an observer" in outcome.message

    in_lab(work)


def test_a_cancelled_task_sees_it_at_every_await_until_it_ends() -> None:
    code = """local p = require('panto') local seen = {}
      local t = p.spawn(function()
        for i = 1, 3 do local ok, e = pcall(p.sleep, 60000) seen[i] = e.kind end
        local ok, e = pcall(coroutine.yield) seen[4] = e.kind
        return 'ended' end)
      p.sleep(1) t:cancel()
      local result = t:await()
      return { seen, result }"""
    assert value(code) == [["cancelled"] * 4, "ended"]


def test_a_parked_task_is_woken_by_its_cancellation() -> None:
    code = """local p = require('panto')
      local t = p.spawn(function() local ok, e = pcall(coroutine.yield) return e.kind end)
      p.sleep(1) t:cancel()
      return t:await()"""
    assert value(code) == "cancelled"


def test_closing_a_task_runs_its_close_variables_innermost_first() -> None:
    async def work(lab: Lab) -> None:
        task = lab.driver.start(
            "code",
            """local p = require('panto') order = {}
            local outer <close> = setmetatable({}, { __close = function() order[#order + 1] = 'outer' end })
            coroutine.wrap(function()
              local inner <close> = setmetatable({}, { __close = function() order[#order + 1] = 'inner' end })
              pcall(p.sleep, 60000)
            end)()""",
            "@x.lua", scope=lab.scope, what="x",
        )  # fmt: skip
        lab.driver.close(task)
        assert (await task.done).kind == "cancelled"
        assert await lab.value("return order") == ["inner", "outer"]

    in_lab(work)


def test_a_scope_takes_its_tasks_with_it_but_not_the_detached_ones() -> None:
    async def work(lab: Lab) -> None:
        scope = lab.driver.scope("ext", "primary")
        code = """local p = require('panto')
          p.spawn(function()
            local inner = p.spawn(function() p.sleep(20) return true end)
            p.sleep(5)
            kept = inner:await()
          end, { detached = true })
          p.spawn(function() p.sleep(60000) end)
          p.sleep(60000)"""
        task = lab.driver.start("code", code, "@x.lua", scope=scope, what="x")
        await asyncio.sleep(0.005)
        lab.driver.close_scope(scope)
        assert task.done.done()
        async with asyncio.timeout(30):
            while not await lab.value("return kept"):
                await asyncio.sleep(0.01)
        assert lab.driver.counts()["tasks"] == 0

    in_lab(work)


def test_two_lanes_interleave_a_hundred_yields_and_each_keeps_its_own() -> None:
    code = """local p = require('panto')
      local order, wrong = ..., 0
      for i = 1, 100 do
        p.sleep(0)
        trail[#trail + 1] = order
        if p.ext.agent.id ~= order then wrong = wrong + 1 end
      end
      return wrong"""

    async def work(lab: Lab) -> None:
        await lab.value("trail = {}")
        tasks = [
            lab.driver.start("code", code, "@x.lua", lane, scope=lab.driver.scope("ext", lane), what="x")
            for lane in ("one", "two")
        ]
        assert [(await task.done).values for task in tasks] == [(0,), (0,)]
        trail = await lab.value("return trail")
        assert sum(a != b for a, b in zip(trail, trail[1:], strict=False)) > 150

    in_lab(work)


def test_a_thousand_tasks_wait_at_once_and_leave_nothing_behind() -> None:
    async def work(lab: Lab) -> None:
        before = lab.driver.counts()
        code = """local p = require('panto') local list = {}
          for i = 1, 1000 do list[i] = p.spawn(function() for _ = 1, 3 do p.sleep(1) end return i end) end
          local sum = 0
          for i = 1, 1000 do sum = sum + list[i]:await() end
          return sum"""
        assert await lab.value(code) == 500500
        after = lab.driver.counts()
        assert {k: after[k] for k in ("tasks", "coroutines", "refs", "scopes")} == {
            k: before[k] for k in ("tasks", "coroutines", "refs", "scopes")
        }

    in_lab(work)


def test_ops_that_answer_at_once_still_give_the_loop_its_turns() -> None:
    async def work(lab: Lab) -> None:
        turns = 0

        async def beat() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        beating = asyncio.create_task(beat())
        lab.driver.ops["sleep"] = lambda task, ms: None
        await lab.value("local p = require('panto') for i = 1, 30000 do p.sleep(0) end")
        beating.cancel()
        assert turns > 2

    in_lab(work)


MISTAKES = {
    "ext.register_tool { name = 'x', description = 'x', handler = print, desc = 1 }": "unknown member desc (known:",
    "ext.register_theme { name = 'x', colors = { txt = '#000000' } }": "no colour txt (known: ground, text",
    "ext.register_theme { name = 'x', colors = { text = 'red' } }": 'a colour is "#rrggbb", got red',
    "ext.register_shortcut { key = 'f6', description = 'x' }": "command or handler is missing",
    "ext.on('turn_ended', print)": "there is no event turn_ended; did you mean turn_end?",
    "ext.on('tool_cal', print)": "did you mean tool_call?",
    "ext.emit('turn_end', {})": "turn_end is told by panto alone",
    "ext.wire.post { path = '/' }": "wire.post: body: table expected",
    "p.fs.write('/nowhere/x', 'y')": "/nowhere/x: No such file or directory",
    "p.exec { 'ls' }": "exec: argv: table expected",
    "require('nothere')": "module 'nothere' not found:\n\tno field package.preload['nothere']\n\tno file",
}  # fmt: skip


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(code: str) -> None:
    async def work(lab: Lab) -> None:
        message = (await lab.run(f"local p = require('panto') local ext = p.ext\n{code}")).message
        assert message.startswith("/ext/init.lua:2: ") and MISTAKES[code] in message

    in_lab(work)


def test_wait_needs_something_to_wait_for() -> None:
    async def work(lab: Lab) -> None:
        assert "nothing to wait for" in (await lab.run("require('panto').wait({})")).message
        assert "item 1 is neither" in (await lab.run("require('panto').wait({ {} })")).message

    in_lab(work)


def test_a_task_that_fails_runs_its_close_variables_too() -> None:
    async def work(lab: Lab) -> None:
        code = """local p = require('panto')
          local x <close> = setmetatable({}, { __close = function(_, e) closed = tostring(e):match('broken') end })
          p.sleep(1) error('broken')"""
        assert not (await lab.run(code)).ok
        assert await lab.value("return closed") == "broken"

    in_lab(work)
