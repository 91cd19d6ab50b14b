"""An agent's conversation as others see it: every message numbered from 1, metadata, and extensions' own facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from panto.scheduler.mailbox import Mailbox
from panto.schema.bodies import MessageBody, TextBody
from panto.schema.codec import canonical, loads
from panto.schema.errors import UsageError
from panto.schema.messages import Message, Text
from panto.session import Session, stage
from panto.session.commands import AppendFact, SetMetadata


class Conversation:
    """The full history of one agent's session. Numbers never change: not by compaction, not by rewinding.

    `system()` gives the agent's own system messages, which come first.
    """

    def __init__(self, session: Session, mailbox: Mailbox, system: Callable[[], tuple[Message, ...]]) -> None:
        self._session = session
        self._mailbox = mailbox
        self._system = system
        self._names: list[str] = []

    async def add_message(self, role: Literal["system", "user"], text: str, metadata: dict[str, object]) -> int:
        """Say something without starting a turn: it goes along with the next one. Its number in the conversation."""
        message = Message(role, (Text(text),), metadata)
        await self._mailbox.prompt(message, source="command", start=False)
        return len(await self.messages())

    async def messages(self) -> tuple[Message, ...]:
        """The full history, its own system messages first, compacted and superseded ones included, each with its
        latest metadata; what waits to go along with the next turn stands at the end."""
        out = list(self._system())
        names = [f"system:{number}" for number in range(1, len(out) + 1)]
        context, view = self._mailbox.ports.context, self._session.view
        for name, message in await context.named(view.context.entries):
            out.append(message)
            names.append(name)
        for name, said in self._session.state.inputs.items():
            body = await self._session.body(said.body)
            if isinstance(body, MessageBody):
                out.append(body.message)
                names.append(name)
        self._names = names
        latest = (view.metadata.get(name) for name in names)
        return tuple(replace(m, metadata=_object(new)) if new else m for m, new in zip(out, latest, strict=True))

    async def set_message_metadata(self, number: int, metadata: dict[str, object]) -> None:
        """Set the metadata of message `number` (from 1). Raises UsageError where there is none."""
        await self.messages()
        if not 1 <= number <= len(self._names):
            raise UsageError(f"there is no message {number}; the conversation has {len(self._names)}")
        text = canonical(metadata).decode("utf-8")
        await self._session.commit(SetMetadata(message=self._names[number - 1], metadata=text))

    async def append(self, owner: str, kind: str, value: str) -> None:
        """Record a fact of an extension's own: JSON text, folded by it only."""
        body = stage(TextBody(value))
        await self._session.commit(AppendFact(owner=owner, kind=kind, value=body.digest), bodies=(body,))

    async def entries(self, owner: str, kind: str) -> tuple[str, ...]:
        """An extension's facts of one kind, oldest first, inherited ones included."""
        found = self._session.view.extensions.get(owner, [])
        bodies = [await self._session.body(value) for name, value in found if name == kind]
        return tuple(body.text for body in bodies if isinstance(body, TextBody))


def _object(text: str) -> dict[str, object]:
    value = loads(text)
    return value if isinstance(value, dict) else {}
