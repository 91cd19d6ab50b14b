"""The last row: model, place and changes at the left; jobs, cost, cache and context at the right.

What does not fit is left out in a fixed order: working directory, cache share, reasoning, branch, then jobs shrink to
a dot, then cost goes; the context stays.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from panto.schema.signals import StatusChanged
from panto.tui.now import Now
from panto.tui.sanitize import clean_line
from panto.tui.units import money, plural, tokens
from panto.tui.widgets.lines import Line, Run, cut, width_of
from panto.tui.widgets.panel import PLAIN, Panel, sides

DROPPED = ("items", "cwd", "cache", "reasoning", "branch", "changes", "jobs", "cost")


class Status(Panel):
    """Shows `now`."""

    now = Now()
    cwd = ""
    full_name = False  # another provider has a model of this name

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """One row."""
        gone: set[str] = set()
        for name in (*DROPPED, ""):
            left, right = self._left(gone), self._right(gone, width)
            if _size(left) + _size(right) + 4 <= width or not name:
                return [sides(left, [*right, ("  ", PLAIN)], width)]
            gone.add(name)
        return []

    def _left(self, gone: set[str]) -> list[Run]:
        aside, status = self.palette.aside, self.now.status
        if status is None:
            failed = self.panto.link.failed is not None
            word = ("  not running", self.palette.wrong) if failed else ("  starting", aside)
            return [word, ("   " + short_path(self.cwd), aside)]
        model = (status.model if self.full_name else short_model(status.model)) or "no model"
        runs: list[Run] = [("  " + clean_line(model), PLAIN if status.model else self.palette.attention)]
        if status.reasoning and status.model and "reasoning" not in gone:
            runs.append((" " + clean_line(status.reasoning), aside))
        place = "" if "cwd" in gone else short_path(status.cwd or self.cwd)
        branch = "" if "branch" in gone else cut(clean_line(status.branch), 32)
        where = " ".join(part for part in (place, branch) if part)
        if where:
            runs.append(("   " + where, aside))
        added, removed = self.now.lines
        if (added or removed) and "changes" not in gone:
            runs.append((f" +{added}", self.palette.added))
            runs.append((f" {self.glyphs.minus}{removed}", self.palette.wrong))
        return runs

    def _right(self, gone: set[str], width: int) -> list[Run]:
        status, aside = self.now.status, self.palette.aside
        if status is None:
            return []
        parts: list[list[Run]] = []
        if "items" not in gone:
            items = sorted(self.now.contributions.statuses, key=lambda item: -item.priority)
            parts += [[(clean_line(item.text, 40), aside)] for item in items]
        if status.jobs:
            word = self.glyphs.bullet if "jobs" in gone else plural(status.jobs, "job")
            parts.append([(word, self.palette.accent)])
        if status.cost and "cost" not in gone:
            parts.append([(money(status.cost), aside)])
        if status.usage.cache_read and status.usage.input and "cache" not in gone:
            parts.append([(f"cache {round(100 * status.usage.cache_read / status.usage.input)}%", aside)])
        parts.append(self._fill(status, width))
        gap = ("   " if width >= 100 else "  ", PLAIN)
        return [run for at, part in enumerate(parts) for run in ([gap, *part] if at else part)]

    def _fill(self, status: StatusChanged, width: int) -> list[Run]:
        used, size = status.context_used, status.context_size
        share = used / size if size else 0.0
        style = self.palette.aside
        if share >= 0.9:
            style = self.palette.wrong
        elif share >= 0.7:
            style = self.palette.attention
        if not size:
            return [(tokens(used) if used else "", style)]
        text = f"{tokens(used)} of {tokens(size)}" if width >= 100 else tokens(used)
        cells = 8 if width >= 100 else 4 if width >= 72 else 0
        full = min(cells, round(share * cells) or (1 if used else 0))
        bar = "▰" * full + "▱" * (cells - full)
        return [(f"{bar} {text}" if bar else text, style)]


def _size(runs: Sequence[Run]) -> int:
    return sum(width_of(text) for text, _ in runs)


def short_path(path: str) -> str:
    """A folder with the home as ~, its middle left out where it is long."""
    home = os.path.expanduser("~")
    if path == home or path.startswith(home.rstrip("/") + "/"):
        path = "~" + path[len(home.rstrip("/")) :]
    path = clean_line(path)
    parts = path.split("/")
    return path if len(path) <= 32 or len(parts) < 4 else "/".join([parts[0], "…", *parts[-2:]])


def short_model(label: str) -> str:
    """A model's alias without its provider."""
    return label.partition(":")[2] or label
