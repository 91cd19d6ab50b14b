"""Tools in a process of their own: the one way to end a call that does not want to end.

A pool of warm workers, one call at a time for each. On Escape, on its time limit or when it breaks the protocol a
worker is killed with everything it started, and another takes its place. What the worker is, is not known here: its
command line is handed in.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field

from panto.schema.errors import ToolFailure
from panto.tools.frames import (
    PROTOCOL,
    Call,
    Failed,
    Hello,
    Progressed,
    Ready,
    Refused,
    Returned,
    Source,
    Surroundings,
    pack,
    read_answer,
)
from panto.tools.processes import Child, Spawner, environment
from panto.tools.sandbox import Sandbox
from panto.tools.tool import ToolContext, ToolReply

_START = 20.0
_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What workers are made with.

    `argv` starts one (it speaks frames.py on its standard input and output). `size` warm ones are kept, `most` run at
    once. `memory` in bytes of address space, `cpu` in seconds, for each worker; 0: no limit.
    """

    argv: tuple[str, ...]
    extensions: tuple[Source, ...] = ()
    size: int = 1
    most: int = 8
    memory: int = 4 << 30
    cpu: int = 3_600
    workspace: str = "/"


@dataclass(slots=True, eq=False)
class _Worker:
    child: Child
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    tools: tuple[str, ...] = ()
    calls: int = 0

    killed: bool = False

    def alive(self) -> bool:
        return not self.killed and not self.child.exited.done() and not self.reader.at_eof()

    def kill(self) -> None:
        self.killed = True
        self.child.kill()
        self.writer.close()


