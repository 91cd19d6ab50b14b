"""Which part of a prompt is no longer what a cache holds."""

from __future__ import annotations

import pytest

from panto.providers.cache_report import prefix_change
from panto.schema.messages import Message, Request, SystemBlock, Text, ToolSpec

READ, WRITE = ToolSpec("read", "Reads.", "{}"), ToolSpec("write", "Writes.", "{}")
BASE, RULES = SystemBlock("base", "Be good."), SystemBlock("rules", "No tabs.")
RUNNING = Message("assistant", (Text("two"),), in_progress=True)
TABS = SystemBlock("rules", "Tabs!")
ONE, TWO = Message("user", (Text("one"),)), Message("assistant", (Text("two"),))
BEFORE = Request("m", (BASE, RULES), (ONE, TWO), (READ, WRITE))


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (Request("m", (BASE, RULES), (ONE, TWO, ONE), (READ, WRITE)), None),
        (Request("m", (BASE, RULES), (ONE, RUNNING), (READ, WRITE)), None),
        (Request("n", (BASE, RULES), (ONE, TWO), (READ, WRITE)), "the model n was changed"),
        (Request("m", (BASE, RULES), (ONE, TWO), (READ,)), "the tool write was removed"),
        (Request("m", (BASE, RULES), (ONE, TWO), (READ, WRITE, ToolSpec("new", "", ""))), "the tool new was added"),
        (Request("m", (BASE, RULES), (ONE, TWO), (WRITE, READ)), "the tool read was changed"),
        (Request("m", (BASE, TABS), (ONE, TWO), (READ, WRITE)), "the system prompt's part rules was changed"),
        (Request("m", (BASE,), (ONE, TWO), (READ, WRITE)), "the system prompt's part rules was removed"),
        (Request("m", (BASE, RULES), (ONE, ONE), (READ, WRITE)), "message 2 (assistant) was changed"),
        (Request("m", (BASE, RULES), (ONE,), (READ, WRITE)), "message 2 (assistant) was removed"),
    ],
)  # fmt: skip
def test_the_first_part_that_differs_is_named(after: Request, says: str | None) -> None:
    change = prefix_change(BEFORE, after)
    assert (None if change is None else str(change)) == says


def test_how_much_of_the_messages_still_serves_is_told() -> None:
    change = prefix_change(BEFORE, Request("m", (BASE, RULES), (ONE, ONE), (READ, WRITE)))
    assert change is not None and change.kept == 0.5
