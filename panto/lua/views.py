"""What extensions want shown: tables from Lua to the values of schema/view."""

from __future__ import annotations

from typing import Any

import msgspec

from panto.lua.bridge import plain_text
from panto.schema.errors import UsageError
from panto.schema.view import TextView, View

_LISTS = frozenset({"items", "columns", "rows", "children", "hunks", "lines"})


def _shaped(value: Any, name: str = "") -> Any:
    """Text cleaned; an empty table where a list is meant is a list."""
    match value:
        case str():
            return plain_text(value)
        case dict() if not value and name in _LISTS:
            return []
        case dict():
            return {key: _shaped(item, key) for key, item in value.items()}
        case list():
            return [_shaped(item, "rows" if name == "rows" else "") for item in value]
        case int() | float() if name in ("fact", "text", "label", "title") and not isinstance(value, bool):
            return str(value)
    return value


def view(value: Any) -> View:
    """A view of plain data: text, or a table with a `type`. Raises UsageError, naming what is wrong."""
    if isinstance(value, str):
        return TextView(plain_text(value))
    try:
        shown: View = msgspec.convert(_shaped(value), View)
    except msgspec.ValidationError as e:
        raise UsageError(f"not a view: {e}") from None
    return shown
