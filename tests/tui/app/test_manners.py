"""What a terminal is told beside the screen."""

from __future__ import annotations

import pytest

from panto.tui import manners


def test_a_title_cannot_end_its_own_sequence() -> None:
    assert manners.title("a\x07b\x1b]52;c;x\x07") == "\x1b]0;ab\x07"


def test_the_clipboard_takes_text_as_base64_and_nothing_too_long() -> None:
    assert manners.copy("é") == "\x1b]52;c;w6k=\x07"
    assert manners.copy("x" * 200_000) == ""


@pytest.mark.parametrize(
    ("env", "start"),
    [
        ({"TERM_PROGRAM": "WezTerm"}, "\x1b]9;"),
        ({"KITTY_WINDOW_ID": "1"}, "\x1b]9;"),
        ({"VTE_VERSION": "7000"}, "\x1b]777;notify;"),
        ({"TERM": "xterm"}, "\x07"),
        ({"TERM_PROGRAM": "WezTerm", "TMUX": "x"}, "\x07"),
    ],
)
def test_a_notice_speaks_the_terminals_own_way(
    env: dict[str, str], start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM_PROGRAM", "KITTY_WINDOW_ID", "VTE_VERSION", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert manners.notice("panto: done; really\x07").startswith(start)
    assert manners.notice("a;b").count(";") <= 3
