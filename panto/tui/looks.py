"""Which colours and signs are in force, and who has to hear when they change."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import get_args

from panto.tui.colours import GLYPHS, Palette, ThemeName, custom, palette
from panto.tui.keyboard import GroundTold, WidthTold
from panto.tui.parts import Parts
from panto.tui.widgets.lines import Look
from panto.tui.widgets.panel import Panel

BUILT_IN: tuple[str, ...] = ("auto", *get_args(ThemeName))
_SPELLINGS = {"high contrast": "contrast", "high-contrast": "contrast", "terminal": "ansi"}


class Looks(Parts, inherit_bindings=False):
    """`theme_name` is what the person chose, `palette` what came of it."""

    theme_name = "auto"
    palette: Palette = palette("ansi")
    glyphs = GLYPHS
    motion = True
    step = 0  # the spinner's frame
    _dark: bool | None = None
    _narrow = False  # signs of ambiguous width would be two cells wide

    def begin_looks(self) -> None:
        """Read the settings and the environment."""
        self.motion = not self.settings.reduced_motion
        self._dark = _dark_from_environment()
        name = _SPELLINGS.get(self.settings.theme, self.settings.theme)
        self.theme_name = name if name in BUILT_IN else "auto"
        self._wanted_theme = name  # an extension may bring it later
        self.palette = self.palette_of(self.theme_name)

    _wanted_theme = "auto"

    def themes(self) -> tuple[str, ...]:
        """Names to choose from."""
        return (*BUILT_IN, *(theme.name for theme in self.now.contributions.themes if theme.name not in BUILT_IN))

    def palette_of(self, name: str) -> Palette:
        """The colours of a theme. Raises ValueError for a theme whose colours cannot be read."""
        colours = self._colours_of(name)
        return replace(colours, narrow=True) if self._narrow else colours

    def _colours_of(self, name: str) -> Palette:
        no_color = "NO_COLOR" in os.environ
        brought = next((theme for theme in self.now.contributions.themes if theme.name == name), None)
        if brought is not None and not no_color:
            return custom(name, brought.colours, dark=brought.dark, paint=True)
        few = self.console.color_system in (None, "standard")
        if name == "auto" or name not in BUILT_IN:
            name = "ansi" if few or self._dark is None else "dark" if self._dark else "light"
        known: ThemeName = name  # type: ignore[assignment]
        clashes = self._dark is not None and known in ("light", "dark") and self._dark != (known == "dark")
        return palette(known, no_color=no_color, paint=(clashes or known == "contrast") and not no_color)

    def set_theme(self, name: str) -> None:
        """Use a theme from now on; an unknown name is said so."""
        name = _SPELLINGS.get(name, name)
        if name not in self.themes():
            self.say(f"no theme {name}", "attention", "there are: " + ", ".join(self.themes()))
            return
        self.theme_name = self._wanted_theme = name
        self.show_theme(name)

    def show_theme(self, name: str) -> None:
        """Draw in the colours of a theme, without choosing it."""
        try:
            self.palette = self.palette_of(name)
        except ValueError as error:
            self.say(str(error), "attention")
            return
        self.transcript.restyle()
        for screen in self.screen_stack:
            for panel in screen.query(Panel):
                panel.forget()
        self.refresh(layout=True)

    def told_early(self, dark: bool | None, wide: bool | None) -> None:
        """What the terminal said before anything was drawn."""
        self._dark = self._dark if dark is None else dark
        self._narrow = bool(wide)
        self.palette = self.palette_of(self.theme_name)

    def on_ground_told(self, message: GroundTold) -> None:
        """The terminal's background is known."""
        if self._dark is not message.dark:
            self._dark = message.dark
            self.show_theme(self.theme_name)

    def on_width_told(self, message: WidthTold) -> None:
        """How wide the terminal draws signs of ambiguous width is known."""
        if self._narrow is not message.wide:
            self._narrow = message.wide
            self.show_theme(self.theme_name)

    def brought_themes(self) -> None:
        """Extensions changed what they bring: the configured theme may be there now."""
        if self._wanted_theme != self.theme_name and self._wanted_theme in self.themes():
            self.set_theme(self._wanted_theme)

    @property
    def look(self) -> Look:
        """How things are drawn now."""
        width, height = self.size
        return Look(width, height, self.palette, self.glyphs, self.step, self.transcript.clock(), self.motion)

    @property
    def spinner(self) -> str:
        """The spinner's present frame."""
        return self.look.spinner


def _dark_from_environment() -> bool | None:
    """What COLORFGBG says of the background, None when nothing."""
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return int(ground) not in (7, 15) if ground.isdigit() else None
