"""The transcript in a real pseudo-terminal."""

from __future__ import annotations

import re

import pyte

from tests.tui.transcript.stage import HEIGHT, WIDTH, in_pty


def cells(screen: pyte.Screen) -> list[tuple[object, ...]]:
    return [tuple(screen.buffer[y][x]) for y in range(HEIGHT) for x in range(WIDTH)]


def test_rows_written_straight_to_the_terminal_are_those_of_a_full_repaint() -> None:
    straight, raw = in_pty("frames")
    whole, _ = in_pty("repainted")
    assert "\n".join(straight.display) == "\n".join(whole.display)
    assert cells(straight) == cells(whole)
    assert raw.count(b"\x1b[?2026h") > 3
    assert re.search(rb"\x1b\]8;id=[^;]*;https://example.org/m\x1b\\", raw)


def test_what_lies_over_the_transcript_is_not_written_over() -> None:
    screen, _ = in_pty("covered")
    assert [row[4:20].rstrip() for row in screen.display[10:13]] == ["covered by this", "and this", "and this"]
    assert any("Done: total multiplies by count." in row for row in screen.display)


def test_nothing_is_written_while_nothing_happens() -> None:
    _, raw = in_pty("rest")
    between = raw.split(b"\x1b]2;mark\x07")[1]
    assert between == b""


def test_no_sequence_of_the_model_or_a_tool_reaches_the_terminal() -> None:
    _, raw = in_pty("hostile")
    assert b"\x1b]52" not in raw and b"\x1b]0;" not in raw and b"\x9b" not in raw
    assert len(re.findall(rb"\x1b\[2J", raw)) <= 1
