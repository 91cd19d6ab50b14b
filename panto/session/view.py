"""What readers look at: the chat context, the turns, the files, the sums."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from panto.schema.codec import Digest
from panto.schema.events import FileChange
from panto.schema.messages import Usage
from panto.session.context import Context


class TurnView(Struct):
    """A turn as lists show it. `inputs`: digests of what was said; `seq`: the commit that started it; times UTC s."""

    turn: str
    run: str
    attempt: int
    seq: int
    time: float
    state: Literal["active", "completed", "attempt_failed", "failed", "stopped", "refused", "superseded"] = "active"
    inputs: list[Digest] = []
    changes: list[FileChange] = []
    runs: list[str] = []


class View(Struct):
    """All folds beside the machines. Readers only look; `fold` is the only writer.

    `turns` in order, superseded ones too. `files`: real path to the digest last read or written there (None: absent).
    `used`: tokens of the last request and its reply, as its vendor counted them (0: the context is another since).
    `cost` in USD, None while no price is known. `metadata`: message id to JSON text. `extensions`: owner to (kind,
    value digest), in order.
    """

    context: Context
    turns: list[TurnView] = []
    files: dict[str, Digest | None] = {}
    usage: Usage = Usage()
    used: int = 0
    cost: float | None = None
    metadata: dict[str, str] = {}
    extensions: dict[str, list[tuple[str, Digest]]] = {}

    def turn(self, turn: str) -> TurnView | None:
        """A turn by its id, newest first."""
        return next((each for each in reversed(self.turns) if each.turn == turn), None)

    def copy(self) -> View:
        """A view of its own that starts out equal."""
        turns = list(self.turns)  # only the last one still changes; others are replaced
        for turn in turns[-1:]:
            turns[-1] = replace(turn, inputs=list(turn.inputs), changes=list(turn.changes), runs=list(turn.runs))
        return replace(
            self, context=self.context.copy(), turns=turns, files=dict(self.files), metadata=dict(self.metadata),
            extensions={owner: list(facts) for owner, facts in self.extensions.items()},
        )  # fmt: skip
