"""Colours by meaning: one palette names what a colour says, never how it looks elsewhere.

`palette(theme)` gives the styles of a theme: `light`, `dark`, `ansi` (the terminal's own sixteen) and `contrast`, each
also without colour (NO_COLOR). Text and ground are the terminal's own unless `paint` is asked for. Themes that
extensions bring are made with `custom`. `GLYPHS` are the signs; a palette that is `narrow` has those of ambiguous
width drawn as others, for terminals that draw them two cells wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from rich.style import Style

from panto.schema.view import Meaning

ThemeName = Literal["light", "dark", "ansi", "contrast"]
_NONE = Style()


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs of the chrome; each is one cell wide."""

    ok: str = "✓"
    failed: str = "✗"
    asks: str = "?"
    stopped: str = "–"
    open: str = "▾"
    prompt: str = "›"
    queued: str = "»"
    bar: str = "│"
    rule: str = "─"
    dot: str = "·"
    ellipsis: str = "…"
    minus: str = "−"
    bullet: str = "•"
    down: str = "↓"
    still: str = "⠿"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    quotes: str = "“”"


GLYPHS = Glyphs()
NARROW = str.maketrans("–—−─·│•…“”‘’↑↓←→×", "-----|*~\"\"''^v<>x")
"""Signs that some terminals draw two cells wide, and what stands for them there."""


@dataclass(frozen=True, slots=True)
class Palette:
    """What each meaning looks like. The last group are grounds: they set a background and nothing else.

    `hex` holds the plain colour of each meaning ("#6cb6ff", or "ansi_blue" for the sixteen, "" for the terminal's own)
    for style sheets; `syntax` the styles of code by kind (keyword, string, number, comment, name, and a diff's rows).
    """

    name: str
    dark: bool
    base: Style = _NONE
    text: Style = _NONE
    aside: Style = _NONE
    accent: Style = _NONE
    attention: Style = _NONE
    wrong: Style = _NONE
    added: Style = _NONE
    band: Style = _NONE
    code: Style = _NONE
    inline: Style = _NONE
    row_added: Style = _NONE
    row_removed: Style = _NONE
    word_added: Style = _NONE
    word_removed: Style = _NONE
    selection: Style = _NONE
    current: Style = _NONE
    found: Style = _NONE
    found_here: Style = _NONE
    syntax: Mapping[str, Style] = field(default_factory=dict)
    hex: Mapping[str, str] = field(default_factory=dict)
    colourless: bool = False
    narrow: bool = False

    def of(self, meaning: Meaning) -> Style:
        """The style of a meaning."""
        style: Style = getattr(self, meaning, self.text)
        return style

    def signs(self, text: str) -> str:
        """A text with signs that this terminal draws as wide as they count; as many characters as before."""
        return text.translate(NARROW) if self.narrow and not text.isascii() else text


@lru_cache(maxsize=16)
def palette(theme: ThemeName, *, no_color: bool = False, paint: bool = False) -> Palette:
    """The palette of a built-in theme.

    `no_color`: weight, underline and reverse only. `paint`: draw the theme's own ground and text instead of leaving the
    terminal's (for a person who chose a theme that the terminal does not have).
    """
    if no_color:
        return _colourless(theme)
    if theme == "ansi":
        return _sixteen()
    return custom(theme, _BUILT_IN[theme], dark=theme != "light", paint=paint, strong=theme == "contrast")


def custom(
    name: str, colours: Mapping[str, str], *, dark: bool, paint: bool = False, strong: bool = False
) -> Palette:
    """A palette from plain colours ("#rrggbb") by meaning; what is missing comes from the built-in dark or light.

    Keys: ground, text, aside, accent, attention, wrong, added; keyword, string, number, comment, name for code; band
    and code, grounds that are tints of the text where they are missing. Raises ValueError naming the key whose colour
    cannot be read.
    """
    known = dict(_BUILT_IN["dark" if dark else "light"])
    known.update({key: value for key, value in colours.items() if key in known or key in ("band", "code")})
    for key, value in known.items():
        if len(value) != 7 or value[0] != "#" or any(c not in "0123456789abcdefABCDEF" for c in value[1:]):
            raise ValueError(f"theme {name}: {key} = {value!r} is not a colour like #6cb6ff")
    ground = known["ground"]

    def tint(meaning: str, percent: int, own: str = "") -> Style:
        if own in known:
            return Style(bgcolor=known[own])
        return Style(bgcolor=blend(ground, known[meaning], percent * (1.6 if strong else 1.0)))

    styles = {key: Style(color=known[key]) for key in ("aside", "accent", "attention", "wrong", "added")}
    if strong:
        styles["accent"] += Style(bold=True)
        styles["wrong"] += Style(bold=True)
    plain = Style(color=known["text"]) if paint else Style()
    return Palette(
        name=name,
        dark=dark,
        base=Style(color=known["text"], bgcolor=ground) if paint else Style(color="default", bgcolor="default"),
        text=plain,
        aside=styles["aside"],
        accent=styles["accent"],
        attention=styles["attention"],
        wrong=styles["wrong"],
        added=styles["added"],
        band=tint("text", 5 if dark else 4, "band"),
        code=tint("text", 4 if dark else 3, "code"),
        inline=tint("text", 10 if dark else 7),
        row_added=tint("added", 10 if dark else 9),
        row_removed=tint("wrong", 11 if dark else 8),
        word_added=tint("added", 28 if dark else 24),
        word_removed=tint("wrong", 30 if dark else 20),
        selection=tint("accent", 34 if dark else 24),
        current=tint("accent", 14 if dark else 10),
        found=tint("attention", 34 if dark else 28),
        found_here=Style(color=ground, bgcolor=known["attention"]),
        syntax={
            **{key: Style(color=known[key]) for key in ("keyword", "string", "number", "name")},
            "comment": Style(color=known["comment"], italic=True),
            "added": styles["added"],
            "removed": styles["wrong"],
        },
        hex=known,
    )


