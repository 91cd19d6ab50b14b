"""A screen over the main one."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget


class Overlay(Screen[None], inherit_bindings=False):
    """Holds the widgets it is given, the first of them with the focus."""

    AUTO_FOCUS = None

    def __init__(self, *parts: Widget) -> None:
        super().__init__()
        self.parts = parts

    def compose(self) -> ComposeResult:
        """The parts."""
        yield from self.parts
