"""Rules and what bounds a call, from the settings to the question."""

from __future__ import annotations

import re

from tests.app.conftest import Panto
from tests.app.test_headless import fake  # noqa: F401 - a fixture
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
