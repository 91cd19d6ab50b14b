"""Loading one extension: its main chunk as a task with a time limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from panto.lua.driver import Driver, Outcome
from panto.lua.sources import Source

LIMIT_S = 5.0
"""How long a main chunk, and what it requires, may take."""
GUARD_S = 1.0
"""CPU seconds that a main chunk may run without a yield; loading large modules is honest work."""

_MULTIARCH = f"/usr/lib/{getattr(sys.implementation, '_multiarch', '')}"
C_PLACES = tuple(
    f"{place}/lua/5.4/?.so"
    for place in (
        "/usr/local/lib", "/usr/lib", _MULTIARCH, "/opt/homebrew/lib", "/usr/lib64",
    )
)  # fmt: skip
"""Where systems keep C modules for Lua 5.4 (luv)."""


async def run_main(driver: Driver, source: Source, primary: str, add_root: Callable[[str, str], object]) -> Outcome:
    """Run an extension's main chunk to its end. Its scope stays: what it spawns lives on."""
    if source.problem:
        return Outcome(False, kind="error", message=source.problem)
    scope = driver.extension_scope(source.name, primary)
    what = f"the main chunk of {source.name}"
    if source.main is not None:
        if source.main.name == "init.lua" or source.main.parent.name == source.name:
            add_root(source.name, str(source.main.parent))
        task = driver.start("file", str(source.main), source.name, scope=scope, what=what, guard_s=GUARD_S)
    else:
        task = driver.start("module", source.module, scope=scope, what=what, guard_s=GUARD_S)
    await asyncio.wait({task.done}, timeout=LIMIT_S)
    if not task.done.done():
        driver.close(task)
        return Outcome(False, kind="timeout", message=f"{source.place}: the main chunk took longer than {LIMIT_S:g} s")
    return task.done.result()
