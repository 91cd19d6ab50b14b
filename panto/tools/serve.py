"""The worker's side of frames.py: a program that activates extensions once and then runs one call after another."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from panto.schema.codec import BadText, loads
from panto.schema.errors import ToolFailure
from panto.schema.view import View
from panto.tools.frames import (
    PROTOCOL,
    Answer,
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
    read_order,
)
from panto.tools.tool import ToolReply

Report = Callable[[str, View | None], None]


class Serving(Protocol):
    """What a worker program does."""

    async def activate(self, extensions: Sequence[Source]) -> Sequence[str]:
        """The names of the tools there are then. Raises ToolFailure: the worker refuses to serve."""
        ...

    async def call(
        self, tool: str, arguments: Mapping[str, object], around: Surroundings, progress: Report
    ) -> ToolReply:
        """Run one call; `os.environ` and the working directory are already its own. Raises ToolFailure."""
        ...


async def serve(serving: Serving) -> None:
    """Serve the socket that is this process's standard input until its other end is closed.

    What the program prints goes to standard error: standard output is the protocol's.
    """
    link = socket.socket(fileno=os.dup(0))
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    reader, writer = await asyncio.open_connection(sock=link, limit=1 << 20)

    def say(answer: Answer) -> None:
        writer.write(pack(answer))

    order = await read_order(reader)
    if not isinstance(order, Hello) or order.protocol != PROTOCOL:
        say(Refused(f"it speaks protocol {PROTOCOL}, not {getattr(order, 'protocol', 'this')}"))
        return await writer.drain()
    try:
        say(Ready(tuple(await serving.activate(order.extensions))))
    except ToolFailure as failure:
        say(Refused(failure.message))
        return await writer.drain()
    while isinstance(order := await read_order(reader), Call):
        say(await _answer(serving, order, say))
        await writer.drain()


async def _answer(serving: Serving, call: Call, say: Callable[[Answer], None]) -> Answer:
    os.environ.clear()
    os.environ.update(call.env)
    try:
        os.chdir(call.surroundings.cwd)
        arguments = loads(call.arguments or "{}")
        if not isinstance(arguments, dict):
            raise ToolFailure("arguments must be a JSON object")
        reply = await serving.call(
            call.tool, arguments, call.surroundings, lambda text, view: say(Progressed(call.id, text, view))
        )
        return Returned(call.id, reply.outcome, reply.files, reply.bodies)
    except ToolFailure as e:
        return Failed(call.id, e.message, e.cls, e.effects, e.retry_allowed, e.outcome, e.files)
    except (BadText, OSError) as e:
        return Failed(call.id, str(e))
