"""The recorded walk: the real program in a real tmux through every moment of the screen's design.

    PANTO_WALK=walk pytest -n 0 tests/e2e/test_walk.py      leaves each moment as a text file in the folder `walk`

The essentials of each moment are asserted; how it looks in full is kept by the pictures of tests/tui.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.app.conftest import Panto, panto
from tests.e2e.test_random_input import CONFIG
from tests.e2e.tmux import Tmux
from tests.fake_model import FakeModel, Reply

assert panto  # a fixture
SHOP = '''"""A shop."""


class Cart:
    """Items and counts."""

    def __init__(self):
        self.items = []

    def total(self):
        t = 0
        for i in self.items:
            t = t + i.price
        return t
'''
NEW = '        """Sum over price times count."""\n        return sum(i.price * i.count for i in self.items)\n'
EDIT = {"path": "shop.py", "edits": [{"old": SHOP[SHOP.index("        t = 0") :], "new": NEW}]}
TABLE = "The price is added *once* per item, ~~never~~ always.\n\n| file | lines |\n|---|--:|\n| shop.py | 14 |\n"
WALK = os.environ.get("PANTO_WALK", "")


class Walk:
    """The terminal, the model, and the moments recorded so far."""

    def __init__(self, tmux: Tmux, fake: FakeModel) -> None:
        self.tmux, self.fake = tmux, fake
        self.moments: list[str] = []

    def say(self, text: str, *replies: Reply) -> None:
        """Type a prompt and send it; the model will answer so."""
        self.fake.replies += replies
        self.tmux.type(text)
        self.tmux.see(f"› {text}")
        self.tmux.keys("Enter")

    def moment(self, name: str) -> list[str]:
        """Keep the screen under this name; its rows."""
        rows = self.tmux.rows()
        self.moments.append(name)
        if WALK:
            Path(WALK).mkdir(exist_ok=True)
            (Path(WALK) / f"{len(self.moments):02d}-{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
        return rows

    def at_rest(self) -> None:
        """Wait until nothing runs."""
        self.tmux.until(lambda: not re.search(r"Esc stops|stopping", self.tmux.text()), "rest")


@pytest.fixture
def shop(panto: Panto) -> Panto:
    """The program in a small repository."""
    cwd = panto.cwd
    (cwd / "shop.py").write_text(SHOP)
    (cwd / "docs").mkdir()
    (cwd / "docs" / "makers.md").write_text("# Makers\n")
    for number in range(10):
        (cwd / f"part-{number}.txt").write_text("x\n" * 8)
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "shop"]):
        subprocess.run(["git", *words], cwd=cwd, check=True, timeout=30)
    return panto


def test_a_walk_through_every_moment_of_the_design(shop: Panto, tmp_path: Path) -> None:
    with FakeModel() as fake, Tmux(tmp_path, env=shop.environ()) as tmux:
        walk = Walk(tmux, fake)
        tmux.run(["cd", str(shop.cwd)])
        fresh_home(walk, shop)
        shop.config.write_text(CONFIG.format(url=fake.url))
        tmux.keys("C-l")
        tmux.run(shop.argv())
        tmux.see("ask before running")
        tmux.see("of 100k")
        for part in (typing, cards, approvals, stopping, waiting, lists, narrow, leaving):
            part(walk)


def fresh_home(walk: Walk, shop: Panto) -> None:
    tmux = walk.tmux
    tmux.run(shop.argv())
    tmux.see("No model yet")
    tmux.see("── no model ──")
    rows = walk.moment("fresh-home")
    assert "/login" in "\n".join(rows[:4]) and "/tour" in "\n".join(rows[:4])
    assert rows[33].startswith("── no model") and rows[34].startswith("›") and "no model" in rows[35]
    tmux.keys("C-c")
    tmux.see("Ctrl+C again leaves")
    tmux.keys("C-c")
    tmux.see("$")


def typing(walk: Walk) -> None:
    """The first screen, several lines, a paste, completions: the prompt's row never moves."""
    tmux = walk.tmux
    rows = walk.moment("first-screen")
    assert rows[0].startswith("  panto ") and "main" in rows[0] and "/help" in rows[1] and rows[34] == "›"
    tmux.type("one")
    tmux.keys("C-j")
    tmux.type("two")
    tmux.see("  two")
    assert walk.moment("several-lines")[33:35] == ["› one", "  two"]
    tmux.keys("C-c")
    tmux.gone("one")
    tmux.paste("\n".join(f"{n:02d}  pasted line" for n in range(1, 31)))
    tmux.see("[30 lines: 01  pasted")
    walk.moment("paste")
    tmux.keys("BSpace")
    tmux.gone("[30 lines")
    tmux.type("/mo")
    tmux.see("/model")
    rows = walk.moment("commands")
    assert rows[34] == "› /mo" and rows[32].startswith("  /mo")
    tmux.keys("Escape", "C-u")
    tmux.gone("› /mo")
    tmux.type("look at @ma")
    tmux.see("makers.md")
    assert walk.moment("files")[34] == "› look at @ma" and ".git" not in tmux.text()
    tmux.keys("Escape", "C-u")
    tmux.gone("› look")
    walk.say("/nosuch thing")
    tmux.see("nothing was sent")
    walk.moment("unknown-command")
    assert not walk.fake.requests
    tmux.keys("C-u")


