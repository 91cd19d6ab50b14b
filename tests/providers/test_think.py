"""Reasoning left in the text between <think> tags."""

from __future__ import annotations

import pytest

from panto.providers.think import ThinkSplitter


def split(pieces: list[str], opened: bool = False) -> tuple[str, str]:
    """Reasoning and text."""
    splitter = ThinkSplitter(opened)
    out = [found for piece in pieces for found in splitter.feed(piece)] + list(splitter.end())
    assert all(text for _, text in out)
    return "".join(t for thought, t in out if thought), "".join(t for thought, t in out if not thought)


@pytest.mark.parametrize(
    ("whole", "thought", "text"),
    [
        ("<think>a < b</think>\n\nHello", "a < b", "Hello"),
        ("\n<think>\nso</thin</think>x</think>", "so</thin", "x</think>"),
        ("plain <think>no</think>", "", "plain <think>no</think>"),
        ("<thinking is hard", "", "<thinking is hard"),
        ("<think>never closed", "never closed", ""),
        ("<th", "", "<th"),
        ("", "", ""),
    ],
)
def test_thoughts_are_told_from_text_wherever_the_pieces_are_cut(whole: str, thought: str, text: str) -> None:
    assert split([whole]) == (thought, text)
    assert split(list(whole)) == (thought, text)
    for at in range(1, len(whole)):
        assert split([whole[:at], whole[at:]]) == (thought, text)


def test_an_opening_tag_written_by_the_template_is_not_missed() -> None:
    assert split(["I see", "</thi", "nk>\nHello"], opened=True) == ("I see", "Hello")
