"""How panto takes a terminal and gives it back, on every path.

Imported before anything else is loaded, so it needs nothing but the standard library's small modules.
"""

from __future__ import annotations

import os
import signal
import sys
import termios

RESTORE = (
    b"\x1b[?2026l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?2048l\x1b[?1004l"
    b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m"
)
"""Every mode that panto or Textual may have switched on, off; the normal screen, the cursor and plain text back."""

TITLE_KEPT = b"\x1b[22;0t"
TITLE_BACK = b"\x1b[23;0t"
QUESTIONS = "\x1b]11;?\x1b\\\x1b[2;1H·\x1b[6n"
"""What colour is the ground, and where is the cursor after one sign of ambiguous width at the second row's beginning?

Not in the first row: the answer would read as Shift+F3. The sign is to be drawn over.
"""
GRACE_S = 4  # seconds that an orderly end may take after a signal

Attributes = list["int | list[bytes | int]"]


class Terminal:
    """The tty as it was found. One for each process; `give_back` may be called any number of times."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in = fd_in
        self.fd_out = fd_out
        self.saved: Attributes = _cooked(termios.tcgetattr(fd_in))
        self.taken = True

    def raw(self) -> None:
        """Keys one by one, nothing echoed, no signals from the keyboard, output still translated."""
        attributes = termios.tcgetattr(self.fd_in)
        iflag, lflag, chars = attributes[0], attributes[3], attributes[6]
        attributes[0] = iflag & ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        attributes[3] = lflag & ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        chars[termios.VMIN], chars[termios.VTIME] = 1, 0
        termios.tcsetattr(self.fd_in, termios.TCSANOW, attributes)
        self.taken = True

    def write(self, data: bytes) -> None:
        """Write all of it; a terminal that is gone is not an error."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.fd_out, view) :]
        except OSError:
            pass

    def give_back(self) -> None:
        """The terminal as it was found."""
        if not self.taken:
            return
        self.taken = False
        self.write(RESTORE + TITLE_BACK + modify_other_keys(False))
        try:
            termios.tcsetattr(self.fd_in, termios.TCSANOW, self.saved)
        except (termios.error, OSError):
            pass


def _cooked(attributes: Attributes) -> Attributes:
    """What to give back: as found, unless a program that was killed had left keys one by one and without echo."""
    iflag, lflag = attributes[0], attributes[3]
    if isinstance(iflag, int) and isinstance(lflag, int) and not lflag & (termios.ICANON | termios.ECHO):
        attributes[0] = iflag | termios.ICRNL | termios.IXON
        attributes[3] = lflag | termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
    return attributes


def take() -> Terminal | None:
    """The process's terminal, or None where there is none fit for a screen (a pipe, TERM=dumb)."""
    if os.environ.get("TERM", "") in ("", "dumb"):
        return None
    try:
        fd_in, fd_out = sys.__stdin__.fileno(), sys.__stderr__.fileno()  # type: ignore[union-attr]
        if not (os.isatty(fd_in) and os.isatty(fd_out) and os.isatty(1)):
            return None
        return Terminal(fd_in, fd_out)
    except (AttributeError, ValueError, OSError, termios.error):
        return None


def modify_other_keys(on: bool) -> bytes:
    """xterm's and tmux's way to tell Shift+Enter from Enter (kitty's is asked for elsewhere)."""
    if not (os.environ.get("TMUX") or os.environ.get("XTERM_VERSION")):
        return b""
    return b"\x1b[>4;1m" if on else b"\x1b[>4m"


def restore_and_die(terminal: Terminal, number: int) -> None:
    """End the process by this signal with the terminal given back."""
    terminal.give_back()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
