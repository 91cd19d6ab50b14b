"""Taking back what turns did to files, and saying what cannot be taken back: what commands did."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from panto.schema.bodies import TextBody
from panto.schema.codec import BadText, loads
from panto.schema.events import ToolCallStarted, ToolStepOpened
from panto.tools.restore import changed_since, restore
from panto.tools.text import one_line

if TYPE_CHECKING:
    from panto.scheduler.agent import Agent
    from panto.session.view import TurnView

PAGE, SHOWN = 400, 20


async def undo(agent: Agent, turns: Sequence[TurnView]) -> str:
    """Put files back to before these turns; what came of it, a line each, for the person."""
    done = await restore((change for turn in turns for change in turn.changes), agent.session.raw)
    lines = [f"put back  {_named(agent, path)}" for path in done.restored]
    lines += [f"removed again  {_named(agent, path)}" for path in done.removed]
    lines += [f"left alone  {_named(agent, path)}: {why}" for path, why in done.left]
    if commands := await _commands(agent, turns[0].seq):
        lines += _some([f"cannot be taken back  {text}" for text in commands], "more commands")
        known = {*done.restored, *done.removed, *(path for path, _ in done.left)}
        found = await asyncio.to_thread(changed_since, agent.cwd, turns[0].time)
        others = [path for path in found if path not in known]
        others = [f"changed since then, by a command or by you  {_named(agent, path)}" for path in others]
        lines += _some(others, "more files")
    return "\n".join(lines) or "every file is as it was"


def _named(agent: Agent, path: str) -> str:
    """A real path as cards show it: below the working directory without that."""
    root = os.path.realpath(agent.cwd)
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else path


def _some(lines: list[str], rest: str) -> list[str]:
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} {rest}"]


async def _commands(agent: Agent, since: int) -> list[str]:
    """The calls from commit `since` on that may have done anything at all, in order."""
    names: dict[str, str] = {}
    given: dict[str, str] = {}
    before: tuple[int, int] | None = None
    while True:
        page = await agent.session.history(before, PAGE)
        for fact in reversed(page.facts):
            if fact.seq < since:
                break
            match fact.event:
                case ToolStepOpened(calls=calls):
                    names |= {binding.call: binding.name for binding in calls}
                case ToolCallStarted(call=call):
                    given[call] = fact.body.text if isinstance(fact.body, TextBody) else ""
                case _:
                    pass
        before = page.start
        if before is None or not page.facts or page.facts[0].seq < since:
            break
    said = [_text(agent, names.get(call, ""), arguments) for call, arguments in reversed(given.items())]
    return [text for text in said if text]


def _text(agent: Agent, name: str, arguments: str) -> str:
    """A call in words, if its tool can do anything; ""."""
    tool = agent.shared.registry.get(name)
    if tool is None or tool.approval != "command":
        return ""
    try:
        read = loads(arguments)
    except BadText:
        read = {}
    title = tool.title(read) if isinstance(read, dict) else ""
    return one_line(f"$ {title}" if name == "bash" else f"{name} {title}".strip())
