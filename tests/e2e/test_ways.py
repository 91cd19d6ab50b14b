"""Two programs and one session, and a project that brings something: what the screen offers, with the real engine."""

from __future__ import annotations

from tests.app.conftest import Panto, panto
from tests.e2e.terminal import Terminal
from tests.e2e.test_faults_screen import enter
from tests.fake_model import FakeModel, Reply

assert panto  # a fixture


def configured(panto: Panto, fake: FakeModel) -> None:
    panto.config.write_text(
        f"""
model = "fake:main"
[providers.fake]
protocol = "openai_chat"
base_url = "{fake.url}"
[providers.fake.models.main]
id = "main-1"
"""
    )


def screen(panto: Panto, *words: str) -> Terminal:
    return Terminal(panto.argv(*words), env=panto.environ(), cwd=panto.cwd)


def says(terminal: Terminal, text: str) -> None:
    """Wait until this is on the screen, wherever its lines break."""
    terminal.until(lambda: text in " ".join(terminal.text().split()), text)


def short_id(panto: Panto) -> str:
    return panto("session", "list").stdout.split()[0]


def test_a_session_open_elsewhere_is_viewed_live_then_taken_over_and_the_other_one_looks_on(
    panto: Panto, fake_model: FakeModel
) -> None:
    configured(panto, fake_model)
    fake_model.replies += [Reply("First answer."), Reply("Second answer."), Reply("Third answer.")]
    with screen(panto) as first:
        first.see("ask before running")
        first.calm()
        enter(first, "one")
        first.see("First answer.")
        with screen(panto, "--resume", short_id(panto)) as second:
            second.see("open elsewhere")
            second.see(f"process {first.pid} on")
            second.see("First answer.")
            second.calm(0.6)  # no key counts at once
            second.send("v")
            second.see(f"viewing · held by process {first.pid}")
            enter(first, "two")
            second.see("Second answer.")
            enter(second, "mine")
            second.see("not sent: this session is only viewed here")
            second.send("\x15")
            second.see("only viewed here   Enter:")
            second.send("\r")
            second.see("go on viewing")
            second.calm(0.6)
            second.send("t")
            second.see(f"take it over from process {first.pid}?")
            second.send("y")
            second.see("ask before running")
            first.see(f"viewing · held by process {second.pid}")
            second.calm()
            enter(second, "three")
            second.see("Third answer.")
            first.see("Third answer.")
    assert len(fake_model.requests) == 3


def test_a_session_open_elsewhere_is_forked_and_both_go_on(panto: Panto, fake_model: FakeModel) -> None:
    configured(panto, fake_model)
    fake_model.replies += [Reply("First answer."), Reply("Forked answer."), Reply("Here as well.")]
    with screen(panto) as first:
        first.see("ask before running")
        first.calm()
        enter(first, "one")
        first.see("First answer.")
        with screen(panto, "--resume", short_id(panto)) as second:
            second.see("open elsewhere")
            second.calm(0.6)
            second.send("f")
            second.see("a session of its own now")
            second.calm()
            enter(second, "two")
            second.see("Forked answer.")
            enter(first, "and here")
            first.see("Here as well.")
            assert "Forked answer." not in first.text()


def test_what_a_project_brings_is_agreed_to_and_withdrawn_on_the_screen(panto: Panto, fake_model: FakeModel) -> None:
    configured(panto, fake_model)
    (panto.cwd / ".panto").mkdir()
    (panto.cwd / ".panto/config.toml").write_text('mode = "plan"\n[permissions]\nallow = ["bash(make docs)"]\n')
    with screen(panto) as terminal:
        says(terminal, "is not trusted yet")
        terminal.see("ask before running")
        terminal.calm()
        enter(terminal, "/trust")
        terminal.see("allows bash(make docs)")
        terminal.calm(0.6)  # no key counts at once
        terminal.send("a")
        terminal.see("read only")
        terminal.calm()
        enter(terminal, "/trust")
        terminal.see("You agreed to exactly this.")
        terminal.calm(0.6)
        terminal.send("w")
        terminal.see("ask before running")
        (panto.cwd / ".panto/config.toml").write_text('mode = "plan"\n')
    with screen(panto) as terminal:
        terminal.see("ask before running")


def test_a_command_written_as_markdown_is_listed_filled_and_sent_and_a_projects_comes_with_trust(
    panto: Panto, fake_model: FakeModel
) -> None:
    configured(panto, fake_model)
    (panto.config.parent / "prompts").mkdir()
    (panto.config.parent / "prompts/review.md").write_text("---\ndescription: look at it\n---\nReview $1 with care.")
    (panto.cwd / ".panto/prompts").mkdir(parents=True)
    (panto.cwd / ".panto/prompts/ship.md").write_text("Ship it.")
    fake_model.replies += [Reply("Reviewed."), Reply("Shipped.")]
    with screen(panto) as terminal:
        says(terminal, "is not trusted yet")
        terminal.calm()
        terminal.type("/revi")
        terminal.see("look at it")
        terminal.send("\x15")
        enter(terminal, "/review")
        terminal.see("/review needs more words")
        terminal.see("› /review")  # what was typed is back
        terminal.calm()
        terminal.type(" shop.py")
        terminal.see("› /review shop.py")
        terminal.send("\r")
        terminal.see("Reviewed.")
        enter(terminal, "/ship")
        terminal.see("no command /ship")
        terminal.send("\x15")
        enter(terminal, "/trust")
        terminal.see("ship.md")
        terminal.calm(0.6)
        terminal.send("a")
        says(terminal, "is trusted until one byte of it changes")
        terminal.type("/ship")
        terminal.see("Ship it.")  # listed
        terminal.send("\r")
        terminal.see("Shipped.")
    said = [str(request.body["messages"][-1]["content"]) for request in fake_model.requests]
    assert "Review shop.py with care." in said[0] and "Ship it." in said[1]
