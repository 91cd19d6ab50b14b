"""What fills the context, by named part, largest first."""

from __future__ import annotations

from panto.schema.queries import AskContext
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import tokens
from panto.tui.widgets.lines import width_of
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel

CELLS = 20


class Context(PickerPanel):
    """A bar, a name, a size and a source for each part."""

    title = "context"
    fits_width = True
    placeholder = "type to search the parts"
    empty = "nothing would be sent yet"
    hints = (("Esc", "back"),)

    async def load(self) -> None:
        """Ask what would be sent now."""
        asked = await self.panto.link.ask(AskContext())
        parts = sorted(asked or (), key=lambda part: -part.tokens)
        status = self.panto.now.status
        total = sum(part.tokens for part in parts)
        size = status.context_size if status else 0
        self.right = f"about {tokens(total)} tokens" + (f" of {tokens(size)}" if size else "")
        names = min(48, max((width_of(part.name) for part in parts), default=0))
        aside = self.palette.aside
        cells = CELLS if self.app.size.width >= 72 else CELLS // 2
        self.entries = []
        for part in parts:
            full = round(cells * part.tokens / total) if total else 0
            left = [
                ("▰" * full + "▱" * (cells - full), self.palette.accent if full else aside),
                (f"  {tokens(part.tokens):>6}  {clean_line(part.name, 48):<{names}}", PLAIN),
                (f"  {100 * part.tokens / max(1, total):3.0f} %", aside),
            ]
            source = [(clean_line(part.source, 60), aside)] if self.app.size.width >= 72 else []
            self.entries.append(Entry(part.name, left, source))


class ContextScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Context())
