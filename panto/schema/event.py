"""What every durable fact is: a frozen payload in the stream of one machine and one thing."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import field

from panto.schema.value import Value

Machine = Literal["run", "input", "turn", "job", "checkpoint", "message", "grant", "session", "setup", "extension"]
StopReason = Literal["cancelled", "loop_guard", "steps", "budget"]
FailReason = Literal["provider", "malformed", "context", "storage", "internal", "ownership_lost"]
Cause = Literal["tool", "interrupted", "left", "crash", "exception"]
"""Why a call failed: by itself, by Escape, since panto was ended in an orderly way (quit, TERM, HUP), since it died, or
by a fault of the tool."""
Effects = Literal["none", "unknown"]


def version(number: int) -> int:
    """A payload's version: a default that is nevertheless always written (defaults are left out otherwise)."""
    default: int = field(default_factory=lambda: number)
    return default


class Event(Value, frozen=True, tag_field="type"):
    """The base of all facts. `machine` and `entity` name the stream; `entity` is the payload's own id field."""

    machine: ClassVar[Machine]
    id_field: ClassVar[str]

    @property
    def entity(self) -> str:
        """The id of the thing this fact is about; equals the stream's id (R13)."""
        return str(getattr(self, self.id_field))
