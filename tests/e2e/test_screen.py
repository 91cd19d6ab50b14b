"""The screen in a real terminal, over a client without an engine: keys from the first moment, manners to the last."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import unicodedata
from pathlib import Path
from random import Random

import pytest

from tests.e2e.terminal import ROOT, Terminal


def start(scene: str = "", *, size: tuple[int, int] = (100, 30), env: dict[str, str] | None = None,
          answers: bool = True, wide: bool = False) -> Terminal:  # fmt: skip
    argv = [sys.executable, "-m", "tests.tui.app.program", scene]
    return Terminal(argv, size=size, env=env, cwd=ROOT, answers=answers, wide=wide)


def leave(terminal: Terminal) -> int:
    """Ctrl+C twice; once more where a busy machine has let too much time pass between."""
    for _ in range(5):
        terminal.send("\x03")
        terminal.until(lambda: "Ctrl+C again leaves" in terminal.text() or terminal.code is not None, "a warning")
        terminal.send("\x03")
        end = time.monotonic() + 6
        while terminal.code is None and time.monotonic() < end:
            terminal.reap()
            time.sleep(0.01)
        if terminal.code is not None:
            break
    return terminal.wait_end()


def test_every_key_typed_from_the_first_frame_on_arrives_and_is_never_lost_from_sight() -> None:
    text = "the quick brown fox jumps over the lazy dog 漢字 again and again"
    with start() as terminal:
        terminal.see("›")
        shortest, seen = 0, 0
        for character in text:
            terminal.send(character)
            time.sleep(0.012)
            row = terminal.rows()[-2]
            seen = max(seen, len(row))
            shortest = max(shortest, seen - len(row))
        terminal.see(f"› {text}")
        assert shortest == 0
        terminal.send("\r")
        terminal.see(f"you said: {text}")
        assert leave(terminal) == 0
        terminal.left_clean()


def test_the_first_frame_stands_where_the_screen_will_stand() -> None:
    with start("slow") as terminal:
        terminal.see("panto 0.1")
        terminal.see("ask before running")
        early = terminal.rows()
        terminal.until(lambda: b"\x1b[?1003h" in terminal.log, "the application")
        terminal.see("26k of 200k")
        late = terminal.rows()
        assert early[-3:-1] == late[-3:-1]
        assert early[0] == late[0]


def test_enter_escape_and_a_paste_of_the_first_moment_are_taken_in_order() -> None:
    with start() as terminal:
        terminal.see("›")
        terminal.send("one")
        time.sleep(0.05)
        terminal.send("\r")
        time.sleep(0.05)
        terminal.send("\x1b[200~two\nthree\x1b[201~")
        terminal.see("you said: one")
        terminal.see("› two")
        terminal.see("  three")


def test_ctrl_c_in_the_first_moment_ends_the_program_with_the_terminal_as_it_was() -> None:
    with start() as terminal:
        terminal.see("›")
        terminal.send("\x03")
        assert terminal.wait_end() == -signal.SIGINT
        terminal.left_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_gives_the_terminal_back(number: signal.Signals) -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.signal(number)
        assert terminal.wait_end() == 128 + number
        terminal.left_clean()


def test_a_signal_ends_a_program_whose_main_thread_runs_no_python() -> None:
    with start("stuck") as terminal:
        terminal.see("26k of 200k")
        terminal.type("x\r")
        time.sleep(1.0)
        terminal.signal(signal.SIGHUP)
        assert terminal.wait_end() == 128 + signal.SIGHUP
        terminal.left_clean()


def test_a_signal_in_the_middle_of_a_turn_leaves_the_way_back() -> None:
    with start("run") as terminal:
        terminal.see("26k of 200k")
        terminal.type("hello")
        terminal.send("\r")
        terminal.see("Esc stops")
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_end() == 128 + signal.SIGTERM
        terminal.left_clean()
        assert "this turn is not finished" in terminal.scrollback() and "panto --resume" in terminal.scrollback()


def test_leaving_leaves_the_answer_and_the_way_back_and_nothing_else() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.type("hello")
        terminal.send("\r")
        terminal.see("you said: hello")
        assert leave(terminal) == 0
        terminal.left_clean()
        kept = terminal.scrollback()
        assert "  you said: hello\n" in kept and "  panto --resume 3f2a9c0e\n" in kept
        assert "ask before running" not in kept
        log = bytes(terminal.log)
        assert log.count(b"\x1b[22;0t") == log.count(b"\x1b[23;0t") == 1


def test_an_exception_is_a_message_and_never_a_traceback(tmp_path: Path) -> None:
    with start("crash") as terminal:
        terminal.see("26k of 200k")
        terminal.type("x\r")
        assert terminal.wait_end() == 1
        terminal.left_clean()
        kept = terminal.scrollback()
        assert "Traceback" not in kept
        assert "the screen failed: AttributeError" in kept and "panto --resume" in kept


def test_ctrl_c_again_and_again_leaves_a_loop_that_answers_no_more() -> None:
    with start("block") as terminal:
        terminal.see("26k of 200k")
        terminal.type("x\r")
        time.sleep(0.3)
        end = time.monotonic() + 20
        while terminal.code is None and time.monotonic() < end:
            terminal.send("\x03")
            time.sleep(0.2)
            terminal.reap()
        assert terminal.wait_end() == 128 + signal.SIGINT
        terminal.left_clean()


def test_the_mouse_places_the_cursor_and_turns_the_transcript() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        for number in range(12):
            terminal.type(f"message {number}\r", gap=0.005)
            terminal.see(f"you said: message {number}")
        terminal.send("\x1b[<64;10;5M" * 12)
        terminal.see("you said: message 0")
        terminal.type("words here")
        terminal.see("› words here")
        terminal.send("\x1b[<0;5;29M\x1b[<0;5;29m")
        terminal.type("X")
        terminal.see("› woXrds here")


def test_stopping_the_process_and_going_on_keeps_the_draft() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.type("draft")
        terminal.send("\x1a")
        terminal.until(lambda: "T" in Path(f"/proc/{terminal.pid}/stat").read_text().rpartition(")")[2].split()[0],
                       "stopped")  # fmt: skip
        terminal.until(lambda: not terminal.modes_left_on(), "the terminal given back")
        terminal.signal(signal.SIGCONT)
        terminal.until(lambda: terminal.modes_left_on(), "modes back")
        terminal.see("› draft")
        terminal.type("ed")
        terminal.see("› drafted")
        assert leave(terminal) == 0
        terminal.left_clean()


def test_the_prompt_in_an_editor_comes_back(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, and more" "$(cat "$1")" > "$1.new"; mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    with start(env={"VISUAL": str(editor)}) as terminal:
        terminal.see("26k of 200k")
        terminal.type("text")
        terminal.send("\x07")
        terminal.see("› text, and more")
        terminal.type("!")
        terminal.see("and more!")
        assert leave(terminal) == 0
        terminal.left_clean()


def test_a_paste_is_one_draft_with_or_without_markers_and_sends_nothing() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.send("\x1b[200~a\r\nb\n")
        time.sleep(0.05)
        terminal.send("c\x1b[31m\n\x1b[201~")
        terminal.see("  c")
        assert [row.strip() for row in terminal.rows()[-5:-1]] == ["› a", "b", "c", ""]
        terminal.send("\x03")
        terminal.gone("› a")
        for byte in b"a\r\nb\nc\n":
            terminal.send(bytes([byte]))
        terminal.see("  c")
        time.sleep(0.2)
        assert "you said" not in terminal.text()


def test_a_megabyte_of_paste_is_a_chip_at_once() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.paste("x" * 1000 + "\n" + "some words in a line\n" * 50_000)
        terminal.see("50001 lines")
        terminal.type("ok")
        terminal.see("]ok")


def test_escape_is_a_key_within_a_moment_and_split_sequences_stay_keys() -> None:
    with start("run") as terminal:
        terminal.see("26k of 200k")
        terminal.type("go\r")
        terminal.see("Esc stops")
        terminal.send("\x1b")
        terminal.see("Interrupt")
        terminal.type("abc")
        for byte in b"\x1b[D":
            terminal.send(bytes([byte]))
            time.sleep(0.005)
        terminal.type("x")
        terminal.see("› abxc")


def test_bytes_that_are_no_keys_change_nothing() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        for data in (b"\xff\xfe", b"\x1b[13;2:3u", b"\x1b[99999999999u", b"\x1b[?1;2c", b"\x1bP1$r\x1b\\", b"\x1b[;u"):
            terminal.send(data)
        terminal.type("fine")
        terminal.see("› fine")
        assert terminal.rows()[-2] == "› fine"


def test_a_resize_leaves_no_ruins() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.type("hello\r")
        terminal.see("you said: hello")
        terminal.calm()
        before = terminal.text()
        terminal.resize(60, 20)
        terminal.until(lambda: len(terminal.rows()) == 20 and terminal.rows()[-1].endswith("26k"), "60 columns")
        terminal.calm()
        terminal.resize(100, 30)
        terminal.until(lambda: terminal.text() == before, "the same screen")


def test_sizes_in_quick_succession_end_with_the_last() -> None:
    dice = Random(7)
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.type("hello\r")
        terminal.see("you said: hello")
        terminal.calm()
        for _ in range(12):
            for _ in range(dice.randint(1, 8)):
                terminal.resize(dice.choice([20, 40, 60, 100, 160]), dice.choice([5, 10, 24, 40]))
                time.sleep(dice.choice([0, 0, 0.002, 0.006, 0.01, 0.02]))
            terminal.resize(100, 30)
            terminal.until(lambda: whole(terminal.rows()), "the screen at its last size")


def whole(rows: list[str]) -> bool:
    """A screen of 100 columns with everything in its place."""
    return "you said: hello" in "".join(rows) and rows[-1].endswith("26k of 200k") and rows[-3].startswith("─" * 70)


def test_an_idle_screen_writes_nothing() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.calm(3.0)  # one that writes by itself never is


def test_the_real_cursor_stands_where_the_next_character_goes() -> None:
    with start() as terminal:
        terminal.see("26k of 200k")
        terminal.type("漢字x")
        terminal.see("› 漢字x")
        terminal.calm()
        assert (terminal.screen.cursor.x, terminal.screen.cursor.y) == (2 + 5, 28)
        assert not terminal.screen.cursor.hidden


def test_in_tmux_no_string_is_sent_that_it_would_take_for_a_title() -> None:
    with start(env={"TMUX": "/tmp/x,1,0", "TERM": "tmux-256color"}) as terminal:
        terminal.see("26k of 200k")
        terminal.type("hi\r")
        terminal.see("you said: hi")
        assert leave(terminal) == 0
        assert b"\x1b_" not in terminal.log and b"\x1bP" not in terminal.log
        terminal.left_clean()


def test_without_colour_no_colour_is_written() -> None:
    with start("hold", env={"NO_COLOR": "1"}) as terminal:
        terminal.see("26k of 200k")
        terminal.type("hi\r")
        terminal.see("npm install")
        terminal.calm()
        log = bytes(terminal.log).rpartition(b"\x1b[?1003h")[2]
        codes = {code for found in re.findall(rb"\x1b\[([\d;]*)m", log) for code in found.split(b";")}
        assert codes <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"9", b"39", b"49", b"22", b"24", b"27"}


def test_a_terminal_that_answers_no_question_is_served_all_the_same() -> None:
    with start(answers=False, env={"TERM": "xterm", "COLORTERM": ""}) as terminal:
        terminal.see("26k of 200k")
        terminal.type("hi\r")
        terminal.see("you said: hi")
        assert leave(terminal) == 0
        terminal.left_clean()


def test_where_signs_would_be_two_cells_wide_others_are_drawn() -> None:
    with start("hold", wide=True) as terminal:
        terminal.see("26k of 200k")
        terminal.type("hi · there\r")
        terminal.see("npm install")
        terminal.calm()
        assert {char for char in terminal.text() if unicodedata.east_asian_width(char) == "A"} == set()
        assert "hi - there" in terminal.text() and "-- run this command? --" in terminal.text()


def test_a_closed_terminal_ends_the_program() -> None:
    terminal = start()
    with terminal:
        terminal.see("26k of 200k")
        os.kill(terminal.pid, 0)
        terminal.hang_up()
        assert terminal.wait_end(10) != 0


CONTROL = [chr(code) for code in (1, 5, 9, 10, 11, 12, 13, 15, 18, 20, 21, 23, 24, 25, 27, 31, 127)]
ESCAPED = ["[A", "[B", "[C", "[D", "[5~", "[6~", "[Z", "p", "r", "[1;3A", "[13;2u", "\r", "OP", "[I", "[O"]
MOUSE = ["[<0;9;5M", "[<0;9;5m", "[<64;9;5M", "[<65;9;5M", "[<32;20;9M"]
TYPED = [*"ab /@!?ynsejk漢é", "🇨🇭", "\xff", "/help\r", "/theme\r", "/sessions\r", "text\r"]
PASTED = ["[200~pasted\nlines\x1b[201~", "[200~" + "long\n" * 40 + "\x1b[201~"]
KEYS = [*CONTROL, *TYPED, *("\x1b" + rest for rest in (*ESCAPED, *MOUSE, *PASTED))]


@pytest.mark.long(sample=1)
@pytest.mark.parametrize("seed", range(12))
def test_no_keys_pastes_or_sizes_in_any_order_break_the_screen(seed: int) -> None:
    dice = Random(seed)
    with start("mix", env={"VISUAL": "true"}) as terminal:
        terminal.see("26k of 200k")
        for _ in range(400):
            if dice.random() < 0.04:
                terminal.resize(dice.choice([20, 40, 60, 100, 160]), dice.choice([5, 10, 24, 40]))
            terminal.send(dice.choice(KEYS))
            time.sleep(dice.choice([0.0, 0.0, 0.005, 0.03]))
            terminal.reap()
            assert terminal.code is None, terminal.scrollback()
        terminal.resize(100, 30)
        for _ in range(8):
            terminal.send("\x1b")
            time.sleep(0.05)
        end = time.monotonic() + 20
        while terminal.code is None and time.monotonic() < end:
            terminal.send("\x03")
            time.sleep(0.3)
            terminal.reap()
        assert terminal.wait_end() == 0, terminal.scrollback()
        terminal.left_clean()
