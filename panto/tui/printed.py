"""Items of a transcript as rows, outside the transcript: for previews and for what stays in the scrollback."""

from __future__ import annotations

import time
from collections.abc import Iterable

from panto.schema.queries import History
from panto.tui.items import Item
from panto.tui.transcript import Story
from panto.tui.widgets.layout import gap_between
from panto.tui.widgets.lines import BLANK, Line, Look


def item_lines(items: Iterable[Item], look: Look) -> list[Line]:
    """The rows of these items, a blank one between speakers."""
    rows: list[Line] = []
    before = None
    for item in items:
        made = item.lines(look)
        if made:
            rows += [BLANK] * gap_between(before, item.kind) + list(made)
            before = item.kind
    return rows


def history_lines(history: History, look: Look) -> list[Line]:
    """The rows of a session's history."""
    story = Story(time.time)
    story.load(history)
    return item_lines(story.items, look)


def last_answer(items: Iterable[Item], look: Look) -> list[str]:
    """The text of the last answer as it was drawn, its margin left out."""
    prose = [item for item in items if item.kind == "prose"]
    return [line.text.removeprefix("  ").rstrip() for line in prose[-1].lines(look)] if prose else []
