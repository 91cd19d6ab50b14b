"""The words between panto and a tool worker: msgpack values, each after its length in four bytes (big-endian).

panto says Hello once, then Call after Call, one at a time; the worker answers Ready or Refused, then for each call any
number of Progress and one Returned or Failed. The worker's end of file is its death.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Literal, TypeVar

import msgspec

from panto.schema.bodies import ToolOutcome
from panto.schema.codec import Digest
from panto.schema.errors import FailureClass
from panto.schema.events import FileChange
from panto.schema.value import Value
from panto.schema.view import View

PROTOCOL = 1
LARGEST = 64 * 1024 * 1024
T = TypeVar("T")


class Source(Value, frozen=True):
    """An extension to activate: its name, where it lies, and the digest its content must have."""

    name: str
    path: str
    digest: Digest


class Hello(Value, frozen=True, tag="hello"):
    """The first word: the protocol's version and the extensions to activate, in order."""

    protocol: int
    extensions: tuple[Source, ...] = ()


class Surroundings(Value, frozen=True):
    """What a tool in a worker may know of its call."""

    session: str
    run: str
    call: str
    effect: str
    agent: str
    cwd: str
    raw: str = ""


class Call(Value, frozen=True, tag="call"):
    """Run a tool. `arguments` is JSON text, already checked; `env` replaces the worker's environment."""

    id: int
    tool: str
    arguments: str
    surroundings: Surroundings
    env: dict[str, str]


Order = Hello | Call


class Ready(Value, frozen=True, tag="ready"):
    """The extensions are active; these tools can be called."""

    tools: tuple[str, ...] = ()


class Refused(Value, frozen=True, tag="refused"):
    """The worker cannot serve: another protocol, a changed or broken extension."""

    message: str


class Progressed(Value, frozen=True, tag="progress"):
    """More output, or a whole view."""

    id: int
    text: str = ""
    view: View | None = None


class Returned(Value, frozen=True, tag="returned"):
    """The call's reply. `bodies` are contents before a change."""

    id: int
    outcome: ToolOutcome
    files: tuple[FileChange, ...] = ()
    bodies: tuple[bytes, ...] = ()


class Failed(Value, frozen=True, tag="failed"):
    """The call's ToolFailure."""

    id: int
    message: str
    cls: FailureClass = "internal"
    effects: Literal["none", "unknown"] = "none"
    retry_allowed: bool = False
    outcome: ToolOutcome | None = None
    files: tuple[FileChange, ...] = ()


Answer = Ready | Refused | Progressed | Returned | Failed


def pack(value: Order | Answer) -> bytes:
    """A frame."""
    body = msgspec.msgpack.encode(value)
    return struct.pack("!I", len(body)) + body


async def read_answer(reader: asyncio.StreamReader) -> Answer | None:
    """What a worker says next; None at the end. Raises ValueError for what is no frame."""
    return await _read(reader, _ANSWERS)


async def read_order(reader: asyncio.StreamReader) -> Order | None:
    """What panto says next; None at the end. Raises ValueError for what is no frame."""
    return await _read(reader, _ORDERS)


_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_ORDERS: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)


async def _read(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T]) -> T | None:
    try:
        length = struct.unpack("!I", await reader.readexactly(4))[0]
        if length > LARGEST:
            raise ValueError(f"a frame of {length} bytes")
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as e:
        raise ValueError(f"not a frame: {e}") from None
