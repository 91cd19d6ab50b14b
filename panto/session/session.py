"""One open session: append = decide, write, fold, tell. The only way a fact comes to be."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from panto.schema.bodies import Body
from panto.schema.codec import Digest
from panto.schema.queries import History
from panto.schema.signals import Fact
from panto.session.command import Command, Position
from panto.session.state import State
from panto.session.view import View

Observer = Callable[[Fact], None]


class Staged(Struct, frozen=True):
    """A body ready to be stored: its digest, its bytes, and the value where it is one of `Body`."""

    digest: Digest
    data: bytes
    value: Body | None = None


def stage(body: Struct | bytes) -> Staged:
    """Freeze a body: a Body, a part of a request (Message, SystemBlock, ToolSpec) or raw bytes. Pure."""
    raise NotImplementedError


class Preview(Struct, frozen=True):
    """What a session would be in if some commands were committed now."""

    state: State
    view: View


class Session:
    """A session open for writing. All methods belong to the loop's thread."""

    id: str
    under: str
    opener: str
    depth: int
    parked: bool
    """Opened with an active run that nobody has continued yet; the scheduler sets it to False when it does."""

    @property
    def state(self) -> State:
        """The machines, as of the last durable commit. Frozen: may be kept."""
        raise NotImplementedError

    @property
    def view(self) -> View:
        """Context, turns, files, sums as of the last durable commit. Alive: look, never change, do not keep."""
        raise NotImplementedError

    @property
    def head(self) -> Position:
        """(seq of the last commit, number of its events); (-1, 0) before the first."""
        raise NotImplementedError

    async def commit(self, *commands: Command, bodies: tuple[Staged, ...] = ()) -> tuple[Fact, ...]:
        """Decide the commands in order, each on the state the one before leaves, and write them as one commit.

        Durable when it returns. All known with equal intent: the original facts, nothing written. Cancelling the
        caller does not take the commit back. Raises Refused, Conflict (nothing written), OwnershipLost, ViewOnly,
        StorageFailed (poisoned until `reopen`).
        """
        raise NotImplementedError

    def preview(self, *commands: Command, bodies: tuple[Staged, ...] = ()) -> Preview:
        """What these commands would lead to, commits on their way included. Raises Refused. Nothing is written.

        `preview.state.run.position` is the position to plan at for a PrepareStep in the same commit.
        """
        raise NotImplementedError

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Be told each fact once, in commit order, after its commit is durable. Returns how to stop.

        An observer that raises is reported by the loop's exception handler and disturbs nobody.
        """
        raise NotImplementedError

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Be told, once, when another process has taken this session over."""
        raise NotImplementedError

    async def body(self, digest: Digest) -> Body:
        """A body by its digest. Raises Missing (names the digest) or Corrupt."""
        raise NotImplementedError

    async def raw(self, digest: Digest) -> bytes:
        """The bytes of a body, as stored. Raises Missing or Corrupt."""
        raise NotImplementedError

    async def history(self, before: Position | None = None, limit: int = 400) -> History:
        """The newest page of facts before a position (None: of all), whole turns where that fits."""
        raise NotImplementedError

    async def reopen(self) -> None:
        """After StorageFailed: read from storage what is there, and write again. Raises as `commit`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Finish what is on its way and let the session go. Idempotent."""
        raise NotImplementedError
