"""A first key, given on the screen: never shown, used at once, without another start."""

from __future__ import annotations

from tests.app.conftest import Panto, panto
from tests.app.test_login import KEY, holders, unkeyed
from tests.e2e.terminal import Terminal
from tests.e2e.test_faults_screen import enter
from tests.fake_model import FakeModel, Reply

assert panto and unkeyed  # fixtures


def test_a_key_typed_on_the_screen_makes_its_provider_usable_at_once(panto: Panto, unkeyed: FakeModel) -> None:
    unkeyed.replies += [Reply(status=401), Reply("ok"), Reply("Now it goes.")]
    with Terminal(panto.argv(), env=panto.environ(), cwd=panto.cwd) as terminal:
        terminal.see("No model yet.")
        terminal.calm()
        for key, said in ((f"{KEY}-wrong", "not accepted"), (KEY, "the key works and is stored")):
            enter(terminal, "/login fake")
            terminal.see("key for fake")
            terminal.type(key)
            terminal.calm(0.1)
            terminal.send("\r")
            terminal.see(said)
        terminal.calm()
        enter(terminal, "hello")
        terminal.see("Now it goes.")
        assert KEY.encode() not in terminal.log
    assert unkeyed.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert holders(panto.home, KEY) == [panto.home / "config/credentials.toml"]
