"""Choose the colours, seeing them on a diff and on cards while moving."""

from __future__ import annotations

from panto.schema.view import CardView, DiffView, Hunk
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.panel import PLAIN, Panel, line
from panto.tui.widgets.picker import Entry, PickerPanel
from panto.tui.widgets.view import view_rows

_MEANINGS = {"auto": "as the terminal says", "light": "for a light ground", "dark": "for a dark ground",
             "ansi": "the terminal's own sixteen", "contrast": "high contrast"}  # fmt: skip
_DIFF = DiffView("shop.py", (Hunk(19, 19, (
    (" ", "def total(self):"), ("-", "    t = 0"), ("-", "    return t"),
    ("+", '    """Sum over price times count."""'), ("+", "    return sum(i.price * i.count for i in self.items)"),
)),), 2, 2)  # fmt: skip
_CARDS = (CardView("run    ruff check .", "0.1 s"), CardView("run    pytest -q", "exit 1 · 2.2 s", "failed"),
          CardView("run    make docs", "stopped by you", "stopped"), CardView("run    npm install", "", "waiting"))


class Themes(PickerPanel):
    """Moving previews, Enter keeps, Escape goes back to what was."""

    title = "theme"
    previews = True
    hints = (("Enter", "use it"), ("Esc", "as before"))

    async def load(self) -> None:
        """The names."""
        width = max(len(name) for name in self.panto.themes()) + 2
        self.entries = [Entry(name, [(name.ljust(width), PLAIN), (_MEANINGS.get(name, "from an extension"), PLAIN)])
                        for name in self.panto.themes()]  # fmt: skip
        self.at = self.panto.themes().index(self.panto.theme_name)
        self.right = 'theme = "…" under [screen] in config.toml keeps it'

    def forget(self) -> None:
        """Rows hold no colours, and the present row is what the colours come from."""
        Panel.forget(self)

    def moved(self) -> None:
        """Show it."""
        if self.current is not None:
            self.panto.show_theme(self.current.value)
        look, room = self.panto.look, self.preview_width - 1
        rows = [row for view in (_DIFF, *_CARDS) for row in view_rows(view, look, room)]
        ground = [line([(f"› {'Fix the total, then run the tests.':<{room}}", PLAIN)], look.palette.band), line([])]
        self.preview = [*ground, *(line(row) for row in rows)]

    def choose(self, entry: Entry) -> None:
        """Keep it."""
        self.panto.set_theme(entry.value)
        self.panto.close_overlay()

    def leaving(self) -> None:
        """As it was."""
        self.panto.show_theme(self.panto.theme_name)


class ThemeScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Themes())
