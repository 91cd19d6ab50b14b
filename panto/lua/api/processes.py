"""exec: one program, started the way panto starts everything, so that it dies with panto."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, Any

from panto.lua.driver import Driver, LuaTask
from panto.schema.errors import UsageError
from panto.tools.processes import QUIET, Spawner, end

LARGEST = 16 << 20
"""Bytes of each output that are given back."""


def _words(spec: Mapping[str, Any]) -> list[str]:
    argv = spec.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise UsageError("exec: argv must be a list of words")
    return argv


def _output(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LARGEST).decode("utf-8", "surrogateescape")


def install(driver: Driver, spawner: Callable[[], Spawner], env: Mapping[str, str], cwd: Callable[[str], str]) -> None:
    """Add the op `exec`. `env` holds no credentials; `cwd` gives a lane's working directory."""

    async def execute(task: LuaTask, spec: dict[str, Any]) -> dict[str, object]:
        argv = _words(spec)
        more = {k: str(v) for k, v in (spec.get("env") or {}).items()}
        timeout = spec.get("timeout")
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            stdin = spec.get("stdin")
            if isinstance(stdin, str):
                given.write(stdin.encode("utf-8", "surrogateescape"))
                given.seek(0)
            child = await spawner().start(
                argv, env={**env, **QUIET, **more}, cwd=spec.get("cwd") or cwd(task.lane),
                stdin=given.fileno() if isinstance(stdin, str) else None, stdout=out.fileno(), stderr=err.fileno(),
            )  # fmt: skip
            timed_out = False
            try:
                status = await asyncio.wait_for(asyncio.shield(child.exited), timeout / 1000 if timeout else None)
            except TimeoutError:
                timed_out = True
                await end(child, None, grace=0.5)
                status = await child.exited
            except asyncio.CancelledError:
                child.terminate()
                driver.loop.call_later(0.3, child.kill)
                raise
            return {
                "code": max(status, 0), "signal": max(-status, 0), "stdout": _output(out), "stderr": _output(err),
                "timed_out": timed_out,
            }  # fmt: skip

    driver.ops["exec"] = execute
