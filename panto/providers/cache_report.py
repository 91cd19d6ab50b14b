"""Why a prompt cache could not serve: which part of what was sent before is no longer the same.

Vendors hash tools, then system, then messages; a cache serves up to the first difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from panto.schema.messages import Message, Request


class PrefixChange(Struct, frozen=True):
    """The first part that differs. `name`: a tool's or system part's name, or a message's number from 1 and its role;
    `how`: what happened to it; `kept`: the share of the earlier messages that a cache may still serve.
    """

    part: Literal["model", "tools", "system", "messages"]
    name: str
    how: Literal["changed", "added", "removed"]
    kept: float = 0.0

    def __str__(self) -> str:
        words = {"model": "the model", "tools": "the tool", "system": "the system prompt's part", "messages": "message"}
        return f"{words[self.part]} {self.name} was {self.how}"


def prefix_change(before: Request, after: Request) -> PrefixChange | None:
    """The first difference between an earlier request's content and a later one's beginning; None: it only grew."""
    if before.model != after.model:
        return PrefixChange("model", after.model, "changed")
    old = [(tool.name, (tool.description, tool.schema)) for tool in before.tools]
    new = [(tool.name, (tool.description, tool.schema)) for tool in after.tools]
    if found := _first(old, new):
        return PrefixChange("tools", *found)
    old_parts = [(block.name, block.text) for block in before.system]
    new_parts = [(block.name, block.text) for block in after.system]
    if found := _first(old_parts, new_parts):
        return PrefixChange("system", *found)
    for at, message in enumerate(before.messages):
        if at >= len(after.messages):
            return PrefixChange("messages", f"{at + 1} ({message.role})", "removed", at / len(before.messages))
        if not _same(message, after.messages[at]):
            return PrefixChange("messages", f"{at + 1} ({message.role})", "changed", at / len(before.messages))
    return None


def _same(one: Message, two: Message) -> bool:
    return one is two or (one.role == two.role and (one.parts is two.parts or one.parts == two.parts))


def _first(
    old: Sequence[tuple[str, object]], new: Sequence[tuple[str, object]]
) -> tuple[str, Literal["changed", "added", "removed"]] | None:
    """The first named part that differs, and how: also one added at the end, since messages come after it."""
    if old == new:
        return None
    before, after = dict(old), dict(new)
    for name, value in old:
        if name not in after:
            return name, "removed"
        if after[name] != value:
            return name, "changed"
    added = [name for name, _ in new if name not in before]
    if added:
        return added[0], "added"
    moved = next(name for (name, _), (other, _) in zip(old, new, strict=False) if name != other)
    return moved, "changed"
