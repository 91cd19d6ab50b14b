"""A reader's buffer: what it may lose, what it must never lose, and that it stays small."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from panto.scheduler.feed import Feed
from panto.schema.events import TitleChanged
from panto.schema.messages import Usage
from panto.schema.signals import (
    Fact,
    Left,
    Noticed,
    ReasoningStreamed,
    StatusChanged,
    StepReset,
    TextStreamed,
    ToolProgressed,
    Update,
)


def status(agent: str, cost: float) -> StatusChanged:
    return StatusChanged(agent, "m", "", "ask", "/", cost=cost, usage=Usage())


def fact(number: int) -> Fact:
    return Fact("a", number, 0, 0.0, TitleChanged(session="a" * 32, title=str(number)))


def read(feed: Feed) -> list[Update]:
    """All that waits."""

    async def main() -> list[Update]:
        feed.close()
        return [update async for update in feed]

    return asyncio.run(main())


def test_deltas_of_agents_that_stream_at_the_same_time_are_merged_each_into_one() -> None:
    feed = Feed()
    for number in range(10_000):
        feed.put(TextStreamed("ab"[number % 2], 1, "x"))
        feed.put(ToolProgressed("c", "call", "."))
    texts = [u for u in read(feed) if isinstance(u, TextStreamed)]
    assert [(u.agent, len(u.text)) for u in texts] == [("a", 5000), ("b", 5000)]


def test_reasoning_between_texts_keeps_its_place_and_a_reset_parts_the_tries() -> None:
    feed = Feed()
    parts: list[Update] = [
        TextStreamed("a", 1, "one"), ReasoningStreamed("a", 1, "hm"), TextStreamed("a", 1, "two"),
        StepReset("a", 1, 1), TextStreamed("a", 1, "th"), TextStreamed("a", 1, "ree"),
    ]  # fmt: skip
    for part in parts:
        feed.put(part)
    assert read(feed) == [*parts[:4], TextStreamed("a", 1, "three")]


def test_a_lagging_reader_loses_old_signs_of_life_and_nothing_else() -> None:
    feed = Feed(limit=4)
    for number in range(100):
        feed.put(ToolProgressed("a", "call", str(number)))
        feed.put(fact(number))
        feed.put(Noticed("a", str(number)))
    updates = read(feed)
    assert [u.text for u in updates if isinstance(u, ToolProgressed)] == ["96", "97", "98", "99"]
    assert [u.seq for u in updates if isinstance(u, Fact)] == list(range(100))
    assert len([u for u in updates if isinstance(u, Noticed)]) == 100
    assert feed.dropped == 96


def test_of_a_status_only_the_latest_is_read_and_it_is_never_lost() -> None:
    feed = Feed(limit=2)
    for number in range(5000):
        feed.put(status("a", number))
        feed.put(status("b", -number))
        feed.put(ToolProgressed("a", "call", "."))
    assert len(feed._items) < 20
    assert [(u.agent, u.cost) for u in read(feed) if isinstance(u, StatusChanged)] == [("a", 4999), ("b", -4999)]


def test_a_reader_ends_after_what_was_left() -> None:
    feed = Feed()
    feed.put(fact(1))
    feed.put(Left("a"))
    feed.put(fact(2))
    assert read(feed) == [fact(1), Left("a")]


PUT: Any = st.one_of(
    st.builds(TextStreamed, st.sampled_from("ab"), st.integers(1, 2), st.text("xyz", min_size=1, max_size=3)),
    st.builds(ToolProgressed, st.sampled_from("ab"), st.just("call"), st.text("xyz", max_size=2)),
    st.builds(status, st.sampled_from("ab"), st.floats(0, 9)),
    st.builds(fact, st.integers(0, 99)),
)


@given(st.lists(st.one_of(PUT, st.none()), max_size=60), st.integers(1, 4))
def test_whenever_it_is_read_facts_and_text_arrive_whole_and_in_order(puts: list[Update | None], limit: int) -> None:
    feed, seen = Feed(limit), list[Update]()
    for put in puts:
        if put is not None:
            feed.put(put)
        elif (update := feed._next()) is not None:
            seen.append(update)
    seen += read(feed)
    given_ = [p for p in puts if p is not None]
    assert [u for u in seen if isinstance(u, Fact)] == [p for p in given_ if isinstance(p, Fact)]
    for agent, step in (("a", 1), ("a", 2), ("b", 1), ("b", 2)):
        texts = [[u for u in some if isinstance(u, TextStreamed) and (u.agent, u.step) == (agent, step)]
                 for some in (seen, given_)]  # fmt: skip
        assert "".join(u.text for u in texts[0]) == "".join(u.text for u in texts[1])
    for agent in "ab":
        last = [u for u in given_ if isinstance(u, StatusChanged) and u.agent == agent][-1:]
        assert [u for u in seen if isinstance(u, StatusChanged) and u.agent == agent][-1:] == last
