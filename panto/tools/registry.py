"""The tools there are: the built-in ones, and those that extensions add and take away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from panto.schema.errors import UsageError
from panto.schema.messages import ToolSpec
from panto.tools.tool import Tool

BUILTIN = ""
"""The owner of the built-in tools."""


@dataclass(frozen=True, slots=True)
class _Entry:
    owner: str
    tool: Tool


class Registry:
    """Tools by name, in the order they came. Names are unique; an owner's tools are taken away together."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool, owner: str = BUILTIN) -> None:
        """Raises UsageError, naming the owner, where the name is taken."""
        name = tool.spec.name
        if name in self._entries:
            holder = self._entries[name].owner
            raise UsageError(f"there is already a tool {name!r} ({f'of {holder}' if holder else 'built in'})")
        self._entries[name] = _Entry(owner, tool)

    def remove(self, owner: str) -> tuple[str, ...]:
        """Take away all tools of an owner; their names."""
        names = tuple(name for name, entry in self._entries.items() if entry.owner == owner)
        for name in names:
            del self._entries[name]
        return names

    def get(self, name: str) -> Tool | None:
        entry = self._entries.get(name)
        return entry.tool if entry else None

    def owner(self, name: str) -> str | None:
        """Whose a tool is (`BUILTIN`: panto's own); None: there is none."""
        entry = self._entries.get(name)
        return entry.owner if entry else None

    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """What a model may call: all, or those named that there are, in the registry's order."""
        wanted = None if names is None else frozenset(names)
        return tuple(e.tool.spec for name, e in self._entries.items() if wanted is None or name in wanted)
