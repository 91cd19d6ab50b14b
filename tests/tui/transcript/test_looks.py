"""Every state of every card, and whole screens, as they look in light and dark and without colours."""

from __future__ import annotations

import unicodedata

import pytest

from panto.tui.colours import ThemeName
from tests.tui.transcript.dump import Stage, matches
from tests.tui.transcript.scenes import CARDS, SCREENS, diffs, done, failed
from tests.tui.transcript.script import main_screen

SIZES = [(120, 36), (80, 24), (60, 20)]


def one_after_the_other(width: int, height: int, theme: ThemeName, no_color: bool = False) -> str:
    parts = []
    for name, scene in CARDS.items():
        stage = Stage(width, height - 3, theme, no_color)
        scene(stage.script)
        dump = stage.dump().rstrip("\n")
        parts.append(f"=== {name}\n" + dump.partition("\n")[2].partition("\n")[2].strip("\n") + "\n")
    return "\n".join(parts)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_state_of_a_card_looks_as_it_was_looked_at(width: int, height: int, theme: ThemeName) -> None:
    matches(f"cards-{width}x{height}-{theme}", one_after_the_other(width, height, theme))


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_screen_looks_as_it_was_looked_at(name: str, width: int, height: int, theme: ThemeName) -> None:
    stage = Stage(width, height - 3, theme)
    SCREENS[name](stage.script)
    matches(f"{name}-{width}x{height}-{theme}", stage.dump())


def test_cards_without_colours_and_with_the_terminals_sixteen() -> None:
    matches("cards-80x24-no-colour", one_after_the_other(80, 24, "dark", no_color=True))
    matches("cards-80x24-ansi", one_after_the_other(80, 24, "ansi"))


def test_no_colour_is_set_under_no_color() -> None:
    stage = Stage(120, 60, "dark", no_color=True)
    main_screen(stage.script)
    assert "#" not in "".join(line for line in stage.dump().split("\n") if line.startswith("    ~"))


def test_a_failed_card_says_so_without_colours() -> None:
    stage = Stage(80, 21, "dark", no_color=True)
    failed(stage.script)
    rows = stage.rows()
    head = next(row for row in rows if "pytest" in row)
    assert head.startswith("✗ run") and head.endswith("exit 1 · 2.2 s")
    assert any("1 failed, 199 passed" in row for row in rows)


def test_the_chrome_holds_no_sign_of_ambiguous_width_where_that_would_be_wide() -> None:
    for name, scene in {**CARDS, **SCREENS}.items():
        if name == "children":  # its words come from the extension
            continue
        stage = Stage(80, 30)
        stage.wide = True
        scene(stage.script)
        text = "".join(stage.rows()).replace("41k · $0.09 · 48 s", "").replace("58k · $0.13 · 1 m 04 s", "")
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
