"""Terminal manners that only a real tmux can show, and what is written where a terminal can do little."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import time
from pathlib import Path

from tests.app.conftest import Panto, panto
from tests.e2e.terminal import ROOT, Terminal
from tests.e2e.tmux import Tmux

assert panto  # a fixture
ENV = {"PYTHONPATH": str(ROOT), "COLORTERM": "truecolor"}
PROGRAM = shlex.join([sys.executable, "-m", "tests.tui.app.program"])
FLAGS = "#{alternate_on}#{mouse_any_flag}#{cursor_flag}"


def leave(tmux: Tmux) -> None:
    tmux.keys("C-c")
    tmux.see("Ctrl+C again leaves")
    tmux.keys("C-c")


def test_after_a_kill_the_next_start_leaves_the_terminal_as_a_shell_wants_it(tmp_path: Path) -> None:
    script = tmp_path / "twice"  # a shell that does not mend the terminal by itself
    script.write_text(f"{PROGRAM}\necho killed\n{PROGRAM}\nstty -a\nread -r line\necho got-$line\n")
    with Tmux(tmp_path, env=ENV) as tmux:
        tmux.run(["sh", str(script)])
        tmux.see("26k of 200k")
        tmux.type("draft")
        tmux.see("› draft")
        tmux.ask("run-shell", f"pkill -KILL -P $(pgrep -f {script} | head -1)")
        tmux.see("Ask for something")
        tmux.until(lambda: "› draft" not in tmux.text() and "26k of 200k" in tmux.text(), "the second start")
        leave(tmux)
        tmux.see("; swtch")
        assert tmux.ask("display", "-p", FLAGS).strip() == "001"
        text = tmux.text()
        assert {"icanon", "echo", "isig", "icrnl", "iexten"} <= set(text.split())
        tmux.type("x")
        tmux.keys("Enter")
        tmux.see("got-x")


def test_shift_enter_is_a_new_line_in_tmux_with_extended_keys(tmp_path: Path) -> None:
    options = ["set -s extended-keys on", "set -as terminal-features 'xterm*:extkeys'"]
    with Tmux(tmp_path, options=options, env=ENV) as tmux:
        tmux.run(["sh", "-c", PROGRAM])
        tmux.see("26k of 200k")
        tmux.type("one")
        tmux.keys("S-Enter")
        tmux.type("two")
        tmux.see("  two")
        assert tmux.rows()[32:34] == ["› one", "  two"] or tmux.rows()[33:35] == ["› one", "  two"]
        tmux.keys("M-Enter")
        tmux.type("three")
        tmux.see("  three")


def test_title_clipboard_and_suspension_in_tmux(tmp_path: Path) -> None:
    with Tmux(tmp_path, options=["set -s set-clipboard on", "set -g allow-rename on"], env=ENV) as tmux:
        tmux.run(["env", *shlex.split(PROGRAM)])
        tmux.see("26k of 200k")
        tmux.type("hello")
        tmux.keys("Enter")
        tmux.see("you said: hello")
        tmux.until(lambda: "panto" in tmux.ask("display", "-p", "#{pane_title}"), "the title")
        tmux.type("/copy")
        tmux.keys("Enter")
        tmux.until(lambda: tmux.ask("show-buffer") == "you said: hello", "the copy")
        tmux.type("draft")
        tmux.see("› draft")
        tmux.keys("C-z")
        tmux.see("Stopped")
        assert tmux.ask("display", "-p", FLAGS).strip() == "001"
        tmux.type("fg")
        tmux.keys("Enter")
        tmux.see("› draft")
        assert "you said: hello" in tmux.text()


def test_sixteen_colours_are_written_where_there_are_no_more(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.tui.app.program", "hold"]
    with Terminal(argv, size=(100, 30), env={"TERM": "xterm", "COLORTERM": ""}, cwd=ROOT) as terminal:
        terminal.see("26k of 200k")
        terminal.type("hi\r")
        terminal.see("npm install")
        terminal.calm()
        codes = re.findall(rb"\x1b\[([\d;]*)m", bytes(terminal.log))
        assert codes and not any(b"38;2" in code or b"38;5" in code or b"48;" in code for code in codes)


def test_a_dumb_terminal_gets_lines(panto: Panto) -> None:
    with Terminal(panto.argv(), env=panto.environ(TERM="dumb"), cwd=panto.cwd) as terminal:
        terminal.see("Model none yet")
        assert b"\x1b" not in bytes(terminal.log)
        terminal.send("\x04")
        assert terminal.wait_end() == 0
        terminal.left_clean()


def test_reduced_motion_turns_no_spinner(panto: Panto) -> None:
    argv = [sys.executable, "-m", "tests.tui.app.program", "run"]
    with Terminal(argv, size=(100, 30), env={"PANTO_TEST_STILL": "1"}, cwd=ROOT) as terminal:
        terminal.see("26k of 200k")
        terminal.type("hi\r")
        terminal.see("⠿ working")
        time.sleep(1.5)
        assert not set("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") & set(bytes(terminal.log).decode(errors="replace"))
        terminal.signal(signal.SIGTERM)
        terminal.wait_end()
