"""Pictures of the screen: SVG that is small, the same on every machine, and can be read again as text with its colours.

A cell is one unit wide and two high, so that coordinates are columns and (half) rows. Classes are meanings ("aside",
"on_band"), the sheet at the top says how each looks. Nothing depends on a font: each run has its column.

    pytest tests/tui -k looks                        compares; a difference is shown as text, row by row
    UPDATE_SNAPSHOTS=1 pytest tests/tui -k looks     accepts what is there now
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from html import escape, unescape
from pathlib import Path

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from panto.tui.colours import Palette
from panto.tui.widgets.lines import width_of

Runs = Sequence[tuple[str, Style]]
_GROUNDS = (
    "band", "code", "inline", "row_added", "row_removed", "word_added", "word_removed", "selection", "current", "found",
    "found_here",
)  # fmt: skip
_MEANINGS = ("aside", "accent", "attention", "wrong", "added")
_LOOKS = {
    "bold": "font-weight:bold", "italic": "font-style:italic", "underline": "text-decoration:underline",
    "strike": "text-decoration:line-through", "dim": "fill-opacity:.6",
}  # fmt: skip
_PAPER = {False: ("#ffffff", "#1f2328"), True: ("#1a1b1e", "#dcdde0")}
# What a terminal's own sixteen look like in a picture; the terminal decides in life.
_SIXTEEN = TerminalTheme((26, 27, 30), (220, 221, 224), [
    (0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (76, 146, 232), (188, 63, 188), (17, 168, 205),
    (229, 229, 229),
], [(118, 118, 118), *[(241, 76, 76)] * 7])  # fmt: skip
_ROW = re.compile(r'^<text y="[\d.]+">(.*)</text>$')
_RUN = re.compile(r'<tspan x="(\d+)"(?: class="([^"]*)")?>([^<]*)</tspan>')
_GROUND = re.compile(r'<path class="on_(\w+)" d="M(\d+) (\d+)h(\d+)v2h-\d+z"/>')


# ---------------------------------------------------------------- making one


def picture(rows: Iterable[Runs], width: int, palette: Palette) -> str:
    """An SVG of these rows of `width` cells."""
    body: list[str] = []
    used: dict[str, Style] = {}
    count = 0
    for at, row in enumerate(rows):
        count = at + 1
        grounds, texts = _row(row, at, palette, used)
        body += grounds
        if texts:
            body.append(f'<text y="{2 * at + 1.5:g}">{"".join(texts)}</text>')
    ground, ink = (palette.hex.get(name) or _PAPER[palette.dark][at] for at, name in enumerate(("ground", "text")))
    sheet = "".join(_rule(name, style, ground, ink) for name, style in sorted(used.items()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {2 * count}" width="{8 * width}"'
        f' font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="1.66" xml:space="preserve">\n'
        f"<style>text{{fill:{ink}}}{sheet}</style>\n"
        f'<rect width="{width}" height="{2 * count}" fill="{ground}"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _row(row: Runs, at: int, palette: Palette, used: dict[str, Style]) -> tuple[list[str], list[str]]:
    grounds: list[tuple[int, int, str]] = []
    texts: list[tuple[int, str, str]] = []
    x = 0
    for text, style in row:
        size = width_of(text)
        names, ground = _classes(style, palette)
        if ground:
            used[f"on_{ground}"] = style
            if grounds and grounds[-1][2] == ground and grounds[-1][1] == x:
                grounds[-1] = (grounds[-1][0], x + size, ground)
            else:
                grounds.append((x, x + size, ground))
        for name in names:
            used[name] = style
        for column, part in _pieces(text, x):
            plain = " ".join(names)
            if texts and texts[-1][1] == plain and texts[-1][0] + width_of(texts[-1][2]) == column and part.isascii():
                texts[-1] = (texts[-1][0], plain, texts[-1][2] + part)
            elif part.strip() or "underline" in names or "reverse" in names:
                texts.append((column, plain, part))
        x += size
    if texts and not texts[-1][1]:
        texts[-1] = (*texts[-1][:2], texts[-1][2].rstrip())
    return (
        [f'<path class="on_{name}" d="M{a} {2 * at}h{b - a}v2h-{b - a}z"/>' for a, b, name in grounds],
        [f'<tspan x="{column}"' + (f' class="{names}"' if names else "") + f">{escape(text, quote=False)}</tspan>"
         for column, names, text in texts if text],
    )  # fmt: skip


def _pieces(text: str, x: int) -> Iterable[tuple[int, str]]:
    """Runs of narrow characters together, wide ones each at their own column."""
    for part in re.findall(r"[\u2e80-\U0010ffff][\u200d\ufe0f\U0001f1e6-\U0001f9ff]*|[^\u2e80-\U0010ffff]+", text):
        yield x, part
        x += width_of(part)


def _classes(style: Style, palette: Palette) -> tuple[list[str], str]:
    """Names of the looks of a run, and of its ground ("" for the paper)."""
    names = []
    if style.color is not None and not style.color.is_default:
        names.append(_colour_name(style.color, palette))
    ground = ""
    if style.bgcolor is not None and not style.bgcolor.is_default:
        known = (name for name in _GROUNDS if getattr(palette, name).bgcolor == style.bgcolor)
        ground = next(known, "paper" if style.bgcolor == palette.base.bgcolor else _plain(style.bgcolor))
    if style.reverse:
        ground, names = "ink", [*names, "reverse"]
    return names + [word for word in _LOOKS if getattr(style, word)], ground if ground != "paper" else ""


def _colour_name(color: Color, palette: Palette) -> str:
    if color == palette.base.color:
        return "text"
    for name in _MEANINGS:
        if getattr(palette, name).color == color:
            return name
    return next((name for name, style in palette.syntax.items() if style.color == color), _plain(color))


def _plain(color: Color) -> str:
    return "c" + color.get_truecolor(_SIXTEEN).hex[1:]


def _rule(name: str, style: Style, ground: str, ink: str) -> str:
    """The sheet's line for a class."""
    if name in _LOOKS:
        return f".{name}{{{_LOOKS[name]}}}"
    if name == "reverse":
        return f".reverse{{fill:{ground}}}"
    if name == "on_ink":
        return f".on_ink{{fill:{ink}}}"
    color = style.bgcolor if name.startswith("on_") else style.color
    assert color is not None
    triplet: ColorTriplet = color.get_truecolor(_SIXTEEN)
    return f".{name}{{fill:{triplet.hex}}}"


