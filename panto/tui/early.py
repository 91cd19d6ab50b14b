"""The first frame, drawn before anything heavy is imported, and the keys typed meanwhile.

Imports only os, sys, termios, select and threading (and `terminal`, which needs no more), so that a prompt that
takes keys is there within a few hundredths of a second. Textual later takes over: `Early.stop` gives it every byte.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading

from panto.tui.terminal import QUESTIONS, RESTORE, TITLE_KEPT, Terminal, restore_and_die, take

_ACCENT, _ASIDE, _PLAIN = "\x1b[34m", "\x1b[2m", "\x1b[0m"


class EarlyGreeting:
    """What the first frame shows.

    `lines`: the greeting at the top (at most a few, plain text). `rule`: the mode's label at the rule's right end.
    `status`: the left part of the last row, `context` its right part.
    """

    __slots__ = ("context", "lines", "rule", "status")

    def __init__(self, lines: tuple[str, ...] = (), rule: str = "", status: str = "", context: str = "") -> None:
        self.lines = lines
        self.rule = rule
        self.status = status
        self.context = context


class Early:
    """The first frame while it stands. `stop` ends it and hands over the terminal and what was typed."""

    def __init__(self, terminal: Terminal, greeting: EarlyGreeting) -> None:
        self.terminal = terminal
        self._greeting = greeting
        self._kept = b""  # read and not yet shown
        self._answers = b""
        self._shown = ""
        self._echoing = True
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._read, name="panto-early", daemon=True)

    def start(self) -> None:
        """Take the terminal, draw, and begin to read keys."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
            signal.signal(number, lambda found, _frame: restore_and_die(self.terminal, found))
        sys.excepthook = self._crash
        self.terminal.raw()
        self._draw()
        self._thread.start()

    def stop(self) -> tuple[str, bytes]:
        """End the early phase: the text shown in the prompt, and the bytes after it that are still to be read."""
        if self._thread.is_alive():
            os.write(self._wake_write, b"x")
            self._thread.join()
        for fd in (self._wake_read, self._wake_write):
            os.close(fd)
        self._wake_read = self._wake_write = -1
        return self._shown, self._answers + self._kept

    def _read(self) -> None:
        fd = self.terminal.fd_in
        while True:
            ready, _, _ = select.select([fd, self._wake_read], [], [])
            if fd in ready:
                try:
                    data = os.read(fd, 65536)
                except OSError:
                    return
                if not data:
                    return
                self._kept += data
                if self._echoing:
                    self._echo()
            if self._wake_read in ready:
                return

    def _echo(self) -> None:
        """Show leading printable text; from the first other key on, bytes are only kept."""
        data = self._kept
        at, before = 0, self._shown
        while at < len(data):
            byte = data[at]
            if byte == 0x1B and _is_answer(data[at : at + 6]):
                end = at + 6 if data[at + 1 : at + 2] == b"[" else data.find(b"\x1b\\", at + 2) + 2
                if not at + 6 <= end <= len(data):
                    break
                self._answers += data[at:end]
                at = end
            elif byte == 0x03:  # Ctrl+C before there is anything to stop: leave
                os.kill(os.getpid(), signal.SIGINT)  # the main thread's handler gives the terminal back
                at += 1
            elif byte in (0x7F, 0x08):
                self._shown = self._shown[:-1]
                at += 1
            elif byte < 0x20:
                self._echoing = False
                break
            else:
                end = at + 1
                while end < len(data) and data[end] & 0xC0 == 0x80:
                    end += 1
                try:
                    self._shown += data[at:end].decode()
                except UnicodeDecodeError:
                    break
                at = end
        self._kept = data[at:]
        if self._shown != before:
            columns, rows = _size(self.terminal.fd_out)
            text = self._shown if len(self._shown) < columns - 4 else self._shown[4 - columns :]
            self.terminal.write(f"\x1b[{rows - 1};3H{text}\x1b[K".encode())

    def _draw(self) -> None:
        columns, rows = _size(self.terminal.fd_out)
        greeting = self._greeting
        out = [TITLE_KEPT.decode(), f"\x1b[?1049h\x1b[?2004h\x1b[?7l{QUESTIONS}\x1b[2J"]
        for at, line in enumerate(greeting.lines[: max(0, rows - 4)]):
            out.append(f"\x1b[{1 + at};1H{line[:columns]}")
        label = f" {greeting.rule} ──" if greeting.rule else ""
        out.append(f"\x1b[{rows - 2};1H{_ASIDE}{'─' * max(0, columns - len(label))}{label[:columns]}{_PLAIN}")
        out.append(f"\x1b[{rows};1H{_ASIDE}{self._status(columns)}{_PLAIN}")
        out.append(f"\x1b[{rows - 1};1H{_ACCENT}›{_PLAIN} \x1b[?25h")
        self.terminal.write("".join(out).encode("utf-8", "replace"))

    def _status(self, columns: int) -> str:
        left, right = f"  {self._greeting.status}", self._greeting.context
        gap = columns - len(left) - len(right) - 2
        return left + " " * gap + right if gap > 0 else left[:columns]

    def _crash(self, kind: type[BaseException], error: BaseException, trace: object) -> None:
        self.terminal.give_back()
        sys.__excepthook__(kind, error, trace)  # type: ignore[arg-type]


def _is_answer(data: bytes) -> bool:
    """Whether these bytes begin an answer of the terminal (or may): about its colour, or where its cursor is."""
    places = (b"\x1b[2;2R", b"\x1b[2;3R")
    return data[1:2] in (b"", b"]") or any(place.startswith(data) for place in places)


def _size(fd: int) -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(fd)
    except OSError:
        return 80, 24
    return columns or 80, rows or 24


def start(greeting: EarlyGreeting) -> Early | None:
    """Draw the first frame at once and keep what is typed; None when there is no terminal to draw on."""
    terminal = take()
    if terminal is None:
        return None
    early = Early(terminal, greeting)
    early.start()
    return early


__all__ = ["RESTORE", "Early", "EarlyGreeting", "start"]
