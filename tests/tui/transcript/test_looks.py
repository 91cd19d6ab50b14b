"""Every state of every card, and whole screens, as they look in light and dark and without colours."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from panto.tui.colours import ThemeName
from tests.tui.picture import Runs, matches, picture
from tests.tui.transcript.dump import Stage
from tests.tui.transcript.scenes import CARDS, SCREENS, diffs, done, failed
from tests.tui.transcript.script import main_screen

SIZES = [(120, 36), (80, 24), (60, 20)]
HERE = Path(__file__).parent / "snapshots"


def sheet(width: int, height: int, theme: ThemeName, no_color: bool = False) -> str:
    """Every card in every state, one below the other under its name."""
    rows: list[Runs] = []
    for name, scene in CARDS.items():
        stage = Stage(width, height - 3, theme, no_color)
        scene(stage.script)
        shown = stage.runs()
        while shown and not "".join(text for text, _ in shown[-1]).strip():
            shown.pop()
        rows += [[(f"=== {name}", stage.palette.aside)], *shown, []]
    return picture(rows, width, stage.palette)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_state_of_a_card_looks_as_it_was_looked_at(width: int, height: int, theme: ThemeName) -> None:
    matches(HERE / f"cards-{width}x{height}-{theme}.svg", sheet(width, height, theme))


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_transcript_looks_as_it_was_looked_at(name: str, width: int, height: int, theme: ThemeName) -> None:
    stage = Stage(width, height - 3, theme)
    SCREENS[name](stage.script)
    matches(HERE / f"{name}-{width}x{height}-{theme}.svg", picture(stage.runs(), width, stage.palette))


def test_it_looks_well_without_colours_and_with_the_terminals_sixteen() -> None:
    matches(HERE / "cards-80x24-no-colour.svg", sheet(80, 24, "dark", no_color=True))
    matches(HERE / "cards-80x24-ansi.svg", sheet(80, 24, "ansi"))
    matches(HERE / "cards-80x24-contrast.svg", sheet(80, 24, "contrast"))


def test_no_colour_is_set_under_no_color() -> None:
    stage = Stage(120, 60, "dark", no_color=True)
    main_screen(stage.script)
    colours = [colour for row in stage.runs() for _, style in row for colour in (style.color, style.bgcolor)]
    assert all(colour is None or colour.is_default for colour in colours)


def test_a_failed_card_says_so_without_colours() -> None:
    stage = Stage(80, 21, "dark", no_color=True)
    failed(stage.script)
    rows = stage.rows()
    head = next(row for row in rows if "pytest" in row)
    assert head.startswith("✗ run") and head.endswith("exit 1 · 2.2 s")
    assert any("1 failed, 199 passed" in row for row in rows)


def test_no_sign_of_ambiguous_width_is_drawn_where_that_would_be_wide() -> None:
    for name, scene in {**CARDS, **SCREENS}.items():
        stage = Stage(80, 30)
        stage.palette = replace(stage.palette, narrow=True)
        scene(stage.script)
        text = "".join(text for row in stage.runs() for text, _ in row)
        assert {char for char in text if unicodedata.east_asian_width(char) == "A"} == set(), name


def test_from_160_columns_on_a_diff_stands_side_by_side() -> None:
    stage = Stage(170, 40)
    diffs(stage.script)
    row = next(row for row in stage.rows() if "self.unit_price" in row)
    assert row.index("self.price") < 80 < row.index("self.unit_price")


def test_an_open_card_shows_a_bar_the_end_and_the_keys() -> None:
    stage = Stage(120, 40)
    done(stage.script)
    stage.sync()
    card = stage.story.items[-1]
    assert card.toggle()
    stage.story.note(card)
    rows = stage.rows()
    assert rows[2].startswith("▾ run")
    assert rows[3].startswith("│    tests/test_cart.py::test_case_183")
    assert "lines 183–200 of 200" in rows[21] and rows[21].endswith("Enter pager · w wrap · y copy · o fold")
