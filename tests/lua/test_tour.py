"""The tour in the real program: without a screen, without extensions, without Lua."""

import time
from pathlib import Path

import pytest

from tests.app.conftest import Panto
from tests.app.conftest import panto as panto
from tests.app.terminal import Terminal

NO_LUA = "raise ImportError('broken on purpose')\n"


@pytest.fixture
def no_lua(tmp_path: Path) -> str:
    """A PYTHONPATH on which lupa cannot be imported."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "lupa.py").write_text(NO_LUA)
    return f"{tmp_path / 'broken'}:{Path(__file__).resolve().parents[2]}"


def refused(terminal: Terminal) -> None:
    """Ask for the tour; what is refused stays in the composer."""
    terminal.send("/tour ")
    terminal.until("› /tour")
    end = time.monotonic() + 30
    while "the tour is an extension" not in terminal.text:
        assert time.monotonic() < end, terminal.text
        terminal.pump(0.5)  # a burst that ends in a line end would count as pasted
        terminal.send("\r")
        terminal.pump(0.5)


def test_the_guide_answers_without_a_screen(panto: Panto) -> None:
    (panto.cwd / "README.md").write_text("# Here\n")
    done = panto("-p", "Show me around.", "--model", "tour:guide", "--mode", "yolo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "panto --continue" in done.stdout


def test_without_extensions_the_tour_says_what_it_needs(panto: Panto) -> None:
    done = panto("-p", "Show me around.", "--model", "tour:guide", "--no-extensions")
    assert done.returncode == 2
    assert "the tour is an extension" in done.stderr and "--no-extensions" in done.stderr
    with Terminal(panto.argv("--no-extensions"), panto.cwd, panto.environ()) as terminal:
        text = terminal.until("No model yet.", "/login", "/model")
        assert "/tour" not in text
        refused(terminal)


def test_where_there_is_no_lua_panto_opens_and_says_so(panto: Panto, no_lua: str) -> None:
    with Terminal(panto.argv(), panto.cwd, panto.environ(PYTHONPATH=no_lua)) as terminal:
        terminal.until("No model yet.", "/login", "no extension is loaded", "broken on purpose")
        refused(terminal)
        terminal.send("\x03")
        terminal.send("\x03")
        assert terminal.leave() == 0
