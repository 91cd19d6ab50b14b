"""A tool call without the rest of the house: checked arguments, a context of plain values, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from panto.schema.codec import Digest
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import View
from panto.tools import arguments
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.registry import Registry
from panto.tools.tool import Tool, ToolContext, ToolReply

T = TypeVar("T")


@dataclass
class Lab:
    """One session's calls in one working directory. `fresh` is what the ledger's fold would hold."""

    cwd: Path
    tools: Registry
    settings: ToolSettings = field(default_factory=ToolSettings)
    session: str = "s1"
    fresh: dict[str, Digest | None] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    views: list[View | None] = field(default_factory=list)
    mask: tuple[str, ...] = ()
    env_drop: frozenset[str] = frozenset()
    env_pass: frozenset[str] = frozenset()
    bodies: dict[Digest, bytes] = field(default_factory=dict)

    def context(self, **more: Any) -> ToolContext:
        def progress(text: str, view: View | None) -> None:
            self.said.append(text)
            self.views.append(view)

        values: dict[str, Any] = {
            "session": self.session, "run": "r", "call": "c", "effect": "e", "agent": "a", "cwd": str(self.cwd),
            "progress": progress, "fresh": self.fresh, "spool": str(self.cwd.parent / "spool"), "mask": self.mask,
            "env_drop": self.env_drop, "env_pass": self.env_pass,
        }  # fmt: skip
        return ToolContext(**(values | more))

    def tool(self, name: str) -> Tool:
        tool = self.tools.get(name)
        assert tool is not None
        return tool

    async def call(self, name: str, context: ToolContext | None = None, /, **given: object) -> ToolReply:
        """Run a call as the agent would, and remember the files it saw and changed."""
        tool = self.tool(name)
        try:
            reply = await tool.run(arguments.check(tool.spec, given), context or self.context())
        except ToolFailure as failure:
            self.note(failure.files)
            raise
        self.note(reply.files)
        for body in reply.bodies:
            from panto.schema.codec import digest

            self.bodies[digest(body)] = body
        return reply

    def note(self, files: tuple[Any, ...]) -> None:
        for file in files:
            self.fresh[file.path] = file.after

    async def text(self, name: str, context: ToolContext | None = None, /, **given: object) -> str:
        return text_of(await self.call(name, context, **given))

    async def failure(self, name: str, context: ToolContext | None = None, /, **given: object) -> ToolFailure:
        """The failure that a call must end in."""
        try:
            reply = await self.call(name, context, **given)
        except ToolFailure as failure:
            return failure
        raise AssertionError(f"{name} did not fail: {text_of(reply)}")


def text_of(reply: ToolReply) -> str:
    return "".join(part.text for part in reply.outcome.parts if isinstance(part, Text))


@asynccontextmanager
async def lab(cwd: Path, **more: Any) -> AsyncIterator[Lab]:
    """A laboratory in `cwd`; everything it started is ended after."""
    settings = more.pop("settings", None) or ToolSettings()
    cwd.mkdir(parents=True, exist_ok=True)
    try:
        yield Lab(cwd, Registry(builtin_tools(settings)), settings, **more)
    finally:
        await settings.jobs.close()
        settings.spawner.close()


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def until(condition: Any, seconds: float = 30.0) -> None:
    """Wait for a condition; AssertionError when the time is over."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never came true"
        await asyncio.sleep(0.02)


def processes(mark: str) -> list[int]:
    """Living processes whose command line or environment holds `mark`."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                text = (place / "cmdline").read_bytes() + b"\0" + (place / "environ").read_bytes()
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in text and state not in "ZX":
                found.append(int(place.name))
    return found


def mapping(value: object) -> Mapping[str, Any]:
    assert isinstance(value, Mapping)
    return value
