"""What the project brings, item by item: agree to exactly this, or take the agreement back. Enter does neither."""

from __future__ import annotations

import asyncio
import os
from itertools import groupby

from panto.schema.ops import SetTrust
from panto.schema.queries import AskTrust, ProjectTrust, TrustRow
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import plural
from panto.tui.widgets.asking import wrapped
from panto.tui.widgets.lines import Line
from panto.tui.widgets.panel import PLAIN, sides
from panto.tui.widgets.sheet import BOLD, Sheet
from panto.tui.widgets.status import short_path

_BACK = ("Esc", "back")
LONGEST = 200_000
"""Bytes of one file that are shown."""


class TrustSheet(Sheet):
    """`shown` is the list that is agreed to, None while it is being read."""

    title = "what this project brings"
    shown: ProjectTrust | None = None

    async def load(self) -> None:
        """Ask anew: an agreement is to what is there now."""
        self.shown = shown = await self.panto.link.ask(AskTrust())
        self.unknown = shown is None
        if shown is None or not shown.rows:
            self.right, self.hints = "", (_BACK,)
        elif shown.agreed:
            self.right = "in use: you agreed to it"
            self.hints = (("r", "read the files"), ("w", "withdraw: do not use it any more"), _BACK)
        else:
            self.right = "not in use"
            agree = (("a", "agree to exactly this"),) if shown.seen else ()
            self.hints = (("r", "read the files"), *agree, ("Esc", "leave it out: everything else works"))

    def made(self, width: int) -> list[Line]:
        """Where it lies, what stands with it, then each file with everything it would do."""
        shown, room = self.shown, min(width, 104) - 4
        if shown is None:
            return wrapped("reading what the project holds", room, self.palette.aside, "  ")
        if not shown.rows:
            return wrapped("This project brings nothing that would run or be read as instructions.", room, PLAIN, "  ")
        files = [(path, list(rows)) for path, rows in groupby(shown.rows, lambda row: row.path)]
        out = wrapped(f"{short_path(shown.folder)} brings {plural(len(files), 'file')}.", room, PLAIN, "  ")
        out += wrapped(self._standing(shown), room, self.palette.attention if shown.why else self.palette.aside, "  ")
        for path, rows in files:
            out += [Line(()), *self._file(path, rows, width)]
        return out

    def _standing(self, shown: ProjectTrust) -> str:
        if shown.why:
            return clean_line(shown.why)
        if shown.agreed:
            return "You agreed to exactly this. One changed byte of it, and you are asked again."
        if any(row.changed for row in shown.rows):
            return "It has changed since you agreed to it, so nothing of it runs or is read."
        return "Nothing of it runs or is read before you agree. panto works here without it."

    def _file(self, path: str, rows: list[TrustRow], width: int) -> list[Line]:
        right = min(width, 104) - 2
        mark = [("changed", self.palette.attention)] if any(row.changed for row in rows) else []
        out = [sides([("  ", PLAIN), (clean_line(path), BOLD)], mark, right)]
        for row in rows:
            out += wrapped(clean_line(row.what), right - 6, PLAIN, "     ")
        return out

    def pressed(self, key: str) -> bool:
        """`r` shows the files themselves, `a` agrees to what was shown, `w` takes it back."""
        shown = self.shown
        if shown is None or not shown.rows:
            return False
        if key == "r":
            self.panto.link.start(self._show(shown))
            return True
        if key == "w" and shown.agreed:
            self._set(SetTrust(False))
        elif key != "a" or not shown.seen or shown.agreed:
            return False
        elif self.read_whole:
            self._set(SetTrust(True, shown.seen))
        else:
            self.scroll_rows(self.page)  # an agreement is to what was seen to its end
        return True

    async def _show(self, shown: ProjectTrust) -> None:
        self.panto.show_text(await asyncio.to_thread(_files, shown))

    def _set(self, op: SetTrust) -> None:
        self.panto.link.submit(op)
        self.dismiss()


def _files(shown: ProjectTrust) -> str:
    """What stands in them, one below the other. Blocks on the disk."""
    paths = dict.fromkeys(row.path for row in shown.rows)
    return "\n\n".join(f"── {clean_line(path)}\n\n{_content(os.path.join(shown.folder, path))}" for path in paths)


def _content(path: str) -> str:
    if not os.path.isfile(path):
        return "(no file that could be shown)"
    try:
        with open(path, "rb") as file:
            data = file.read(LONGEST + 1)
    except OSError as error:
        return f"({error.strerror})"
    if b"\0" in data:
        return "(no text)"
    more = "\n(it goes on: too long to be shown here)" if len(data) > LONGEST else ""
    return data[:LONGEST].decode("utf-8", "replace").rstrip("\n") + more


class TrustScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(TrustSheet())
