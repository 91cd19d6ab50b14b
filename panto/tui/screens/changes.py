"""What the last turn that changed files changed in them, whole."""

from __future__ import annotations

from panto.schema.view import DiffView
from panto.tui.items import Item
from panto.tui.items_calls import CallItem
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import plural
from panto.tui.widgets.diff import diff_rows
from panto.tui.widgets.lines import Line
from panto.tui.widgets.panel import PLAIN, line, sides
from panto.tui.widgets.sheet import BOLD, Sheet


class ChangesSheet(Sheet):
    """A heading for each edit with its file, then its rows."""

    title = "changes of the last turn"

    def __init__(self, items: list[Item]) -> None:
        super().__init__()
        made = [item for item in items if isinstance(item, CallItem) and item.call.diffs and not item.dim]
        last = made[-1].turn if made else ""
        self.diffs: list[DiffView] = [diff for item in made if item.turn == last for diff in item.call.diffs]
        if self.diffs:
            files = plural(len({diff.path for diff in self.diffs}), "file")
            added, removed = sum(diff.added for diff in self.diffs), sum(diff.removed for diff in self.diffs)
            self.right = f"{files}  +{added} −{removed}"
        self._made: tuple[int, object, list[Line]] = (0, None, [])

    def made(self, width: int) -> list[Line]:
        """Made once for a width and its colours."""
        if self._made[:2] != (width, self.palette):
            self._made = (width, self.palette, self._all(width))
        return self._made[2]

    def _all(self, width: int) -> list[Line]:
        if not self.diffs:
            return [line([("  no turn of this session has changed a file with write or edit", self.palette.aside)])]
        out: list[Line] = []
        for diff in self.diffs:
            fact = [(f"+{diff.added} ", self.palette.added), (f"{self.glyphs.minus}{diff.removed}", self.palette.wrong)]
            out += [Line(())] if out else []
            out.append(sides([("  ", PLAIN), (clean_line(diff.path), BOLD)], fact, min(width, 104) - 2))
            out += [line([("  ", PLAIN), *row]) for row in diff_rows(diff, self.panto.look, width - 4)]
        return out


class ChangesScreen(Overlay):
    """The sheet."""

    def __init__(self, items: list[Item]) -> None:
        super().__init__(ChangesSheet(items))
