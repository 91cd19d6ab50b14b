"""luv's loop, driven by asyncio: its backend descriptor is watched, its timers honoured, its callbacks guarded."""

from __future__ import annotations

import asyncio
from typing import Any

from panto.lua.driver import Driver


class UvPump:
    """Runs luv's loop once whenever it has something to do. Nothing is set up until luv is required."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._timer: asyncio.TimerHandle | None = None
        self._soon = False
        self._fd = -1
        self._run: Any = None
        self.problem: str | None = None
        """None: not asked for yet; "": loaded; else why it is not there."""

    def load(self) -> None:
        """Load luv on the main state and watch it; a missing luv is remembered in `problem`."""
        if self.problem is not None:
            return
        host = self._driver.host
        self.problem = host.function("load_luv")()
        if self.problem:
            return
        self._run = host.function("uv_pump")
        self._fd = host.function("uv_fd")()
        self._driver.before_entry = host.function("uv_update")
        self._driver.after_entry = self.kick
        self._driver.loop.add_reader(self._fd, self._pump)

    def kick(self) -> None:
        """Look at luv's loop in the next turn: Lua may have started a handle."""
        if not self._soon:
            self._soon = True
            self._driver.loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._soon = False
        if self._fd < 0:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        posted, timeout, alive = self._driver.enter_quietly(self._run, "luv")
        if posted:
            self._driver.drain()
        # A timeout of 0 is also what a loop without any handle says: going on then would spin.
        if timeout > 0:
            self._timer = self._driver.loop.call_later(timeout / 1000, self._pump)
        elif timeout == 0 and alive:
            self.kick()

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            self._driver.loop.remove_reader(self._fd)
            self._fd = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._driver.before_entry = self._driver.after_entry = None
