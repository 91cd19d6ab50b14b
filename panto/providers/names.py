"""Tool names as a wire allows them, and back: reversible, without collisions, shortened where a limit asks for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LIMIT = 64
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


class Names:
    """The mapping for one set of tools. Names that the wire takes as they are stay; others are spelt anew.

    A respelt name that would meet another one, or is too long, ends in a digest of the original.
    """

    def __init__(self, names: Iterable[str]) -> None:
        known = list(dict.fromkeys(names))
        self.known = tuple(known)
        self._to: dict[str, str] = {n: n for n in known if _fits(n)}
        taken = set(self._to.values())
        spelt: dict[str, list[str]] = {}
        for name in known:
            if name not in self._to:
                spelt.setdefault(_spell(name), []).append(name)
        for wire, originals in spelt.items():
            plain = len(originals) == 1 and wire not in taken and _fits(wire)
            for name in originals:
                self._to[name] = wire if plain else _with_digest(name)
        self._from = {wire: name for name, wire in self._to.items()}

    def to_wire(self, name: str) -> str:
        """The wire's name; also for a tool of the past that is no longer declared."""
        wire = self._to.get(name)
        if wire is None:
            wire = name if _fits(name) else _spell(name)
            if not _fits(wire) or wire in self._from:
                wire = _with_digest(name)
        return wire

    def from_wire(self, wire: str) -> str:
        """Our name for what the model called; an unknown name stays as it is."""
        return self._from.get(wire, wire)


def _fits(name: str) -> bool:
    return 0 < len(name) <= LIMIT and not _FORBIDDEN.search(name) and not name[0].isdigit() and name[0] != "-"


def _spell(name: str) -> str:
    wire = _FORBIDDEN.sub("_", name) or "_"
    return wire if wire[0].isalpha() or wire[0] == "_" else f"_{wire}"


def _with_digest(name: str) -> str:
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{_spell(name)[: LIMIT - 11]}_{mark}"
