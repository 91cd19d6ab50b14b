"""A program's output, read by a thread as it comes: masked, made plain, both ends kept, the whole of it in a file."""

from __future__ import annotations

import asyncio
import codecs
import os
import select
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from panto.tools.masks import Masker
from panto.tools.text import MODEL_LIMIT, VIEW_LIMIT, plain

_PIECE = 65_536
_LARGEST = 1 << 30
"""Characters written to the file; beyond them only the end is kept, in memory."""


class Output:
    """Reads a pipe to its end. Give `write_end` to the child, then call `begin` (or `abandon` if it never started).

    `on_text` is called on the loop with new text. `characters` and `lines` count everything; `file` is "" until the
    output is longer than a model is shown.
    """

    def __init__(self, spool: str, mask: Sequence[str], on_text: Callable[[str], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._spool = spool
        self._on_text = on_text
        self._masker = Masker(mask)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # held while a piece is on its way from the pipe to where it is kept
        self._taken = 0  # bytes
        self._over = False
        self._unfinished = ""  # of the last line, where it may still be overwritten or hold half an escape sequence
        self._head = ""
        self._tail = ""
        self._unposted = ""
        self._fd = -1
        self.file = ""
        self.characters = 0
        self.lines = 0
        self.ended = asyncio.Event()
        self._read_end, self.write_end = os.pipe()

    def begin(self) -> None:
        """The child has its end: close ours, and read until the last holder has closed it."""
        os.close(self.write_end)
        threading.Thread(target=self._read, name="panto-output", daemon=True).start()

    def abandon(self) -> None:
        """There is no child: close both ends."""
        os.close(self.write_end)
        os.close(self._read_end)

    async def settle(self, seconds: float, patience: float = 10.0) -> None:
        """Wait for the end, at most `seconds`. Where something still holds the pipe, or the reading thread is behind,
        then wait until what is in the pipe by now has been taken, at most `patience` seconds more."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), seconds)
            return
        with self._reading:
            if self._over:
                return
            goal = self._taken + _waiting(self._read_end)
        until = self._loop.time() + patience
        while self._taken < goal and self._loop.time() < until:
            await asyncio.sleep(0.01)

    def tail(self, limit: int = VIEW_LIMIT) -> str:
        """The last `limit` characters, from the start of a line where possible."""
        with self._lock:
            if self.characters <= limit:
                return self._tail
            text = self._tail[-limit:]
        return text[text.find("\n") + 1 :]

    def since(self, position: int) -> tuple[str, int]:
        """The text after `position` (in characters) as far as it is in memory, and the position after it."""
        with self._lock:
            first = self.characters - len(self._tail)
            return self._tail[max(0, position - first) :], self.characters

    def text(self, limit: int = MODEL_LIMIT) -> str:
        """The output within `limit` characters: all of it, or both ends and where the rest is."""
        with self._lock:
            if self.characters <= limit:
                return self._tail
            head, tail = self._head[: limit // 3], self._tail[-(limit - limit // 3) :]
        head = head[: head.rfind("\n") + 1] or head + "\n"
        tail = tail[tail.find("\n", 0, len(tail) // 2) + 1 :]
        left = self.characters - len(head) - len(tail)
        where = f"; all of it is in {self.file}" if self.file else ""
        return f"{head}… {left:,} characters left out{where} …\n{tail}"

    def _read(self) -> None:
        ready = select.poll()
        ready.register(self._read_end, select.POLLIN)
        while not self._over:
            ready.poll()
            with self._reading:
                self._read_piece()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        with suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self.ended.set)

    def _read_piece(self) -> None:
        try:
            data = os.read(self._read_end, _PIECE)
        except OSError:
            data = b""
        raw = self._masker.feed(data) if data else self._masker.end()
        self._take(self._decoder.decode(raw, final=not data), last=not data)
        self._taken += len(data)
        if not data:
            self._over = True
            os.close(self._read_end)

    def _take(self, text: str, last: bool) -> None:
        text = self._unfinished + text
        cut = text.rfind("\n") + 1
        rest = text[cut:]
        if last or len(rest) > _PIECE or ("\r" not in rest and "\x1b" not in rest):
            cut = len(text)
        self._unfinished, text = text[cut:], plain(text[:cut])
        if not text:
            return
        with self._lock:
            before = self.characters
            self.characters += len(text)
            self.lines += text.count("\n")
            if self.characters > MODEL_LIMIT:
                self._spill(self._tail + text if before <= MODEL_LIMIT else text)
            if before < MODEL_LIMIT:
                self._head += text[: MODEL_LIMIT - before]
            self._tail = (self._tail + text)[-VIEW_LIMIT:]
            if self._on_text is not None:
                post = not self._unposted
                self._unposted = (self._unposted + text)[-VIEW_LIMIT:]
                if post:
                    with suppress(RuntimeError):
                        self._loop.call_soon_threadsafe(self._post)

    def _post(self) -> None:
        with self._lock:
            text, self._unposted = self._unposted, ""
        if self._on_text is not None:
            self._on_text(text)

    def _spill(self, text: str) -> None:
        """Append to the file. A disk that says no costs the middle of the output, nothing else."""
        if self.characters > _LARGEST:
            return
        try:
            if not self.file:
                os.makedirs(self._spool, mode=0o700, exist_ok=True)
                path = os.path.join(self._spool, f"output-{os.urandom(6).hex()}.txt")
                self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                self.file = path
            left = memoryview(text.encode("utf-8", "replace"))
            while left and self._fd >= 0:
                left = left[os.write(self._fd, left) :]
        except OSError:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


def _waiting(fd: int) -> int:
    """Bytes in a pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
