"""What a screen or program may hold of the engine: submit, subscribe, ask. Nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from panto.schema.ops import Op
from panto.schema.queries import Query
from panto.schema.signals import Update

A = TypeVar("A")


class Client(Protocol):
    """One reader's door to the agents of a session. All methods belong to the owner loop's thread."""

    @property
    def primary(self) -> str:
        """The session id of the primary agent."""
        ...

    async def submit(self, op: Op) -> None:
        """Ask for something; returns when it is durable (a prompt) or under way. Raises PantoError, fit to show."""
        ...

    def subscribe(self) -> AsyncIterator[Update]:
        """Facts and signals of the whole tree from now on, in commit order, each fact once.

        Buffered and bounded for each reader: text deltas are merged, other signals may be dropped when it lags,
        facts never. The iterator ends after `Left`.
        """
        ...

    async def ask(self, query: Query[A]) -> A:
        """Answer a query. Raises PantoError."""
        ...
