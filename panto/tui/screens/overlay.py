"""A screen over the main one."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from panto.tui.widgets.panel import Panel


class Overlay(Screen[None], inherit_bindings=False):
    """Holds the widgets it is given, the first of them with the focus."""

    AUTO_FOCUS = None

    def __init__(self, *parts: Widget) -> None:
        super().__init__()
        self.parts = parts

    def tell(self, text: str) -> None:
        """Say something in the row of keys, until the next key: what lies below is not seen."""
        first = self.parts[0]
        if isinstance(first, Panel):
            first.note = text
            first.redraw()

    def compose(self) -> ComposeResult:
        """The parts."""
        yield from self.parts
