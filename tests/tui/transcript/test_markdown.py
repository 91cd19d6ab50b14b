"""Markdown: how it looks, and that a stream comes to the same as the whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panto.tui.colours import GLYPHS, palette
from panto.tui.widgets.highlight import colour, lexer_named
from panto.tui.widgets.lines import Line, Look
from panto.tui.widgets.markdown import Document
from tests.tui.transcript.dump import shown
from tests.tui.transcript.scenes import MARKDOWN

LOOK = Look(120, 33, palette("dark"), GLYPHS)
NARROW = Look(40, 33, palette("dark"), GLYPHS)

PIECES = [
    "# head\n", "## two\n\n", "words and **bold** `code`\n", "more words\n\n", "- item\n", "  - nested\n", "1. one\n",
    "> quote\n", "```python\ndef f():\n    return 1\n```\n", "~~~\nopen\n", "| a | b |\n|---|---|\n", "| 1 | 2 |\n",
    "---\n", "\n", "    indented\n", "[link](https://example.org)\n", "<b>html</b>\n", "text", "|", "-", "=", "`", "*",
    "\n===\n", "漢字\n", "![i](x.png)\n", "```\n", "  ```\n", "\r\n", "\t", "* * *\n", "1) x\n", "&amp;", "\\*",
    "<", "[", "]:", ": ", "a", "b c", "<x>", "[m]", "  ", "**", "_", "&", "1", ".", " ", "x", "> ",
]  # fmt: skip


def state(lines: list[Line]) -> list[object]:
    return [[(segment.text, segment.style) for segment in line.segments] for line in lines]


def same(text: str, cuts: list[int]) -> None:
    streamed = Document(finished=False)
    at = 0
    for size in cuts:
        streamed.append(text[at : at + size])
        streamed.lines(LOOK)
        at += size
        if at >= len(text):
            break
    streamed.append(text[at:])
    streamed.finish()
    assert state(streamed.lines(LOOK)) == state(Document(text).lines(LOOK))


@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join), st.lists(st.integers(1, 9), max_size=60))
def test_a_stream_cut_anywhere_comes_to_the_same_as_the_whole(text: str, cuts: list[int]) -> None:
    same(text, cuts)


def test_the_sample_comes_to_the_same_for_every_size_of_delta() -> None:
    for size in (1, 2, 3, 7, 50):
        same(MARKDOWN * 2, [size] * (len(MARKDOWN) * 2 // size + 1))


def test_the_whole_of_an_unfinished_text_is_shown_but_for_doubtful_markup() -> None:
    document = Document(finished=False)
    document.append("Some words and\n\n- a list\n- that grows\n\n```\ncode that is")
    wanted = ["  Some words and", "", "  • a list", "  • that grows", "", "   code that is"]
    assert shown(document.lines(LOOK)) == wanted


def test_a_table_does_not_flicker_as_text_before_its_rule_is_there() -> None:
    document = Document(finished=False)
    document.append("Look:\n\n| a | b |\n")
    assert shown(document.lines(LOOK)) == ["  Look:"]
    document.append("|---|---|\n| one |")
    assert shown(document.lines(LOOK)) == ["  Look:", "", "  a     b", "  ───────", "  one"]


def test_a_rule_of_dashes_does_not_turn_the_line_above_into_a_heading_for_a_moment() -> None:
    document = Document(finished=False)
    document.append("words\n-")
    assert shown(document.lines(LOOK)) == ["  words"]
    document.append(" item\n")
    assert shown(document.lines(LOOK)) == ["  words", "", "  • item"]


def test_a_table_is_as_wide_as_its_content_and_numbers_stand_to_the_right() -> None:
    lines = shown(Document("| file | lines |\n|---|---|\n| shop.py | 34 |\n| a | 1200 |\n").lines(LOOK))
    assert lines == ["  file      lines", "  ───────────────", "  shop.py      34", "  a          1200"]


def test_a_table_that_is_too_wide_wraps_in_its_cells() -> None:
    text = "| a | b |\n|---|---|\n| " + "word " * 12 + "| " + "other " * 12 + "|\n"
    lines = shown(Document(text).lines(NARROW))
    assert max(len(line) for line in lines) <= 38
    assert sum(line.count("word") for line in lines) == 12 and sum(line.count("other") for line in lines) == 12


def test_code_wider_than_the_screen_wraps_and_is_copied_whole() -> None:
    lines = Document("```\n" + "x" * 60 + "\n```\n").lines(NARROW)
    assert [line.joint for line in lines] == [None, ""]
    assert "".join(line.text[line.gutter : line.end] for line in lines) == "x" * 60


def test_a_definition_that_comes_late_still_makes_its_link() -> None:
    document = Document(finished=False)
    for piece in ("See [the manual][m].\n\n", "More.\n\n", "[m]: https://example.org/m\n"):
        document.append(piece)
        document.lines(LOOK)
    document.finish()
    assert shown(document.lines(LOOK))[0] == "  See the manual."


def test_a_target_that_no_terminal_opens_is_written_out_once() -> None:
    text = "See [the parser](src/a%20b.py:7), [src/c.py](src/c.py), [home](https://e.org) and ![](pic.png).\n"
    said = "  See the parser (src/a b.py:7), src/c.py, home and [image: pic.png]."
    assert shown(Document(text).lines(LOOK)) == [said]


def test_hostile_links_and_text_stay_text() -> None:
    text = "[x](javascript:alert) [y](https://e.org/\x1b]8;;z\x07) \x1b[2Jhi\u202e\n"
    lines = Document(text).lines(LOOK)
    assert all("\x1b" not in segment.text for line in lines for segment in line.segments)
    links = [s.style.link for line in lines for s in line.segments if s.style is not None and s.style.link]
    assert all("\x1b" not in link and link.startswith("https:") for link in links)


def test_one_block_without_end_is_cut_so_that_no_frame_is_slow() -> None:
    document = Document(finished=False)
    for _ in range(40):
        document.append("word " * 1000)
        document.lines(LOOK)
    document.finish()
    assert sum(line.text.count("word") for line in document.lines(LOOK)) == 40_000
    assert len(document._tail) < 70_000


def test_what_looked_like_a_beginning_and_was_none_changes_nothing() -> None:
    same("\n\\*# head\n````<```python\nx\n", [1, 1, 1, 4, 4, 4])
    same("[m]: # head\n", [1, 1, 4])
    same("<\t# head\n", [1])
    same("~~~\nopen\n ", [1, 3])


def test_the_rows_of_a_diff_in_a_fence_have_the_colours_of_a_diff() -> None:
    lexer = lexer_named("diff")
    assert lexer is not None
    kinds = [kind for line in colour("-old\n+new\n same\n", lexer) for _, kind in line]
    assert kinds[:2] == ["removed", "added"] and set(kinds[2:]) <= {""}
