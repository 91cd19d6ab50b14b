"""When a failed model call is tried again, and how long to wait before."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from panto.providers.failure import Failure
from panto.schema.errors import ProviderError, ProviderErrorKind

RETRIED: frozenset[ProviderErrorKind] = frozenset(
    ("rate_limited", "overloaded", "server", "timeout", "connection", "malformed")
)


class RetryPolicy(Struct, frozen=True):
    """`tries` in all where nothing was heard yet; `dropped` further ones after an attempt cut midway or silent.

    The n-th wait is `first_s`·2ⁿ, at most `longest_s`, less up to a quarter by lot; a server's own wish counts if it is
    at most `patience_s` (a longer one is an error that says so). Seconds throughout. `dice`: [0, 1), None: chance.
    """

    tries: int = 7
    dropped: int = 2
    first_s: float = 0.5
    longest_s: float = 20.0
    patience_s: float = 120.0
    dice: Callable[[], float] | None = None

    def wait(self, failed: int, wish: float | None) -> float | None:
        """Seconds before the next try after `failed` failures (from 1); None: the server asks for too much."""
        if wish is not None:
            return wish if wish <= self.patience_s else None
        full: float = min(self.longest_s, self.first_s * 2 ** min(failed - 1, 30))
        if self.dice is None:
            from random import random  # only on the way to a wait

            return full * (1 - 0.25 * random())
        return full * (1 - 0.25 * self.dice())


class Wait(Struct, frozen=True):
    """A wait before another try. `attempt` of `attempts` is the try to come; `over`: the wait has ended."""

    cause: str
    status: int
    wait_s: float
    attempt: int
    attempts: int
    over: bool = False


def retryable(error: ProviderError) -> bool:
    """Whether another try could help: the server's word if it gave one, else by kind. Quota never."""
    if error.kind == "quota":
        return False
    if isinstance(error, Failure) and error.again is not None:
        return error.again
    return error.kind in RETRIED
