"""panto in a terminal: a pty that is drained without pause, and what stands on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte

from tests.bench.place import Place

ROWS, COLUMNS = 40, 120
# Sequences that the emulator does not know and would show as text: keyboard protocol, queries of modes.
_UNKNOWN = re.compile(rb"\x1b\[(?:\?[0-9;]*(?:\$p|u)|[<>=][0-9;]*[a-zA-Z])")
TICK = os.sysconf("SC_CLK_TCK")


class Terminal:
    """panto opened in a pty of 40 rows and 120 columns; a context manager that ends it.

    Output is only read and stamped while time runs; `screen` feeds it to an emulator afterwards, so that the emulator's
    work disturbs no measurement.
    """

    def __init__(self, place: Place) -> None:
        place.reset()
        self.began = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            self._become(place)
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~termios.ECHO  # what appears is panto's doing, not the kernel's
        termios.tcsetattr(self._fd, termios.TCSANOW, mode)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.chunks: list[tuple[float, bytes]] = []
        self._fed = 0
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    @staticmethod
    def _become(place: Place) -> None:
        """In the child: becomes panto."""
        os.chdir(place.work)
        try:
            os.execve(place.panto[0], place.panto, place.env)
        finally:
            os._exit(127)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(self.pid, sign)
            except ProcessLookupError:
                break
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                if select.select([self._fd], [], [], 0.02)[0]:
                    self._read()
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    os.close(self._fd)
                    return
        os.close(self._fd)

    # ------------------------------------------------------------ keys in, bytes out

    def type(self, text: str) -> float:
        """Sends keys; returns when (monotonic seconds)."""
        at = time.monotonic()
        os.write(self._fd, text.encode())
        return at

    def pump(self, seconds: float, until: Callable[[bytes], bool] | None = None) -> float | None:
        """Drains for so many seconds, or until a chunk meets the condition; returns when that one came, else None."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._fd], [], [], left)[0]:
                return None
            data = self._read()
            at = time.monotonic()
            if not data:
                raise RuntimeError(f"panto closed its terminal; last on it:\n{self.text()}")
            self.chunks.append((at, data))
            self._answer(data)
            if until and until(data):
                return at
        return None

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 1 << 16)
        except OSError:  # Linux says EIO once the other side is closed
            return b""

    def _answer(self, data: bytes) -> None:
        """What a terminal says of itself when asked: its attributes, and that it knows synchronised output."""
        if b"\x1b[c" in data:
            os.write(self._fd, b"\x1b[?62;22c")
        if b"\x1b[?2026$p" in data:
            os.write(self._fd, b"\x1b[?2026;2$y")
        if b"\x1b[6n" in data:
            os.write(self._fd, b"\x1b[2;2R")  # behind the one sign that panto writes to see how wide it is

    def quiet(self, seconds: float = 0.4, longest: float = 60) -> None:
        """Drains until nothing has come for so long."""
        end = time.monotonic() + longest
        while self.pump(seconds, lambda _: True) is not None and time.monotonic() < end:
            pass

    # ------------------------------------------------------------ what stands on the screen

    def text(self) -> str:
        """The screen as it stands, rows joined by newlines."""
        self._feed(lambda: False)
        return "\n".join(self._screen.display)

    def appeared(self, text: str) -> float | None:
        """When the text first stood on the screen within the output not looked at so far; None if it did not.

        Stops there: later output is still to be looked at."""
        return self._feed(lambda: text in "\n".join(self._screen.display))

    def appeared_any(self, characters: str) -> float | None:
        """Like `appeared`, for any one of these characters."""
        wanted = set(characters)
        return self._feed(lambda: not wanted.isdisjoint("".join(self._screen.display)))

    def _feed(self, found: Callable[[], bool]) -> float | None:
        while self._fed < len(self.chunks):
            at, data = self.chunks[self._fed]
            self._fed += 1
            self._stream.feed(_UNKNOWN.sub(b"", data))
            if found():
                return at
        return None

    def wait_for(self, text: str, seconds: float) -> float:
        """Drains until the text stands on the screen; returns when it first did. Raises RuntimeError if it does not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.pump(0.05)
            if (at := self.appeared(text)) is not None:
                return at
        raise RuntimeError(f"{text!r} did not appear within {seconds} s; on the screen:\n{self.text()}")

    # ------------------------------------------------------------ what it costs

    def tree(self) -> list[int]:
        """The process ids of panto and of all it started."""
        parents: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents.setdefault(int(_stat(entry)[1]), []).append(int(entry.name))
                except OSError:
                    continue
        found, todo = [], [self.pid]
        while todo:
            found.append(todo.pop())
            todo += parents.get(found[-1], [])
        return found

    def cpu(self) -> float:
        """CPU seconds spent so far by panto, its living children and those it has waited for."""
        total = 0
        for pid in self.tree():
            try:
                fields = _stat(Path(f"/proc/{pid}"))
            except OSError:
                continue
            total += sum(int(field) for field in fields[11:15])
        return total / TICK

    def cpu_fine(self) -> float:
        """CPU seconds of all living threads, to the microsecond; only right while no thread ends."""
        total = 0
        for pid in self.tree():
            for task in Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def pss(self) -> float:
        """Memory in MB (10^6 bytes): private pages and a fair share of shared ones, of panto and all it started."""
        total = 0
        for pid in self.tree():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total * 1024 / 1e6


def _stat(entry: Path) -> list[str]:
    """Fields of /proc/PID/stat from the state on (the name before it may hold spaces)."""
    return (entry / "stat").read_text().rpartition(") ")[2].split()
