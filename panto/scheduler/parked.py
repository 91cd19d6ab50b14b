"""How a turn comes to rest without an end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from panto.schema.errors import PantoError

Reason = Literal["shutdown", "ownership_lost", "failed", "attempt_failed"]


@dataclass(frozen=True, slots=True)
class Parked:
    """A turn came to rest without an end: panto leaves, the session was lost, or `problem` stopped it.

    `attempt_failed`: its attempt failed, and a person may retry it; the ledger says why.
    """

    reason: Reason
    problem: PantoError | None = None
