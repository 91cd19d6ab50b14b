"""Facts as observers hear them: the course of turns and steps, by name.

A turn whose attempt failed has ended for them, as failed; a retry starts it anew. What ends without a fact (shutdown,
ownership lost) is told by the mailbox.
"""

from __future__ import annotations

from collections.abc import Iterator

from panto.schema.events import (
    InterruptRequested,
    ModelChanged,
    ModelStepCompleted,
    ModelStepStarted,
    ReasoningChanged,
    TurnAttemptFailed,
    TurnRetried,
    TurnSettled,
    TurnStarted,
    TurnStopped,
)
from panto.schema.records import usage_record
from panto.schema.signals import Fact

Told = tuple[str, dict[str, object]]


def told(fact: Fact) -> Iterator[Told]:
    """What an observer is told of a fact: (name, event). The event always says which agent."""
    event: dict[str, object] = {"agent": fact.agent}
    match fact.event:
        case TurnStarted(turn=turn) | TurnRetried(turn=turn):
            yield "turn_start", event | {"turn": turn}
        case InterruptRequested():
            yield "turn_interrupt", event
        case TurnAttemptFailed(turn=turn):
            yield "turn_end", event | {"turn": turn, "reason": "failed"}
        case TurnSettled(turn=turn, status=status) if status != "failed":
            yield "turn_end", event | {"turn": turn, "reason": status}
        case TurnStopped(turn=turn, reason=reason):
            yield "turn_end", event | {"turn": turn, "reason": "interrupted" if reason == "cancelled" else "limited"}
        case ModelStepStarted(step=step):
            yield "step_start", event | {"step": step}
        case ModelStepCompleted(step=step, usage=usage, cost=cost):
            yield "step_end", event | {"step": step, "usage": usage_record(usage), "cost": cost}
        case ModelChanged(model=model):
            yield "model_change", event | {"model": model}
        case ReasoningChanged(reasoning=reasoning):
            yield "model_change", event | {"reasoning": reasoning}
        case _:
            pass
