"""Values both ways, by converters of panto's own: lupa's lose shared tables, keep nulls as holes and leak proxies.

From Lua come only copies that the prelude's `freeze` made: no metatables, no cycles, and a table with the one key 0 for
what Lua cannot say (an empty array, null, a function's reference, a large integer).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from panto.lua.host import Host
from panto.schema.errors import (
    ExtensionError,
    Missing,
    Owned,
    PantoError,
    ProviderError,
    SessionError,
    ToolFailure,
    UsageError,
)

_INT_LOW, _INT_HIGH = -(1 << 63), (1 << 63) - 1


class Ref(Struct, frozen=True):
    """A function kept in the Lua state under a number."""

    id: int


class LuaCancelled(Exception):
    """What an await raises in a task that was asked to end."""


class Bridge:
    """Converters for one host."""

    def __init__(self, host: Host) -> None:
        self._is_table = host.is_table
        self._table_from = host.lua.table_from
        self._null = host.null
        self._big = host.function("big")

    def to_py(self, value: Any) -> Any:
        """Plain data of a frozen Lua value: lists, dicts, text, numbers, booleans, None, `Ref`."""
        if not self._is_table(value):
            return value
        if len(value):
            return [self.to_py(item) for item in value.values()]
        items = dict(value.items())
        if 0 in items:
            return _marked(items[0])
        for key, item in items.items():
            if self._is_table(item):
                items[key] = self.to_py(item)
        return items

    def to_lua(self, value: Any, *, nulls: bool = False) -> Any:
        """A Lua value of plain data. None is nil, so it is left out of tables; with `nulls` it is json.null."""
        match value:
            case str() | bool() | float():
                return value
            case int():
                return value if _INT_LOW <= value <= _INT_HIGH else self._big(str(value))
            case dict():
                return self._table_from(
                    {k: self.to_lua(v, nulls=nulls) for k, v in value.items() if v is not None or nulls}
                )
            case list() | tuple():
                return self._table_from([self.to_lua(v, nulls=True) for v in value])
            case None:
                return self._null if nulls else None
            case bytes():
                return value.decode("utf-8", "surrogateescape")
        raise TypeError(f"{type(value).__name__} cannot be passed to Lua")


def _marked(mark: object) -> Any:
    if mark is True:
        return []
    if mark is False:
        return None
    return int(mark) if isinstance(mark, str) else Ref(int(str(mark)))


def plain_text(text: str) -> str:
    """Text fit for storing and sending: bytes that are not UTF-8 become replacement marks."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def error_parts(error: BaseException) -> tuple[str, str]:
    """(kind, message) of an error as Lua code gets it."""
    match error:
        case LuaCancelled():
            return "cancelled", "cancelled"
        case ProviderError(kind=kind):
            word: str = kind
        case UsageError():
            word = "usage"
        case ToolFailure(cls=cls):
            word = cls
        case Owned():
            word = "owned"
        case Missing():
            word = "missing"
        case SessionError():
            word = "session"
        case ExtensionError():
            word = "extension"
        case PantoError():
            word = "error"
        case TimeoutError():
            return "timeout", str(error) or "timed out"
        case OSError():
            return "io", f"{error.filename}: {error.strerror}" if error.filename else str(error)
        case _:
            return "internal", f"{type(error).__name__}: {error}"
    message = str(error)
    hint = getattr(error, "hint", "")
    return word, f"{message} ({hint})" if hint else message
