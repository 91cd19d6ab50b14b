"""Line by line: every fact a line, every answer a typed word."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from tests.app.conftest import Panto
from tests.app.test_headless import fake, wait_for  # noqa: F401 - a fixture
from tests.fake_model import FakeModel, Reply


class Talk:
    """The program at the other end of two pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.heard = ""

    def say(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def until(self, words: str) -> str:
        """Reads lines until one holds these words; gives what was read."""
        assert self.process.stdout
        begun = len(self.heard)
        for line in self.process.stdout:
            self.heard += line.decode("utf-8")
            if words in line.decode("utf-8"):
                return self.heard[begun:]
        raise AssertionError(f"{words!r} never came:\n{self.heard}")

    def end(self) -> str:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.stdin = None
        out, err = self.process.communicate(timeout=30)
        assert err == b""
        return out.decode("utf-8")


@pytest.fixture
def talk(panto: Panto, fake: FakeModel) -> Iterator[Talk]:  # noqa: F811
    process = subprocess.Popen(
        panto.argv("--lines"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=panto.cwd,
        env=panto.environ(),
    )  # fmt: skip
    mercy = threading.Timer(90, process.kill)  # what was heard until then is told, before the test's own limit
    mercy.start()
    yield Talk(process)
    mercy.cancel()
    process.kill()
    process.communicate()


def test_a_turn_is_read_out_line_by_line_without_escape_codes(
    panto: Panto, fake: FakeModel, talk: Talk  # noqa: F811
) -> None:
    (panto.cwd / "a.txt").write_text("alpha\n")
    fake.replies += [Reply("Looking.", calls=[("read", {"path": "a.txt"})]), Reply(["First.\nSec", "ond\x1b[2J.\n"])]
    talk.until("Model fake:small, mode ask")
    talk.say("read it")
    text = talk.until("Second")
    assert text.splitlines() == ["Looking.", "read a.txt 1 line", "First.", "Second[2J."]
    talk.end()
    assert talk.process.returncode == 0


def test_an_approval_shows_everything_and_takes_words(
    panto: Panto, fake: FakeModel, talk: Talk  # noqa: F811
) -> None:
    write = [Reply(calls=[("write", {"path": name, "content": "y\n"})]) for name in ("a", "b")]
    fake.replies += [*write, Reply("Done.")]
    talk.say("write")
    text = talk.until("Type: ")
    assert re.search(r"^Allow write a\?$", text, re.MULTILINE)
    assert "because: " in text
    assert "+ y" in text
    talk.say("perhaps")
    talk.until("Type once, session")
    assert not (panto.cwd / "a").exists()
    talk.say("yes")
    talk.until("Allow write b?")
    talk.say("no and not today")
    talk.until("denied")
    talk.until("Done.")
    assert (panto.cwd / "a").read_text() == "y\n"
    assert not (panto.cwd / "b").exists()
    assert "not today" in str(fake.requests[-1].body["messages"][-1])


def test_a_question_takes_a_number_or_own_words(panto: Panto, fake: FakeModel, talk: Talk) -> None:  # noqa: F811
    ask = ("ask", {"question": "Which one?", "choices": ["red", "blue"]})
    fake.replies += [Reply(calls=[ask]), Reply(calls=[ask]), Reply("Good.")]
    talk.say("ask me")
    text = talk.until("Type a number")
    assert "1. red" in text
    talk.say("2")
    talk.until("Type a number")
    assert "blue" in str(fake.requests[-1].body["messages"][-1])
    talk.say("green please")
    talk.until("Good.")
    assert "green please" in str(fake.requests[-1].body["messages"][-1])


def test_ctrl_c_stops_the_turn_and_the_next_prompt_works(
    panto: Panto, fake: FakeModel, talk: Talk  # noqa: F811
) -> None:
    fake.replies += [Reply(["one\n", "two\n", "three\n"], rate=0.05), Reply("Again.")]
    talk.say("count")
    talk.until("one")
    talk.process.send_signal(signal.SIGINT)
    talk.until("Stopped.")
    talk.say("go on")
    talk.until("Again.")
    assert fake.refusals == []


def test_a_command_is_run_and_an_unknown_one_is_not_sent(
    panto: Panto, fake: FakeModel, talk: Talk  # noqa: F811
) -> None:
    talk.say("/mode auto")
    talk.say("/nosuch")
    talk.until("there is no command /nosuch")
    talk.say("!echo from the shell")
    talk.until("from the shell")
    talk.say("/quit")
    talk.process.wait(30)
    assert fake.requests == []


def test_a_failed_turn_can_be_tried_again(panto: Panto, fake: FakeModel, talk: Talk) -> None:  # noqa: F811
    fake.replies += [Reply(status=401), Reply("Now it works.")]
    talk.say("hi")
    talk.until("Failed: ")
    talk.until("/continue tries again")
    talk.say("/continue")
    talk.until("Now it works.")
    assert [m["content"] for m in fake.requests[-1].body["messages"] if m["role"] == "user"] == ["hi"]


def test_a_resumed_session_is_read_out(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    fake.replies.append(Reply("An answer."))
    assert panto("-p", "a question").returncode == 0
    done = panto("--lines", "--continue")
    assert "> a question\nAn answer." in done.stdout
    assert done.returncode == 0
