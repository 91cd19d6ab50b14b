"""The watchdog: Lua code that runs too long without a yield is interrupted from another thread.

It costs an entry into Lua two assignments. A thread looks at the running entry every few milliseconds; past the limit
it puts a count hook on the running coroutine and those within it, whose only act is to raise an error, again and again
until the entry ends: code that swallows errors is stopped too. The hook function is Lua's own `luaL_error`, so no
Python runs inside Lua. Formally a data race with the running code; only code past its limit is ever touched.

C code cannot be stopped this way: after a second the owner is named to `on_stuck`.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

TICK_S = 0.005
STUCK_S = 1.0
IDLE_S = 1.0
_MASK_COUNT = 1 << 3
_LUA_GCCOUNT = 3
_DEEPEST = 100


def _cpu_clock(thread: int) -> Callable[[], float]:
    """CPU seconds of another thread (a busy machine must not count against Lua code); wall time where unknown."""
    try:
        clock = time.pthread_getcpuclockid(thread)
        time.clock_gettime(clock)
    except (AttributeError, OSError):
        return time.monotonic
    return lambda: time.clock_gettime(clock)


class Guard:
    """Watches the entries of one host. `enter` and `leave` belong to the owner thread."""

    def __init__(
        self,
        lua54: Any,
        main_address: int,
        owner_thread: int,
        on_stuck: Callable[[str], None],
        memory_kb: int = 512 * 1024,
    ) -> None:
        api = ctypes.PyDLL(lua54.__file__)  # it holds the GIL, so the entry cannot be left meanwhile
        self._sethook = api.lua_sethook
        self._sethook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self._sethook.restype = None
        self._tothread = api.lua_tothread
        self._tothread.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._tothread.restype = ctypes.c_void_p
        self._gc = api.lua_gc
        self._gc.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._gc.restype = ctypes.c_int
        self._raise = ctypes.cast(api.luaL_error, ctypes.c_void_p)
        self._main = main_address
        self._cpu = _cpu_clock(owner_thread)
        self._on_stuck = on_stuck
        self._memory_kb = memory_kb
        self._entry: tuple[int, float, str] | None = None
        self._number = 0
        self._asleep = False
        self._closed = False
        self._wake = threading.Event()
        self._stopping = -1
        self.fired = False
        """The running entry was interrupted; the owner thread reads and clears it after `leave`."""
        self._thread = threading.Thread(target=self._watch, name="panto-lua-guard", daemon=True)
        self._thread.start()

    def enter(self, limit_s: float, what: str) -> None:
        """Lua begins to run. `limit_s` of CPU time; `what` names the owner for messages."""
        self._number += 1
        self._entry = (self._number, limit_s, what)
        if self._asleep:
            self._wake.set()

    def leave(self) -> None:
        """Lua has returned."""
        self._entry = None

    def interrupt(self) -> None:
        """Stop the running entry, if any, whatever its limit. May be called from any thread."""
        self._stopping = self._number

    def close(self) -> None:
        """End the thread; returns when it has ended."""
        self._closed = True
        self._wake.set()
        self._thread.join()

    def _watch(self) -> None:
        seen = -1
        cpu_start = wall_start = last_busy = time.monotonic()
        stuck_told = False
        while not self._closed:
            entry = self._entry
            now = time.monotonic()
            if entry is None:
                if now - last_busy > IDLE_S:
                    self._rest()
                    last_busy = time.monotonic()
                    continue
            elif entry[0] == self._stopping:
                self._fire(entry[0])
            elif entry[0] != seen:
                seen, last_busy, stuck_told = entry[0], now, False
                cpu_start, wall_start = self._cpu(), now
            else:
                last_busy = now
                if self._cpu() - cpu_start > entry[1] or now - wall_start > max(STUCK_S, 10 * entry[1]):
                    self._fire(entry[0])
                elif self._gc(self._main, _LUA_GCCOUNT) > self._memory_kb:
                    self._fire(entry[0])
                if now - wall_start > STUCK_S + entry[1] and not stuck_told:
                    stuck_told = True
                    self._on_stuck(entry[2])
            time.sleep(TICK_S)

    def _rest(self) -> None:
        number = self._number
        self._wake.clear()
        self._asleep = True
        if self._number == number and not self._closed:
            self._wake.wait()
        self._asleep = False

    def _fire(self, number: int) -> None:
        state = self._main
        for _ in range(_DEEPEST):
            state = self._tothread(state, 1)  # a coroutine that resumes another holds it as that call's first argument
            entry = self._entry
            if not state or entry is None or entry[0] != number:
                return
            self.fired = True
            self._sethook(state, self._raise, _MASK_COUNT, 1)
