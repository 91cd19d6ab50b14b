"""Runs the cases over a fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from panto.providers.conformance.cases import CASES, Bench, Case, Mismatch
from panto.providers.conformance.fixture import CAPABILITIES, Fixture
from panto.providers.conformance.server import LocalServer
from panto.schema.errors import PantoError

LIMIT_S = 120.0
"""A case that hangs fails after this."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case. `why` explains a failure or a skip."""

    case: str
    state: Literal["passed", "failed", "skipped"]
    why: str = ""

    def __str__(self) -> str:
        return f"{self.case}: {self.state}" + (f" ({self.why})" if self.why else "")


async def check(fixture: Fixture, cases: Sequence[Case] = CASES) -> list[Outcome]:
    """The outcome of each case, in order. Raises ValueError for a fixture that declares nonsense."""
    unknown = fixture.lacks - CAPABILITIES
    if unknown:
        raise ValueError(f"fixture {fixture.name} lacks what there is not: {', '.join(sorted(unknown))}")
    return [await _one(fixture, case) for case in cases]


async def _one(fixture: Fixture, case: Case) -> Outcome:
    if lacking := sorted(case.needs & fixture.lacks):
        return Outcome(case.name, "skipped", f"lacks {', '.join(lacking)}")
    if missing := _undeclared(fixture, case):
        return Outcome(case.name, "failed", f"the fixture neither gives {missing} nor says that it lacks it")
    bench: Bench
    async with LocalServer(lambda seen: bench.answer) as server:
        bench = Bench(fixture, server)
        try:
            async with asyncio.timeout(LIMIT_S):
                await case.run(bench, case.stream)
        except Mismatch as mismatch:
            return Outcome(case.name, "failed", str(mismatch))
        except TimeoutError:
            return Outcome(case.name, "failed", f"it did not end within {LIMIT_S:g} s")
        except PantoError as error:
            return Outcome(case.name, "failed", f"it raised {type(error).__name__}: {error}")
    return Outcome(case.name, "passed")


def _undeclared(fixture: Fixture, case: Case) -> str:
    """What a case needs and the fixture is silent about: silence must not pass."""
    replies = [fixture.text, fixture.calls, fixture.reasoning]
    given = {
        "tools": fixture.calls is not None,
        "reasoning": fixture.reasoning is not None,
        "signatures": fixture.reasoning is not None and bool(fixture.reasoning.signature),
        "options": bool(fixture.options),
        "whole": all(reply is None or reply.whole is not None for reply in replies),
        "status": case.name != "error in stream" or fixture.stream_error is not None,
    }
    return ", ".join(sorted(need for need in case.needs if not given.get(need, True)))


def run(fixture: Fixture, cases: Sequence[Case] = CASES) -> list[Outcome]:
    """The same where no loop is running."""
    return asyncio.run(check(fixture, cases))


def conforms(fixture: Fixture) -> bool:
    """Whether no case failed. Raises Mismatch naming those that did."""
    failed = [str(outcome) for outcome in run(fixture) if outcome.state == "failed"]
    if failed:
        raise Mismatch(f"{fixture.name}:\n" + "\n".join(failed))
    return True
