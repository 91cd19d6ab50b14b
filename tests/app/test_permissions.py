"""Rules and what bounds a call, from the settings to the question."""

from __future__ import annotations

import re

from panto.app import checks
from tests.app.conftest import Panto
from tests.app.test_headless import fake, records  # noqa: F401 - a fixture
from tests.app.test_login import talking
from tests.fake_model import FakeModel, Reply


def configure(panto: Panto, text: str) -> None:
    with panto.config.open("a") as out:
        out.write(text)


def test_a_question_about_a_command_says_what_bounds_it_and_every_reason(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    configure(panto, '[permissions]\ndeny = ["network(cat *)"]\n')
    command = "sudo -n rm -r x; cat /proc/net/dev"
    fake.replies += [Reply(calls=[("bash", {"command": command, "timeout": 9})]), Reply("Done.")]
    with talking(panto) as talk:
        talk.until("Model fake:small")
        talk.say("go")
        shown = talk.until("Type: once")
        talk.say("no")
        talk.until("Done.")
        talk.end()
    assert "because: it runs as another user; rm -r deletes directories with all they hold" in shown
    # whether bubblewrap works is the machine's affair
    assert re.search(r"^  (sandbox: no network, writes only here|no sandbox) · up to 9 s$", shown, re.MULTILINE)


TOOL = """
local panto = require('panto')
panto.ext.register_tool { name = '%s', description = 'x', approval = 'read', schema = { type = 'object' },
  handler = function() return 'it ran' end }
"""
PROVIDER = """
require('panto').ext.register_protocol { name = 'mine', models = { tiny = { id = 'tiny-1', context = 1000 } },
  open = function()
    local parts, at = { { type = 'text', text = 'I am made in Lua.' }, { type = 'finish', reason = 'stop' } }, 0
    return { next = function() at = at + 1 return parts[at] end }
  end }
"""


def extension(panto: Panto, name: str, code: str) -> None:
    file = panto.config.parent / "extensions" / name / "init.lua"
    file.parent.mkdir(parents=True)
    file.write_text(code)


def test_rules_count_for_every_tool_also_questions_and_those_of_extensions(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    extension(panto, "greeter", TOOL % "greet")
    configure(panto, '[permissions]\ndeny = ["ask", "greet"]\n')
    fake.replies += [Reply(calls=[("ask", {"question": "Which?"}), ("greet", {})]), Reply("Done.")]
    done = panto("-p", "go", "--output", "stream-json")
    results = {r["id"]: r for r in records(done.stdout) if r["type"] == "tool_result"}
    assert [r["status"] for r in results.values()] == ["denied", "denied"]
    assert {r["text"] for r in results.values()} == {"a rule denies ask", "a rule denies greet"}
    assert not [r for r in records(done.stdout) if r["type"] == "question"]


def test_a_name_in_a_rule_that_no_tool_has_is_told_once_extensions_are_loaded(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    extension(panto, "greeter", TOOL % "greet")
    configure(panto, '[permissions]\ndeny = ["bsh(rm *)", "greet(x)", "sub*", "network"]\n[screen]\ntheme = "drak"\n')
    done = panto("-p", "go")
    assert done.stderr.count("is a rule for no tool") == 1
    assert "'bsh(rm *)' is a rule for no tool that there is\n       did you mean bash?" in done.stderr
    configure(panto, '[prompt.parts]\nidentity = "nowhere.md"\n')
    panto.config.write_text(panto.config.read_text().replace('"sub*",', '"sub*", "(x",'))
    done = panto("doctor")
    assert done.returncode == 1
    assert f"prompt.parts.identity: {panto.config.parent}/nowhere.md: No such file or directory" in done.stdout
    assert "'(x' is not a rule" in done.stdout
    assert "WRONG " in done.stdout and "'bsh(rm *)' is a rule for no tool that there is" in done.stdout
    assert "there is no theme 'drak'\n      fix: did you mean dark?" in done.stdout
    assert "PANTO_MODE" in panto("doctor", PANTO_MODE="yool").stdout


def test_the_themes_that_need_no_extension_are_those_the_screen_has() -> None:
    from panto.tui import looks

    assert set(checks.THEMES) == {*looks.BUILT_IN, *looks._SPELLINGS}


def test_the_doctor_names_extensions_that_do_not_work(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    extension(panto, "broken", "error('on purpose')")
    extension(panto, "greeter", TOOL % "greet")
    (panto.cwd / "empty").mkdir()
    configure(panto, f'[extensions]\nrocks = ["no-such-rock"]\npaths = ["{panto.cwd}/gone", "{panto.cwd}/empty"]\n')
    fake.replies.append(Reply("ok"))
    done = panto("doctor")
    assert done.returncode == 1
    for said in (
        f"WRONG extension broken ({panto.config.parent}/extensions/broken/init.lua): ",
        "on purpose",
        "WRONG extension no-such-rock (rock no-such-rock): ",
        "fix: panto rock install no-such-rock, or take it out of extensions.rocks",
        f"WRONG extension gone ({panto.cwd}/gone): {panto.cwd}/gone does not exist",
        f"{panto.cwd}/empty has no init.lua",
        "ok    extensions: ",
        "greeter",
        "ok    model fake:small answers",
    ):
        assert said in done.stdout, done.stdout
    assert not (panto.home / "data").exists() or not list((panto.home / "data").rglob("sessions.db"))


def test_models_of_an_extensions_provider_are_listed_and_used(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    extension(panto, "mine", PROVIDER)
    assert "mine:tiny" in panto("models").stdout
    assert "mine:tiny" in panto("models", "tiny", "--json").stdout
    done = panto("-p", "hi", "--model", "mine:tiny")
    assert (done.returncode, done.stdout) == (0, "I am made in Lua.\n"), done.stderr
    assert "mine:tiny" in panto("-p", "hi", "--model", "mine:tniy").stderr
    with talking(panto, "--model", "mine:tiny", "hi") as talk:
        talk.until("I am made in Lua.")
        talk.end()


def test_a_setting_puts_an_extensions_tool_into_a_process_of_its_own(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    code = TOOL.replace("return 'it ran'", "return panto.ext.session_info().id or 'elsewhere'") % "whose"
    extension(panto, "whose", code)
    said = []
    for _ in range(2):
        fake.replies += [Reply(calls=[("whose", {})]), Reply("Done.")]
        done = panto("-p", "go", "--output", "stream-json")
        said += [r["text"] for r in records(done.stdout) if r["type"] == "tool_result"]
        configure(panto, '[tools]\nisolate = ["who*"]\n')
    assert len(said[0]) == 32
    assert said[1] == "elsewhere"


def test_line_by_line_a_call_is_changed_before_it_runs(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    fake.replies += [
        Reply(calls=[("bash", {"command": "echo first > out"})]),
        Reply(calls=[("write", {"path": "a", "content": "theirs"})]), Reply("Done."),
    ]  # fmt: skip
    with talking(panto) as talk:
        talk.until("Model fake:small")
        talk.say("go")
        talk.until("edit COMMAND")
        talk.say("edit echo second > out")
        talk.until("edit {arguments}")
        talk.say("edit nonsense")
        talk.until("Type once, session")
        talk.say('edit {"path": "a", "content": "mine"}')
        talk.until("Done.")
        talk.end()
    assert (panto.cwd / "out").read_text() == "second\n"
    assert (panto.cwd / "a").read_text() == "mine"


def test_a_rocks_tool_runs_in_a_process_of_its_own_beside_extensions_that_could_not(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    extension(panto, "greeter", TOOL % "greet" + "\npanto.ext.session_info().cwd:upper()\n")
    tree = panto.home / "data/panto/rocks/share/lua/5.4"
    tree.mkdir(parents=True)
    body = "return panto.ext.session_info().id or 'elsewhere'"
    code = TOOL.replace("return 'it ran'", body).replace("schema =", "isolate = true, schema =")
    (tree / "far-off.lua").write_text(code % "far")
    configure(panto, '[extensions]\nrocks = ["far-off"]\n')
    fake.replies += [Reply(calls=[("far", {}), ("greet", {})]), Reply("Done.")]
    done = panto("-p", "go", "--output", "stream-json", XDG_DATA_HOME=str(panto.home / "data"))
    results = [r["text"] for r in records(done.stdout) if r["type"] == "tool_result"]
    assert sorted(results) == ["elsewhere", "it ran"], done.stderr
