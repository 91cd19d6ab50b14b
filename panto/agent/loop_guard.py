"""Notices a model that goes round in circles: identical calls with nothing changed between, text that repeats its end.

It only counts; whoever runs the turn warns, asks or stops.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

EXEMPT = frozenset(("bash_output",))
"""Tools that are polled."""
WARNING = (
    "(This is the same call as before, and nothing has changed since: its answer stays the same. "
    "Try something else, or say what is missing.)"
)

_TAIL = 4_000
_COPIES = 8
_SHORTEST = 240


class Circles:
    """What one drive has seen of its turn: calls as they start, inputs as they are delivered.

    A call is counted from where something last changed: a file that really changed, a new input, or a call that may
    change things, the first time it is made (two commands that alternate for ever are a circle too).
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], list[int]] = {}
        self._at: dict[str, int] = {}
        self._warned: dict[tuple[str, str], tuple[int, int]] = {}
        self._next = self._since = 0
        self.warned: set[str] = set()
        """Calls whose result carries `WARNING`."""

    def repeats(self, name: str, arguments: str) -> int:
        """How often this call will have been made since something last changed, itself included. `arguments` are
        canonical JSON text."""
        places = self._places.get((name, arguments), [])
        return len(places) - bisect_left(places, self._since) + 1

    def start(
        self, call: str, name: str, arguments: str, mutates: bool, limit: int, reply: int = 0
    ) -> Literal["run", "warn", "hold"]:
        """Judge a call that is about to start: run it, run it and add `WARNING` to its result, or hold it for a person
        (unattended: end the turn). Unless it is held, it counts from here on.

        `limit` identical calls are warned of (0: never); it is only held once the model could read that, in a later
        `reply` than the one whose calls were warned first.
        """
        key, count = (name, arguments), self.repeats(name, arguments)
        if limit > 0 and count >= limit and name not in EXEMPT:
            said, place = self._warned.get(key, (reply, -1))
            if place < self._since:
                said, place = self._warned[key] = (reply, self._next)
            if said < reply:
                return "hold"
            self.warned.add(call)
        self.count(call, name, arguments, mutates)
        return "warn" if call in self.warned else "run"

    def count(self, call: str, name: str, arguments: str, mutates: bool) -> None:
        """A call starts (also one that a person allowed in spite of all)."""
        if mutates and (name, arguments) not in self._places:
            self._since = self._next
        self._at[call] = self._next
        self._places.setdefault((name, arguments), []).append(self._next)
        self._next += 1

    def changed(self, call: str) -> None:
        """A call really changed a file."""
        self._since = max(self._since, self._at.get(call, 0))

    def heard(self) -> None:
        """An input arrived: everything is new again."""
        self._since = self._next


def repeated_tail(text: str) -> int | None:
    """Where to cut a text whose end is one passage over and over (two copies stay); None: it is not.

    Looks at the last few thousand characters: at least eight copies that make some hundred characters.
    """
    tail = text[-_TAIL:]
    for size in range(1, len(tail) // _COPIES + 1):
        copies = max(_COPIES, -(-_SHORTEST // size))
        if size * copies > len(tail):
            break
        unit = tail[-size:]
        if unit.strip() and tail.endswith(unit * copies):
            start = len(text) - size
            while start >= size and text[start - size : start] == unit:
                start -= size
            return start + 2 * size
    return None
