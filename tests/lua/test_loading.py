"""Loading, order, broken ones, reload, switching off, and what an extension that misbehaves can do to the rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from panto.lua.sources import LuaSettings, find
from panto.schema import ops
from tests.lua.home import Home, home
from tests.scheduler.house import scripted

FINE = """local panto = require('panto')
  panto.ext.register_tool { name = 'fine', description = 'x', handler = function() return 'fine' end }"""

BROKEN = {
    "a_error": "error('x')",
    "b_syntax": "local = 1",
    "c_endless": "while true do end",
    "d_missing": "require('no.such.module')",
    "e_waits": "require('panto').sleep(60000)",
    "f_exits": "os.exit(1)",
    "g_memory": "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end",
    "h_bad_tool": "require('panto').ext.register_tool { name = 'x' }",
    "i_yields": "coroutine.yield()",
}

TURN = scripted({"calls": [{"name": "fine", "arguments": {}}]}, {"text": "done"})


def inside(root: Path, extensions: dict[str, str], work: Any, **options: Any) -> Any:
    async def main() -> Any:
        async with home(root, TURN, extensions, **options) as at:
            return await work(at)

    return asyncio.run(main())


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_extension_is_named_with_its_line_and_the_others_work(tmp_path: Path, name: str) -> None:
    async def work(at: Home) -> None:
        rows = {row.name: row for row in at.extensions.rows()}
        assert rows["z_fine"].state == "active"
        assert rows[name].state == "broken"
        assert f"{name}/init.lua" in rows[name].problem, rows[name].problem
        assert any(name in notice for notice in at.notices())
        await at.house.prompt("go")
        assert at.house.results()[0]["text"] == "fine"

    inside(tmp_path, {name: BROKEN[name], "z_fine": FINE}, work)


def test_extensions_load_in_the_stated_order_and_a_later_one_replaces_its_namesake(tmp_path: Path) -> None:
    for place, names in {"shipped": ["todo", "tour"], "user": ["b", "a"], "project": ["todo", "p"]}.items():
        for name in names:
            (tmp_path / place / name).mkdir(parents=True)
            (tmp_path / place / name / "init.lua").write_text("")
    (tmp_path / "user" / "single.lua").write_text("")
    settings = LuaSettings(
        shipped=tmp_path / "shipped", active=("tour", "todo"), rocks=(("panto-x", ""),), user=tmp_path / "user",
        project=tmp_path / "project",
    )  # fmt: skip
    assert [(s.name, s.kind) for s in find(settings)] == [
        ("tour", "shipped"), ("panto-x", "rock"), ("a", "user"), ("b", "user"), ("single", "user"), ("p", "project"),
        ("todo", "project"),
    ]  # fmt: skip
    assert find(LuaSettings(user=tmp_path / "nowhere")) == ()


def test_modules_of_an_extension_are_found_beside_it_and_loaded_again_on_reload(tmp_path: Path) -> None:
    main = "local m = require('mine.part') require('panto').ext.register_command { name = 'which', description = 'x',"
    main += " handler = function() return m.text end }"

    async def work(at: Home) -> None:
        part = at.folder / "mine" / "part.lua"
        part.write_text("return { text = 'one' }")
        await at.house.client.submit(ops.RunCommand("/extensions reload"))
        await at.house.client.submit(ops.RunCommand("/which"))
        part.write_text("return { text = 'two' }")
        await at.house.client.submit(ops.RunCommand("/extensions reload"))
        await at.house.client.submit(ops.RunCommand("/which"))
        assert [n for n in at.notices() if n in ("one", "two")] == ["one", "two"]

    inside(tmp_path, {"mine": main}, work)


def test_a_reload_cancels_what_the_old_one_ran_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        FINE
        + """
      panto.spawn(function() while true do panto.sleep(10) end end)
      panto.ext.on('turn_start', function() end)"""
    )

    async def work(at: Home) -> None:
        before = at.driver.counts()
        for _ in range(3):
            await at.extensions.reload()
        after = at.driver.counts()
        assert (before["tasks"], after["tasks"]) == (1, 1)
        assert (before["refs"], after["refs"]) == (2, 2)
        assert after["scopes"] == before["scopes"]
        await at.house.prompt("go")
        assert at.house.results()[0]["text"] == "fine"

    inside(tmp_path, {"z": code}, work)


def test_an_extension_can_be_switched_off_and_on(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        client = at.house.client
        await client.submit(ops.RunCommand("/extensions off z"))
        assert client.scheduler.shared.registry.get("fine") is None
        await client.submit(ops.RunCommand("/extensions reload"))
        assert client.scheduler.shared.registry.get("fine") is None
        await client.submit(ops.RunCommand("/extensions on z"))
        assert client.scheduler.shared.registry.get("fine") is not None
        with pytest.raises(Exception, match="there is no extension nobody"):
            await client.submit(ops.RunCommand("/extensions off nobody"))

    inside(tmp_path, {"z": FINE}, work)


def test_a_name_that_is_taken_is_reported_with_its_line(tmp_path: Path) -> None:
    code = "\nrequire('panto').ext.register_tool { name = 'read', description = 'x', handler = print }"

    async def work(at: Home) -> None:
        row = at.extensions.rows()[0]
        assert row.state == "active"
        assert "init.lua:2: there is already a tool 'read'" in row.problem

    inside(tmp_path, {"z": code}, work)


def test_an_extension_reads_its_own_table_of_the_config(tmp_path: Path) -> None:
    code = "seen = require('panto').ext.config()"

    async def work(at: Home) -> None:
        assert await at.value("return { seen.a, seen.list[2], require('panto').ext.config().a == nil }") == [
            1,
            "y",
            True,
        ]

    inside(tmp_path, {"mine": code}, work, settings={"tables": {"mine": {"a": 1, "list": ["x", "y"]}}})


def test_what_each_holds_and_has_cost_is_shown(tmp_path: Path) -> None:
    busy = """local ext = require('panto').ext
      ext.spawn(function() coroutine.wrap(function() ext.sleep(60000) end)() end)
      ext.spawn(function() ext.exec { argv = { 'sleep', '60' } } end)
      ext.register_command { name = 'count', description = 'x', handler = function() local n = 0
        for i = 1, 2e5 do n = n + i end error('counted') end }"""

    async def work(at: Home) -> None:
        await at.house.until(lambda: at.extensions.rows()[0].descriptors == 1)
        with pytest.raises(Exception, match="counted"):
            await at.house.client.submit(ops.RunCommand("/count"))
        first, second = at.extensions.rows()
        assert (first.tasks, first.coroutines, first.references, first.descriptors) == (2, 3, 1, 1)
        assert first.spent_ms > 0.2 and "init.lua:5: counted" in first.error
        assert (second.tasks, second.coroutines, second.descriptors, second.error) == (0, 0, 0, "")
        await at.house.client.submit(ops.RunCommand("/extensions"))
        assert "2 tasks, 3 coroutines, 1 references, 1 descriptors; last error: command /count" in at.notices()[-1]

    inside(tmp_path, {"a_busy": busy, "z": FINE}, work)


MISBEHAVING = {
    "an observer": "ext.on('turn_start', function() while true do end end)",
    "a spawned task": "ext.on('turn_start', function() ext.spawn(function() while true do end end) end)",
    "every callback": "for _, n in ipairs { 'turn_start', 'step_start', 'turn_end', 'context', 'tool_result' } do"
    " ext.on(n, function() error({}) end) end",
    "standard output": "ext.on('turn_start', function() print('x') io.write('y') io.stderr:write('z') end)",
    "os.exit": "ext.on('turn_start', function() os.exit(1) end)",
    "memory": "ext.on('turn_start', function() local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end end)",
    "no library left": "ext.on('turn_start', function() local set, all = rawset, pairs"
    " for _, lib in all { string, table, math, coroutine, utf8, os, io, debug, package } do"
    "   for k in all(lib) do set(lib, k, nil) end end"
    " for k in all(_G) do if k ~= '_G' then set(_G, k, nil) end end end)",
}


@pytest.mark.parametrize("what", MISBEHAVING)
def test_the_session_goes_on_whatever_an_extension_does(
    tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def work(at: Home) -> None:
        await at.house.prompt("go")
        assert at.house.results()[0]["text"] == "fine"
        assert at.house.records()[-1]["status"] == "completed"
        if what in ("an observer", "a spawned task", "memory"):
            words = ("too long without yielding", "memory")
            await at.house.until(lambda: any(word in text for text in at.notices() for word in words))

    code = f"local ext = require('panto').ext {MISBEHAVING[what]}"
    inside(tmp_path, {"bad": code, "z_fine": FINE}, work)
    assert capfd.readouterr().out == ""


def test_no_call_slips_past_a_permission_hook_while_extensions_are_loaded_again(tmp_path: Path) -> None:
    gate = """local panto = require('panto') panto.sleep(300)
      panto.ext.on('tool_call', function() return { block = true, reason = 'the gate says no' } end)"""
    turn = scripted({"calls": [{"name": "bash", "arguments": {"command": "touch slipped"}}]}, {"text": "done"})

    async def main() -> None:
        async with home(tmp_path, turn, {"gate": gate}) as at:
            loading = asyncio.ensure_future(at.extensions.reload())
            await at.house.until(lambda: not at.extensions.listeners.hooks["tool_call"])
            await at.house.prompt("go")
            await loading
            assert not (at.house.cwd / "slipped").exists()
            assert "the gate says no" in str(at.house.results()[0]["text"])

    asyncio.run(main())
