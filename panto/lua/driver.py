"""Drives Lua coroutines on the asyncio loop of the owner thread.

A task runs until it asks for something (an *op*), parks or ends. An op answers at once, or gives an awaitable; the
answer resumes the task. What Lua leaves in the outbox is read after every entry. Everything here runs on the owner
thread, outside Lua: nothing calls into Lua from within Lua.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from panto.lua.bridge import Bridge, LuaCancelled, error_parts
from panto.lua.guard import Guard
from panto.lua.host import Host
from panto.lua.tasks import FINISH, GREEDY, GUARD_S, SURVIVE, LuaTask, Outcome, Scope, Spent
from panto.schema.errors import PantoError, UsageError

__all__ = ["Driver", "LuaTask", "Outcome", "Scope", "log"]

log = logging.getLogger("panto.lua")

FAIR_S = 0.02
"""Seconds of ops that answer at once before the loop gets a turn."""

REQUESTED, DONE, FAILED, PARKED = 1, 2, 3, 4

Op = Callable[..., Any]


class Driver:
    """The tasks of one host, and the ops and messages they may use."""

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop, guard: Guard | None = None) -> None:
        self.host, self.loop, self.guard = host, loop, guard
        self.bridge = Bridge(host)
        self.tasks: dict[int, LuaTask] = {}
        self.scopes: dict[int, Scope] = {}
        self.ops: dict[str, Op] = {"turn": self._turn, "task_wait": self._task_wait}
        self.messages: dict[str, Callable[..., None]] = {
            "spawn": self._spawned, "wake": self._woken, "task_cancel": self._cancel_by_id,
        }  # fmt: skip
        self.before_entry: Callable[[], object] | None = None
        self.after_entry: Callable[[], None] | None = None
        self.on_task_failed: Callable[[LuaTask, Outcome], None] = lambda task, outcome: None
        self.orphans: dict[str, Callable[[Any], None]] = {}
        """What becomes of an op's result whose task is gone."""
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)
        """By owner."""
        self.missing = "not possible here"
        """What a request is told that has no op."""
        self._ready: deque[tuple[LuaTask, Callable[..., Any], tuple[Any, ...]]] = deque()
        self._scheduled = False
        self._inside = False
        self._last_scope = 0
        self._kept: set[asyncio.Future[Any]] = set()
        self._lua_error: type[Exception] = host.lua54.LuaError
        self._mark_cancelled = host.function("mark_cancelled")
        self._mark_scope = host.function("mark_scope")

    # ------------------------------------------------------------ scopes

    def scope(self, owner: str, lane: str, key: str = "") -> Scope:
        """A new scope; `key` is the owner under which the scheduler knows its jobs."""
        self._last_scope += 1
        made = Scope(self._last_scope, owner, lane, key=key)
        self.scopes[made.id] = made
        return made

    def interrupt(self, scope: Scope) -> None:
        """Ask everything in a scope to end: awaits raise a cancellation, `ctx:cancelled()` turns true."""
        if scope.cancelled or scope.closed:
            return
        scope.cancelled = True
        self._mark_scope(scope.id, True)
        for task in tuple(scope.tasks):
            self.cancel(task)

    def close_scope(self, scope: Scope) -> None:
        """End a scope: what still runs in it is closed. Idempotent."""
        if scope.closed:
            return
        scope.closed = True
        for task in tuple(scope.tasks):
            self.close(task)
        for call in scope.on_close:
            call()
        self._mark_scope(scope.id, None)
        self.scopes.pop(scope.id, None)

    # ------------------------------------------------------------ tasks

    def start(
        self, entry: str, *args: Any, scope: Scope, what: str, lane: str = "", guard_s: float = GUARD_S
    ) -> LuaTask:
        """Begin a task in the prelude's `entry`; it runs at once, up to its first wait."""
        lane = lane or scope.lane
        id = self._enter(self.host.spawn, entry, lane, scope.owner, scope.id, what)
        task = self._adopt(id, scope, lane, what, guard_s)
        self._step(task, self.host.resume, id, *args)
        return task

    def _adopt(self, id: int, scope: Scope, lane: str, what: str, guard_s: float = GUARD_S) -> LuaTask:
        task = LuaTask(id, scope, lane, scope.owner, what, self.loop.create_future(), guard_s)
        self.tasks[id] = task
        scope.tasks.add(task)
        return task

    def call(self, entry: str, *args: Any, owner: str, lane: str, what: str, scope: int = 0) -> Outcome:
        """Run a callback that may not wait, to its end."""
        try:
            code, posted, *rest = self._enter(self.host.call, entry, lane, owner, scope, what, *args, what=owner)
        except self._lua_error as e:
            code, posted, rest = FAILED, True, ["memory", str(e)]
            self._enter(self.host.function("recover"), 0)
        outcome = self._outcome(code, rest)
        if not outcome.ok:
            self.spent[owner].error = f"{what}: {outcome.message}"
        if posted:
            self.drain()
        return outcome

    def cancel(self, task: LuaTask) -> None:
        """Ask one task to end: its present wait raises a cancellation, and so does every later one."""
        if task.cancelled or task.done.done():
            return
        task.cancelled = True
        self._mark_cancelled(task.id)
        if task.parked:
            self._queue(task, self.host.unpark_cancelled, task.id)
        elif task.waiting is not None and task.op not in FINISH:
            task.waiting.cancel()

    def close(self, task: LuaTask) -> None:
        """End a task now: its <close> variables run; what it waited for is cancelled."""
        if task.done.done():
            return
        waiting, task.waiting = task.waiting, None
        problem = self._enter(self.host.close_task, task.id, what=task.owner)
        if isinstance(problem, tuple):
            log.warning("%s: error while closing: %s", task.owner, problem[1])
        self._end(task, Outcome(False, kind="cancelled", message="cancelled"))
        if waiting is not None:
            self._let_go(task.op, waiting)
        self.drain()

    def _let_go(self, op: str, waiting: asyncio.Future[Any]) -> None:
        """Nobody waits any more: cancel it, or let it finish and undo what nobody will hold."""
        if op not in FINISH - {"turn", "job_wait"}:
            waiting.cancel()
            return
        self.keep(waiting)
        orphan = self.orphans.get(op)

        def ended(done: asyncio.Future[Any]) -> None:
            if orphan is not None and not done.cancelled() and done.exception() is None:
                orphan(done.result())

        waiting.add_done_callback(ended)

    # ------------------------------------------------------------ entering Lua

    def _enter(self, function: Callable[..., Any], *args: Any, limit_s: float = GUARD_S, what: str = "") -> Any:
        self.host.check_thread()
        if self._inside:
            raise RuntimeError("entered Lua from within Lua")
        if self.before_entry is not None:
            self.before_entry()
        guard = self.guard
        self._inside = True
        if guard is None:
            try:
                return function(*args)
            finally:
                self._inside = False
        guard.enter(limit_s, what)
        begun = perf_counter()
        try:
            return function(*args)
        finally:
            self.spent[what].seconds += perf_counter() - begun
            guard.leave()
            self._inside = False
            if self.after_entry is not None:
                self.after_entry()

    def enter_quietly(self, function: Callable[..., Any], what: str) -> Any:
        """Enter Lua without the hooks around an entry (they are luv's own, and this is luv's turn)."""
        before, after = self.before_entry, self.after_entry
        self.before_entry = self.after_entry = None
        try:
            return self._enter(function, what=what)
        finally:
            self.before_entry, self.after_entry = before, after

    def _outcome(self, code: int, rest: list[Any]) -> Outcome:
        if code == DONE:
            return Outcome(True, tuple(self.bridge.to_py(v) for v in rest))
        kind, message, place, traceback, status, retry_after = (list(rest) + [None] * 6)[:6]
        kind, message, place, traceback = (str(word or "") for word in (kind, message, place, traceback))
        if kind in GREEDY:
            self.loop.call_soon(self.host.lua.gccollect)  # what it held is not for the next one to pay
        if kind == "runaway" and self.guard is not None:
            message = self.guard.reason + (f" at {place}" if place else "")
        return Outcome(False, (), kind, message, place, traceback, int(status or 0), retry_after)

    def _step(self, task: LuaTask, function: Callable[..., Any], *send: Any) -> None:
        until = self.loop.time() + FAIR_S
        while True:
            try:
                code, posted, *rest = self._enter(function, *send, limit_s=task.guard_s, what=task.owner)
            except self._lua_error as e:  # panto's own Lua had no memory or stack left
                return self._broken(task, e)
            if posted:
                self.drain()
            if code == PARKED:
                task.parked = True
                if task.cancelled:
                    self._queue(task, self.host.unpark_cancelled, task.id)
                return
            if code != REQUESTED:
                self._end(task, self._outcome(code, rest))
                return
            answer = self._ask(task, rest)
            if answer is None:
                return
            function, send = self.host.resume, (task.id, *answer)
            if self.loop.time() > until:
                self._queue(task, function, *send)
                return

    def _broken(self, task: LuaTask, error: Exception) -> None:
        log.error("the Lua state failed under %s of %s", task.what, task.owner, exc_info=error)
        self._enter(self.host.function("recover"), task.id)
        self._end(task, Outcome(False, kind="memory", message=f"{task.what} left Lua without memory or stack: {error}"))
        self.drain()

    def _ask(self, task: LuaTask, rest: list[Any]) -> tuple[Any, ...] | None:
        """The answer to a request, or None where it comes later."""
        name = rest[0]
        task.op = name
        if task.cancelled and name not in SURVIVE:
            return False, "cancelled", "cancelled"
        try:
            op = self.ops.get(name)
            if op is None:
                raise UsageError(self.missing)
            value = op(task, *[self.bridge.to_py(v) for v in rest[1:]])
        except Exception as e:  # around one Lua callback: whatever an op raises is the extension's answer
            return self._failed(e)
        if isinstance(value, asyncio.Future):
            waiting: asyncio.Future[Any] = value
        elif inspect.isawaitable(value):
            waiting = asyncio.ensure_future(value, loop=self.loop)
        else:
            return self._answer(value)
        task.waiting = waiting
        waiting.add_done_callback(lambda done: self._answered(task, done))
        return None

    def _answer(self, value: Any) -> tuple[Any, ...]:
        if type(value) is tuple:
            return True, *[self.bridge.to_lua(v) for v in value]
        return True, self.bridge.to_lua(value)

    def _failed(self, error: BaseException) -> tuple[Any, ...]:
        if not isinstance(error, PantoError | OSError | TimeoutError | LuaCancelled):
            log.error("an op failed", exc_info=error)
        more = {k: v for k in ("status", "retry_after") if (v := getattr(error, k, None))}
        return False, *error_parts(error), self.bridge.to_lua(more) if more else None

    def _answered(self, task: LuaTask, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            error: BaseException | None = LuaCancelled()
        else:
            error = done.exception()
        if task.waiting is not done:
            return
        task.waiting = None
        if error is not None:
            answer = self._failed(error)
        else:
            try:
                answer = self._answer(done.result())
            except TypeError as e:
                answer = self._failed(e)
        self._step(task, self.host.resume, task.id, *answer)

    def _end(self, task: LuaTask, outcome: Outcome) -> None:
        self.tasks.pop(task.id, None)
        task.scope.tasks.discard(task)
        if not task.done.done():
            task.done.set_result(outcome)
        if not outcome.ok:
            if outcome.kind != "cancelled":
                self.spent[task.owner].error = f"{task.what}: {outcome.message}"
            self.on_task_failed(task, outcome)

    # ------------------------------------------------------------ the ready queue and the outbox

    def _queue(self, task: LuaTask, function: Callable[..., Any], *send: Any) -> None:
        self._ready.append((task, function, send))
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._run_ready)

    def _run_ready(self) -> None:
        self._scheduled = False
        for _ in range(len(self._ready)):
            task, function, send = self._ready.popleft()
            if task.done.done():
                continue
            if function is not self.host.resume:
                if not task.parked:
                    continue
                task.parked = False
            self._step(task, function, *send)

    def drain(self) -> None:
        """Read the messages that Lua has left."""
        while True:
            message = self.host.next_message()
            if message is None:
                return
            name, *args = message if isinstance(message, tuple) else (message,)
            handler = self.messages.get(name)
            if handler is None:
                log.warning("no use for the message %s", name)
                continue
            try:
                handler(*[self.bridge.to_py(v) for v in args])
            except PantoError as e:
                log.warning("%s: %s", name, e.message)

    def keep(self, work: asyncio.Future[Any]) -> None:
        """Hold on to work nobody waits for, until it is done."""
        self._kept.add(work)
        work.add_done_callback(self._kept.discard)

    def _spawned(self, id: int, lane: str, owner: str, scope_id: int, detached: bool) -> None:
        scope = self.scopes.get(scope_id)
        if scope is None or detached:
            scope = self.extension_scope(owner, lane)
        task = self._adopt(id, scope, lane, "a spawned task")
        if scope.cancelled:
            task.cancelled = True
            self._mark_cancelled(id)
        self._queue(task, self.host.resume, id)

    def extension_scope(self, owner: str, lane: str) -> Scope:
        """The scope of an extension itself: what is detached ends with it."""
        for scope in self.scopes.values():
            if scope.owner == owner and scope.key == "extension":
                return scope
        return self.scope(owner, lane, key="extension")

    def _woken(self, id: int) -> None:
        task = self.tasks.get(id)
        if task is not None:
            self._queue(task, self.host.unpark, id)

    def _cancel_by_id(self, id: int) -> None:
        task = self.tasks.get(id)
        if task is not None:
            self.loop.call_soon(self.cancel, task)

    # ------------------------------------------------------------ ops of the driver's own

    def _turn(self, task: LuaTask) -> Awaitable[None]:
        return asyncio.sleep(0)

    async def _task_wait(self, task: LuaTask, id: int) -> None:
        other = self.tasks.get(id)
        if other is not None:
            await asyncio.wait({other.done})

    # ------------------------------------------------------------ ends and counts

    def close_all(self) -> None:
        """Close every task and scope."""
        for scope in tuple(self.scopes.values()):
            self.close_scope(scope)
        for task in tuple(self.tasks.values()):
            self.close(task)

    def counts(self) -> dict[str, int]:
        """Live things, for tests and /extensions: tasks here and in Lua, references, scopes, kilobytes."""
        alive, refs, kilobytes = self.host.counts()
        return {
            "tasks": len(self.tasks), "coroutines": alive, "refs": refs, "scopes": len(self.scopes),
            "memory_kb": int(kilobytes),
        }  # fmt: skip
