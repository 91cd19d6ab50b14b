"""Extensions in the real program: found, loaded, left out, and none of an untrusted project's."""

from tests.app.conftest import Panto
from tests.app.test_headless import fake, records  # noqa: F401 - a fixture
from tests.fake_model import FakeModel, Reply

TOOL = """
local panto = require('panto')
panto.ext.register_tool {
  name = '%s', description = 'says hello', approval = 'read', schema = { type = 'object', properties = {} },
  handler = function() return 'hello from lua' end,
}
"""


def _write(panto: Panto, place: str, name: str, code: str = TOOL) -> None:
    file = panto.cwd.parent / place / name / "init.lua"
    file.parent.mkdir(parents=True)
    file.write_text(code % name if "%s" in code else code)


def test_a_tool_in_lua_is_offered_and_called(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    _write(panto, "home/config/extensions", "greet")
    fake.replies += [Reply(calls=[("greet", {})]), Reply("Done.")]
    done = panto("-p", "greet", "--output", "stream-json")
    assert done.returncode == 0, done.stderr
    (result,) = [r for r in records(done.stdout) if r["type"] == "tool_result"]
    assert (result["status"], result["text"]) == ("ok", "hello from lua")


def test_no_extensions_loads_none(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    _write(panto, "home/config/extensions", "greet")
    assert panto("-p", "hi", "--no-extensions").returncode == 0
    assert "greet" not in [tool["function"]["name"] for tool in fake.requests[0].body["tools"]]


def test_a_broken_extension_is_named_and_the_others_work(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    _write(panto, "home/config/extensions", "bad", "error('broken on purpose')")
    _write(panto, "home/config/extensions", "greet")
    done = panto("-p", "hi")
    assert done.returncode == 0
    assert "bad" in done.stderr
    assert "init.lua:1" in done.stderr
    assert "greet" in [tool["function"]["name"] for tool in fake.requests[0].body["tools"]]


def test_a_projects_extension_runs_only_once_it_is_trusted(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    _write(panto, "project/.panto/extensions", "greet")
    for trusted in (False, True):
        if trusted:
            assert panto("trust", "--yes").returncode == 0
        assert panto("-p", "hi").returncode == 0
        names = [tool["function"]["name"] for tool in fake.requests[-1].body["tools"]]
        assert ("greet" in names) == trusted


def test_a_path_is_relative_to_the_file_that_names_it(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    _write(panto, "home/config/mine", "greet")
    panto.config.write_text('extensions.paths = ["mine/greet"]\n' + panto.config.read_text())
    assert panto("-p", "hi").returncode == 0
    assert "greet" in [tool["function"]["name"] for tool in fake.requests[-1].body["tools"]]


def test_a_new_rock_is_installed_with_the_line_that_loads_it(panto: Panto) -> None:
    assert panto("rock", "new", "my-first").returncode == 0
    done = panto("rock", "install", "./my-first")
    assert done.stdout.splitlines()[-1] == 'to load it: [extensions] rocks = ["my-first"] in config.toml'
