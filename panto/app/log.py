"""The log: one rotated file that takes what no person is shown. Nothing of panto is ever logged to the terminal."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

LIMIT = 4 << 20
"""Bytes after which the file becomes `panto.log.1`; only one old file is kept."""


class Log(logging.Handler):
    """Writes records and texts to the file that `where` names (None, or not writable: nowhere).

    It is asked and opened with the first line: most runs have nothing to log. `mask`: texts that must not appear.
    """

    def __init__(self, where: Callable[[], Path | None]) -> None:
        super().__init__()
        self.mask: tuple[str, ...] = ()
        self._where = where
        self._fd = -1
        self._given_up = False

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
            if self._fd < 0 and not self._given_up:
                self._open()
            if self._fd >= 0:
                os.write(self._fd, f"{stamp}Z {os.getpid()} {text}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            self._fd, self._given_up = -1, True

    def _open(self) -> None:
        file = self._where()
        if file is None:
            self._given_up = True
            return
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if file.exists() and file.stat().st_size > LIMIT:
            os.replace(file, file.with_name(file.name + ".1"))
        self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def install(where: Callable[[], Path | None], debug: bool) -> Log:
    """Sends everything that is logged in this process to that file; `debug` raises the level. Returns the log."""
    log = Log(where)
    root = logging.getLogger()
    root.handlers[:] = [log]
    root.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.raiseExceptions = False  # its own complaints would go to the terminal
    return log
