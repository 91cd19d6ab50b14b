"""Conversations and stores: the full history, metadata on any message, sessions under another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from panto.lua.api.agents import Desk, metadata_of
from panto.lua.bridge import plain_text
from panto.lua.driver import Driver, LuaTask
from panto.schema.codec import canonical
from panto.schema.errors import UsageError
from panto.schema.messages import Message
from panto.schema.queries import SessionRow
from panto.schema.records import message_text


def message_record(message: Message) -> dict[str, Any]:
    """A message as Lua gets it: role, text, parts, metadata."""
    out: dict[str, Any] = {"role": message.role, "text": message_text(message)}
    out["parts"] = msgspec.to_builtins(message.parts)
    if message.metadata:
        out["metadata"] = message.metadata
    return out


def row_record(row: SessionRow) -> dict[str, Any]:
    """What is known of a session without opening it."""
    return {
        "id": row.id, "title": row.title, "time": row.time, "model": row.model, "turns": row.turns,
        "tokens": row.tokens, "cost": row.cost, "cwd": row.cwd, "owner": row.owner, "last_prompt": row.last_prompt,
    }  # fmt: skip


class Conversations:
    """The ops of conversations and stores."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def install(self, driver: Driver) -> None:
        """Add the ops."""

        def op(work: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
            return lambda task, *args: self._desk.on_owner(lambda: work(task, *args))

        driver.ops |= {
            "messages": op(self.messages), "message_count": op(self.count), "add_message": op(self.add),
            "message_metadata": op(self.metadata), "set_message_metadata": op(self.set_metadata),
            "store_list": op(self.store_list), "store_metadata": op(self.store_metadata),
        }  # fmt: skip

    async def messages(self, task: LuaTask, id: str) -> list[dict[str, Any]]:
        """The full history, system messages included."""
        return [message_record(message) for message in await self._desk.find(id).conversation.messages()]

    async def count(self, task: LuaTask, id: str) -> int:
        """How many messages there are."""
        return len(await self._desk.find(id).conversation.messages())

    async def add(self, task: LuaTask, id: str, role: str, text: str, metadata: str | None = None) -> int:
        """A message that the next request carries; its number."""
        conversation = self._desk.find(id).conversation
        who: Literal["system", "user"] = "system" if role == "system" else "user"
        return await conversation.add_message(who, plain_text(text), metadata_of(metadata))

    async def metadata(self, task: LuaTask, id: str, index: int) -> str | None:
        """A message's metadata as JSON text, nil if it has none."""
        found = await self._desk.find(id).conversation.messages()
        if index > len(found):
            raise UsageError(f"there is no message {index}; the conversation has {len(found)}")
        metadata = found[index - 1].metadata
        return canonical(metadata).decode() if metadata else None

    async def set_metadata(self, task: LuaTask, id: str, index: int, metadata: str) -> None:
        """Set it; a fact, never sent to the model."""
        await self._desk.find(id).conversation.set_message_metadata(index, metadata_of(metadata))

    # --- stores ------------------------------------------------------------------------------------------------

    def _under(self, task: LuaTask, under: str) -> str:
        if under:
            return under
        agent = self._desk.scheduler.agents.get(task.lane)
        return (agent.session.under or agent.id) if agent else ""

    async def _rows(self, task: LuaTask, under: str, limit: int) -> tuple[SessionRow, ...]:
        store, scope = self._desk.scheduler.shared.store, self._under(task, under)
        return await store.list(under=scope, all=True, limit=limit) if scope else await store.list(limit=limit)

    async def store_list(self, task: LuaTask, under: str, limit: float = 200) -> list[dict[str, Any]]:
        """Sessions of the scope, newest first."""
        return [row_record(row) for row in await self._rows(task, under, int(limit))]

    async def store_metadata(self, task: LuaTask, under: str, id: str) -> dict[str, Any] | None:
        """What is known of one session of the scope."""
        rows = await self._rows(task, under, 100_000)
        return next((row_record(row) for row in rows if row.id == id), None)
