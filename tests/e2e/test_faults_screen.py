"""A sample of the faults on the screen: a countdown that Enter cuts short, what broke off, what a bad key means."""

from __future__ import annotations

import re

import pytest

from tests.app.conftest import Panto, panto
from tests.e2e.faulty import configure
from tests.e2e.terminal import Terminal
from tests.e2e.test_faults import AFTER, LOST
from tests.wire_check import PROTOCOLS, Fault, Protocol, Reply, WireCheck

assert panto  # a fixture


COUNT = re.compile(r"\b[45]\d s\b")


def enter(terminal: Terminal, text: str) -> None:
    """Type a line as a person does."""
    terminal.type(text)
    terminal.see(f"› {text}")
    terminal.calm(0.1)
    terminal.send("\r")


@pytest.mark.long(sample=2)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_person_sees_each_wait_count_down_and_how_a_failed_turn_goes_on(panto: Panto, protocol: Protocol) -> None:
    with WireCheck(protocol) as vendor:
        vendor.replies += [Fault(429, headers={"retry-after": "60"}), Reply("Good answer.")]
        configure(panto, {"vendor": vendor}, "vendor")
        with Terminal(panto.argv(), env=panto.environ(), cwd=panto.cwd) as terminal:
            terminal.see("runs everything")
            terminal.calm()
            enter(terminal, "please")
            terminal.see("429")
            seconds: set[str] = set()

            def counted() -> bool:
                seconds.update(COUNT.findall(terminal.text()))
                return len(seconds) > 1

            terminal.until(counted, "a countdown")
            terminal.send("\r")
            terminal.see("Good answer.")
            vendor.replies += [Fault(after=AFTER[protocol]), Reply("Whole answer.")]
            enter(terminal, "again")
            terminal.see("Whole answer.")
            assert not any(piece in terminal.text() for piece in LOST)
            vendor.replies += [Fault(401, "invalid key"), Reply("Went on.")]
            enter(terminal, "once more")
            terminal.see("invalid key")
            terminal.see("panto login vendor")
            terminal.send("\r")
            terminal.see("Went on.")
        assert vendor.refusals == []
