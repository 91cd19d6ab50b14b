"""The real program in a real terminal: a pty, and pyte for what is on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

PATIENCE = 40.0


class Terminal:
    """A program in a terminal of `columns` by `rows`. Use it as a context manager: it ends the program."""

    def __init__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], columns: int = 110, rows: int = 36
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.code: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], list(argv), dict(env))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    @property
    def text(self) -> str:
        """What is on the screen, without the space at the line ends."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def send(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def enter(self, text: str) -> None:
        """Types a line as a person does: a burst that ends in a line end would count as pasted."""
        self.send(text)
        self.until(f"› {text}")
        end = time.monotonic() + PATIENCE
        while f"› {text}" in self.text.splitlines()[-2]:
            assert time.monotonic() < end, f"{text} is not sent; on the screen:\n{self.text}"
            self.pump(0.5)
            self.send("\r")
            self.pump(0.5)

    def pump(self, seconds: float) -> bool:
        """Reads what comes within so long; false when the program has closed the terminal."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                return True
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.raw += data
            self._stream.feed(data)
        return True

    def until(self, *words: str) -> str:
        """Waits until all of these are on the screen; gives the screen."""
        end = time.monotonic() + PATIENCE
        while not all(word in self.text for word in words):
            alive = self.pump(0.05)
            assert alive and time.monotonic() < end, f"{words} did not come; on the screen:\n{self.text}"
        return self.text

    def answer(self, question: str, key: str) -> None:
        """Waits for a question and answers it; a dialog takes no key in its first moment, so it may need another."""
        self.until(question)
        end = time.monotonic() + PATIENCE
        while question in self.text:
            assert time.monotonic() < end, f"{key} does not answer; on the screen:\n{self.text}"
            self.send(key)
            self.pump(0.8)

    def leave(self) -> int:
        """Waits for the program's end; gives its exit code."""
        end = time.monotonic() + PATIENCE
        while True:
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                self.pump(0.2)
                return self.code
            assert time.monotonic() < end, f"it does not end; on the screen:\n{self.text}"
