"""A real program in a pseudo-terminal: type, paste, resize, wait for what is on the screen, look at what is left.

The terminal is drained without pause by a thread, since a program that writes into a full one stalls. It answers the
questions terminals answer (synchronized output, the background's colour, how wide it draws a sign).
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 30.0
_MODES = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
_UNKNOWN_TO_PYTE = re.compile(
    rb"\x1b\[[<>=?][\d;]*[um]|\x1b\[\?[\d;]*\$p|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[2[23];0t"
)


class Terminal:
    """Starts `argv` at once. Use as a context: the program is killed at the end."""

    def __init__(self, argv: Sequence[str], *, size: tuple[int, int] = (120, 36), env: Mapping[str, str] | None = None,
                 cwd: Path | None = None, answers: bool = True, wide: bool = False) -> None:  # fmt: skip
        self.log = bytearray()
        self.times: list[tuple[float, int]] = []
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self._undecoded = b""
        self._answers, self._wide = answers, wide
        self._closed = self._hung_up = False
        self._lock = threading.Lock()
        self.code: int | None = None
        self.began = time.monotonic()
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8",
                       "PYTHONPATH": str(ROOT)}  # fmt: skip
        for name in ("NO_COLOR", "TMUX", "COLUMNS", "LINES", "SSH_CONNECTION", "COLORFGBG"):
            environment.pop(name, None)
        environment.update(env or {})
        self._slave_end, self._child_end = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self._child_end)
        self.pid = os.fork()
        if self.pid == 0:
            self._become(argv, environment, cwd)
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def _become(self, argv: Sequence[str], environment: Mapping[str, str], cwd: Path | None) -> None:
        try:
            os.setsid()
            fcntl.ioctl(self._child_end, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self._child_end, fd)
            os.closerange(3, 256)
            if cwd is not None:
                os.chdir(cwd)
            os.execvpe(argv[0], list(argv), dict(environment))
        finally:
            os._exit(127)

    def _drain(self) -> None:
        while not self._closed:
            try:
                ready, _, _ = select.select([self._slave_end], [], [], 0.1)
                data = os.read(self._slave_end, 65536) if ready else b""
            except OSError:
                return
            if data:
                with self._lock:
                    self.log += data
                    self.times.append((time.monotonic(), len(self.log)))
                    self._feed(data)
                if self._answers:
                    self._reply(data)

    def _feed(self, data: bytes) -> None:
        data = self._undecoded + data
        cut = data.rfind(b"\x1b")
        whole = cut < 0 or re.match(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[^\[\]])", data[cut:])
        self._undecoded = b"" if whole else data[cut:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data if whole else data[:cut]))

    def _reply(self, data: bytes) -> None:
        if b"\x1b[?2026$p" in data:
            self.send(b"\x1b[?2026;2$y")
        if b"\x1b[6n" in data:
            self.send(b"\x1b[2;3R" if self._wide else b"\x1b[2;2R")
        if b"\x1b]11;?" in data:
            self.send(b"\x1b]11;rgb:1a1a/1b1b/1e1e\x1b\\")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.wait_end()
        self._closed = True  # a closed descriptor's number is soon another terminal's
        self._reader.join()
        if not self._hung_up:
            os.close(self._slave_end)
            os.close(self._child_end)

    # --- the person ------------------------------------------------------------------------------------------

    def send(self, data: str | bytes) -> None:
        """These bytes, as one write."""
        os.write(self._slave_end, data.encode() if isinstance(data, str) else data)

    def type(self, text: str, gap: float = 0.03) -> None:
        """Key by key, as a person would."""
        for character in text:
            self.send(character)
            time.sleep(gap)

    def paste(self, text: str) -> None:
        """As a terminal pastes."""
        self.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Another window size."""
        with self._lock:  # the screen first: what is drawn for the new size must not be cut to the old one
            self.screen.resize(rows, columns)
            fcntl.ioctl(self._child_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, number: int) -> None:
        """A signal from outside."""
        os.kill(self.pid, number)

    def hang_up(self) -> None:
        """Close the terminal under the program."""
        self._closed = True
        self._reader.join()
        os.close(self._slave_end)
        os.close(self._child_end)
        self._hung_up = True

    # --- what is seen ----------------------------------------------------------------------------------------

    def text(self) -> str:
        """The screen as it stands."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def rows(self) -> list[str]:
        """The screen's rows."""
        return self.text().split("\n")

    def until(self, true: Callable[[], object], what: str, deadline: float = DEADLINE) -> None:
        """Wait until something holds. Raises AssertionError with the screen when it never does."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            if true():
                return
            if self.code is None:
                self.reap()
            time.sleep(0.005)
        raise AssertionError(f"never: {what}\n{self.text()}\nexit {self.code}; {bytes(self.log[-2000:])!r}")

    def see(self, text: str, deadline: float = DEADLINE) -> None:
        """Wait until this is on the screen."""
        self.until(lambda: text in self.text(), f"{text!r} on the screen", deadline)

    def gone(self, text: str, deadline: float = DEADLINE) -> None:
        """Wait until this is not on the screen."""
        self.until(lambda: text not in self.text(), f"{text!r} gone", deadline)

    def calm(self, seconds: float = 0.3) -> None:
        """Wait until nothing was written for so long."""
        self.until(lambda: self.times and time.monotonic() - self.times[-1][0] > seconds, "calm")

    # --- the end ---------------------------------------------------------------------------------------------

    def reap(self) -> None:
        """Look whether the program has ended."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.code = os.waitstatus_to_exitcode(status)

    def wait_end(self, deadline: float = DEADLINE) -> int:
        """Wait for the program; its exit code, negative for a signal."""
        end = time.monotonic() + deadline
        while self.code is None and time.monotonic() < end:
            self.reap()
            time.sleep(0.005)
        assert self.code is not None, f"did not end\n{self.text()}"
        time.sleep(0.1)  # the drain thread may still hold the last bytes
        return self.code

    def modes_left_on(self) -> set[str]:
        """Private modes switched on and not off again."""
        on: set[str] = set()
        for numbers, way in _MODES.findall(bytes(self.log)):
            for number in numbers.decode().split(";"):
                (on.add if way == b"h" else on.discard)(number)
        return on - {"7", "25"}

    def left_clean(self) -> None:
        """Assert that the terminal is as it was found."""
        assert self.modes_left_on() == set()
        last = [way for number, way in _MODES.findall(bytes(self.log)) if number == b"25"]
        assert not last or last[-1] == b"h", "cursor hidden"
        assert bytes(self.log).count(b"\x1b[<u") >= bytes(self.log).count(b"\x1b[>5u") >= 0
        assert termios.tcgetattr(self._child_end) == self.before

    def scrollback(self) -> str:
        """What was written on the normal screen after the last full-screen part."""
        tail = bytes(self.log).rpartition(b"\x1b[?1049l")[2]
        text = tail.decode("utf-8", "replace").replace("\r", "")
        return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07", "", text)
