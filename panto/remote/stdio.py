"""Standard output and input without ever holding up the loop, and the signals a program is told to go by."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator

PIECE = select.PIPE_BUF
"""A pipe that is said to be writable takes this much at once."""
FULL = 1 << 20
"""From here on, whoever writes should wait: the reader is slow."""

PATIENCE_S = 2.0
"""How long a reader that takes nothing is waited for, once the program was told to end."""


class Output:
    """Bytes to a file descriptor, at once where it takes them, else as it does. A closed reader is no error.

    `closed` is set when nobody reads any more; `failed` says why where it was not the reader (a full disk).
    """

    def __init__(self, fd: int, on_closed: Callable[[], None] = lambda: None) -> None:
        self.fd = fd
        self.closed = False
        self.failed = ""
        self._on_closed = on_closed
        self._pending: deque[bytes] = deque()
        self._size = 0
        self._taken = 0
        self._hurried = False
        self._waiting = False
        self._empty = asyncio.Event()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    @property
    def full(self) -> bool:
        return self._size > FULL

    def put(self, data: bytes) -> None:
        """Writes now or later, in order; never blocks."""
        if self.closed:
            return
        self._pending.append(data)
        self._size += len(data)
        if not self._waiting:
            self._write()

    async def drained(self) -> None:
        """Returns when everything is written or nobody reads."""
        while self._pending and not self.closed:
            self._empty.clear()
            await self._empty.wait()

    def hurry(self) -> None:
        """From now on a reader that takes nothing for `PATIENCE_S` is given up: the program was told to end."""
        if not self._hurried and not self.closed:
            self._hurried = True
            asyncio.get_running_loop().call_later(PATIENCE_S, self._look, self._taken)

    def _look(self, taken: int) -> None:
        if self._pending and self._taken == taken:
            self._on_closed = lambda: None
            self._close()
        elif not self.closed:
            asyncio.get_running_loop().call_later(PATIENCE_S, self._look, self._taken)

    def _write(self) -> None:
        try:
            while self._pending:
                if not self._poll.poll(0):
                    self._wait()
                    return
                data = self._pending[0]
                written = os.write(self.fd, data[:PIECE])
                self._size -= written
                self._taken += written
                if written == len(data):
                    self._pending.popleft()
                else:
                    self._pending[0] = data[written:]
        except BrokenPipeError:
            self._close()
        except OSError as e:
            self.failed = e.strerror or str(e)
            self._close()
        else:
            self._rest()

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().add_writer(self.fd, self._write)

    def _rest(self) -> None:
        if self._waiting:
            self._waiting = False
            asyncio.get_running_loop().remove_writer(self.fd)
        self._empty.set()

    def _close(self) -> None:
        self.closed = True
        self._pending.clear()
        self._size = 0
        self._rest()
        self._on_closed()


def echo(shown: bool) -> None:
    """Whether the terminal shows what is typed; nothing where stdin is none."""
    import termios

    with contextlib.suppress(termios.error, OSError):
        settings = termios.tcgetattr(0)
        settings[3] = settings[3] | termios.ECHO if shown else settings[3] & ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, settings)


def say(text: str) -> None:
    """A line for people, on stderr; if nobody reads there, it is gone."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


async def lines(limit: int = 64 << 20) -> asyncio.Queue[bytes | None]:
    """A queue that gets each line of stdin, then None. A thread reads, so that any kind of stdin will do."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def read() -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # RuntimeError: the loop is gone, and so are we
            with open(0, "rb", closefd=False) as source:
                while line := source.readline(limit):
                    loop.call_soon_threadsafe(queue.put_nowait, line)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="panto-stdin", daemon=True).start()
    return queue


@contextlib.contextmanager
def signals(on_interrupt: Callable[[], None], on_leave: Callable[[], None]) -> Iterator[None]:
    """While it lasts, SIGINT calls the one, SIGTERM and SIGHUP the other."""
    loop = asyncio.get_running_loop()
    calls = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_leave}
    if hasattr(signal, "SIGHUP"):
        calls[signal.SIGHUP] = on_leave
    for number, call in calls.items():
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in calls:
            loop.remove_signal_handler(number)
