"""ripgrep: found on the path or beside this Python, and run without anybody's configuration."""

from __future__ import annotations

import asyncio
import os
import shutil
import sysconfig
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from panto.schema.errors import ToolFailure
from panto.tools.processes import Child, Spawner
from panto.tools.text import plain

_PIECE = 1 << 18
COMMON = ("--no-config", "--hidden", "--no-messages", "--glob=!.git/", "--glob=!.hg/", "--glob=!.svn/", "--glob=!.jj/")


def find() -> str:
    """The path of `rg`. Raises ToolFailure(unavailable) with the way to get it."""
    beside = os.path.join(sysconfig.get_path("scripts"), "rg")
    path = shutil.which("rg") or (beside if os.access(beside, os.X_OK) else None)
    if path is None:
        raise ToolFailure("ripgrep (rg) is not installed: install it, e.g. pip install ripgrep", "unavailable")
    return path


async def run(
    arguments: Sequence[str], cwd: str, spawner: Spawner, cancelled: asyncio.Event | None = None
) -> AsyncGenerator[bytes, None]:
    """Records of rg's output, split at NUL where `-0` is among the arguments, else at line feeds.

    Closing the iterator ends rg, and so does `cancelled`, also while rg is silent. Raises ToolFailure: invalid_input
    with rg's own words where it refuses, cancelled.
    """
    separator = b"\0" if "-0" in arguments else b"\n"
    output, errors = os.pipe(), os.pipe()
    env = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "HOME") if key in os.environ}
    try:
        child = await spawner.start([find(), *arguments], env=env, cwd=cwd, stdout=output[1], stderr=errors[1])
    except BaseException:
        for fd in (*output, *errors):
            os.close(fd)
        raise
    os.close(output[1])
    os.close(errors[1])
    watch = asyncio.ensure_future(_end(child, cancelled)) if cancelled else None
    try:
        async with aclosing(_pieces(output[0])) as pieces:
            rest = b""
            async for piece in pieces:
                *records, rest = (rest + piece).split(separator)
                for record in records:
                    yield record
        if cancelled is not None and cancelled.is_set():
            raise ToolFailure("stopped by the user", "cancelled", retry_allowed=True)
        if rest:
            yield rest
        if await child.exited > 1:
            said = await asyncio.to_thread(os.read, errors[0], 4_096)
            if said.strip():
                raise ToolFailure(plain(said.decode("utf-8", "replace")).strip().removeprefix("rg: "))
    finally:
        if watch is not None:
            watch.cancel()
        child.kill()
        os.close(output[0])
        os.close(errors[0])


async def _end(child: Child, cancelled: asyncio.Event) -> None:
    await cancelled.wait()
    child.kill()


async def _pieces(fd: int) -> AsyncGenerator[bytes, None]:
    """What a pipe gives, read when it is ready."""
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        while True:
            with suppress(BlockingIOError):
                piece = os.read(fd, _PIECE)
                if not piece:
                    return
                yield piece
                continue
            ready.clear()
            await ready.wait()
    finally:
        loop.remove_reader(fd)
