"""Edits of a file add up to what differs from before the session, not to the sum of what each of them said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panto.schema.view import DiffView, Hunk
from panto.tools.diff import diff
from panto.tui.changes import Changes, FileChanges

LINES = st.lists(st.sampled_from("abcdef"), max_size=14)


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(st.lists(LINES, min_size=2, max_size=6))
def test_edits_add_up_to_the_difference_of_first_and_last(states: list[list[str]]) -> None:
    file = FileChanges()
    for before, after in zip(states, states[1:], strict=False):
        file.apply(diff("a", text(before), text(after)))
    added, removed = file.lines
    assert added - removed == len(states[-1]) - len(states[0])
    assert file._extra == (0, 0)  # every one of them fitted
    assert added <= len(states[-1]) and removed <= len(states[0])


@given(st.lists(st.sampled_from(("kept", "gone", "new", "other")), max_size=14))
def test_what_is_put_back_leaves_nothing(fates: list[str]) -> None:
    """Among lines of which no two are alike; which of two equal ones stayed, no diff can say."""
    first = [f"{n}" for n, fate in enumerate(fates) if fate != "new"]
    second = [f"{n}{'!' * (fate == 'other')}" for n, fate in enumerate(fates) if fate != "gone"]
    file = FileChanges()
    file.apply(diff("a", text(first), text(second)))
    file.apply(diff("a", text(second), text(first)))
    assert file.lines == (0, 0)


def test_a_line_changed_twice_is_one_line_changed() -> None:
    file = FileChanges()
    file.apply(diff("a", "1\n2\n3\n", "1\ntwo\n3\n"))
    file.apply(diff("a", "1\ntwo\n3\n", "1\nzwei\n3\n"))
    assert file.lines == (1, 1)


def test_what_was_cut_short_is_added_up() -> None:
    file = FileChanges()
    file.apply(DiffView("a", (Hunk(1, 1, (("+", "x"),)),), 900, 3))
    file.apply(DiffView("a", (Hunk(1, 1, (("+", "x"),)),), 900, 3))
    assert file.lines == (1800, 6)


def test_a_turn_that_is_taken_back_takes_its_edits_with_it() -> None:
    changes = Changes()
    changes.add("t1", diff("a", "1\n", "one\n"))
    changes.add("t2", diff("a", "one\n", "uno\ndue\n"))
    changes.add("t2", diff("b", "", "x\n"))
    assert changes.total == {"a": (2, 1), "b": (1, 0)}
    changes.without("t2")
    assert changes.total == {"a": (1, 1)}
    changes.without("t1")
    assert changes.total == {}
