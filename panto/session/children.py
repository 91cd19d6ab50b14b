"""What is known of the sessions under a primary without opening any: what they used, how their last turns ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from panto.schema.events import TurnAttemptFailed, TurnRetried, TurnSettled, TurnStarted, TurnStopped, TurnSuperseded
from panto.session.ledger import events
from panto.session.read import ENDLESS, commits_back

if TYPE_CHECKING:
    import sqlite3

FAR = 400
"""Commits that are looked through for the end of a turn."""


class Spent(NamedTuple):
    """Tokens, in and out, and USD (None: no price is known)."""

    tokens: int = 0
    cost: float | None = None


def spent(db: sqlite3.Connection, primary: str) -> dict[str, Spent]:
    """What each session under a primary used."""
    rows = db.execute("SELECT id, tokens, cost FROM session WHERE under = ?", (primary,))
    return {id: Spent(tokens, cost) for id, tokens, cost in rows}


def endings(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """How each session's last turn ended: completed, failed, cancelled; parked: it has not; idle: there was none."""
    return {id: _ending(db, id) for id in ids}


def _ending(db: sqlite3.Connection, id: str) -> str:
    for count, commit in enumerate(commits_back(db, ((id, ENDLESS),))):
        for event in reversed(events(commit)):
            match event:
                case TurnSettled(status=status):
                    return "failed" if status == "failed" else "completed"
                case TurnStopped(reason=reason):
                    return "cancelled" if reason == "cancelled" else "failed"
                case TurnAttemptFailed():
                    return "failed"
                case TurnSuperseded():
                    return "cancelled"
                case TurnStarted() | TurnRetried():
                    return "parked"
        if count >= FAR:
            return "parked"
    return "idle"
