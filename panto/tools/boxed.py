"""A foreground command in the sandbox that may leave something running.

The sandbox's process space ends with its first program. So that first program is a shell that runs the command, tells
its exit code and how much it left on a pipe, and stays until the last of it has ended.
"""

from __future__ import annotations

import asyncio
import os

from panto.tools.processes import Child

_OUTER = """exec 9>&0 </dev/null
bash -c "$1" 9>&-
code=$?
set -- /proc/[0-9]*
echo "$code $(($# - 2))" >&9
exec 9>&- >/dev/null 2>&1
while set -- /proc/[0-9]*; [ $# -gt 2 ]; do sleep 1; done"""


def argv(command: str) -> list[str]:
    """What to run in the sandbox; its standard input is the pipe that `Ending` reads."""
    return ["bash", "-c", _OUTER, "bash", command]


class Ending:
    """How a command ends: `done` becomes (exit code, processes it left). `write_end` is for the child's input."""

    def __init__(self, boxed: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[tuple[int, int]] = self._loop.create_future()
        self._read_end = -1
        self.write_end: int | None = None
        if boxed:
            self._read_end, self.write_end = os.pipe()

    def begin(self, child: Child) -> None:
        """The child has its end of the pipe. What ends first counts: the outer shell may never have come to run."""
        child.exited.add_done_callback(lambda exited: self._settle(exited.result(), child.left))
        if self.write_end is not None:
            os.close(self.write_end)
            self._loop.add_reader(self._read_end, self._told)

    def abandon(self) -> None:
        """The child never started."""
        if self.write_end is not None:
            os.close(self.write_end)
            os.close(self._read_end)

    def _told(self) -> None:
        self._loop.remove_reader(self._read_end)
        words = os.read(self._read_end, 64).split()
        os.close(self._read_end)
        if len(words) == 2:
            self._settle(int(words[0]), int(words[1]))

    def _settle(self, code: int, left: int) -> None:
        if not self.done.done():
            self.done.set_result((code, left))
