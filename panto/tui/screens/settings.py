"""What is in force, and from where."""

from __future__ import annotations

from collections.abc import Callable

from panto.schema.queries import AskSettings
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.lines import width_of
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel


class Settings(PickerPanel):
    """Key, value, source."""

    title = "settings in force"
    fits_width = True
    right = "later wins: defaults, user, project, environment, command line"
    empty = "not known yet"
    hints = (("Enter", "where it can be changed here: change it"), ("Esc", "back"))

    async def load(self) -> None:
        """Ask for them."""
        asked = await self.panto.link.ask(AskSettings()) or ()
        # What nobody set and is empty says nothing of a provider, and there is much of it.
        rows = [row for row in asked if not (row.key.startswith("providers.") and row.source == "default"
                and row.value in ("", '""', "[]", "{}"))]  # fmt: skip
        width = min(32, max((width_of(row.key) for row in rows), default=0))
        narrow = self.app.size.width < 80
        self.right = "" if narrow else type(self).right
        self.entries = []
        for row in rows:
            key, source = clean_line(row.key), [(clean_line(row.source), self.palette.aside)]
            left = [(key.ljust(width) + "  ", PLAIN), (clean_line(row.value, 300), self.palette.accent)]
            told = source if narrow and row.source != "default" else []
            self.entries.append(Entry(row.key, left, [] if narrow else source, told))

    def choose(self, entry: Entry) -> None:
        """The few that have a list of their own."""
        prompt = self.panto.composer.set_text
        opens: dict[str, Callable[[], None]] = {
            "model": self.panto.action_model,
            "screen.theme": self.panto.action_theme,
            "mode": lambda: prompt("/mode "),
            "reasoning": lambda: prompt("/reasoning "),
        }
        if entry.value in opens:
            self.dismiss()
            opens[entry.value]()


class SettingScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Settings())
