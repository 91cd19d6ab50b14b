"""Text on its way to the screen: cleaned, wrapped, cut."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, split_graphemes
from rich.style import Style

from panto.tui import units
from panto.tui.sanitize import clean, clean_line, clean_output, clean_url
from panto.tui.widgets.lines import at_cell, cut, cut_middle, cut_runs, width_of, wrap
from panto.tui.widgets.output import Output, Tail

NASTY = "\x1b]52;c;QUJD\x07\x1b]0;x\x07\x1b[2J\x1b[?1049h\x9b31mhi"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]")

texts = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b[]Pm;0\x07\x9b\x9d\r\n\t\u202e\u2066漢字，🇨🇭👩\u200d👧é⚠️1️⃣ abc"),
    ),
    max_size=80,
)


@given(texts)
def test_nothing_but_text_and_line_feeds_leaves_the_cleaner(text: str) -> None:
    for safe in (clean(text), clean_output(text), clean_line(text)):
        assert UNSAFE.search(safe) is None


@given(texts)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_escape_sequences_go_whole_and_what_they_carried_with_them() -> None:
    assert clean(NASTY) == "hi"
    assert clean("a\x1bPq#0\x1b\\b\x1b_Gi=1\x1b\\c\x1bcd") == "abcd"


def test_a_carriage_return_overwrites_as_on_a_terminal() -> None:
    assert clean_output("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"


def test_a_link_keeps_no_control_byte_and_no_unknown_scheme() -> None:
    assert clean_url("https://example.org/a?b=c") == "https://example.org/a?b=c"
    assert clean_url("https://example.org/\x1b]8;;x\x07") == ""
    assert clean_url("javascript:alert(1)") == ""


@given(texts.map(lambda text: clean(text).replace("\n", " ")), st.integers(2, 24))
def test_wrapped_rows_fit_lose_nothing_and_split_no_character(text: str, width: int) -> None:
    rows = wrap([(text, Style())], width)
    assert all(sum(cell_len(segment.text) for segment in row) <= width for row, _ in rows)
    joined = "".join((joint or "") + "".join(segment.text for segment in row) for row, joint in rows)
    assert joined.replace(" ", "") == text.replace(" ", "")
    whole = {text[a:b] for a, b, _ in split_graphemes(text)[0]}
    for row, _ in rows:
        line = "".join(segment.text for segment in row)
        assert all(line[a:b] in whole for a, b, _ in split_graphemes(line)[0])


@given(texts.map(lambda text: clean(text).replace("\n", " ")), st.integers(1, 30))
def test_what_is_cut_fits(text: str, width: int) -> None:
    assert width_of(cut(text, width)) <= width
    assert sum(width_of(part) for part, _ in cut_runs([(text, Style()), (text, Style())], width)) <= width
    assert width_of(cut_middle(text, width)) <= max(width, 2)


def test_words_are_wrapped_and_wide_characters_break_between_each_other() -> None:
    wrapped = wrap([("hello 漢字，🇨🇭👩‍👩‍👧é world", Style())], 10)
    rows = [("".join(segment.text for segment in row), joint) for row, joint in wrapped]
    assert rows == [("hello 漢字", None), ("，🇨🇭👩‍👩‍👧é", ""), ("world", " ")]


def test_a_cell_is_found_in_wide_text() -> None:
    assert [at_cell("a漢b", cell) for cell in range(6)] == [0, 1, 1, 2, 3, 3]


def test_output_is_read_from_either_end_without_splitting_all_of_it() -> None:
    output = Output("".join(f"line {n}\n" for n in range(1000)))
    assert output.count == 1000
    assert output.tail(2) == ["line 998", "line 999"]
    assert output.head(2) == ["line 0", "line 1"]
    assert Output("").tail(3) == [] and Output("x").tail(3) == ["x"]


def test_one_endless_line_is_looked_at_only_where_it_is_shown() -> None:
    assert [len(line) for line in Output("a" * 50_000_000).tail(3)] == [4000]


def test_the_tail_of_a_running_program_is_bounded() -> None:
    tail = Tail()
    for n in range(20_000):
        tail.add(f"line {n}\n")
    assert tail.last(2) == ["line 19998", "line 19999"]
    assert len(tail._text) <= 32_000


def test_numbers_read_as_people_say_them() -> None:
    assert [units.seconds(value) for value in (0.1, 3.14, 8.0, 12.4, 64, 7500)] == [
        "0.1 s", "3.1 s", "8 s", "12 s", "1 m 04 s", "2 h 05 m",
    ]  # fmt: skip
    assert [units.tokens(value) for value in (84, 400, 4000, 12_345, 999_400, 1_200_000)] == [
        "84", "0.4k", "4k", "12k", "999k", "1.2M",
    ]  # fmt: skip
    assert [units.money(value) for value in (0, 0.001, 0.034, 12.4)] == ["", "<$0.01", "$0.03", "$12.40"]
    assert [units.size(value) for value in (340, 2100, 14_000_000)] == ["340 B", "2.1 KB", "14 MB"]
