"""The text being written: clusters, words, undo, chips, rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panto.schema.messages import Image
from panto.tui.draft import Chip, Draft, clean
from panto.tui.graphemes import clusters
from panto.tui.widgets.lines import width_of
from panto.tui.wrapping import cells_of, layout, place, position

HARD = "漢字，🇨🇭👩‍👩‍👧é"
TEXT = st.text(alphabet=st.sampled_from("ab \n漢🇨🇭👩‍é\t.e\u0301"), max_size=40)


def plain(_character: str) -> str | None:
    return None


def draft(text: str) -> Draft:
    made = Draft()
    made.set(text)
    return made


def test_backspace_takes_one_cluster_at_a_time() -> None:
    made = draft(HARD)
    steps = 0
    while made.text:
        made.backspace()
        steps += 1
    assert steps == 6 == len(clusters(HARD))


def test_left_three_times_then_a_letter_stands_before_three_clusters() -> None:
    made = draft(HARD)
    for _ in range(3):
        made.move(made.left_of(made.cursor))
    made.insert("x")
    assert made.text == "漢字，x🇨🇭👩‍👩‍👧é"


@given(TEXT)
def test_left_and_right_are_each_others_way_back(text: str) -> None:
    made = draft(text)
    places = [made.cursor]
    while made.cursor:
        made.move(made.left_of(made.cursor))
        places.append(made.cursor)
    for at in reversed(places[:-1]):
        made.move(made.right_of(made.cursor))
        assert made.cursor == at


@given(TEXT, st.integers(4, 20))
def test_rows_hold_the_whole_text_and_break_no_cluster(text: str, width: int) -> None:
    rows = layout(text, width, plain)
    edges = {0, len(text)}
    at = 0
    for line in text.split("\n"):
        edges |= {at + start for start, _, _ in clusters(line)} | {at + len(line)}
        at += len(line) + 1
    assert all(row.start in edges and row.end in edges for row in rows)
    assert "".join(text[row.start : row.end] for row in rows) == text.replace("\n", "")
    for row in rows:
        shown = text[row.start : row.end].rstrip()
        used = sum(cells_of(shown[start:end], plain) for start, end, _ in clusters(shown))
        assert used <= width or len(clusters(shown)) == 1


@given(TEXT, st.integers(4, 20))
def test_a_position_and_its_place_agree(text: str, width: int) -> None:
    rows = layout(text, width, plain)
    made = draft(text)
    at = len(text)
    while True:
        number, column = place(rows, text, at, plain)
        back = position(rows[number], text, column, plain)  # a cluster without width shares its place with the next
        assert place(rows, text, back, plain) == (number, column)
        if not at:
            break
        at = made.left_of(at)


def test_the_cursor_column_is_the_width_of_the_text_before_it() -> None:
    rows = layout(HARD, 40, plain)
    assert place(rows, HARD, len(HARD), plain) == (0, width_of(HARD))


def test_typing_is_undone_by_words_and_redone() -> None:
    made = Draft()
    for character in "one two":
        made.insert(character, typed=True)
    made.undo()
    assert made.text == "one "
    made.undo()
    made.undo()
    assert made.text == ""
    for _ in range(3):
        made.redo()
    assert made.text == "one two"


def test_killed_text_comes_back_where_one_wants_it() -> None:
    made = draft("keep this")
    made.kill(made.word_left(made.cursor), made.cursor)
    made.move(0)
    made.yank()
    assert made.text == "thiskeep "


def test_a_chip_moves_as_one_and_is_opened_when_sent() -> None:
    made = draft("see ")
    made.fold(Chip("[30 lines: 01]", "a\nb"))
    made.fold(Chip("[image: x.png]", image=Image("image/png", b"1", "x.png")))
    assert made.opened() == "see a\nb"
    assert [image.name for image in made.images()] == ["x.png"]
    made.backspace()
    assert made.images() == ()
    made.backspace()
    assert made.text == "see "


def test_a_chip_that_was_killed_comes_back_after_all_was_emptied() -> None:
    made = Draft()
    made.fold(Chip("[2 lines: a]", "a\nb"))
    made.kill(0, 1)
    made = made.emptied()
    made.forget_chips()
    made.yank()
    assert made.opened() == "a\nb"


def test_the_same_paste_again_opens_its_chip() -> None:
    made = Draft()
    made.fold(Chip("[2 lines: a]", "a\nb"))
    assert not made.unfold("other")
    assert made.unfold("a\nb")
    assert made.text == "a\nb"


def test_what_could_steer_a_terminal_never_gets_into_the_draft() -> None:
    assert clean("a\r\nb\x1b[31mc\x1b]52;c;QQ==\x07\x9b1m\x00\td\ud800") == "a\nbc1m\td"
    assert clean("\U0010fe00") == ""


def test_a_tab_is_four_cells_and_a_chip_as_wide_as_its_label() -> None:
    assert cells_of("\t", plain) == 4
    assert cells_of("\U0010fe00", lambda _c: "[image: x.png]") == 14
