"""What fills the context: groups with their sums, in each the named parts, largest first."""

from __future__ import annotations

from collections.abc import Sequence

from panto.schema.queries import AskContext, PromptPart
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import tokens
from panto.tui.widgets.lines import width_of
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel
from panto.tui.widgets.status import short_path

CELLS = 16
GROUPS = ("what was said", "tools", "instructions")


class Context(PickerPanel):
    """A size, a share, a bar (the largest part's is full), a name and a source for each part."""

    title = "context"
    fits_width = True
    placeholder = "type to search the parts"
    empty = "nothing would be sent yet"
    hints = (("Esc", "back"),)

    async def load(self) -> None:
        """Ask what would be sent now."""
        parts = [part for part in await self.panto.link.ask(AskContext()) or () if part.tokens]
        status = self.panto.now.status
        total = sum(part.tokens for part in parts)
        size = status.context_size if status else 0
        self.right = f"about {tokens(total)} tokens" + (f" of {tokens(size)}" if size else "")
        largest = max((part.tokens for part in parts), default=1)
        names = min(40, max((width_of(_name(part)) for part in parts), default=0))
        self.entries = []
        for group in GROUPS:
            found = sorted((part for part in parts if _group(part) == group), key=lambda part: -part.tokens)
            self._add(group, found, total, largest, names)

    def _add(self, group: str, parts: Sequence[PromptPart], total: int, largest: int, names: int) -> None:
        aside, wide = self.palette.aside, self.app.size.width >= 72
        cells = CELLS if wide else CELLS // 2
        if parts:
            count = sum(part.tokens for part in parts)
            words = f"{tokens(count):>6}  {100 * count / total:3.0f} %  {group}"
            self.entries.append(Entry(None, [(words, self.palette.accent)], heading=True))
        for part in parts:
            full = max(1, round(cells * part.tokens / largest))
            name = _name(part)
            left = [
                (f"{tokens(part.tokens):>6}  {100 * part.tokens / total:3.0f} %  ", PLAIN),
                ("▰" * full, self.palette.accent), ("▱" * (cells - full), aside),
                ("  " + name + " " * max(0, names - width_of(name)), PLAIN),
            ]  # fmt: skip
            source = "" if part.source in ("panto", "session") or not wide else short_path(clean_line(part.source, 60))
            self.entries.append(Entry(part.name, left, [(source, aside)] if source else []))


def _group(part: PromptPart) -> str:
    if part.source == "session":
        return GROUPS[0]
    return GROUPS[1] if part.name.startswith("tool:") or part.name == "tools" else GROUPS[2]


def _name(part: PromptPart) -> str:
    """A part's name without its group's."""
    kind, _, rest = part.name.partition(":")
    if kind == "rules":
        rest = rest.rpartition("/")[2]
    name = {"base": "panto's own", "tools": "how to use them"}.get(part.name, rest or part.name)
    return clean_line(name, 40)


class ContextScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Context())
