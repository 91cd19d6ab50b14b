"""What the model may call: whose each tool is, and how many tokens its description takes with every request."""

from __future__ import annotations

from panto.schema.queries import AskContext, PromptPart
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import plural, tokens
from panto.tui.widgets.lines import Line, width_of
from panto.tui.widgets.panel import PLAIN, line, sides
from panto.tui.widgets.sheet import Sheet

_PREFIX = "tool:"


class ToolSheet(Sheet):
    """In the order in which the model is told of them."""

    title = "tools"
    tools: tuple[PromptPart, ...] | None = None

    async def load(self) -> None:
        """They are parts of what is sent."""
        parts = await self.panto.link.ask(AskContext())
        self.unknown = parts is None
        self.tools = tuple(part for part in parts or () if part.name.startswith(_PREFIX))
        self.right = f"{plural(len(self.tools), 'tool')} · {tokens(sum(part.tokens for part in self.tools))} tokens"

    def made(self, width: int) -> list[Line]:
        """Names, owners, sizes."""
        aside = self.palette.aside
        if not self.tools:
            return [line([("  reading" if self.tools is None else "  the model may call nothing", aside)])]
        names = [clean_line(part.name.removeprefix(_PREFIX), 48) for part in self.tools]
        field = max(width_of(name) for name in names) + 3
        return [
            sides([("  ", PLAIN), (name + " " * (field - width_of(name)), PLAIN), (clean_line(part.source, 40), aside)],
                  [(f"{tokens(part.tokens):>6}", aside)], min(width, 104) - 2)
            for name, part in zip(names, self.tools, strict=True)
        ]  # fmt: skip


class ToolScreen(Overlay):
    """The sheet."""

    def __init__(self) -> None:
        super().__init__(ToolSheet())
