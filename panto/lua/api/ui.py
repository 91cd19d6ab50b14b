"""What a person is shown and asked outside any call. Where nobody answers, the answer is nil and the default counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from panto.lua.bridge import plain_text
from panto.lua.driver import Driver, LuaTask
from panto.schema.bodies import Question
from panto.schema.errors import UsageError
from panto.schema.ops import Answer

Ask = Callable[[str, Question], Awaitable[Answer | None]]
Notify = Callable[[str, str, str, str, str], None]
"""agent, text, level, hint, key"""

YES, NO = "yes", "no"
LEVELS = frozenset({"info", "attention", "wrong"})


def install(driver: Driver, ask: Ask, notify: Notify) -> None:
    """Add the op `ask` and the message `notify`."""

    async def dialog(task: LuaTask, kind: str, title: str, more: Any) -> str | None:
        more = more or {}
        choices = (YES, NO) if kind == "confirm" else tuple(plain_text(str(c)) for c in more.get("choices") or ())
        if kind == "select" and not choices:
            raise UsageError("select: there is nothing to choose from")
        question = Question(
            kind="ask", tool=task.owner, title=plain_text(title), reason=plain_text(more.get("reason") or ""),
            choices=choices,
        )  # fmt: skip
        task.dialog_since = driver.loop.time()
        try:
            answer = await ask(task.lane, question)
        finally:
            task.dialog_s += driver.loop.time() - task.dialog_since
            task.dialog_since = None
        if answer is None or answer.refused:
            return NO if kind == "confirm" and answer is not None else None
        said = answer.choices[0] if answer.choices else answer.text
        return said if kind == "input" or said in choices else None

    def tell(lane: str, text: str, level: str, hint: str, key: str) -> None:
        level = level if level in LEVELS else "info"
        notify(lane, plain_text(text), level, plain_text(hint), plain_text(key))

    driver.ops["ask"] = dialog
    driver.messages["notify"] = tell
