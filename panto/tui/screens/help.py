"""Keys and commands in one list; what works where one came from stands first."""

from __future__ import annotations

from collections.abc import Sequence

from panto.tui.completing import shown
from panto.tui.keys import spell
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.lines import width_of
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel

NARROW = 16
"""Cells for a key on a narrow screen; what does not fit beside it stands below."""
TYPING = (
    ("@", "a file of this project"),
    ("/", "a command"),
    ("!", "a shell command; !! without the model seeing it"),
    ("\\ Enter", "new line, where Shift+Enter is not known"),
    ("↑ ↓", "on the first and last row: earlier prompts"),
    ("Tab", "take the completion"),
    ("paste twice", "a long paste is folded; the same again unfolds it"),
    ("Ctrl+A E K U W Y, Alt+B F D", "as in readline"),
    ("Ctrl+_", "undo; Alt+_ redo"),
)
READING = (
    ("j k n p", "down, up, next and previous prompt"),
    ("Enter", "the whole of it in the pager"),
    ("o", "open or fold"),
    ("w", "wrap long lines"),
    ("y", "copy"),
    ("/", "search; n p from one to the next"),
)


class Help(PickerPanel):
    """A filter over everything."""

    title = "help"
    fits_width = True
    placeholder = "type to search keys and commands"
    hints: Sequence[tuple[str, str]] = (("Enter", "put the command into the prompt"), ("Esc", "back"))

    async def load(self) -> None:
        """Keys, then what can be typed, then commands."""
        app = self.panto
        keys = [(" ".join(spell(key) for key in row.keys[:2]), row.meaning) for row in app.keys.rows() if row.keys]
        shortcuts = [(spell(one.key), one.description) for one in app.now.contributions.shortcuts]
        commands = [(f"/{row.name.lstrip('/')} {shown(row.usage)}".rstrip(), row.description) for row in app.desk.rows]
        parts = [("in the prompt", TYPING), ("keys", [*keys, *shortcuts]), ("commands", commands),
                 ("in the transcript (Ctrl+T)", READING)]  # fmt: skip
        if app.now.busy:
            parts.insert(0, ("while a turn runs", [("Enter", "steer it"), ("Alt+Enter", "queue for after it"),
                                                  ("Esc", "stop it; what waits comes back")]))  # fmt: skip
        narrow = self.app.size.width < 72
        width = NARROW if narrow else min(34, max(width_of(key) for _, rows in parts for key, _ in rows))
        self.entries = []
        for heading, rows in parts:
            self.entries.append(Entry(None, [(heading, self.palette.accent)], heading=True))
            self.entries += [self._row(key, meaning, width) for key, meaning in rows]

    def _row(self, key: str, meaning: str, width: int) -> Entry:
        if width == NARROW and (width_of(key) > width or width_of(meaning) + width + 6 > self.app.size.width):
            return Entry(key, [(key, PLAIN)], below=[(meaning, self.palette.aside)] if meaning else [])
        pad = " " * max(2, width - width_of(key) + 2)
        return Entry(key, [(key + pad, PLAIN), (meaning, self.palette.aside)])

    def moved(self) -> None:
        """Only a command can be taken from here."""
        command = self.current is not None and str(self.current.value).startswith("/") and self.current.value != "/"
        self.hints = [*([("Enter", "put the command into the prompt")] if command else []), ("Esc", "back")]

    def choose(self, entry: Entry) -> None:
        """A command goes into the prompt."""
        text = str(entry.value)
        self.dismiss()
        if text.startswith("/") and len(text) > 1:
            self.panto.composer.set_text(text.split()[0] + (" " if " " in text else ""))


class HelpScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Help())