def cards(walk: Walk) -> None:
    """A streamed answer; reading, a failed command, an edit, ten reads in one row; the turn's sums."""
    tmux = walk.tmux
    walk.say("Explain", Reply([piece + " " for piece in TABLE.split(" ")], rate=60))
    tmux.see("Esc stops")
    walk.moment("streaming")
    tmux.see("shop.py      14")
    walk.at_rest()
    tmux.until(lambda: re.search(r"( s · .* in · .* out| in · .* out)\n", tmux.text()), "the turn's sums")
    walk.moment("answer")
    tmux.keys("BTab")
    tmux.see("accept edits")
    walk.say(
        "Fix the total", Reply("I fix `total`.", calls=[("read", {"path": "shop.py"}), ("edit", EDIT)]),
        Reply(calls=[("read", {"path": f"part-{n}.txt"}) for n in range(10)]), Reply("Done."),
    )  # fmt: skip
    tmux.see("10 files")
    tmux.see("Done.")
    walk.at_rest()
    text = "\n".join(walk.moment("cards"))
    assert "✓ read   shop.py" in text and "✓ edit   shop.py" in text and "+2 −4" in text
    assert '+         """Sum over price times count."""' in text
    assert text.count("part-") == 2, "ten reads are one row"


def approvals(walk: Walk) -> None:
    """Ordinary and dangerous questions: Enter is never yes to the second."""
    tmux = walk.tmux
    walk.say(
        "Run", Reply(calls=[("bash", {"command": "seq 40; exit 3"})]),
        Reply(calls=[("bash", {"command": "rm -rf build"})]), Reply("Well."),
    )  # fmt: skip
    tmux.see("run this command?")
    assert "$ seq 40; exit 3" in "\n".join(walk.moment("approval"))
    tmux.until(lambda: _pressed(tmux, "y", "exit 3 ·"), "an answer")
    tmux.see("rm -rf build")
    tmux.see("deletes files")
    text = "\n".join(walk.moment("dangerous"))
    assert "Enter or y" not in text and "s  this session" not in text
    failed = text[text.index("✗ run    seq 40") :]
    assert "… 32 lines above" in failed and "     40" in failed
    tmux.keys("Enter")
    tmux.until(lambda: _pressed(tmux, "n", "you said no"), "a refusal")
    tmux.see("Well.")
    walk.at_rest()
    walk.moment("refused")


def _pressed(tmux: Tmux, key: str, seen: str) -> bool:
    """Press an answer; while keys come one after the other they are no answers, so the next is given time."""
    tmux.keys(key)
    end = time.monotonic() + 2
    while seen not in tmux.text() and time.monotonic() < end:
        time.sleep(0.05)
    return seen in tmux.text()


