"""Tool names on the wire and back."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from panto.providers.names import Names

WIRE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
some = st.one_of(
    st.sampled_from(["a.b", "a_b", "a-b", "a b", "x" * 90, "x" * 91, "_" * 64, "7", "ü", "ö", ""]), st.text(max_size=8)
)


@given(st.lists(some, max_size=12))
def test_names_are_mapped_reversibly_and_without_collisions(names: list[str]) -> None:
    mapping = Names(names)
    wires = [mapping.to_wire(name) for name in dict.fromkeys(names)]
    assert all(WIRE.fullmatch(wire) for wire in wires)
    assert len(set(wires)) == len(wires)
    assert [mapping.from_wire(wire) for wire in wires] == list(dict.fromkeys(names))


@given(st.lists(some, max_size=6), some)
def test_a_tool_that_is_gone_never_takes_the_name_of_one_that_is_there(names: list[str], gone: str) -> None:
    mapping = Names(names)
    wire = mapping.to_wire(gone)
    assert WIRE.fullmatch(wire)
    if gone not in names:
        assert mapping.from_wire(wire) not in names


def test_what_a_wire_takes_stays_as_it_is() -> None:
    assert Names(["read", "sub.run"]).to_wire("read") == "read"
    assert Names(["read", "sub.run"]).to_wire("sub.run") == "sub_run"
    assert Names(["sub_run", "sub.run"]).from_wire("sub_run") == "sub_run"
