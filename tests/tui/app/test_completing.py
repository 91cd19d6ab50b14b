"""What may follow what is typed."""

from __future__ import annotations

import pytest

from panto.schema.queries import CommandRow
from panto.tui.completing import Wanted, commands, file_choice, rank, wanted

ROWS = tuple(CommandRow(name, "") for name in ("copy", "cost", "mode", "model", "remote-copy", "compact"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/", Wanted("command", "", 1)),
        ("/mo", Wanted("command", "mo", 1)),
        ("/mode a", Wanted("argument", "a", 6, "mode")),
        ("look at @ma", Wanted("file", "ma", 9)),
        ("@", Wanted("file", "", 1)),
        ("(@ma", Wanted("file", "ma", 2)),
        ("someone@example", None),
        ("a /mo", None),
        ("@ma in", None),
        ("/etc/passwd", None),
        ("", None),
    ],
)
def test_the_text_before_the_cursor_says_what_is_wanted(text: str, found: Wanted | None) -> None:
    assert wanted(text, len(text)) == found


def test_prefix_comes_before_substring_and_letters_in_order_only_when_nothing_else_fits() -> None:
    assert [one.name for one in commands(ROWS, "co")] == ["/compact", "/copy", "/cost", "/remote-copy"]
    assert [one.name for one in commands(ROWS, "mo")] == ["/mode", "/model", "/remote-copy"]
    assert [one.name for one in commands(ROWS, "cpct")] == ["/compact"]
    assert commands(ROWS, "nosuch") == []


def test_an_exact_name_is_first() -> None:
    assert commands(ROWS, "mode")[0].name == "/mode"
    assert rank("model", "model") == 0


def test_a_file_shows_its_name_before_its_folder() -> None:
    assert file_choice("docs/makers.md")[:3] == ("@docs/makers.md ", "makers.md", "docs/")
    assert file_choice("docs/").insert == "@docs/"
    assert file_choice("my file.txt").insert == '@"my file.txt" '