# ---------------------------------------------------------------- reading one


def read(svg: str) -> str:
    """The rows of a picture as text, and below each which cells look how: what differences are shown in."""
    rows: dict[int, tuple[str, list[str]]] = {}
    for line in svg.split("\n"):
        for name, x, y, size in _GROUND.findall(line):
            rows.setdefault(int(y) // 2, ("", []))[1].append(f"{x}-{int(x) + int(size)}:on_{name}")
        match = _ROW.match(line)
        if match is None:
            continue
        at = int(float(line[9 : line.index('"', 9)])) // 2
        text, notes = rows.get(at, ("", []))
        for x, names, raw in _RUN.findall(match[1]):
            part = unescape(raw)
            text += " " * (int(x) - width_of(text)) + part
            if names:
                notes.append(f"{x}-{int(x) + width_of(part)}:{names.replace(' ', ',')}")
        rows[at] = (text, notes)
    out: list[str] = []
    for at in range(max(rows, default=-1) + 1):
        text, notes = rows.get(at, ("", []))
        out.append(text.rstrip())
        if notes:
            out.append("    ~ " + " ".join(notes))
    return "\n".join(out) + "\n"


def matches(path: Path, now: str) -> None:
    """Compares a picture with the stored one; raises AssertionError with the rows that differ."""
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    if stored == now:
        return
    before, after = read(stored), read(now)
    if before == after:  # the same rows in other colours
        before, after = stored, now
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "stored", "now", lineterm="", n=1)
    raise AssertionError(f"{path.stem} looks different (UPDATE_SNAPSHOTS=1 accepts it):\n" + "\n".join(lines))
