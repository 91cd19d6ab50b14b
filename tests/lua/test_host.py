"""The state itself: values, errors with their place, the standard library that fits a TUI."""

import pytest

from tests.lua.lab import Lab, in_lab


def value(code: str, *args: object) -> object:
    return in_lab(lambda lab: lab.value(code, *args))


def failure(code: str) -> str:
    async def work(lab: Lab) -> str:
        outcome = await lab.run(code)
        assert not outcome.ok
        return outcome.message

    return in_lab(work)


def test_plain_data_comes_out_as_it_went_in() -> None:
    code = """local j = require('panto').json
      return { list = {1, 2.5, 'x'}, none = j.null, empty = j.array{}, map = {}, yes = true }"""
    assert value(code) == {"list": [1, 2.5, "x"], "none": None, "empty": [], "map": {}, "yes": True}


def test_a_string_that_is_not_utf8_survives_the_way_out_and_back() -> None:
    raw = bytes(range(256)).decode("utf-8", "surrogateescape")
    assert value("local s = ... assert(#s == 256 and s:byte(256) == 255) return s", raw) == raw


def test_integers_keep_their_digits_at_any_size() -> None:
    text = "[9223372036854775807,-9223372036854775808,123456789012345678901234567890]"
    numbers = [2**63 - 1, -(2**63), 123456789012345678901234567890]
    assert value("return require('panto').json.decode(...)", text) == numbers


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("{1, 2, x = 3}", "either a list or has names"),
        ("0/0", "not a number"),
        ("coroutine.create(print)", "a thread cannot be passed"),
        ("(function() local t = {} t.t = t return t end)()", "contains itself"),
    ],
)
def test_what_cannot_cross_is_named(made: str, said: str) -> None:
    assert said in failure(f"return {made}")


def test_an_error_names_its_file_and_line_and_has_a_traceback() -> None:
    async def work(lab: Lab) -> None:
        outcome = await lab.run(
            "local function inner()\n  local t\n  return t.x\nend\ninner()", name="@/home/u/ext/tool.lua"
        )
        assert outcome.message == "/home/u/ext/tool.lua:3: attempt to index a nil value (local 't')"
        assert outcome.place == "/home/u/ext/tool.lua:3"
        assert "tool.lua:5: in" in outcome.traceback

    in_lab(work)


@pytest.mark.parametrize("thrown", ["{}", "nil", "setmetatable({}, {__tostring = function() error('again') end})"])
def test_any_thrown_value_becomes_words(thrown: str) -> None:
    assert failure(f"error({thrown})")


def test_the_failure_of_an_await_is_a_table_with_a_string_form() -> None:
    code = """local ok, e = pcall(require('panto').fs.list, '/etc/passwd')
      return { ok, e.kind, e.message, tostring(e):match('^/ext/init.lua:1') ~= nil }"""
    assert value(code) == [False, "io", "/etc/passwd: Not a directory", True]


def test_prints_and_writes_go_to_panto_and_not_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    async def work(lab: Lab) -> str:
        await lab.value(
            "print('a', 1) io.write('b', 2) io.stdout:write('c'):write('d') io.stderr:write('e') io.output():write('f')"
        )
        return "".join(lab.printed)

    assert in_lab(work) == "a\t1\nb2cdef"
    assert capfd.readouterr() == ("", "")


def test_standard_input_is_empty() -> None:
    assert value("return { io.read('a'), io.stdin:read('l') == nil, io.type(io.stdout), io.type(1) == nil }") == [
        "", True, "file", True,
    ]  # fmt: skip


def test_os_exit_ends_nothing() -> None:
    assert "/ext/init.lua:1: os.exit" in failure("os.exit(3)")


def test_programs_run_through_execute_and_popen() -> None:
    code = """local lines = {}
      for line in io.popen('printf "a\\nb\\n"; exit 3'):lines() do lines[#lines + 1] = line end
      local f = io.popen('echo out; exit 3') local text = f:read('a') local a, b, c = f:close()
      local w = io.popen('cat', 'w') w:write('fed') w:close()
      return { lines, text, a == nil, b, c, { os.execute('exit 4') }, (os.execute('true')) }"""

    async def work(lab: Lab) -> None:
        assert await lab.value(code) == [["a", "b"], "out\n", True, "exit", 3, [None, "exit", 4], True]
        assert "".join(lab.printed) == "fed"

    in_lab(work)


def test_the_environment_is_what_panto_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    assert value("return { os.getenv('SEEN'), os.getenv('SECRET_KEY') == nil }") == ["yes", True]


def test_a_module_may_wait_while_it_loads_and_is_loaded_once(tmp_path: object) -> None:
    code = """package.path = ... .. '/?.lua'
      local p = require('panto')
      local f = assert(io.open(... .. '/slow.lua', 'w'))
      f:write("loads = (loads or 0) + 1 require('panto').sleep(5) return { n = loads }") f:close()
      local a = p.spawn(function() return require('slow').n end)
      local b = p.spawn(function() return require('slow').n end)
      return { a:await(), b:await(), loads }"""
    assert value(code, str(tmp_path)) == [1, 1, 1]


def test_a_module_that_requires_itself_is_told_so(tmp_path: object) -> None:
    code = """package.path = ... .. '/?.lua'
      local f = assert(io.open(... .. '/round.lua', 'w')) f:write("require('round')") f:close()
      require('round')"""

    async def work(lab: Lab) -> str:
        return (await lab.run(code, str(tmp_path))).message

    assert "loop or previous error loading module 'round'" in in_lab(work)


def test_a_missing_module_is_named_with_the_places_looked_at() -> None:
    message = failure("require('no.such')")
    assert "module 'no.such' not found" in message and "no/such.lua" in message


def test_there_is_no_panto_global() -> None:
    assert value("return panto == nil and python == nil") is True
