"""The session's turns: go back to before one, or fork from it."""

from __future__ import annotations

import time

from panto.schema.ops import Fork, Rewind
from panto.schema.queries import AskTurns, TurnRow
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import plural
from panto.tui.widgets.lines import Run
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel

_STATES = {"active": "running", "completed": "", "attempt_failed": "failed, can be tried again", "failed": "failed",
           "stopped": "stopped by you", "refused": "refused", "superseded": "taken back"}  # fmt: skip


class Turns(PickerPanel):
    """Oldest first, the newest current."""

    title = "turns"
    right = "nothing is lost: the session keeps what it goes back from"
    empty = "nothing said yet"
    hints = (("Enter", "back to before it"), ("Ctrl+F", "fork from before it"), ("Esc", "back"))

    async def load(self) -> None:
        """The turns."""
        rows = await self.panto.link.ask(AskTurns()) or ()
        self.entries = [self._row(row) for row in rows]
        self.at = max((at for at, row in enumerate(rows) if row.state != "superseded"), default=0)
        self.pending: TurnRow | None = None

    def _row(self, row: TurnRow) -> Entry:
        gone = row.state == "superseded"
        style = self.palette.aside if gone else PLAIN
        when = time.strftime("%H:%M", time.localtime(row.time)) if row.time else ""
        state = _STATES[row.state]
        right: list[Run] = [(f"{state}   " if state else "", self.palette.aside if gone else self.palette.attention),
                            (when, self.palette.aside)]  # fmt: skip
        status = self.panto.now.status
        folder = status.cwd.rstrip("/") + "/" if status is not None else ""
        names = [clean_line(path.removeprefix(folder)) for path in row.files]
        files = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        below = [("changed " + files, self.palette.aside)] if files else []
        return Entry(row, [("› ", self.palette.accent), (clean_line(row.text), style)], right, below)

    def choose(self, entry: Entry) -> None:
        """Back: with the files it changed, where there are any."""
        row: TurnRow = entry.value
        if row.state == "superseded":
            return
        since = [one.value for one in self.entries[self.entries.index(entry) :] if one.value.state != "superseded"]
        if files := {path for turn in since for path in turn.files}:
            self.pending = row
            self.asking = f"restore {plural(len(files), 'changed file')}, too?"
            self.redraw()
        else:
            self._rewind(row, files=False)

    def _answer(self, key: str) -> None:
        if key not in ("y", "n", "escape", "ctrl+c"):
            return
        row, self.pending, self.asking = self.pending, None, ""
        if row is not None and key in ("y", "n"):
            self._rewind(row, files=key == "y")
        self.redraw()

    def _rewind(self, row: TurnRow, files: bool) -> None:
        self.panto.link.submit(Rewind(row.turn, files))
        self.panto.desk.give_back(row.text)
        self.dismiss()

    def other(self, key: str, entry: Entry | None) -> bool:
        """Fork."""
        if key != "ctrl+f" or entry is None:
            return False
        self.panto.link.submit(Fork(entry.value.turn))
        self.dismiss()
        return True


class TurnScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Turns())