@dataclass(slots=True)
class WorkerPool:
    """Warm workers. Belongs to one loop; `close` ends them all."""

    settings: WorkerSettings
    spawner: Spawner
    sandbox: Sandbox = field(default_factory=Sandbox)
    _idle: list[_Worker] = field(default_factory=list)
    _busy: set[_Worker] = field(default_factory=set)
    _slots: asyncio.Semaphore | None = None
    _warming: set[asyncio.Task[None]] = field(default_factory=set)
    _closed: bool = False

    def warm(self) -> None:
        """See to it that `size` workers stand ready; does not wait."""
        if self._closed or len(self._idle) + len(self._warming) >= self.settings.size:
            return
        task = asyncio.get_running_loop().create_task(self._add())
        self._warming.add(task)
        task.add_done_callback(self._warming.discard)

    async def run(
        self, tool: str, arguments: str, context: ToolContext, timeout: float | None, replay: bool = False
    ) -> ToolReply:
        """One call in a worker. `arguments` JSON text, `timeout` in seconds.

        Raises ToolFailure: the tool's own; timeout or cancelled (killed, effects unknown); internal and `lost` where
        the worker was lost after it had the call (`replay`: it may be repeated); unavailable where none could take it
        (nothing happened).
        """
        worker = await self._free(context)
        self._busy.add(worker)
        try:
            answer = await self._call(worker, tool, arguments, context, timeout, replay)
        except BaseException:
            worker.kill()
            raise
        finally:
            self._busy.discard(worker)
            self._done(worker)
            self.warm()
        if isinstance(answer, Returned):
            return ToolReply(answer.outcome, answer.files, answer.bodies)
        raise ToolFailure(
            answer.message, answer.cls, effects=answer.effects, retry_allowed=answer.retry_allowed,
            outcome=answer.outcome, files=answer.files,
        )  # fmt: skip

    def _give(self, worker: _Worker) -> None:
        if self._closed or len(self._idle) >= max(1, self.settings.size):
            worker.kill()
        else:
            self._idle.append(worker)

    async def close(self) -> None:
        """Kill all workers, also those that work."""
        self._closed = True
        for task in tuple(self._warming):
            task.cancel()
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle.clear()

    # --- workers -------------------------------------------------------------------------------------------------

    async def _free(self, context: ToolContext) -> _Worker:
        """A worker for one call, in turn. Raises ToolFailure(cancelled) where Escape comes first: nothing was begun."""
        taking = asyncio.ensure_future(self._take(context))
        stop = asyncio.ensure_future(context.cancelled.wait())
        try:
            await asyncio.wait((taking, stop), return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                raise ToolFailure("stopped by the user before it began", "cancelled")
            return taking.result()
        except BaseException:
            taking.cancel()
            taking.add_done_callback(self._unused)
            raise
        finally:
            stop.cancel()

    def _unused(self, taking: asyncio.Future[_Worker]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self._done(taking.result())

    def _done(self, worker: _Worker) -> None:
        """The call is over: whoever waits may have the slot, and the worker if it lives."""
        assert self._slots is not None
        self._slots.release()
        if worker.alive():
            self._give(worker)

    async def _take(self, context: ToolContext) -> _Worker:
        """A slot and a worker for it."""
        if self._slots is None:
            self._slots = asyncio.Semaphore(self.settings.most)
        await self._slots.acquire()
        try:
            return await self._ready(context)
        except BaseException:
            self._slots.release()
            raise

    async def _ready(self, context: ToolContext) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive():
                return worker
            worker.kill()
        if self._warming:  # one is on its way: sooner than another
            await asyncio.wait(tuple(self._warming), return_when=asyncio.FIRST_COMPLETED)
            if self._idle:
                return self._idle.pop()
        return await self._start(context)

    async def _add(self) -> None:
        with suppress(ToolFailure):  # whoever needs a worker will hear of it
            worker = await self._start(None)
            self._give(worker)

    async def _start(self, context: ToolContext | None) -> _Worker:
        ours, theirs = socket.socketpair()
        env = environment(context) if context else {"PATH": os.environ.get("PATH", os.defpath)}
        try:
            with theirs:
                argv = await self.sandbox.wrap(self.settings.argv, self.settings.workspace, "/", self.spawner)
                child = await self.spawner.start(
                    argv, env=env, cwd="/", stdin=theirs.fileno(), stdout=theirs.fileno(), limits=self._limits()
                )
        except BaseException:
            ours.close()
            raise
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=_LIMIT)
        except BaseException:
            child.kill()
            ours.close()
            raise
        worker = _Worker(child, reader, writer)
        try:
            writer.write(pack(Hello(PROTOCOL, self.settings.extensions)))
            answer = await asyncio.wait_for(read_answer(reader), _START)
        except (TimeoutError, ValueError) as e:
            worker.kill()
            raise ToolFailure(f"a tool worker did not start: {e or 'no answer'}", "unavailable") from None
        except asyncio.CancelledError:
            worker.kill()
            raise
        if not isinstance(answer, Ready):
            worker.kill()
            why = answer.message if isinstance(answer, Refused) else "it ended at once"
            raise ToolFailure(f"a tool worker did not start: {why}", "unavailable")
        worker.tools = answer.tools
        return worker

    def _limits(self) -> dict[int, int]:
        if sys.platform == "win32":
            return {}
        import resource

        out = {resource.RLIMIT_CORE: 0}
        if self.settings.memory:
            out[resource.RLIMIT_AS] = self.settings.memory
        if self.settings.cpu:
            out[resource.RLIMIT_CPU] = self.settings.cpu
        return out

    # --- one call ------------------------------------------------------------------------------------------------

    async def _call(
        self, worker: _Worker, tool: str, arguments: str, context: ToolContext, timeout: float | None, replay: bool
    ) -> Returned | Failed:
        """The worker's answer. Raises ToolFailure where the worker cannot be used again."""
        worker.calls += 1
        number = worker.calls
        around = Surroundings(
            context.session, context.run, context.call, context.effect, context.agent, context.cwd, context.raw
        )
        worker.writer.write(pack(Call(number, tool, arguments, around, environment(context))))
        answer = asyncio.ensure_future(_answer(worker, number, context))
        stop = asyncio.ensure_future(context.cancelled.wait())
        try:
            await asyncio.wait((answer, stop), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                found = answer.result()
                if not isinstance(found, str):
                    return found
                said = f"the tool's worker was lost ({found}): whether the call had effects is not known"
                raise ToolFailure(said, "internal", effects="unknown", retry_allowed=replay, lost=True)
            if stop.done():
                raise ToolFailure("stopped by the user; it may have had effects", "cancelled", effects="unknown")
            raise ToolFailure(f"timed out after {timeout:g} s and was killed", "timeout", effects="unknown")
        finally:
            answer.cancel()
            stop.cancel()


async def _answer(worker: _Worker, number: int, context: ToolContext) -> Returned | Failed | str:
    """The call's answer; a str says how the worker was lost."""
    while True:
        try:
            frame = await read_answer(worker.reader)
        except ValueError as e:
            return str(e)
        match frame:
            case Progressed(id=id, text=text, view=view) if id == number:
                context.progress(text, view)
            case Returned(id=id) | Failed(id=id) if id == number:
                return frame
            case None:
                return "it ended"
            case _:
                return "it answered something that was not asked"
