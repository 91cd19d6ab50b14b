"""What is in force, and from where: a group for each table of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from msgspec.structs import replace
from textual.events import ScreenResume

from panto.schema.queries import AskSettings, SettingRow
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import plural
from panto.tui.widgets.lines import Run, width_of
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel
from panto.tui.widgets.status import short_path

_EMPTY = ("", '""', "[]", "{}")


class Settings(PickerPanel):
    """Key, value, source. What nobody set and is empty says nothing: it is listed on demand."""

    title = "settings in force"
    fits_width = True
    placeholder = "type to search keys, values and files"
    empty = "not known yet"
    everything = False

    async def load(self) -> None:
        """Ask for them."""
        asked = [self._present(row) for row in await self.panto.link.ask(AskSettings()) or ()]
        rows = [row for row in asked if self.everything or row.source != "default" or row.value not in _EMPTY]
        hidden = len(asked) - len(rows)
        folded = f"Tab: {plural(hidden, 'empty one')}" if hidden else ""
        self.right = "Tab leaves the empty ones out" if self.everything else folded
        widest = max((width_of(_short(row.key)) for row in rows), default=0)
        width = max(8, min(widest, self.app.size.width // 3))
        self.entries = []
        for table, found in groupby(rows, lambda row: row.key.rpartition(".")[0]):
            if table:
                self.entries.append(Entry(None, [(clean_line(table), self.palette.aside)], heading=True))
            self.entries += [self._row(row, width) for row in found]

    def _present(self, row: SettingRow) -> SettingRow:
        """A setting as this session has it, where that is another than the configuration's."""
        status = self.panto.now.status
        mine = {"screen.theme": self.panto.theme_name}
        if status is not None:
            mine |= {"model": status.model, "mode": status.mode, "reasoning": status.reasoning}
        value = mine.get(row.key, "")
        return replace(row, value=value, source="this session") if value and value != row.value.strip('"') else row

    def _row(self, row: SettingRow, width: int) -> Entry:
        key, value, source = _short(row.key), clean_line(row.value, 300), _place(row.source)
        left: list[Run] = [(key.ljust(width) + "  ", PLAIN), (value, self.palette.accent)]
        told = [] if row.source == "default" else [(source, self.palette.aside)]
        fits = width_of(key.ljust(width) + value + source) + 10 <= self.app.size.width
        return Entry(row, left, told if fits else [], [] if fits else told, words=f"{row.key} {value} {row.source}")

    def name_of(self, value: SettingRow) -> object:
        """Its key."""
        return value.key

    def moved(self) -> None:
        """Say what Enter does here."""
        row = self.current.value if self.current is not None else None
        does = [] if row is None else [("Enter", "another value" if row.key in self._opens() else "how to change it")]
        self.hints = [*does, ("Esc", "back")]

    def _opens(self) -> dict[str, Callable[[], None]]:
        app = self.panto
        return {"model": app.action_model, "screen.theme": app.action_theme, "mode": app.action_mode,
                "reasoning": app.action_efforts}  # fmt: skip

    def choose(self, entry: Entry) -> None:
        """The values of those that can be changed here; of others, the line to write."""
        opens = self._opens().get(entry.value.key)
        if opens is not None:
            opens()
            return
        table, _, key = entry.value.key.rpartition(".")
        where = f"[{table}] " if table else ""
        self.hints = [(f"{where}{key} = {clean_line(entry.value.value, 60)}", "in config.toml, then start anew"),
                      ("Esc", "back")]  # fmt: skip
        self.redraw()

    def other(self, key: str, entry: Entry | None) -> bool:
        """Tab: the empty ones, too."""
        if key == "tab":
            self.everything = not self.everything
            self.reload()
        return key == "tab"


def _short(key: str) -> str:
    return clean_line(key.rpartition(".")[2])


def _place(source: str) -> str:
    """A file and its line, with the home as ~; other sources as they are."""
    file, colon, line = source.rpartition(":")
    return f"{short_path(file)}{colon}{line}" if colon and line.isdigit() else clean_line(source)


class SettingScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        self.panel = Settings()
        super().__init__(self.panel)

    def on_screen_resume(self, _event: ScreenResume) -> None:
        """Another value was chosen, perhaps."""
        if self.panel.entries:
            self.panel.reload()
