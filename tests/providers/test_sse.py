"""Events from bytes: cut anywhere, with every line end there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.providers import sse
from panto.providers.sse import EventSplitter
from panto.schema.errors import ProviderError

STREAM = (
    '\ufeff: hi\n\nevent: a\ndata: {"x":"ñ北👩‍👩‍👧"}\nid: 7\n\ndata:no space\n\n: ping\n\ndata: one\ndata: two\n\n'
    "data\n\n\nretry: 5\n\ndata: [DONE]\n\n"
)
EVENTS = [
    (b"a", '{"x":"ñ北👩‍👩‍👧"}'.encode()),
    (b"", b"no space"),
    (b"", b"one\ntwo"),
    (b"", b"[DONE]"),
]


def read(*chunks: bytes) -> list[tuple[bytes, bytes]]:
    splitter = EventSplitter()
    out = [event for chunk in chunks for event in splitter.feed(chunk)]
    return out + splitter.close()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_wherever_the_bytes_are_cut(end: str) -> None:
    data = STREAM.replace("\n", end).encode()
    assert read(data) == EVENTS
    for at in range(1, len(data)):
        assert read(data[:at], data[at:]) == EVENTS
    assert read(*[data[i : i + 1] for i in range(len(data))]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM.encode())), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_number_of_cuts_changes_nothing(cuts: list[int], end: str) -> None:
    data = STREAM.replace("\n", end).encode()
    places = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    assert read(*[data[a:b] for a, b in zip(places, places[1:], strict=False)]) == EVENTS


@pytest.mark.parametrize("tail", ["data: last", "data: last\n", "data: last\r\n", "data: last\r"])
def test_a_last_event_without_its_blank_line_counts(tail: str) -> None:
    assert read(tail.encode()) == [(b"", b"last")]


def test_an_event_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LIMIT", 1000)
    splitter = EventSplitter()
    with pytest.raises(ProviderError, match="larger than"):
        for _ in range(100):
            splitter.feed(b"data: " + b"x" * 100)
