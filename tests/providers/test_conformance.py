"""The conformance suite over the built-in protocols."""

from __future__ import annotations

import asyncio

import pytest

from panto.providers.conformance import CASES, Case, check
from tests.providers.fixtures import fixture
from tests.wire_check import PROTOCOLS, Protocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_a_protocol_conforms(protocol: Protocol, case: Case) -> None:
    (outcome,) = asyncio.run(check(fixture(protocol), [case]))
    assert outcome.state == "passed", outcome.why
