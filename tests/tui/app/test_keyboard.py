"""Bytes to keys: every encoding terminals send, and no input that breaks the decoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from panto.tui.keyboard import ESCAPE_WAIT, PASTE_WAIT, SEQUENCE_WAIT, Decoder, GroundTold, ground_in

KEYS = {
    b"a": "a", b"\r": "enter", b"\n": "ctrl+j", b"\t": "tab", b"\x7f": "backspace", b"\x08": "backspace", b" ": "space",
    b"\x01": "ctrl+a", b"\x1f": "ctrl+underscore", b"\x1b[27u": "escape", b"\x1b[13;2u": "shift+enter",
    b"\x1b[27;2;13~": "shift+enter", b"\x1b[27;3;13~": "alt+enter", b"\x1b[27;5;13~": "ctrl+enter",
    b"\x1b[106;5u": "ctrl+j", b"\x1b[13;3u": "alt+enter", b"\x1b[13;5u": "ctrl+enter", b"\x1b\r": "alt+enter",
    b"\x1b\n": "alt+enter", b"\x1bOM": "enter", b"\x1b[57414u": "enter", b"\x1b[Z": "shift+tab",
    b"\x1b[9;2u": "shift+tab",
    b"\x1bb": "alt+b", b"\x1b\x7f": "alt+backspace", b"\x1b[H": "home", b"\x1bOH": "home", b"\x1b[1~": "home",
    b"\x1b[F": "end", b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[1;3A": "alt+up", b"\x1b\x1b[A": "alt+up",
    b"\x1b[1;2C": "shift+right", b"\x1b[1;5D": "ctrl+left", b"\x1b[3~": "delete", b"\x1b[5~": "pageup", b"\x1bOP": "f1",
    b"\x1b[11~": "f1", b"\x1b[13:13;2u": "shift+enter", b"\x1b[13;2:1u": "shift+enter", b"\x1b[112;3u": "alt+p",
    b"\x1bp": "alt+p", b"\x1b[1089::99;5u": "ctrl+c", b"\x1b[97;1:2u": "a", "é".encode(): "é",
}  # fmt: skip


def read(data: bytes, *, pause: float = 2.0) -> list[Message]:
    decoder = Decoder()
    made = decoder.feed(data, 0.0)
    return made + decoder.tick(pause)


def names(messages: list[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


@pytest.mark.parametrize("data", KEYS, ids=lambda data: repr(data))
def test_every_encoding_of_a_key_gives_its_one_name(data: bytes) -> None:
    assert names(read(data)) == [KEYS[data]]


@pytest.mark.parametrize(
    "data",
    [b"\x1b[13;2:3u", b"\x1b[99999999999u", b"\x1b[;u", b"\x1b[?1;2c", b"\x1b[>1;2;3c", b"\x1b[?25u", b"\x1b[12;9z",
     b"\x1b]4;1;rgb:00/00/00\x07", b"\x1bP1$r0m\x1b\\", b"\x1b_Gi=31;OK\x1b\\", b"\xff", b"\xfe\xff", b"\x1b[M !!",
     b"\x1b[201~", b"\x1b[55296u", b"\x1b[1114112u"],
    ids=lambda data: repr(data),
)  # fmt: skip
def test_what_is_no_key_is_dropped_whole_and_keys_after_it_arrive(data: bytes) -> None:
    assert names(read(data + b"\x1b[27u")) == ["escape"]


def test_a_lone_escape_is_a_key_after_its_wait_and_not_before() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x1b", 0.0) == []
    assert decoder.wait(0.0) == ESCAPE_WAIT
    assert names(decoder.tick(ESCAPE_WAIT / 2)) == []
    assert names(decoder.tick(ESCAPE_WAIT)) == ["escape"]
    assert decoder.wait(1.0) is None


def test_two_escapes_are_two_escapes() -> None:
    assert names(read(b"\x1b\x1b")) == ["escape", "escape"]


def test_a_sequence_split_anywhere_is_one_key() -> None:
    for data, name in KEYS.items():
        if len(data) < 3 or data[:2] == b"\x1b\x1b":
            continue
        for cut in range(2, len(data)):
            decoder = Decoder()
            made = decoder.feed(data[:cut], 0.0) + decoder.feed(data[cut:], 0.01) + decoder.tick(3.0)
            assert names(made) == [name], (data, cut)


def test_half_a_sequence_is_dropped_in_the_end() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x1b[1;", 0.0) == []
    assert decoder.tick(SEQUENCE_WAIT + 0.01) == []
    assert names(decoder.feed(b"x", SEQUENCE_WAIT + 0.1)) == ["x"]


def test_a_character_split_over_two_reads_is_one_key() -> None:
    data = "漢".encode()
    decoder = Decoder()
    assert names(decoder.feed(data[:1], 0.0) + decoder.feed(data[1:], 0.1)) == ["漢"]


def test_a_paste_with_escape_sequences_and_line_breaks_is_one_paste() -> None:
    decoder = Decoder()
    made = decoder.feed(b"\x1b[200~a\r\nb\n", 0.0) + decoder.feed(b"c\x1b[31m\n\x1b[20", 0.05)
    made += decoder.feed(b"1~x", 0.4)
    pastes = [message.text for message in made if isinstance(message, events.Paste)]
    assert pastes == ["a\r\nb\nc\x1b[31m\n"]
    assert names(made) == ["x"]


def test_a_paste_whose_end_never_comes_ends_by_itself() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x1b[200~lost", 0.0) == []
    assert [message.text for message in decoder.tick(PASTE_WAIT + 0.1) if isinstance(message, events.Paste)] == ["lost"]
    assert names(decoder.feed(b"x", PASTE_WAIT + 0.2)) == ["x"]


def test_lines_that_come_faster_than_typing_are_a_paste_without_markers() -> None:
    decoder = Decoder()
    made: list[Message] = []
    now = 0.0
    for byte in b"a\r\nb\nc\x1b[31m\n":
        made += decoder.feed(bytes([byte]), now)
        now += 0.001
    made += decoder.tick(now + 1.0)
    assert "enter" not in names(made)


def test_a_burst_in_one_read_is_a_paste_and_does_not_send() -> None:
    made = read(b"first line\rsecond line\r")
    assert [message.text for message in made if isinstance(message, events.Paste)] == ["first line\rsecond line\r"]
    assert names(made) == []


def test_text_with_one_enter_behind_it_is_typed_and_sent() -> None:
    assert names(read(b"go\r"))[-1] == "enter"
    long = b"a sentence that is longer than thirty-two characters\r"
    made = read(long)
    assert [message.text for message in made if isinstance(message, events.Paste)] == [long[:-1].decode()]
    assert names(made) == ["enter"]


def test_an_enter_typed_after_a_pause_is_not_held_back() -> None:
    decoder = Decoder()
    decoder.feed(b"x", 0.0)
    assert names(decoder.feed(b"\r", 0.1)) == ["enter"]


def test_a_megabyte_of_paste_is_one_event() -> None:
    decoder = Decoder()
    body = b"x" * 1_000_000
    made: list[Message] = decoder.feed(b"\x1b[200~", 0.0)
    for at in range(0, len(body), 65536):
        made += decoder.feed(body[at : at + 65536], 0.0)
    made += decoder.feed(b"\x1b[201~", 0.0)
    assert [len(message.text) for message in made if isinstance(message, events.Paste)] == [1_000_000]


def test_mouse_and_focus_are_events() -> None:
    made = read(b"\x1b[<0;3;4M\x1b[<64;3;4M\x1b[I\x1b[O")
    assert [type(message) for message in made] == [
        events.MouseDown, events.MouseScrollUp, events.AppFocus, events.AppBlur,
    ]  # fmt: skip


def test_the_ground_of_the_terminal_is_heard() -> None:
    (told,) = read(b"\x1b]11;rgb:ffff/ffff/ffff\x07")
    assert isinstance(told, GroundTold) and not told.dark
    assert ground_in(b"x\x1b]11;rgb:1a/1b/1e\x1b\\y") is True
    assert ground_in(b"nothing") is None


@given(st.lists(st.tuples(st.binary(max_size=12), st.floats(0, 2)), max_size=12))
def test_no_bytes_at_no_time_break_the_decoder(chunks: list[tuple[bytes, float]]) -> None:
    decoder = Decoder()
    now = 0.0
    for data, pause in chunks:
        decoder.feed(data, now)
        now += pause
        decoder.tick(now)
    for _ in range(4):
        now += 10.0
        decoder.tick(now)
    assert decoder.wait(now) is None or decoder.wait(now) == 0.0
    assert names(decoder.feed(b"\x1b[27u", now + 1))[-1:] in (["escape"], [])


@given(st.binary(max_size=40))
def test_after_any_bytes_and_a_pause_a_key_is_a_key(data: bytes) -> None:
    decoder = Decoder()
    decoder.feed(data, 0.0)
    for now in (4.0, 8.0, 12.0):
        decoder.tick(now)
    assert names(decoder.feed(b"x", 20.0) + decoder.tick(21.0))[-1:] == ["x"]
