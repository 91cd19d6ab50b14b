"""Whatever is stopped, whenever: slots, sessions, tasks and descriptors are what they were."""

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.errors import PantoError
from panto.schema.events import ModelStepStarted, ToolCallCompleted, ToolCallFailed, ToolCallStarted, ToolStepOpened
from panto.schema.messages import Request
from panto.schema.signals import Fact
from tests.rocks.crew import child_call, inside, nothing_left, said
from tests.rocks.test_subagents_escape import Watch

DEEP = "---\nname: deep\ndescription: x\ntools: [read, ls, bash, 'subagents.*']\n---\nGo deep."


class Children:
    """What children do: something of everything."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.calm = dice, False

    def __call__(self, request: Request) -> Mapping[str, Any]:
        dice, depth = self.dice, int(said(request).partition(" ")[0]) if said(request)[:1].isdigit() else 9
        if said(request).startswith("hold"):
            return {"text": ["here ", "I am"], "stall_s": 600}
        first = not any(m.role == "tool" for m in request.messages)
        if said(request) == "warm up" and first:  # what is started once and stays
            return {"calls": [{"name": "bash", "arguments": {"command": "true"}}]}
        if self.calm:
            return {"text": "done"}
        offered = any(tool.name == "subagents.run" for tool in request.tools)
        match dice.randrange(7 if first else 4):
            case 0:
                return {"text": ["half ", "of it"], "stall_s": 600}
            case 1:
                return {"text": ["a ", "b ", "c"], "each_s": 0.002, "delay_s": dice.choice((0, 0.01))}
            case 2:
                return {"error": {"kind": "invalid_request", "status": 400, "message": "no luck"}}
            case 4:
                return {"calls": [{"name": "bash", "arguments": {"command": "sleep 0.02"}}]}
            case 5 if offered and depth < 3:
                deeper = [{"prompt": f"{depth + 1} {n}", "profile": "deep"} for n in range(dice.randrange(1, 3))]
                return child_call(*deeper)
            case _:
                return {"text": "done"}


class Slots(Watch):
    """Who holds a slot: those whose turn runs, without those who wait for children of their own."""

    def __init__(self, at: Any) -> None:
        super().__init__()
        self.primary, self.held, self._agents = (at.house.client.primary,), 0, at.house.scheduler.agents
        self._names: dict[str, str] = {}
        self._lent: dict[str, str] = {}

    def __call__(self, update: Any) -> None:
        super().__call__(update)
        if not isinstance(update, Fact):
            return
        match update.event:
            case ToolStepOpened(calls=calls):
                self._names |= {bound.call: bound.name for bound in calls}
            case ToolCallStarted(call=call) if self._names[call] == "subagents.run":
                self._lent[call] = update.agent
            case ToolCallCompleted(call=call) | ToolCallFailed(call=call):
                self._lent.pop(call, None)
            case _:
                pass
        if isinstance(update.event, ModelStepStarted):  # one whose call was stopped ends without going on
            self.held = max(self.held, len(self.now() - set(self._lent.values())))

    def now(self) -> set[str]:
        """Whose turn runs; that of a closed agent is parked."""
        self.running = {id for id in self.running if id in self._agents}
        return self.running


class Hand:
    """Somebody who stops things after so many facts."""

    def __init__(self, at: Any, dice: random.Random, moments: set[int]) -> None:
        self.at, self.dice, self.moments, self.seen, self.reloaded = at, dice, moments, 0, False
        self.busy: set[asyncio.Future[None]] = set()

    def __call__(self, update: Any) -> None:
        if not isinstance(update, Fact):
            return
        self.seen += 1
        if self.seen in self.moments:
            work = asyncio.ensure_future(self._do(self.dice.choice(self.deeds)))
            self.busy.add(work)
            work.add_done_callback(self.busy.discard)

    async def _do(self, deed: Callable[["Hand"], Awaitable[None]]) -> None:
        try:
            await deed(self)
        except PantoError:
            pass  # there was nothing to do it to

    def _others(self) -> list[str]:
        return [id for id in self.at.house.scheduler.agents if id != self.at.house.client.primary] or [""]

    async def escape(self) -> None:
        await self.at.house.client.submit(ops.Interrupt())

    async def stop_one(self) -> None:
        await self.at.house.client.submit(ops.Interrupt(agent=self.dice.choice(self._others())))

    async def steer_one(self) -> None:
        await self.at.house.client.submit(ops.Prompt("4 more", agent=self.dice.choice(self._others())))

    async def go_on_with_one(self) -> None:
        rows = await self.at.house.scheduler.shared.store.list(under=self.at.house.client.primary, all=True)
        id = self.dice.choice([row.id for row in rows] or ["0" * 32])
        await self.at.house.client.submit(ops.RunCommand(f"/agents.resume {id} 4 go on"))

    async def reload(self) -> None:
        self.reloaded = True  # the gate is taken away while its children still end
        await self.at.extensions.reload()

    deeds = (escape, escape, stop_one, stop_one, steer_one, go_on_with_one, reload)


async def all_quiet(at: Any, hand: Hand) -> None:
    """Stop what is left until nothing is."""
    client, agents = at.house.client, at.house.scheduler.agents
    async with asyncio.timeout(60):
        while len(agents) > 1 or at.house.agent.mailbox.busy or hand.busy:
            for id in tuple(agents):
                await hand._do(lambda hand, id=id: client.submit(ops.Interrupt(agent=id)))  # type: ignore[misc]
            await asyncio.sleep(0.02)
    await nothing_left(at)


def loose() -> tuple[int, int]:
    """Open descriptors (the store's own, which come when they are needed, not counted), and unfinished tasks."""
    open_now = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            open_now += "sessions.db" not in os.readlink(f"/proc/self/fd/{name}")
    return open_now, len(asyncio.all_tasks())


@pytest.mark.long(sample=4)
@pytest.mark.parametrize("seed", range(400))
def test_whatever_is_stopped_at_whatever_moment_nothing_stays_behind(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    slots, count = dice.choice((1, 2, 5)), dice.randrange(1, 14)
    place = tmp_path / "config" / "agents" / "deep.md"
    place.parent.mkdir(parents=True)
    place.write_text(DEEP)
    tasks = [
        {"prompt": f"1 {n}", "profile": dice.choice(("deep", "worker")), "background": dice.random() < 0.2}
        for n in range(count)
    ]
    warm = child_call({"prompt": "warm up", "profile": "worker"})
    hold = child_call(*(f"hold {n}" for n in range(slots)))
    children, calls = Children(dice), {"warm up": warm, "go": child_call(*tasks), "all slots": hold}

    def primary(request: Request) -> Mapping[str, Any]:
        return calls.pop(said(request), {"text": "done"})

    async def work(at: Any) -> None:
        watch = Slots(at)
        at.house.scheduler.readers.append(watch)
        children.calm = True
        await at.house.prompt("warm up")
        await nothing_left(at)
        before = loose()
        children.calm = False
        hand = Hand(at, dice, {dice.randrange(10, 40 + 25 * count) for _ in range(dice.randrange(1, 7))})
        at.house.scheduler.readers.append(hand)
        await at.house.client.submit(ops.Prompt("go"))
        async with asyncio.timeout(60):
            while at.house.agent.in_turn and hand.seen < max(hand.moments):
                held = hand.seen
                await asyncio.sleep(0.3)
                if hand.seen == held:  # everything stalls
                    break
        at.house.scheduler.readers.remove(hand)
        children.calm = True
        await all_quiet(at, hand)
        await at.house.until(lambda: all(now <= then for now, then in zip(loose(), before, strict=True)))
        assert (watch.held <= slots or hand.reloaded) and not watch.now()
        await at.house.client.submit(ops.Prompt("all slots"))
        await at.house.until(lambda: len(watch.now()) == slots)  # every slot is free again
        await at.house.client.submit(ops.Interrupt())
        await all_quiet(at, hand)

    settings = {"places": {"config_dir": str(tmp_path / "config")}}
    inside(tmp_path, {"primary": primary, "child": children}, work, config={"max_running": slots}, settings=settings)
