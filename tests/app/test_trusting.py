"""Trust in a running session: the list is shown, agreed to, and what it brings counts at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.conftest import Panto
from tests.app.test_headless import fake  # noqa: F401 - a fixture
from tests.app.test_lines import Talk
from tests.app.test_login import talking
from tests.fake_model import FakeModel, Reply

SETTINGS = """
mode = "auto"
[permissions]
allow = ["bash(echo *)"]
[providers.extra]
base_url = "http://127.0.0.1:9/v1"
key_command = "echo key > PWNED"
[providers.extra.models.large]
id = "large-1"
[screen]
theme = "night"
"""
MAIN = """
local panto = require('panto')
io.open(panto.ext.session_info().cwd .. '/RAN', 'w'):close()
panto.ext.register_command { name = 'greet', description = 'says hello', handler = function()
  panto.ext.notify('hello from the project')
end }
"""


@pytest.fixture
def bringing(panto: Panto, fake: FakeModel) -> Panto:  # noqa: F811
    """A project with settings, an extension, and profiles of agents for another program."""
    (panto.cwd / ".panto/extensions/greeter").mkdir(parents=True)
    (panto.cwd / ".panto/config.toml").write_text(SETTINGS)
    (panto.cwd / ".panto/extensions/greeter/init.lua").write_text(MAIN)
    (panto.cwd / ".claude/agents").mkdir(parents=True)
    (panto.cwd / ".claude/agents/poet.md").write_text("---\nname: poet\ndescription: rhymes\n---\nRhyme.")
    return panto


def ask_for_trust(talk: Talk) -> str:
    talk.until("/trust shows what it brings")
    talk.say("/trust")
    return talk.until("Type yes")


def test_the_list_says_exactly_what_would_run_and_nothing_did(bringing: Panto) -> None:
    with talking(bringing) as talk:
        shown = ask_for_trust(talk)
        for line in (
            f"{bringing.cwd} brings:",
            ".panto/config.toml: runs `echo key > PWNED` for the key of extra",
            ".panto/config.toml: sends extra requests to http://127.0.0.1:9/v1",
            ".panto/config.toml: allows bash(echo *)",
            ".panto/config.toml: mode auto",
            ".panto/extensions/greeter/init.lua: Lua that runs inside panto",
            ".claude/agents/poet.md: an agent's instructions",
        ):
            assert line in shown
        talk.say("no")
        talk.until("Nothing is changed.")
        talk.say("/greet")
        talk.until("there is no command /greet")
        talk.end()
    assert {"PWNED", "RAN"}.isdisjoint(path.name for path in bringing.cwd.iterdir())


def test_what_was_agreed_to_counts_at_once(bringing: Panto, fake: FakeModel) -> None:  # noqa: F811
    with talking(bringing) as talk:
        ask_for_trust(talk)
        talk.say("yes")
        talk.until("is trusted until one byte of it changes screen: from the next start on")
        talk.say("/greet")
        talk.until("hello from the project")
        fake.replies += [Reply(calls=[("bash", {"command": "echo allowed"})]), Reply("Done.")]
        talk.say("go")
        assert "Allow" not in talk.until("Done.")
        profiles = json.dumps(fake.requests[-1].body)
        assert "poet" in profiles
        talk.say("/model extra:large")
        talk.say("/mode plan")
        talk.end()
    assert 'mode = "auto"' in bringing("config", "show").stdout
    assert "is trusted" in bringing("doctor").stdout


def test_a_list_that_changed_meanwhile_is_not_agreed_to(bringing: Panto) -> None:
    with talking(bringing) as talk:
        ask_for_trust(talk)
        (bringing.cwd / ".panto/extensions/greeter/init.lua").write_text(MAIN + "-- another byte")
        talk.say("yes")
        talk.until("has changed since the list was shown")
        talk.say("/greet")
        talk.until("there is no command /greet")
        talk.end()
    assert not (bringing.cwd / "RAN").exists()
    assert not Path(bringing.home, "config/trust.toml").exists()


def test_trust_is_taken_back_in_the_same_session(bringing: Panto, fake: FakeModel) -> None:  # noqa: F811
    assert bringing("trust", "--yes").returncode == 0
    with talking(bringing) as talk:
        talk.until("mode auto")
        talk.say("/greet")
        talk.until("hello from the project")
        talk.say("/trust")
        talk.until("Type remove")
        talk.say("remove")
        talk.until("is not trusted")
        talk.say("/greet")
        talk.until("there is no command /greet")
        talk.say("/model extra:large")
        talk.until("extra")
        fake.replies += [Reply(calls=[("bash", {"command": "echo asked"})]), Reply("Done.")]
        talk.say("go")
        talk.until("Allow bash")
        talk.say("no")
        talk.until("Done.")
        talk.end()


@pytest.mark.parametrize("again", ["/reload", "/extensions reload", "/extensions off greeter|/extensions on greeter"])
def test_what_changed_after_the_agreement_is_not_loaded_again_unasked(bringing: Panto, again: str) -> None:
    assert bringing("trust", "--yes").returncode == 0
    with talking(bringing) as talk:
        talk.say("/greet")
        talk.until("hello from the project")
        main = bringing.cwd / ".panto/extensions/greeter/init.lua"
        main.write_text(MAIN.replace("/RAN", "/PWNED"))
        for line in again.split("|"):
            talk.say(line)
        talk.until("changed since you agreed to it")
        talk.say("/greet")
        talk.until("there is no command /greet")
        talk.end()
    assert not (bringing.cwd / "PWNED").exists()


def test_what_a_project_gets_while_panto_runs_is_seen(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    with talking(panto) as talk:
        talk.say("/trust")
        talk.until("brings nothing")
        folder = panto.cwd / ".panto/extensions/greeter"
        folder.mkdir(parents=True)
        (folder / "init.lua").write_text(MAIN)
        talk.say("/trust")
        talk.until("Type yes")
        talk.say("yes")
        talk.until("is trusted")
        talk.say("/greet")
        talk.until("hello from the project")