_BUILT_IN: dict[str, dict[str, str]] = {
    "dark": {
        "ground": "#1a1b1e", "text": "#dcdde0", "aside": "#8d9096", "accent": "#6cb6ff", "attention": "#e3b341",
        "wrong": "#ff7b72", "added": "#56d364", "keyword": "#b9a5e8", "string": "#a5c495", "number": "#dbae84",
        "comment": "#84878d", "name": "#8fbce6",
    },
    "light": {
        "ground": "#ffffff", "text": "#1f2328", "aside": "#6e7379", "accent": "#0b6bcb", "attention": "#9a6700",
        "wrong": "#c62f2f", "added": "#1a7f37", "keyword": "#6f42c1", "string": "#3a6b35", "number": "#8f4f0e",
        "comment": "#72777d", "name": "#1f5fa8",
    },
    "contrast": {
        "ground": "#000000", "text": "#ffffff", "aside": "#c4c4c4", "accent": "#7cc4ff", "attention": "#ffd33d",
        "wrong": "#ff8a80", "added": "#6bff8a", "keyword": "#d9c6ff", "string": "#c6f0b0", "number": "#ffcf9e",
        "comment": "#c4c4c4", "name": "#b5dcff",
    },
}  # fmt: skip


def blend(ground: str, colour: str, percent: float) -> str:
    """`percent` of `colour` over `ground`, both "#rrggbb"."""
    share = min(percent, 100.0) / 100.0
    pairs = ((int(ground[i : i + 2], 16), int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _sixteen() -> Palette:
    """The terminal's own palette: no tints, since their base is not known."""
    names = {
        "aside": "bright_black", "accent": "blue", "attention": "yellow", "wrong": "red", "added": "green",
    }  # fmt: skip
    return Palette(
        name="ansi",
        dark=True,
        base=Style(color="default", bgcolor="default"),
        aside=Style(color=names["aside"]),
        accent=Style(color=names["accent"]),
        attention=Style(color=names["attention"]),
        wrong=Style(color=names["wrong"]),
        added=Style(color=names["added"]),
        band=Style(bold=True),
        inline=Style(bold=True),
        word_added=Style(reverse=True),
        word_removed=Style(reverse=True),
        selection=Style(reverse=True),
        current=Style(underline=True),
        found=Style(reverse=True),
        found_here=Style(reverse=True, bold=True),
        syntax={
            "keyword": Style(color="magenta"),
            "string": Style(color="green"),
            "number": Style(color="cyan"),
            "comment": Style(color="bright_black"),
            "name": Style(color="blue"),
            "added": Style(color=names["added"]),
            "removed": Style(color=names["wrong"]),
        },
        hex={"text": "", "ground": "", **{meaning: f"ansi_{colour}" for meaning, colour in names.items()}},
    )


def _colourless(theme: ThemeName) -> Palette:
    bold = Style(bold=True)
    reverse = Style(reverse=True)
    plain = replace(_sixteen(), name=theme, dark=theme != "light", colourless=True)
    return replace(
        plain,
        aside=Style(dim=True),
        accent=bold,
        attention=bold,
        wrong=bold,
        added=_NONE,
        band=bold,
        word_added=Style(underline=True),
        word_removed=Style(underline=True),
        selection=reverse,
        found=reverse,
        found_here=Style(reverse=True, bold=True),
        syntax={"comment": Style(dim=True)},
        hex=dict.fromkeys(plain.hex, ""),
    )
