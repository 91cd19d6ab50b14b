"""Durable facts of an extension's own, in the session of the lane's agent."""

from __future__ import annotations

from panto.lua.api.agents import Desk
from panto.lua.bridge import plain_text
from panto.lua.driver import Driver, LuaTask


def install(driver: Driver, desk: Desk) -> None:
    """Add the ops `append` and `entries`."""

    async def append(task: LuaTask, kind: str, text: str) -> None:
        await desk.find(task.lane).conversation.append(task.owner, kind, plain_text(text))

    async def entries(task: LuaTask, kind: str) -> list[str]:
        return list(await desk.find(task.lane).conversation.entries(task.owner, kind))

    driver.ops |= {"append": append, "entries": entries}
