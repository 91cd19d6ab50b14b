"""Real luv on panto's loop: timers, processes and polls work unmodified; nothing it does ends the process."""

import asyncio
import os
import signal
import time

import pytest

from tests.lua.lab import DEBIAN, Lab, in_lab

UV = f"package.cpath = '{DEBIAN}' local uv = require('luv') local p = require('panto')\n"

WAIT = """local function delay(ms)
  local co, t = coroutine.running(), uv.new_timer()
  t:start(ms, 0, function() t:close() coroutine.resume(co, ms) end)
  return coroutine.yield()
end
"""


def value(code: str, *args: object) -> object:
    return in_lab(lambda lab: lab.value(UV + code, *args))


def test_the_usual_idiom_runs_unmodified() -> None:
    assert value(WAIT + "return { delay(5), delay(1) }") == [5, 1]


def test_a_timer_started_after_an_idle_time_is_not_early() -> None:
    async def work(lab: Lab) -> None:
        await lab.value(UV + "return 1")
        await asyncio.sleep(0.3)
        before = time.monotonic()
        await lab.value(UV + WAIT + "delay(200)")
        assert time.monotonic() - before > 0.19

    in_lab(work)


def test_processes_of_luv_and_of_asyncio_live_side_by_side() -> None:
    code = """local co, handle = coroutine.running()
      local out = uv.new_pipe() local text = ''
      handle = uv.spawn('sh', { args = { '-c', 'echo hi; exit 3' }, stdio = { nil, out, nil } }, function(code)
        handle:close() coroutine.resume(co, code) end)
      out:read_start(function(_, data) if data then text = text .. data else out:close() end end)
      local code = coroutine.yield() p.sleep(20)
      return { code, text }"""

    async def work(lab: Lab) -> None:
        own = await asyncio.create_subprocess_exec("sh", "-c", "sleep 0.05; exit 5")
        assert await lab.value(UV + code) == [3, "hi\n"]
        assert await own.wait() == 5

    in_lab(work)


def test_a_descriptor_can_be_watched() -> None:
    async def work(lab: Lab) -> None:
        reader, writer = os.pipe()
        code = """local fd = ... local co, poll = coroutine.running(), uv.new_poll(fd)
          poll:start('r', function() poll:stop() poll:close() coroutine.resume(co, 'readable') end)
          return coroutine.yield()"""
        asyncio.get_running_loop().call_later(0.02, os.write, writer, b"x")
        assert await lab.value(UV + code, reader) == "readable"
        os.close(reader)
        os.close(writer)

    in_lab(work)


def test_the_thread_pool_works() -> None:
    code = """local co = coroutine.running()
      uv.fs_stat('/', function(_, info) coroutine.resume(co, info.type) end)
      local kind = coroutine.yield()
      uv.new_work(function(a) return a * 2 end, function(b) coroutine.resume(co, b) end):queue(21)
      return { kind, coroutine.yield() }"""
    assert value(code) == ["directory", 42]


def test_three_hundred_tasks_mix_both_kinds_of_timer() -> None:
    code = """local list = {}
      for i = 1, 300 do list[i] = p.spawn(function() local s = 0
        for k = 1, 5 do s = s + delay(3) p.sleep(2) end return s end) end
      local sum = 0 for i = 1, 300 do sum = sum + list[i]:await() end return sum"""
    assert value(WAIT + code) == 4500


@pytest.mark.parametrize(
    "body", ["error('stray')", "error({})", "coroutine.yield()", "local t = nil; t.x = 1", "while true do end"]
)
def test_an_error_in_a_callback_is_told_with_its_owner_and_ends_nothing(body: str) -> None:
    async def work(lab: Lab) -> None:
        code = f"local t = uv.new_timer() t:start(1, 0, function() t:close() {body} end) p.sleep(30) return 'alive'"
        assert await lab.value(UV + code) == "alive"
        assert [(post[0], post[1]) for post in lab.posts] == [("callback_failed", "ext")]

    in_lab(work)


def test_running_the_loop_oneself_is_an_error_that_says_why() -> None:
    async def work(lab: Lab) -> None:
        for call in ("run()", "run('nowait')", "loop_close()", "new_tty(1, false)"):
            message = (await lab.run(UV + f"uv.{call}")).message
            assert message.startswith("/ext/init.lua:2: uv.")

    in_lab(work)


@pytest.mark.parametrize(
    "how", ["uv.new_signal():start('sigwinch', print)", "uv.signal_start(uv.new_signal(), 2, print)"]
)
def test_signals_that_panto_needs_are_refused(how: str) -> None:
    async def work(lab: Lab) -> None:
        assert "belongs to panto" in (await lab.run(UV + how)).message
        heard: list[int] = []
        before = signal.signal(signal.SIGWINCH, lambda number, frame: heard.append(number))
        try:
            os.kill(os.getpid(), signal.SIGWINCH)
            await asyncio.sleep(0.01)
        finally:
            signal.signal(signal.SIGWINCH, before)
        assert heard == [signal.SIGWINCH]

    in_lab(work)


def test_another_signal_may_be_taken() -> None:
    code = """local co, s = coroutine.running(), uv.new_signal()
      s:start('sigusr1', function(name) s:close() coroutine.resume(co, name) end)
      uv.kill(uv.os_getpid(), 'sigusr1')
      return coroutine.yield()"""
    assert value(code) == "sigusr1"


def test_a_callback_may_not_wait_and_is_told_so() -> None:
    async def work(lab: Lab) -> None:
        await lab.value(UV + "local t = uv.new_timer() t:start(1, 0, function() t:close() p.sleep(1) end)")
        async with asyncio.timeout(30):
            while not lab.posts:
                await asyncio.sleep(0.01)
        assert "this is a luv callback" in lab.posts[0][3]

    in_lab(work)


def test_the_environment_is_hidden_from_luv_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    code = "return { uv.os_getenv('SECRET_KEY') == nil, uv.os_environ().SECRET_KEY == nil, uv.os_environ().SEEN }"
    assert value(code) == [
        True, True, "yes",
    ]  # fmt: skip


def test_an_idle_luv_does_not_spin() -> None:
    async def work(lab: Lab) -> None:
        await lab.value(UV + "return 1")
        await asyncio.sleep(0.05)
        pumps = 0
        run = lab.uv._run

        def counted() -> object:
            nonlocal pumps
            pumps += 1
            return run()

        lab.uv._run = counted
        await asyncio.sleep(0.3)
        assert pumps < 20

    in_lab(work)


def test_without_luv_a_rock_that_needs_it_is_told_so() -> None:
    async def work(lab: Lab) -> str:
        return (await lab.run("package.cpath = '/nowhere/?.so' require('luv')")).message

    assert "module 'luv' is not installed" in in_lab(work)
