"""Agents, streams, jobs, conversations and stores from Lua, in a whole house; models are protocols in Lua."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from panto.lua.batch import Batches
from panto.lua.driver import Outcome
from panto.schema import ops
from panto.schema.events import InputSubmitted
from panto.schema.signals import TextStreamed, ToolProgressed
from tests.lua.home import Home, home
from tests.scheduler.house import scripted

ECHO = """
local ext = require('panto').ext
open_streams, cancelled_streams = 0, 0
ext.register_protocol {
  name = 'echo', models = { m = { id = 'm', context = 100000, reasoning = { 'low', 'high' } } },
  open = function(request, handle)
    local last = ''
    for _, m in ipairs(request.messages) do
      for _, p in ipairs(m.parts) do if p.type == 'text' and m.role == 'user' then last = p.text end end
    end
    local queue, done = {}, false
    local function put(part) queue[#queue + 1] = part handle:wake() end
    local word, rest = last:match('^(%S+) ?(.*)$')
    local latest = request.messages[#request.messages]
    if latest.role == 'tool' then word, last = '', latest.parts[1].parts[1].text end
    if word == 'slow' then
      ext.spawn(function()
        for piece in rest:gmatch('%S+') do put { type = 'text', text = piece .. ' ' } ext.sleep(20) end
        ext.sleep(60000)
      end)
    elseif word == 'fail' then
      error { kind = 'server', message = 'the server fell over', status = 400 }
    elseif word == 'call' then
      queue = { { type = 'tool_call_start', index = 0, name = request.tools[1].name, id = 'c1' },
        { type = 'tool_call_delta', index = 0, text = rest }, { type = 'tool_call_end', index = 0 },
        { type = 'finish', reason = 'tool_calls' } }
    else
      local n = 0
      for piece in ('echo: ' .. last):gmatch('%S+ ?') do n = n + 1 queue[n] = { type = 'text', text = piece } end
      queue[n + 1] = { type = 'usage', input = 10, output = n }
      queue[n + 2] = { type = 'finish', reason = 'stop' }
    end
    local at = 0
    open_streams = open_streams + 1
    return {
      next = function()
        at = at + 1
        if queue[at] then return queue[at] end
        at = at - 1
        if at > 0 and queue[at].type == 'finish' then return nil end
        return ext.pending()
      end,
      cancel_turn = function() cancelled_streams = cancelled_streams + 1 end,
      close = function() open_streams = open_streams - 1 end,
    }
  end,
}
"""

CHILD = "local panto = require('panto') local child = panto.agent { config = 'echo:m' }\n"


async def no_more_than(at: Home, streams: int) -> None:
    """A cancelled turn waits only a moment for its stream to be closed: so wait for that here."""
    async with asyncio.timeout(30):
        while await at.value("return open_streams") > streams:
            await asyncio.sleep(0.01)


def inside(root: Path, work: Callable[[Home], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        async with home(root, scripted({"text": "a"}), {"echo": ECHO}, **options) as at:
            before = at.driver.counts()
            result = await work(at)
            await at.house.until(lambda: not at.extensions.jobs.slots, 30)
            await no_more_than(at, 0)
            after = at.driver.counts()
            assert (after["tasks"], after["coroutines"]) == (0, 0), after
            assert after["refs"] == before["refs"]
            return result

    return asyncio.run(main())


def value(root: Path, code: str, *args: Any) -> Any:
    return inside(root, lambda at: at.value(code, *args))


def test_a_stream_ends_at_turn_ended(tmp_path: Path) -> None:
    code = """local seen, text = {}, ''
      for event in child:run { prompt = 'hello there' } do
        seen[#seen + 1] = event.type
        if event.type == 'text_delta' then text = text .. event.text end
        if event.type == 'turn_ended' then seen.status, seen.usage = event.status, event.usage.output break end
      end
      child:close()
      return { text, seen[1], seen[#seen], seen.status, seen.usage }"""
    assert value(tmp_path, CHILD + code) == ["echo: hello there", "turn_started", "turn_ended", "completed", 3]


def test_a_stream_is_pulled_by_hand_and_gives_nil_when_exhausted(tmp_path: Path) -> None:
    code = """local s, n = child:run('hi'), 0
      while true do local e = s:next() if not e then break end n = n + 1 end
      child:close() return { n > 3, s:next() == nil }"""
    assert value(tmp_path, CHILD + code) == [True, True]


def test_a_failed_turn_raises_a_table_with_a_string_form(tmp_path: Path) -> None:
    code = """local ok, e = pcall(function() for event in child:run 'fail' do end end)
      child:close() return { ok, e.kind, tostring(e):match('fell over') }"""
    assert value(tmp_path, CHILD + code) == [False, "server", "fell over"]


def test_leaving_a_loop_early_cancels_the_turn(tmp_path: Path) -> None:
    code = """for event in child:run 'slow a b c' do if event.type == 'text_delta' then break end end
      child:close() return cancelled_streams"""
    assert value(tmp_path, CHILD + code) == 1


def test_a_job_runs_by_itself_and_its_first_delta_is_readable_before_the_last(tmp_path: Path) -> None:
    code = """local job = child:run_async { prompt = 'slow one two three' }
      local text = ''
      while not text:match('one') do
        panto.wait({ job }) local e = job:next_event()
        while e do if e.type == 'text_delta' then text = text .. e.text end e = job:next_event() end
      end
      local early = job:result() == nil and not text:match('three')
      job:request_cancel()
      local result = job:await()
      local closed = { result.status, result.resumable, #result.id > 0, job:result().status }
      job:close() job:close() child:close()
      local ok, e = pcall(job.result, job)
      return { early, closed, ok, tostring(e):match('this job is closed') }"""
    expected = [True, ["cancelled", True, True, "cancelled"], False, "this job is closed"]
    assert value(tmp_path, CHILD + code) == expected


def test_a_task_that_polls_without_waiting_gets_there(tmp_path: Path) -> None:
    code = """local job, n = child:run_async 'hello', 0
      while not job:result() do while job:next_event() do n = n + 1 end end
      while job:next_event() do n = n + 1 end
      local text = job:result().text job:close() child:close() return { text, n > 3 }"""
    assert value(tmp_path, CHILD + code) == ["echo: hello", True]


def test_wait_tells_which_is_first_and_when_time_is_up(tmp_path: Path) -> None:
    code = """local other = panto.agent { config = 'echo:m' }
      local slow = other:run_async 'slow'
      local e
      repeat panto.wait { slow } e = slow:next_event() until e and e.type == 'step_started'
      local task = panto.spawn(function() panto.sleep(10) end)
      local first = panto.wait { slow, task }
      local none = panto.wait({ slow }, 20)
      slow:close() child:close() other:close() return { first, none == nil }"""
    assert value(tmp_path, CHILD + code) == [2, True]


def test_an_agent_in_a_turn_takes_no_second_one(tmp_path: Path) -> None:
    code = """local job = child:run_async 'slow'
      local ok, e = pcall(child.run_async, child, 'again')
      local ok2, e2 = pcall(child.run, child, 'again')
      job:close() child:close() return { e.message, e2.message }"""
    assert value(tmp_path, CHILD + code) == ["agent is in a turn", "agent is in a turn"]


def test_without_dispatch_the_calls_come_back_unresolved(tmp_path: Path) -> None:
    code = """local worker = panto.agent { config = { model = 'echo:m', tool_choice = 'answer' }, base_prompt = false,
        tools = { { name = 'answer', description = 'x', schema = '{"type": "object"}' } } }
      local job = worker:run_async { prompt = 'call {"a": 1}', dispatch_tools = false }
      local r = job:await() job:close() worker:close()
      return { r.status, #r.tool_calls, r.tool_calls[1].name, r.tool_calls[1].input, r.tool_calls[1].id }"""
    assert value(tmp_path, "local panto = require('panto')" + code) == ["completed", 1, "answer", '{"a": 1}', "c1"]


def test_a_durable_id_is_run_once(tmp_path: Path) -> None:
    code = """local id = panto.derive_id('x', 1)
      local job = child:run_async { prompt = 'first', id = id } local a = job:await().text job:close()
      local again = child:run_async { prompt = 'second', id = id } local b = again:await().text again:close()
      local n = #child:conversation() child:close() return { a, b, n }"""
    assert value(tmp_path, CHILD + code) == ["echo: first", "echo: first", 2]


def test_metadata_rides_on_messages_and_is_refused_as_a_list(tmp_path: Path) -> None:
    code = """local a = panto.agent { config = 'echo:m',
        system_messages = { { 'Be brief.', { profile = 'x' } }, 'And kind.' } }
      local job = a:run_async { prompt = 'hi', metadata = { model = 'echo:m', n = 1 } } job:await() job:close()
      local c = a:conversation()
      c:set_message_metadata(4, { seen = true })
      local n = c:add_user_message('later', { k = 'v' })
      local ok, e = pcall(a.run_async, a, { prompt = 'x', metadata = { 1, 2 } })
      local ok2, e2 = pcall(c.message_metadata, c, 99)
      local roles = {} for i, m in ipairs(c:messages()) do roles[i] = m.role end
      local out = { #c, c:message_metadata(1).profile, c:message_metadata(4).seen,
        n, c:message_metadata(5).k, roles, tostring(e):match('this is a list'), e2.kind, c:message_metadata(2) == nil }
      a:close() return out"""
    assert value(tmp_path, "local panto = require('panto')" + code) == [
        5, "x", True, 5, "v", ["system", "system", "user", "assistant", "user"], "this is a list", "usage", True,
    ]  # fmt: skip


def test_metadata_given_with_a_prompt_is_kept(tmp_path: Path) -> None:
    code = """local job = child:run_async { prompt = 'hi', metadata = { n = 1 } } job:await() job:close()
      local m = child:conversation():message_metadata(1) child:close() return m and m.n"""
    assert value(tmp_path, CHILD + code) == 1


def test_declarations_are_copied_and_replaced(tmp_path: Path) -> None:
    code = """local tools = child:tools()
      local names = {} for i, t in ipairs(tools) do names[t.name] = type(t.schema) end
      child:set_tools { tools[1] }
      local now = child:tools()
      local job = child:run_async('call {}') local r = job:await() job:close()
      child:close() return { names.read, #now, now[1].name == tools[1].name, r.status }"""
    assert value(tmp_path, CHILD + code)[:3] == ["string", 1, True]


def test_stores_list_what_lies_under_the_primary(tmp_path: Path) -> None:
    code = """local store = panto.session_store()
      local before = #store:list()
      local id = panto.derive_id('child', 1)
      local a = panto.agent { config = 'echo:m', session_id = id, store = store }
      local b = panto.agent { session_id = id, store = store }
      local same = a.id == b.id and a.id == id
      b:close() local job = a:run_async('hi') job:await() job:close() a:close()
      local again = panto.agent { session_id = id } local n = #again:conversation() again:close()
      return { before, #store:list(), store:metadata(id).model, store:metadata(('0'):rep(32)) == nil, same, n }"""
    assert value(tmp_path, "local panto = require('panto')" + code) == [0, 1, "echo:m", True, True, 2]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("panto.agent { config = 'nobody:none' }", "nobody:none"),
        ("panto.agent { config = { model = 'echo:m', colour = 1 } }", "unknown member colour"),
        ("panto.session_store { under = 'not an id' }", "not a session id"),
        ("panto.session_store { file = 'x' }", "unknown member file"),
        ("panto.agent { store = {} }", "a session store expected"),
        ("panto.agent { tools = { {} } }", "tools[1].name"),
        ("child:run_async {}", "prompt: text or a list of blocks expected"),
        ("child:run_async { prompt = 'x', limits = { apples = 1 } }", "limits"),
        ("child.run_async('x')", "call it with a colon"),
        ("child:set_config { model = 'nobody:none' }", "nobody:none"),
        ("panto.ext.resolve_model { model = 'echo:m', reasoning = 'extreme' }", "no reasoning level"),
    ],
)
def test_mistakes_are_plain_errors_with_a_line(tmp_path: Path, code: str, said: str) -> None:
    async def work(at: Home) -> None:
        outcome = await at.run(CHILD + f"local ok, e = pcall(function() {code} end) child:close() error(e, 0)")
        assert not outcome.ok
        assert said in outcome.message
        assert "/test.lua:" in outcome.message

    inside(tmp_path, work)


def test_a_resolved_configuration_is_opaque(tmp_path: Path) -> None:
    code = """local panto = require('panto')
      local config = panto.ext.resolve_model { model = 'echo:m', reasoning = 'high' }
      local found = 0 for _ in pairs(config) do found = found + 1 end
      local wrote = pcall(function() config.model = 'x' end)
      local a = panto.agent { config = config } a:close()
      return { config.model, config.reasoning, config.style, config.wire_model, found, getmetatable(config), wrote,
        config.key == nil, panto.ext.models({ query = 'echo' })[1].label }"""
    assert value(tmp_path, code) == ["echo:m", "high", "echo", "m", 0, False, False, True, "echo:m"]


# ---------------------------------------------------------------- wake descriptors


def test_a_wake_descriptor_gets_one_byte_for_each_event_and_one_at_the_end(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        reader, writer = os.pipe()
        code = """local job = child:run_async { prompt = 'a b c d', wake_fd = ... } job:await()
          local n = 0 while job:next_event() do n = n + 1 end job:close() child:close() return n"""
        count = await at.value(CHILD + code, writer)
        os.set_blocking(reader, False)
        assert len(os.read(reader, 1000)) == count + 1
        os.close(reader)
        os.close(writer)

    inside(tmp_path, work)


def test_a_full_pipe_drops_the_byte_and_never_blocks(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        while True:
            try:
                os.write(writer, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(writer, True)
        code = "local job = child:run_async { prompt = 'a b', wake_fd = ... } job:await() job:close() child:close()"
        await at.value(CHILD + code, writer)
        os.close(reader)
        os.close(writer)

    inside(tmp_path, work)


@pytest.mark.parametrize("which", ["closed", "read-only"])
def test_a_descriptor_that_cannot_wake_is_refused_before_anything_is_written(tmp_path: Path, which: str) -> None:
    async def work(at: Home) -> None:
        reader, writer = os.pipe()
        os.close(writer)
        fd = writer if which == "closed" else reader
        code = """local ok, e = pcall(child.run_async, child, { prompt = 'x', wake_fd = ... })
          child:close() return { ok, e.message }"""
        ok, message = await at.value(CHILD + code, fd)
        assert ok is False
        assert ("not an open descriptor" if which == "closed" else "read-only") in message
        assert at.house.events(InputSubmitted) == []
        os.close(reader)

    inside(tmp_path, work)


def test_luv_polls_a_wake_descriptor_and_reads_from_its_callback(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        reader, writer = os.pipe()
        code = """local rfd, wfd = ...
          local uv, me, text = require('luv'), coroutine.running(), ''
          local job = child:run_async { prompt = 'one two', wake_fd = wfd }
          local poll = uv.new_poll(rfd)
          poll:start('r', function()
            io.open('/dev/fd/' .. rfd, 'rb'):read(1)
            local e = job:next_event()
            while e do if e.type == 'text_delta' then text = text .. e.text end e = job:next_event() end
            if job:result() then poll:stop() poll:close() coroutine.resume(me) end
          end)
          coroutine.yield()
          job:close() child:close() return text"""
        assert await at.value(CHILD + code, reader, writer) == "echo: one two"
        os.close(reader)
        os.close(writer)

    inside(tmp_path, work)


LANE = """
local panto = require('panto')
local ext = panto.ext
ext.register_tool { name = 'lane', description = 'x', mutates = false, handler = function(args, ctx)
  local wrong = 0
  for i = 1, 20 do
    ext.sleep(i % 3)
    if ext.agent.id ~= ctx.agent.id or coroutine.wrap(function() return ext.agent.id end)() ~= ctx.session_id then
      wrong = wrong + 1
    end
  end
  ctx:progress('done in ' .. ctx.session_id)
  return ctx.session_id .. ' ' .. wrong
end }
"""


def test_a_childs_lua_tool_runs_in_its_lane_and_its_progress_is_tagged(tmp_path: Path) -> None:
    code = """local panto, jobs, out = require('panto'), {}, {}
      for i = 1, 5 do
        local a = panto.agent { config = 'echo:m', tools = { { name = 'lane', description = 'x' } } }
        jobs[i] = { a, a:run_async('call {}') }
      end
      for i, j in ipairs(jobs) do
        out[i] = { j[1].id, j[2]:await().text }
        j[2]:close() j[1]:close()
      end
      return out"""

    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"}), {"echo": ECHO, "lane": LANE}) as at:
            for id, text in await at.value(code):
                assert text == f"echo: {id} 0"
            told = [u for u in at.house.seen if isinstance(u, ToolProgressed)]
            assert {u.text for u in told} == {f"done in {u.agent}" for u in told}
            assert len({u.agent for u in told}) == 5

    asyncio.run(work())


def test_a_result_is_recorded_to_its_own_batch_and_once(caplog: pytest.LogCaptureFixture) -> None:
    batches = Batches()
    one, two = batches.open("a", "run", "c1"), batches.open("b", "run", "c2")
    assert one.record("c1", Outcome(True)) and not one.record("c1", Outcome(True))
    assert not one.record("c2", Outcome(True))
    batches.close(one, "c1")
    assert not one.record("c1", Outcome(True))
    assert len(batches) == 1 and two.record("c2", Outcome(True))
    assert "a late result of call c1 of agent a is refused" in caplog.text


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def work(at: Home) -> None:
        await at.value(CHILD + "child:close()")
        before = held()
        reader, writer = os.pipe()
        code = """for i = 1, 5 do
            local job = child:run_async { prompt = 'hi', wake_fd = ... } job:await() job:close()
          end child:close()"""
        await at.value(CHILD + code, writer)
        os.close(reader)
        os.close(writer)
        await at.house.until(lambda: held() <= before)

    inside(tmp_path, work)


# ---------------------------------------------------------------- many at once, and one Escape

PARENT = """
local panto = require('panto')
panto.ext.register_tool { name = 'many', description = 'x', replay = true, mutates = false,
  handler = function(args, ctx)
    local jobs, out = {}, {}
    for i, prompt in ipairs(args.prompts) do
      local a = panto.agent { config = 'echo:m' }
      jobs[i] = { agent = a, job = a:run_async { prompt = prompt } }
    end
    ctx:progress('started')
    for i, j in ipairs(jobs) do
      local r = j.job:await()
      out[i] = r.status .. ':' .. r.text
      j.job:close() j.agent:close()
    end
    return table.concat(out, '|')
  end }
"""


def parent(root: Path, prompts: list[str], work: Callable[[Home], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        replies = scripted({"calls": [{"name": "many", "arguments": {"prompts": prompts}}]}, {"text": "done"})
        async with home(root, replies, {"echo": ECHO, "parent": PARENT}) as at:
            result = await work(at)
            await at.house.until(lambda: not at.extensions.jobs.slots and not at.extensions.desk.handles)
            await no_more_than(at, 0)
            await at.house.until(lambda: list(at.house.scheduler.agents) == [at.house.client.primary])
            return result

    return asyncio.run(main())


def test_a_parent_runs_children_at_once_and_gets_each_answer(tmp_path: Path) -> None:
    async def work(at: Home) -> str:
        await at.house.prompt("go")
        return str(at.house.results()[0]["text"])

    assert parent(tmp_path, ["a", "fail", "b"], work) == "completed:echo: a|failed:|completed:echo: b"


def test_escape_settles_the_finished_and_the_cancelled_together(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: any(r["type"] == "progress" for r in at.house.records()))
        await at.house.until(lambda: {"x ", "y "} <= {u.text for u in at.house.seen if isinstance(u, TextStreamed)})
        await no_more_than(at, 2)
        begun = time.monotonic()
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        assert time.monotonic() - begun < 20
        result = at.house.results()[0]
        assert result["text"] == "completed:echo: quick|cancelled:x |cancelled:y "
        assert await at.value("return cancelled_streams") == 2

    parent(tmp_path, ["quick", "slow x", "slow y"], work)


def test_a_hundred_jobs_at_once_cancelled_at_random_leave_nothing(tmp_path: Path) -> None:
    code = """local panto = require('panto') local jobs, seed = {}, 7
      for i = 1, 100 do
        local a = panto.agent { config = 'echo:m' }
        jobs[i] = { a, a:run_async { prompt = i % 3 == 0 and 'slow a b c d e f' or 'quick ' .. i } }
      end
      local counts = {}
      for i = 1, 100 do
        seed = (seed * 1103515245 + 12345) % 2147483648
        if i % 3 == 0 then panto.sleep(seed % 3) jobs[i][2]:request_cancel() end
      end
      for i = 1, 100 do
        local r = jobs[i][2]:await() counts[r.status] = (counts[r.status] or 0) + 1
        jobs[i][2]:close() jobs[i][1]:close()
      end
      return counts"""
    assert value(tmp_path, code) == {"completed": 67, "cancelled": 33}


@pytest.mark.parametrize("wait_s", [0, 0.002, 0.005, 0.01, 0.02])
def test_what_a_closed_task_had_under_way_is_not_left_behind(tmp_path: Path, wait_s: float) -> None:
    code = """local panto = require('panto')
      local a = panto.agent { config = 'echo:m' }
      local job = a:run_async 'slow a b c'
      panto.agent { config = 'echo:m' }
      job:await()"""

    async def work(at: Home) -> None:
        for _ in range(4):
            scope = at.driver.scope("test", at.house.client.primary)
            at.driver.start("code", code, "@x.lua", scope=scope, what="x")
            await asyncio.sleep(wait_s)
            at.driver.close_scope(scope)
        await at.house.until(lambda: not at.driver._kept, 30)
        for number in tuple(at.extensions.jobs.slots):
            await at.extensions.jobs.close(number)
        await at.extensions.desk.close_of("test")
        await at.house.until(lambda: len(at.house.scheduler.agents) == 1, 30)

    inside(tmp_path, work)
