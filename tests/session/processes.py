"""Other processes on the same store: small scripts that are driven over their pipes, and killed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

HEAD = """
import asyncio, pathlib, sys
from panto.schema.errors import *
from panto.session import Store, commands as c
from panto.session.recovery import recovery
from tests.session.world import *

def say(*words):
    print(*words, flush=True)

async def hear():
    return (await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)).strip()

async def main(store):
"""
TAIL = """

async def whole():
    store = await Store.open(pathlib.Path(sys.argv[1]))
    try:
        await main(store)
    finally:
        await store.close()

asyncio.run(whole())
"""


class Other:
    """A process that runs the body of `async def main(store)`; `say(...)` there is `hear()` here."""

    def __init__(self, root: Path, body: str, *arguments: str) -> None:
        code = HEAD + textwrap.indent(textwrap.dedent(body), "    ") + TAIL
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(root), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> str:
        """The next line it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, line: str) -> None:
        """Say a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, at once."""
        self.process.kill()
        self.end()

    def end(self) -> int:
        """Wait for its end; its exit status."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        return self.process.wait(30)
