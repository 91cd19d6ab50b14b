"""The holes of lupa and luv that a natural design hits: each is tried against this host, those that would end the
process in a process of its own. `test_perturbed` runs this file again with freed memory overwritten."""

import asyncio
import gc
import subprocess
import sys
import textwrap

import pytest

from panto.lua.host import load_lua54
from tests.lua.lab import DEBIAN, Lab, in_lab

GARBAGE = """local sleep = require('panto').sleep
for _ = 1, 12 do
  local t = {} for i = 1, 5000 do t[i] = { i, tostring(i), coroutine.create(print) } end
  sleep(0) collectgarbage() sleep(0) -- a slow machine must not take it for a runaway
end"""


def alone(code: str) -> str:
    """Run Python code in a process of its own; a signal or an early end is a failure."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lab_alone(body: str) -> str:
    return alone(
        f"""
import asyncio
from tests.lua.lab import DEBIAN, Lab, in_lab
async def work(lab):
{textwrap.indent(textwrap.dedent(body), "    ")}
    print('the end')
in_lab(work)
"""
    )


def test_functions_outlive_the_coroutine_that_registered_them() -> None:
    async def work(lab: Lab) -> None:
        code = """local p = require('panto') local kept = { 40 }
          coroutine.wrap(function() p.ext.on('tick', function(e) kept[1] = kept[1] + 1 seen = kept[1] end) end)()"""
        await lab.value(code)
        await lab.value(GARBAGE)
        lab.host.lua.gccollect()
        gc.collect()
        ref = lab.posts[0][3]["handler"].id
        for _ in range(2):
            outcome = lab.driver.call(
                "observer", ref, "tick", lab.driver.bridge.to_lua({}), owner="e", lane="p", what="an observer"
            )
            assert outcome.ok, outcome
        assert await lab.value("return seen") == 42

    in_lab(work)


def test_values_stay_right_while_their_coroutines_come_and_go() -> None:
    async def work(lab: Lab) -> None:
        code = """local p, out = require('panto'), {}
          for i = 1, 200 do
            out[i] = coroutine.wrap(function() local t = { n = i, list = { i, tostring(i) } }
              p.sleep(0) if i % 50 == 0 then collectgarbage() end return t end)()
          end
          return out"""
        values = await lab.value(code)
        await lab.value(GARBAGE)
        gc.collect()
        assert values == [{"n": i, "list": [i, str(i)]} for i in range(1, 201)]

    in_lab(work)


def test_a_running_coroutine_is_never_collected() -> None:
    async def work(lab: Lab) -> None:
        code = """local p = require('panto') local s = 0
          for i = 1, 50 do
            s = s + select(2, coroutine.resume(coroutine.create(function(a) local q = { a }
              collectgarbage() collectgarbage() p.sleep(0) p.json.encode(q) return q[1] * 2 end), i))
          end
          return s"""
        assert await lab.value(code) == 2550

    in_lab(work)


def test_synchronous_questions_are_right_inside_nested_coroutines() -> None:
    async def work(lab: Lab) -> None:
        code = """local p = require('panto') local out = {}
          for i = 1, 100 do
            local a, b, c = 1, 2, 3
            local _, owner, id = coroutine.resume(coroutine.create(function(x, y)
              collectgarbage('step') return p.ext.config().owner, p.ext.agent.id end), 'x', 'y')
            out[i] = owner .. id .. a + b + c
          end
          return out"""
        assert set(await lab.value(code)) == {"extprimary6"}

    in_lab(work)


def test_shared_tables_cross_whole() -> None:
    async def work(lab: Lab) -> None:
        shared = {"x": [1, 2]}
        lab.driver.ops["nop"] = lambda task: {"a": shared, "b": shared, "list": [shared, None, shared]}
        lab.host.private["entries"]["get"] = lab.host.lua.eval(
            "function(H) return function() return H.freeze(H.await('x', 'nop')) end end"
        )(lab.host.private)
        task = lab.driver.start("get", scope=lab.scope, what="x")
        outcome = await task.done
        assert outcome.values[0] == {"a": shared, "b": shared, "list": [shared, None, shared]}

    in_lab(work)


@pytest.mark.parametrize(
    "body",
    [
        'await lab.run("return setmetatable({}, { __newindex = error, __pairs = error, __index = error })")',
        "await lab.run('local t = {} t.nan = 0/0 return t')",
        "await lab.run('local t = setmetatable({}, { __len = function() error(1) end }) return { t }')",
        "await lab.run('os.exit(3)')",
        "await lab.run('local t = {} for i = 1, 1e9 do t[i] = (\"x\"):rep(1e6) .. i end')",
        "await lab.run('local function f() return f() + 1 end f()')",
        "await lab.run('local function f() return coroutine.wrap(f)() end f()')",
        "await lab.run('string.rep(\"x\", 1 << 40)')",
        "await lab.run('error(setmetatable({}, { __tostring = function() while true do end end }))')",
        "await lab.run('setmetatable({}, { __gc = function() error(1) end }) collectgarbage()')",
    ],
)
def test_nothing_an_extension_does_ends_the_process(body: str) -> None:
    assert lab_alone(body).endswith("the end\n")


@pytest.mark.parametrize(
    "callback",
    ["error('x')", "coroutine.yield()", "error({})", "os.exit(1)", "p.sleep(1)", "uv.run()", "t:nothing()"],
)
def test_an_error_in_a_luv_callback_does_not_end_the_process(callback: str) -> None:
    body = f"""
    await lab.run('''package.cpath = '{DEBIAN}' local uv, p = require('luv'), require('panto')
      local t = uv.new_timer() t:start(1, 0, function() t:close() {callback} end) p.sleep(20)''')
    assert lab.posts[0][0] == 'callback_failed'
    """
    assert lab_alone(body).endswith("the end\n")


def test_luv_first_required_in_a_coroutine_that_ends_is_safe() -> None:
    body = f"""
    await lab.run('''package.cpath = '{DEBIAN}'
      local p = require('panto')
      p.spawn(function() coroutine.wrap(function() uv = require('luv') end)() end):await()
      for _ = 1, 12 do local t = {{}} for i = 1, 5000 do t[i] = coroutine.create(print) end t = nil
        p.sleep(0) collectgarbage() p.sleep(0) end
      local n, t = 0, uv.new_timer()
      t:start(1, 1, function() n = n + 1 collectgarbage() if n == 20 then t:close() end end)
      while n < 20 do p.sleep(5) end print(n)''')
    assert lab.printed == ['20\\n'], lab.printed
    """
    assert lab_alone(body).endswith("the end\n")


def test_c_modules_load_though_another_import_of_lua_came_first() -> None:
    code = """
    import lupa
    from lupa import lua54
    from tests.lua.lab import DEBIAN, Lab, in_lab
    async def work(lab):
        cjson = await lab.run(f"package.cpath = '{DEBIAN}' return require('luv').os_getpid() > 0")
        assert cjson.values == (True,), cjson
        print('the end')
    in_lab(work)
    """
    assert alone(code).endswith("the end\n")


def test_two_states_in_one_process_have_a_luv_loop_each() -> None:
    async def work() -> None:
        one, two = Lab(), Lab()
        code = f"""package.cpath = '{DEBIAN}' local uv, co, t = require('luv'), coroutine.running()
          t = uv.new_timer() t:start(5, 0, function() t:close() coroutine.resume(co, 'rang') end)
          return coroutine.yield()"""
        assert await asyncio.gather(one.value(code), two.value(code)) == ["rang", "rang"]
        one.close()
        assert await two.value(code) == "rang"
        two.close()

    asyncio.run(work())


def test_the_lua_is_five_four_and_comes_from_the_right_module() -> None:
    assert load_lua54().__name__ == "lupa.lua54"


def test_a_second_thread_is_kept_out() -> None:
    async def work(lab: Lab) -> None:
        with pytest.raises(RuntimeError, match="another thread"):
            await asyncio.to_thread(lab.driver.start, "code", "return 1", "@x", scope=lab.scope, what="x")

    in_lab(work)


ATTACKS = [
    "return python",
    "return package.loaded.python",
    "return require('python')",
    "return debug.getregistry",
    "return debug.getupvalue",
    "return debug.sethook",
    "return debug.setmetatable",
    "return require('debug').getlocal",
    "return package.loaded.debug.getuservalue",
    "return debug.getinfo(1, 'f').func",
    "return package.loadlib",
    "return getmetatable(require('panto').json.null) and 1 or nil",
    "return load(string.char(27) .. 'Lua')",
    "return load('return 1', 'x', 'b')()  == 1 and nil",
    "return getmetatable(require('panto').ext) or nil",
    "return select(2, pcall(string.dump, print)) and nil",
    "return os.setlocale",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_on_the_bridge_find_nothing(attack: str) -> None:
    async def work(lab: Lab) -> None:
        outcome = await lab.run(attack)
        assert not outcome.ok or outcome.values in ((), (None,), (False,)), outcome

    in_lab(work)


def test_nothing_an_extension_can_reach_is_a_python_object() -> None:
    walk = """local seen, found = {}, {}
      local function visit(v, path, depth)
        if type(v) == 'userdata' and not path:match('^_G%.io') then found[#found + 1] = path end
        if type(v) == 'function' and tostring(v):match('builtin') and not v then found[#found + 1] = path end
        if type(v) ~= 'table' or seen[v] or depth > 8 then return end
        seen[v] = true
        for k, x in next, v do visit(x, path .. '.' .. tostring(k), depth + 1) end
        local mt = getmetatable(v)
        if type(mt) == 'table' then visit(mt, path .. '<mt>', depth + 1) end
      end
      visit(_G, '_G', 0) visit(package, 'package', 0) visit(require('panto'), 'panto', 0)
      for level = 0, 10 do visit(debug.getinfo(level), 'level' .. level, 0) end
      return found"""
    found = in_lab(lambda lab: lab.value(f"local r = (function() {walk} end)() return require('panto').json.array(r)"))
    assert found == []
