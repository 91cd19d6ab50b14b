"""The log: one rotated file that takes what no person is shown. Nothing of panto is ever logged to the terminal."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

LIMIT = 4 << 20
"""Bytes after which the file becomes `panto.log.1`; only one old file is kept."""


class Log(logging.Handler):
    """Writes records and texts to `file` (None, or not writable: nowhere). Opened with the first line."""

    def __init__(self, file: Path | None, mask: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.file = file
        self.mask = mask
        """Texts that must not appear, e.g. keys."""
        self._fd = -1

    def emit(self, record: logging.LogRecord) -> None:
        """Takes what libraries and the loop log."""
        text = f"{record.levelname} {record.name}: {record.getMessage()}"
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        self.write(text)

    def write(self, text: str) -> None:
        """A line or a traceback, with the time. Never raises for what the disk says."""
        for secret in self.mask:
            text = text.replace(secret, "(hidden)")
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        try:
            if self._fd < 0:
                self._open()
            if self._fd >= 0:
                os.write(self._fd, f"{stamp}Z {os.getpid()} {text}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            self._fd, self.file = -1, None

    def _open(self) -> None:
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.file.exists() and self.file.stat().st_size > LIMIT:
            os.replace(self.file, self.file.with_name(self.file.name + ".1"))
        self._fd = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def install(file: Path | None, debug: bool) -> Log:
    """Sends everything that is logged in this process to the file; `debug` raises the level. Returns the log."""
    log = Log(file)
    root = logging.getLogger()
    root.handlers[:] = [log]
    root.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.raiseExceptions = False  # its own complaints would go to the terminal
    return log
