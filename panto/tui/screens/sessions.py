"""Choose a session: this folder's or all, with a preview of its end."""

from __future__ import annotations

import time

from panto.schema.ops import DeleteSession, Fork, OpenSession, Rename
from panto.schema.queries import AskPreview, AskSessions, SessionRow
from panto.tui.draft import Draft
from panto.tui.printed import history_lines
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import money
from panto.tui.widgets.lines import Look, Run
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel
from panto.tui.widgets.status import short_path


class Sessions(PickerPanel):
    """Newest first."""

    previews = True
    searches = True
    placeholder = "type to search titles and prompts"
    empty = "no session here yet"
    hints = (("Enter", "open"), ("Ctrl+F", "fork"), ("Ctrl+R", "rename"), ("Ctrl+D", "delete (asks)"),
             ("Ctrl+O", "whole transcript"), ("Esc", "back"))  # fmt: skip
    everywhere = False
    _number = 0

    @property
    def cwd(self) -> str:
        """The folder whose sessions are listed."""
        status = self.panto.now.status
        return (status.cwd if status else "") or self.panto.settings.cwd

    async def load(self) -> None:
        """Ask for what matches."""
        self.title = "all sessions" if self.everywhere else f"sessions in {short_path(self.cwd)}"
        self.right = "Tab this folder" if self.everywhere else "Tab all folders"
        self._number += 1
        number = self._number
        rows = await self.panto.link.ask(
            AskSessions("" if self.everywhere else self.cwd, self.filter.text.strip(), 200)
        )
        if number == self._number:
            self.entries = [self._row(row) for row in rows or () if row.turns or row.broken or row.last_prompt]

    def _row(self, row: SessionRow) -> Entry:
        aside = self.palette.aside
        title = clean_line(row.title or row.last_prompt) or "nothing said yet"
        left: list[Run] = [("Fork of: ", aside)] if row.forked_from else []
        left.append((title, PLAIN))
        right: list[Run] = [(f"{money(row.cost or 0.0)}  ", aside), (f"{age(row.time):>10}", aside)]
        last = clean_line(row.last_prompt)
        notes = [f"› {last}" if last and last != title else "", self._held(row),
                 clean_line(row.broken), short_path(row.cwd) if self.everywhere else ""]  # fmt: skip
        style = self.palette.attention if row.broken else aside
        return Entry(row, left, right, [(" · ".join(note for note in notes if note) or row.short, style)])

    def _held(self, row: SessionRow) -> str:
        if row.id == self.panto.now.primary:
            return "open here"
        return "open in another terminal" if row.owner else ""

    def moved(self) -> None:
        """Preview the current one."""
        entry = self.current
        self.preview = []
        if entry is not None and self.wants_preview:
            self.panto.link.start(self._preview(entry.value))

    async def _preview(self, row: SessionRow) -> None:
        history = await self.panto.link.ask(AskPreview(row.id))
        if history is None or self.current is None or self.current.value.id != row.id:
            return
        look = self.panto.look
        made = history_lines(history, Look(self.preview_width, 24, look.palette, look.glyphs, 0, look.now, False))
        self.preview = made[-max(1, self.size.height - 5) :]
        self.redraw()

    def choose(self, entry: Entry) -> None:
        """Open it."""
        if entry.value.id != self.panto.now.primary:
            self.panto.link.submit(OpenSession(entry.value.id))
        self.dismiss()

    def other(self, key: str, entry: Entry | None) -> bool:
        """Everything else that can be done with a session."""
        if key == "tab":
            self.everywhere = not self.everywhere
            self.entries = []
            self.reload()
        elif entry is None or key not in ("ctrl+f", "ctrl+r", "ctrl+d", "ctrl+o"):
            return False
        elif key == "ctrl+r":
            self.naming = Draft()
            self.naming.insert(entry.value.title)
        elif key == "ctrl+d" and entry.value.id == self.panto.now.primary:
            self.note = "this session is open here: another one first, then it can be deleted"
        elif key == "ctrl+d":
            title = clean_line(entry.value.title or entry.value.last_prompt, 40) or entry.value.short
            self.asking = f"delete “{title}” for good?"
        elif key == "ctrl+f":
            here = entry.value.id == self.panto.now.primary
            self.panto.link.submit(Fork() if here else OpenSession(entry.value.id, "fork"))
            self.dismiss()
        else:
            self.panto.link.start(self._whole(entry.value))
        self.redraw()
        return True

    async def _whole(self, row: SessionRow) -> None:
        history = await self.panto.link.ask(AskPreview(row.id, 100_000))
        if history is not None:
            self.panto.show_text("\n".join(one.text for one in history_lines(history, self.panto.look)))

    def named(self, entry: Entry | None, text: str) -> None:
        """A new title."""
        if entry is not None and text:
            self.panto.link.start(self._then_reload(Rename(text, entry.value.id)))

    def confirmed(self, entry: Entry | None) -> None:
        """Delete it."""
        if entry is not None:
            self.panto.link.start(self._then_reload(DeleteSession(entry.value.id)))

    async def _then_reload(self, op: Rename | DeleteSession) -> None:
        await self.panto.link.do(op)
        self.reload()


def age(then: float) -> str:
    """How long ago, in a word or two."""
    seconds = time.time() - then
    for limit, unit, word in ((90, 1, "now"), (5400, 60, "min"), (86_400, 3600, "h")):
        if seconds < limit:
            return word if unit == 1 else f"{max(1, round(seconds / unit))} {word}"
    days = round(seconds / 86_400)
    if days >= 60:
        return time.strftime("%Y-%m-%d", time.localtime(then))
    return "yesterday" if days <= 1 else f"{days} days"


class SessionScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Sessions())