def stopping(walk: Walk) -> None:
    """Escape with a message queued: all ends, nothing is sent, the text is back in the prompt."""
    tmux = walk.tmux
    tmux.keys("C-u", "BSpace", "BSpace", "BSpace")
    tmux.type("/mode yolo")
    tmux.keys("Enter")
    tmux.see("runs everything")
    walk.say("Build", Reply("On it.", calls=[("bash", {"command": "echo compiling; sleep 60"})]))
    tmux.see("compiling")
    tmux.until(lambda: re.search(r"sleep 60 · \d+ s · Esc stops", tmux.text()), "the rule says what runs")
    walk.moment("running")
    walk.say("also check the README")
    tmux.see("» also check the README")
    assert "Alt+Up takes it back" in "\n".join(walk.moment("queued"))
    sent = len(walk.fake.requests)
    tmux.keys("Escape")
    tmux.see("stopped by you after")
    tmux.see("› also check the README")
    walk.at_rest()
    rows = walk.moment("stopped")
    assert rows[34] == "› also check the README" and len(walk.fake.requests) == sent
    tmux.keys("C-u")
    tmux.gone("› also check")


def waiting(walk: Walk) -> None:
    """A rate limit counts down and Enter cuts it short; a server that fails for good says what to do."""
    tmux = walk.tmux
    walk.say("Again", Reply(status=429, headers={"Retry-After": "50"}), Reply("Here."))
    rule = r"rate limited \(429\) · again in \d+ s · try 2 of \d+ · Enter now · Esc stops"
    tmux.until(lambda: re.search(rule, tmux.text()), "the countdown")
    walk.moment("retry")
    tmux.keys("Enter")
    tmux.see("Here.")
    tmux.see("answered on try 2")
    walk.at_rest()
    walk.say("Fail", Reply(status=401))
    tmux.see("Enter tries again")
    text = "\n".join(walk.moment("failed"))
    assert "✗ " in text and "Nothing is lost" in text


def lists(walk: Walk) -> None:
    """Every screen opens, says how to leave, and leaves."""
    tmux = walk.tmux
    for name, keys, seen in (
        ("models", ["M-p"], "── model ──"), ("help", ["F1"], "── help ──"), ("sessions", ["C-x", "s"], "── sessions"),
        ("turns", ["C-x", "t"], "── turns ──"), ("agents", ["C-x", "a"], "── agents ──"),
    ):  # fmt: skip
        tmux.keys(*keys)
        tmux.see(seen)
        assert "Esc back" in "\n".join(walk.moment(name))
        tmux.keys("Escape")
        tmux.see("runs everything")
    for name in ("context", "cost", "settings", "theme", "diff"):
        tmux.type(f"/{name}")
        tmux.see(f"› /{name}")
        tmux.keys("Enter")
        tmux.gone("runs everything")
        tmux.until(lambda: "loading" not in tmux.text() and " Esc " in tmux.rows()[-2], "the list")
        walk.moment(name)
        tmux.keys("Escape")
        tmux.see("runs everything")
    tmux.keys("C-t")
    tmux.see("reading ·")
    walk.moment("reading")
    tmux.keys("Escape")
    tmux.see("runs everything")


def narrow(walk: Walk) -> None:
    """To 60x20 and back: the same screen again; three rows at the bottom at every size."""
    tmux = walk.tmux
    before = tmux.rows()
    for size in ((80, 24), (60, 20)):
        tmux.resize(*size)
        tmux.until(lambda size=size: len(tmux.rows()) == size[1] + 1 and tmux.rows()[-3] == "›", "the size")  # type: ignore[misc]
        walk.moment(f"at-{size[0]}x{size[1]}")
    tmux.resize(120, 36)
    tmux.until(lambda: tmux.rows() == before, "the same screen")


def leaving(walk: Walk) -> None:
    """What stays in the scrollback is the last answer, what it cost, and the way back."""
    tmux = walk.tmux
    tmux.keys("C-c")
    tmux.see("Ctrl+C again leaves")
    tmux.keys("C-c")
    tmux.see("panto --resume")
    tmux.until(lambda: tmux.ask("display", "-p", "#{alternate_on}").strip() == "0", "the normal screen")
    text = "\n".join(walk.moment("left"))
    assert "shop.py +2 −4" in text and re.search(r"\d+ turns · [\d.]+k tokens", text) and "Here." in text
