"""Notices a model that goes round in circles: identical calls with nothing changed between, text that repeats its end.

Pure functions over what a turn has done so far; whoever runs the turn warns, asks or stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

LIMIT = 3
"""Identical calls at which the model is warned; the next one is held or ends the turn."""
EXEMPT = frozenset(("bash_output",))
"""Tools that are polled."""
WARNING = (
    "(This is the same call as before, and nothing has changed since: its answer stays the same. "
    "Try something else, or say what is missing.)"
)

_TAIL = 4_000
_COPIES = 8
_SHORTEST = 240


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that happened in the turn, in order: a call that was run, or (name "") an input that arrived.

    `arguments` are canonical JSON text. `changed`: files really differ after it. `mutates`: the tool may change things.
    """

    name: str
    arguments: str = ""
    changed: bool = False
    mutates: bool = False


def repeats(past: Iterable[Done], name: str, arguments: str) -> int:
    """How often this call will have been made, itself included, since something last changed.

    A changed file and a new input count as change; so does a call that may change things, the first time it is made:
    two commands that alternate for ever are a circle too.
    """
    wanted = (name, arguments)
    count = 0
    seen: set[tuple[str, str]] = set()
    for done in past:
        key = (done.name, done.arguments)
        fresh = done.mutates and key not in seen
        if not done.name or done.changed or (fresh and key != wanted):
            count = 0
        seen.add(key)
        count += key == wanted and bool(done.name)
    return count + 1


def judge(past: Iterable[Done], name: str, arguments: str, limit: int = LIMIT) -> Literal["run", "warn", "hold"]:
    """What to do with a call: run it, run it and add `WARNING` to its result, or hold it for a person (unattended:
    end the turn as limited by the loop guard). `limit` 0: never."""
    if limit <= 0 or name in EXEMPT:
        return "run"
    count = repeats(past, name, arguments)
    return "run" if count < limit else "warn" if count == limit else "hold"


class Circles:
    """What one drive has seen of its turn, for `judge`: calls as they start, inputs as they are delivered."""

    def __init__(self) -> None:
        self._past: list[Done] = []
        self._calls: dict[str, int] = {}
        self.warned: set[str] = set()
        """Calls whose result carries `WARNING`."""

    def start(self, call: str, name: str, arguments: str, mutates: bool, limit: int) -> Literal["run", "warn", "hold"]:
        """Judge a call that is about to start; unless it is held, it counts from here on."""
        verdict = judge(self._past, name, arguments, limit)
        if verdict == "warn":
            self.warned.add(call)
        if verdict != "hold":
            self.count(call, name, arguments, mutates)
        return verdict

    def count(self, call: str, name: str, arguments: str, mutates: bool) -> None:
        """A call starts (also one that a person allowed in spite of all)."""
        self._calls[call] = len(self._past)
        self._past.append(Done(name, arguments, mutates=mutates))

    def changed(self, call: str) -> None:
        """A call really changed a file."""
        at = self._calls.get(call)
        if at is not None:
            self._past[at] = replace(self._past[at], changed=True)

    def heard(self) -> None:
        """An input arrived: everything is new again."""
        self._past.append(Done(""))


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
