"""The conformance suite: what every wire protocol must do, for whoever writes one.

Declare a `Fixture` (how to build the provider against a local HTTP server, canned replies in its wire format, what they
mean), then

    for outcome in run(fixture):            # or: await check(fixture), inside a loop
        print(outcome)                      # "text streamed: passed", "images …: skipped (lacks images)" …
    assert conforms(fixture)

It needs no test framework. A capability that the fixture says it lacks is skipped and reported so; a capability that it
has but gives no reply for is a failure, not a pass.
"""

from panto.providers.conformance.cases import CASES, Bench, Case, Mismatch
from panto.providers.conformance.fixture import CAPABILITIES, Canned, CannedError, Fixture, Meaning, arguments
from panto.providers.conformance.server import Answer, LocalServer, Seen, json_answer
from panto.providers.conformance.suite import Outcome, check, conforms, run

__all__ = [
    "CAPABILITIES",
    "CASES",
    "Answer",
    "Bench",
    "Canned",
    "CannedError",
    "Case",
    "Fixture",
    "LocalServer",
    "Meaning",
    "Mismatch",
    "Outcome",
    "Seen",
    "arguments",
    "check",
    "conforms",
    "json_answer",
    "run",
]
