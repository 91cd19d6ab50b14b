"""Extensions in load order: how each stands, where it is, what it cost and holds, what is wrong with it."""

from __future__ import annotations

from panto.schema.contributions import ExtensionRow
from panto.schema.queries import AskExtensions
from panto.tui.sanitize import clean, clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import plural
from panto.tui.widgets.asking import wrapped
from panto.tui.widgets.lines import Line
from panto.tui.widgets.panel import PLAIN, line, sides
from panto.tui.widgets.sheet import BOLD, Sheet
from panto.tui.widgets.status import short_path


class ExtensionSheet(Sheet):
    """Read anew whenever it is opened."""

    title = "extensions"
    rows: tuple[ExtensionRow, ...] | None = None

    async def load(self) -> None:
        """Ask for them."""
        self.rows = await self.panto.link.ask(AskExtensions())
        self.unknown = self.rows is None

    def made(self, width: int) -> list[Line]:
        """One row for each that works; what is wrong stands below."""
        if not self.rows:
            word = "reading" if self.rows is None else "none is loaded   panto rock list shows what there is"
            return [line([("  " + word, self.palette.aside)])]
        right, glyphs, colours = min(width, 104) - 2, self.glyphs, self.palette
        out: list[Line] = []
        for row in self.rows:
            mark = {"active": (glyphs.ok, colours.aside), "broken": (glyphs.failed, colours.wrong)}.get(
                row.state, (glyphs.stopped, colours.attention))  # fmt: skip
            cost = f"{row.cost_ms:.0f} ms" if row.state == "active" else row.state
            place = "   " + short_path(clean_line(row.place))
            left = [mark, (" " + clean_line(row.name), BOLD), (place, colours.aside)]
            out.append(sides(left, [(cost, colours.aside)], right))
            holds = ((row.tasks, "task"), (row.references, "reference"), (row.descriptors, "descriptor"))
            held = [plural(count, word) for count, word in holds if count]
            held += [f"{row.spent_ms:.0f} ms in Lua"] if row.spent_ms >= 0.5 else []
            if held:
                out.append(line([("    " + f" {glyphs.dot} ".join(held), colours.aside)]))
            for said in (row.problem, row.error):
                out += wrapped(clean(said), right - 4, PLAIN, "    ") if said else []
        return out


class ExtensionScreen(Overlay):
    """The sheet."""

    def __init__(self) -> None:
        super().__init__(ExtensionSheet())
