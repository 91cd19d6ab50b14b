"""A session that another process writes: who that is, how it ends so far, and the three ways to it."""

from __future__ import annotations

from typing import Literal

from panto.schema.ops import OpenSession
from panto.schema.queries import AskPreview
from panto.schema.signals import SessionOwner
from panto.tui.printed import history_lines
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.asking import wrapped
from panto.tui.widgets.lines import Line, Look
from panto.tui.widgets.panel import PLAIN, line
from panto.tui.widgets.sheet import BOLD, Sheet

WAYS = (
    ("v", "view", "read along while it goes on there; nothing is sent from here"),
    ("f", "fork", "a session of your own, from what is settled in it; the other one goes on"),
    ("t", "take over", "go on with it here; what runs there stops, and it is only viewed there"),
)


class OwnedSheet(Sheet):
    """The ways to `owner`'s session. `viewing`: it is viewed here already."""

    title = "open elsewhere"

    def __init__(self, owner: SessionOwner, viewing: bool = False) -> None:
        super().__init__()
        self.owner = owner
        self.ways = WAYS[1:] if viewing else WAYS
        keys = [(f"Enter or {key}" if key == "v" else key, name) for key, name, _ in self.ways]
        self.hints = [*keys, ("Esc", "go on viewing" if viewing else "none of these")]
        self.end: list[Line] = []

    async def load(self) -> None:
        """What was said last in it."""
        history = await self.panto.link.ask(AskPreview(self.owner.session), quiet=True)
        look = self.panto.look
        width = min(104, self.size.width or look.width)
        if history is not None:
            self.end = history_lines(history, Look(width, 24, look.palette, look.glyphs, 0, look.now, False))

    def made(self, width: int) -> list[Line]:
        """Title and holder, the ways, the end of it."""
        aside, room = self.palette.aside, min(width, 104) - 4
        title = clean_line(self.owner.title) or f"session {self.owner.session[:8]}"
        out = [*wrapped(title, room, BOLD, "  "), *wrapped(self._holder(), room, aside, "  "), Line(())]
        for key, name, meaning in self.ways:
            first, *rest = wrapped(meaning, room - 15, aside, "")
            out.append(line([(f"  {key}", self.palette.accent), (f"  {name:<9}", PLAIN), ("  ", PLAIN),
                             *((text, style or PLAIN) for text, style, _ in first.segments)]))  # fmt: skip
            out += [line([(" " * 16, PLAIN), *((text, style or PLAIN) for text, style, _ in one.segments)])
                    for one in rest]  # fmt: skip
        if self.end:
            rows = max(2, self.size.height - len(out) - 7)
            out += [Line(()), line([("  how it ends so far", aside)]), Line(()), *self.end[-rows:]]
        return out

    def _holder(self) -> str:
        owner = self.owner
        where = f"process {owner.pid} on {clean_line(owner.host)}"
        if owner.alive:
            return f"{where} is running and writes it"
        return f"{where} wrote it within the last half minute; whether it still runs cannot be seen from here"

    def pressed(self, key: str) -> bool:
        """One of the ways."""
        keys = {one[0] for one in self.ways}
        if key in ("v", "enter") and "v" in keys:
            self._open("view")
        elif key == "f":
            self._open("fork")
        elif key == "t":
            self.asking = f"take it over from process {self.owner.pid}?"
            self.redraw()
        else:
            return False
        return True

    def confirmed(self) -> None:
        """Take it over."""
        self._open("take_over")

    def _open(self, how: Literal["view", "fork", "take_over"]) -> None:
        self.panto.link.submit(OpenSession(self.owner.session, how))
        self.dismiss()


class OwnedScreen(Overlay):
    """The ways to one session."""

    def __init__(self, owner: SessionOwner, viewing: bool = False) -> None:
        super().__init__(OwnedSheet(owner, viewing))
