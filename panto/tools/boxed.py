"""A foreground command in the sandbox that may leave something running.

The sandbox's process space ends with its first program. So that first program is a shell that runs the command, tells
its exit code and how much it left on a pipe, and stays until the last of it has ended. It says nothing of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress

from panto.tools.processes import Child

_OUTER = """exec 9>&0 8>&2 </dev/null 2>/dev/null
bash -c "$1" 2>&8 8>&- 9>&-
code=$?
exec 8>&-
set -- /proc/[0-9]*
echo "$code $(($# - 2))" >&9
exec 9>&- >/dev/null 2>&1
while set -- /proc/[0-9]*; [ $# -gt 2 ]; do sleep 1; done"""
_LINE = re.compile(rb"(\d{1,3}) (\d+)\n")
_LONGEST = 256
"""Bytes of what is told, whoever tells it."""


def argv(command: str) -> list[str]:
    """What to run in the sandbox; its standard input is the pipe that `Ending` reads."""
    return ["bash", "-c", _OUTER, "bash", command]


class Ending:
    """How a command ends: `done` becomes (exit code, processes it left). `write_end` is for the child's input.

    In the sandbox only what the pipe tells is the command's exit code: the sandbox's own end says nothing about it, and
    may be heard of first. Where the pipe can tell nothing any more, the sandbox's failure stands for it, and its
    success for nothing: the code is None.
    """

    def __init__(self, boxed: bool) -> None:
        self.done: asyncio.Future[tuple[int | None, int]] = asyncio.get_running_loop().create_future()
        self._told = asyncio.Event()
        self._words = b""
        self._read_end = -1
        self.write_end: int | None = None
        if boxed:
            self._read_end, self.write_end = os.pipe()
            os.set_blocking(self._read_end, False)

    def begin(self, child: Child) -> None:
        """The child has its end of the pipe."""
        if self.write_end is None:
            child.exited.add_done_callback(lambda exited: self._settle(exited.result(), child.left))
        else:
            os.close(self.write_end)
            self._task = asyncio.get_running_loop().create_task(self._wait(child))

    def abandon(self) -> None:
        """The child never started."""
        if self.write_end is not None:
            os.close(self.write_end)
            os.close(self._read_end)

    async def _wait(self, child: Child) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._read_end, self._hear)
        told, gone = (loop.create_task(event.wait()) for event in (self._told, child.gone))
        try:
            await asyncio.wait((told, gone), return_when=asyncio.FIRST_COMPLETED)
            self._hear()  # once nothing is left of the child, what is in the pipe is all
        finally:
            told.cancel()
            gone.cancel()
            loop.remove_reader(self._read_end)
            os.close(self._read_end)
        if words := _LINE.fullmatch(self._words):
            self._settle(int(words[1]), int(words[2]))
        else:
            self._settle(await child.exited or None, child.left)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            while b"\n" not in self._words and len(self._words) < _LONGEST:
                piece = os.read(self._read_end, 64)
                if not piece:
                    break
                self._words += piece
            self._told.set()

    def _settle(self, code: int | None, left: int) -> None:
        if not self.done.done():
            self.done.set_result((code, left))
