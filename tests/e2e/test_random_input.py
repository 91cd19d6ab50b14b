"""The whole program under random keys, pastes, sizes, Escapes, mouse and focus while a model streams without end.

After every few hundred of them the program must come to rest by Escape, take a line of text whole, send it, and show
the answer to it: nothing crashed, nothing stuck, nothing typed lost.
"""

from __future__ import annotations

import itertools
import re
import time
from random import Random
from typing import Any

import pytest

from tests.app.conftest import Panto, panto
from tests.conftest import PROFILE
from tests.e2e.terminal import Terminal
from tests.e2e.test_screen import KEYS
from tests.fake_model import FakeModel, Reply

assert panto  # a fixture
CONFIG = """
model = "fake:m"
mode = "ask"
[providers.fake]
protocol = "openai_chat"
base_url = "{url}"
[providers.fake.models.m]
id = "m"
context = 100000
max_output = 4096
"""
ROUNDS = 3 if PROFILE == "ci" else 120
KEYS_A_ROUND = 150
MORE = ["\x1bp", "\x1br", "\x18s", "\x18a", "\x18t", "\x18m", "\x13", "\x0c", "\x03a", "!echo hi\r", "/tree\r",
        "/agents\r", "/model\r", "/settings\r", "/context\r", "/cost\r", "/diff\r", "/compact\r", "/jobs\r", "/copy\r",
        "\x1b\x1b", "\x1b[<2;20;4M", "\x1b[<0;40;9M\x1b[<32;60;12M\x1b[<0;60;12m"]  # fmt: skip
WORDS = "the quick brown fox jumps over a lazy dog 漢字 `code` **bold** https://example.org\n\n- item\n```py\nx\n```\n"


def reply(dice: Random) -> Reply:
    """One answer: text in small pieces, sometimes calls of every kind, sometimes a failure."""
    pieces = [dice.choice(WORDS.split(" ")) + " " for _ in range(dice.choice([0, 5, 80, 800]))]
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("read", {"path": "a.txt"}), ("bash", {"command": "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done"}),
        ("bash", {"command": "seq 20000"}), ("bash", {"command": "exit 3"}), ("grep", {"pattern": "a"}),
        ("edit", {"path": "a.txt", "old": "alpha", "new": "alpha"}), ("bash", {"command": "trap '' TERM; sleep 5"}),
        ("write", {"path": "b.txt", "content": "b\n" * 30}),
    ]  # fmt: skip
    calls = [dice.choice(kinds) for _ in range(dice.choice([0, 0, 1, 1, 2, 4]))]
    if dice.random() < 0.05:
        return Reply(status=dice.choice([429, 500, 529]))
    rate = dice.choice([0, 50, 400, 3000])
    thought = pieces[:20] if dice.random() < 0.3 else ()
    return Reply(pieces or "ok", thought, calls, rate=rate, cut_after=30 if dice.random() < 0.05 else None)


class Endless(list[Reply]):
    """Replies that never run out; while `wanted` is set each is that text, a summary of a compaction too."""

    wanted = ""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        super().__init__([Reply("begun")])

    def pop(self, _at: object = 0) -> Reply:
        """The next one."""
        return Reply(self.wanted) if self.wanted else reply(self._dice)


def come_to_rest(terminal: Terminal) -> None:
    """Escape until nothing runs and nothing lies over the screen, and every key sent so far was taken."""
    terminal.resize(100, 30)
    end = time.monotonic() + 90
    for number in itertools.count():
        terminal.send("\x1b")
        time.sleep(0.3)
        if "Esc stops" not in terminal.text():
            terminal.send("\x03")
            time.sleep(0.2)
            mark = f"mark{number}x"
            terminal.send(mark)  # seen alone in the prompt, all before it was taken; and no second Ctrl+C leaves
            if shows(terminal, f"› {mark}"):
                terminal.send("\x7f" * len(mark))
                if shows(terminal, "›") and not re.search("Esc stops|stopping|search earlier", terminal.text()):
                    return
        terminal.reap()
        assert terminal.code is None, terminal.scrollback()
        assert time.monotonic() < end, f"stuck:\n{terminal.text()}"


def shows(terminal: Terminal, prompt: str) -> bool:
    """Whether the prompt's row soon is this."""
    end = time.monotonic() + 3
    while terminal.rows()[-2] != prompt and time.monotonic() < end:
        time.sleep(0.02)
    return terminal.rows()[-2] == prompt


@pytest.mark.long(sample=1)
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_typed_while_a_model_streams_the_program_goes_on_and_leaves_well(panto: Panto, seed: int) -> None:
    dice = Random(seed)
    (panto.cwd / "a.txt").write_text("alpha\n" * 200)
    with FakeModel() as fake:
        fake.replies = replies = Endless(dice)
        panto.config.write_text(CONFIG.format(url=fake.url))
        panto.env["VISUAL"] = "true"
        argv = panto.argv("--no-extensions")  # with the tour there would be another model to choose
        with Terminal(argv, size=(100, 30), env=panto.environ(), cwd=panto.cwd) as terminal:
            terminal.see("ask before running")
            for number in range(ROUNDS):
                one_round(terminal, dice, replies, number)
            leave(terminal)
    listed = panto("session", "list", "--json")
    assert listed.returncode == 0, listed.stderr


def one_round(terminal: Terminal, dice: Random, replies: Endless, number: int) -> None:
    """Random input, rest, then a line that must arrive and be answered."""
    replies.wanted = ""
    terminal.type("go on please\r", gap=0.01)
    sent: list[str] = []
    for _ in range(KEYS_A_ROUND):
        if dice.random() < 0.03:
            terminal.resize(dice.choice([20, 40, 60, 100, 160]), dice.choice([5, 10, 24, 40]))
        sent.append(dice.choice(KEYS + MORE))
        terminal.send(sent[-1])
        time.sleep(dice.choice([0.0, 0.005, 0.03, 0.08]))
        terminal.reap()
        assert terminal.code is None, f"{sent[-12:]}\n{terminal.scrollback()}"
    come_to_rest(terminal)
    text, replies.wanted = f"canary {number} {dice.random()}", f"answer {number}."
    terminal.type(text, gap=0.005)
    terminal.see(f"› {text}")
    time.sleep(0.2)
    terminal.send("\r")
    terminal.until(lambda: answered(terminal.text(), f"answer {number}."), f"an answer to {text}")


def answered(screen: str, text: str) -> bool:
    """Whether the answer to the last line sent stands at the screen's end."""
    rows = [row for row in screen.split("\n")[:-3] if row.strip()]
    return text in "".join(rows[-3:]) and "Esc stops" not in screen.split("\n")[-3]


def leave(terminal: Terminal) -> None:
    """Ctrl+C until it ends; the terminal must be as it was."""
    end = time.monotonic() + 20
    while terminal.code is None and time.monotonic() < end:
        terminal.send("\x03")
        time.sleep(0.3)
        terminal.reap()
    assert terminal.wait_end() == 0, terminal.scrollback()
    terminal.left_clean()
