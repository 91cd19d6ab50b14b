"""A house without walls of its own: real store, real tools, scripted or wired models, one client. For tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panto.agent.approval import Rule
from panto.agent.ports import Limits
from panto.providers import Catalog, RetryPolicy, complete
from panto.scheduler import Agent, AgentSettings, LocalClient, Scheduler, Shared
from panto.schema import ops
from panto.schema.bodies import ToolOutcome
from panto.schema.events import AnyEvent
from panto.schema.messages import Text, ToolSpec
from panto.schema.records import Record, Recorder
from panto.schema.signals import Fact, Update
from panto.session import Store
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.registry import Registry
from panto.tools.tool import Approval, Tool, ToolContext, ToolReply

Provider = Mapping[str, Any]


def scripted(*replies: Mapping[str, Any], context: int = 100_000) -> dict[str, Provider]:
    """Provider tables with one scripted model, `fake:m`."""
    models = {"m": {"id": "m", "context": context}}
    return {"fake": {"protocol": "scripted", "models": models, "replies": list(replies)}}


def wired(protocol: str, base_url: str, context: int = 100_000) -> dict[str, Provider]:
    """Provider tables with one model behind a real wire, `fake:m`."""
    model = {"id": "m", "context": context, "max_output": 4096}
    return {"fake": {"protocol": protocol, "base_url": base_url, "models": {"m": model}}}


@dataclass
class House:
    """An open house. `seen` is everything a reader was told."""

    scheduler: Scheduler
    client: LocalClient
    cwd: Path
    seen: list[Update] = field(default_factory=list)

    @property
    def agent(self) -> Agent:
        return self.client.agent

    def events(self, *kinds: type) -> list[AnyEvent]:
        """The facts told so far, of these kinds (none: all)."""
        return [u.event for u in self.seen if isinstance(u, Fact) and (not kinds or isinstance(u.event, kinds))]

    def records(self) -> list[Record]:
        """Everything told so far, as records."""
        recorder = Recorder(self.client.primary)
        return [record for update in self.seen for record in recorder.records(update)]

    def results(self) -> list[Record]:
        """The results told so far, as they came: of parallel calls, the first to end first."""
        return [r for r in self.records() if r["type"] == "tool_result"]

    def results_in_call_order(self) -> list[Record]:
        """The results told so far, in the order of their calls, whichever ended first."""
        calls = [r["id"] for r in self.records() if r["type"] == "tool_call"]
        return sorted(self.results(), key=lambda r: calls.index(r["id"]))

    async def prompt(self, text: str, **more: Any) -> None:
        """Say something and wait until the agent rests."""
        await self.client.submit(ops.Prompt(text, **more))
        await self.rest()

    async def rest(self) -> None:
        """Wait until no turn is driven."""
        await self.until(lambda: not self.agent.in_turn)

    async def until(self, condition: Callable[[], object], seconds: float = 30) -> None:
        """Wait for a condition that is sure to come."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def house(
    root: Path,
    tables: Mapping[str, Provider],
    *,
    mode: str = "yolo",
    attended: bool = True,
    rules: Sequence[Rule] = (),
    limits: Limits = Limits(steps=200),  # noqa: B008 - frozen
    tools: Sequence[Tool] = (),
    resume: str = "",
    compact_at: float = 0.8,
    **shared: Any,
) -> AsyncIterator[House]:
    """Open a house on `root` (store and working directory below it); close it at the end."""
    cwd = root / "work"
    cwd.mkdir(exist_ok=True)
    store = await Store.open(root / "sessions")
    made = ToolSettings()

    async def ask(*args: Any, **kwargs: Any) -> Any:
        return await complete(*args, policy=RetryPolicy(first_s=0.001, longest_s=0.002), **kwargs)

    common = Shared(
        store=store, catalog=Catalog(tables), complete=ask, registry=Registry((*builtin_tools(made), *tools)),
        settings=AgentSettings(limits, compact_at=compact_at, default_mode=mode, default_model="fake:m"),
        rules=tuple(rules), spool=str(root / "spool"), cwd=str(cwd), platform="test", attended=attended, **shared,
    )  # fmt: skip
    scheduler = Scheduler(common, made.jobs)
    agent = await (scheduler.open(resume) if resume else scheduler.create(cwd=str(cwd)))
    opened = House(scheduler, LocalClient(scheduler, agent), cwd)
    scheduler.readers.append(opened.seen.append)
    try:
        yield opened
    finally:
        await scheduler.close()
        await store.close()


class Hand:
    """A tool made of a coroutine function `(arguments, context) -> text`. `ran` has the arguments of each run."""

    def __init__(
        self, name: str, run: Callable[[Mapping[str, Any], ToolContext], Awaitable[str]], *, mutates: bool = True,
        replay: bool = False, approval: Approval = "read", external: bool = False,
        look: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self.spec = ToolSpec(name, f"does {name}", '{"type":"object"}')
        self.mutates, self.replay, self.external = mutates, replay, external
        self.approval: Approval = approval
        self.ran: list[Mapping[str, Any]] = []
        self._run, self._look = run, look

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return ()

    def title(self, arguments: Mapping[str, object]) -> str:
        return self.spec.name

    async def limits(self, arguments: Mapping[str, object], context: ToolContext) -> str:
        return ""

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> None:
        if self._look is not None:
            await self._look()

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolReply:
        self.ran.append(arguments)
        return ToolReply(ToolOutcome((Text(await self._run(arguments, context)),)))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A scripted tool call."""
    return {"name": name, "arguments": arguments}
