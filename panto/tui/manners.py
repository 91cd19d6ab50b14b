"""What a terminal is told beside the screen: title, clipboard, and a word when someone is waited for."""

from __future__ import annotations

import base64
import os

from panto.tui.sanitize import clean_line

LARGEST_COPY = 100_000  # bytes; terminals drop longer ones without a word


def title(text: str) -> str:
    """The sequence that names the window."""
    return f"\x1b]0;{clean_line(text, 120)}\x07"


def copy(text: str) -> str:
    """The sequence that puts text on the clipboard (OSC 52), "" when it is too long for one."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    return f"\x1b]52;c;{data}\x07" if len(data) <= LARGEST_COPY else ""


def notice(text: str) -> str:
    """The sequence that tells a person who looks elsewhere; a bell where the terminal knows no better."""
    text = clean_line(text, 120).replace(";", ",")
    program = os.environ.get("TERM_PROGRAM", "")
    if os.environ.get("TMUX") or os.environ.get("STY"):
        return "\x07"
    if program in ("iTerm.app", "WezTerm", "ghostty") or os.environ.get("KITTY_WINDOW_ID"):
        return f"\x1b]9;{text}\x07"
    if os.environ.get("VTE_VERSION") or os.environ.get("TERM", "").startswith(("foot", "rxvt")):
        return f"\x1b]777;notify;panto;{text}\x07"
    return "\x07"
