"""The watchdog: Lua code that runs too long without a yield is interrupted.

A thread looks at the running entry every few milliseconds and says when it is past its limit. The interruption itself
happens on the owner thread: every coroutine carries a count hook (Lua copies it into each new one), which every
thousand instructions looks whether its entry is due. If so it puts a hook on its own coroutine that raises an error
at every instruction until the entry ends: code that swallows errors is stopped too. Nothing touches a running state
from outside: a hook set from another thread walks call frames that deep recursion is freeing, and crashes.

C code cannot be stopped this way: after a second the owner is named to `on_stuck`.

Memory is looked at in the same places. What doubles a string outruns that within a few instructions, so an entry that
has been seen once also gets twice the memory as a hard limit, at which Lua raises an error. It is lifted before Python
gives anything to Lua: there, outside of Lua's protection, a failing allocation would end the process.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from panto.lua.host import Host

TICK_S = 0.005
STUCK_S = 1.0
WALL_S = 10.0
"""Code that uses no processor either, but does not return, is interrupted after this: a machine may stall for less."""
IDLE_S = 1.0
_MASK_COUNT = 1 << 3
_LUA_GCCOUNT = 3
_EVERY = 1_000
"""Instructions between two looks of the hook: few, since one of them may allocate a megabyte."""


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
        host: Host,
        on_stuck: Callable[[str], None],
        memory_kb: int = 512 * 1024,
    ) -> None:
        api = ctypes.PyDLL(host.lua54.__file__)  # it holds the GIL, so the entry cannot be left meanwhile
        self._sethook = api.lua_sethook
        self._sethook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self._sethook.restype = None
        self._gc = api.lua_gc
        self._gc.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._gc.restype = ctypes.c_int
        self._raise = ctypes.cast(api.luaL_error, ctypes.c_void_p)
        self._main = host.main_address
        self._cpu = _cpu_clock(host.thread)
        self._on_stuck = on_stuck
        self._memory_kb = memory_kb
        self._limit_memory: Callable[[int], None] = host.lua.set_max_memory
        self._limited = False
        host.before_ask = self._lift
        self._too_large = -1
        self._entry: tuple[int, float, str] | None = None
        self._number = 0
        self._asleep = False
        self._closed = False
        self._wake = threading.Event()
        self._stopping = -1
        self._due = -1
        self._look = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._hook)
        # Coroutines inherit it; the main state itself runs the prelude only, and is never interrupted.
        self._sethook(self._main, ctypes.cast(self._look, ctypes.c_void_p), _MASK_COUNT, _EVERY)
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
        if self._limited:
            self._lift()

    @property
    def reason(self) -> str:
        """Why the present entry, or the last one, was interrupted."""
        if self._too_large == self._number:
            return f"took more than {self._memory_kb >> 10} MB of memory"
        return "ran too long without yielding"

    def interrupt(self) -> None:
        """Stop the running entry, if any, whatever its limit. May be called from any thread."""
        self._stopping = self._number

    def close(self) -> None:
        """End the thread; returns when it has ended."""
        self._closed = True
        self._wake.set()
        self._thread.join()

    def _lift(self) -> None:
        if self._limited:
            self._limit_memory(0)
            self._limited = False

    def _watch(self) -> None:
        seen = -1
        cpu_start = wall_start = last_busy = time.monotonic()
        stuck_told = False
        while not self._closed:
            entry = self._entry
            now = time.monotonic()
            if entry is None:
                self._lift()  # it was set just as the entry ended
                if now - last_busy > IDLE_S:
                    self._rest()
                    last_busy = time.monotonic()
                    continue
            elif entry[0] == self._stopping:
                self._due = entry[0]
            elif entry[0] != seen:
                seen, last_busy, stuck_told = entry[0], now, False
                cpu_start, wall_start = self._cpu(), now
            else:
                last_busy = now
                if self._cpu() - cpu_start > entry[1] or now - wall_start > max(WALL_S, 10 * entry[1]):
                    self._due = entry[0]
                elif self._gc(self._main, _LUA_GCCOUNT) > self._memory_kb:
                    self._due = self._too_large = entry[0]
                if now - wall_start > STUCK_S + entry[1] and not stuck_told:
                    stuck_told = True
                    self._on_stuck(entry[2])
            if entry is not None and not self._limited:
                self._limit()
            time.sleep(TICK_S)

    def _limit(self) -> None:
        """Set the hard limit, unless there is more already: then nothing at all could be done any more."""
        if self._gc(self._main, _LUA_GCCOUNT) < self._memory_kb << 1:
            self._limited = True
            self._limit_memory(self._memory_kb << 11)

    def _rest(self) -> None:
        number = self._number
        self._wake.clear()
        self._asleep = True
        if self._number == number and not self._closed:
            self._wake.wait()
        self._asleep = False

    def _hook(self, state: int, _: int) -> None:
        """Within running Lua, on its thread, after some instructions; must not raise."""
        entry = self._entry
        if entry is not None and entry[0] == self._due and state != self._main:
            self._sethook(state, self._raise, _MASK_COUNT, 1)
