"""One session, two vendors: there and back between every two protocols, with reasoning that each has sealed."""

from __future__ import annotations

import json
import re

import pytest

from tests.app.conftest import Panto, panto
from tests.app.test_login import talking
from tests.e2e.faulty import configure
from tests.wire_check import PROTOCOLS, Protocol, Reply, WireCheck

assert panto  # a fixture
SEAL = re.compile(r'"(?:signature|encrypted_content|thoughtSignature)": "([^"]+)"')


def seals(body: object) -> set[str]:
    """What of a request is sealed."""
    return set(SEAL.findall(json.dumps(body)))


def turn(name: str) -> list[Reply]:
    """A turn of two steps, both with reasoning."""
    return [
        Reply(f"{name} looks.", reasoning=f"{name} thinks", calls=[("read", {"path": "a.txt"})]),
        Reply(f"{name} is done.", reasoning=f"{name} thinks again"),
    ]


@pytest.mark.parametrize(("one", "two"), [(a, b) for a in PROTOCOLS for b in PROTOCOLS if a != b])
def test_a_session_goes_to_another_protocol_and_back(panto: Panto, one: Protocol, two: Protocol) -> None:
    (panto.cwd / "a.txt").write_text("alpha\n")
    with WireCheck(one) as first, WireCheck(two) as second:
        configure(panto, {"first": first, "second": second}, "first")
        first.replies += [*turn("First"), *turn("Third")]
        second.replies += turn("Second")
        with talking(panto) as talk:
            talk.until("Model first:m")
            for name, model in (("First", ""), ("Second", "second:m"), ("Third", "first:m")):
                if model:
                    talk.say(f"/model {model}")
                talk.say("go")
                talk.until(f"{name} is done.")
            talk.end()
        assert (first.refusals, second.refusals) == ([], [])
        assert (len(first.requests), len(second.requests)) == (4, 2)
        mine, others = [request.body for request in first.requests], [request.body for request in second.requests]
        told = json.dumps(mine[-1])
        assert all(f"{name} looks." in told for name in ("First", "Second", "Third"))
        assert seals(mine[1]) <= seals(mine[2]) <= seals(mine[3])
        assert not any(seals(body) & seals(mine[3]) for body in others)
        if one != "openai_chat":  # which seals nothing
            assert len(seals(mine[3])) >= 2
        if one == "openai_chat":
            assert "First thinks" not in json.dumps(others)
