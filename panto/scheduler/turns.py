"""What begins and ends turns, as commands: pure functions of a session's state.

A failed attempt settles in a commit of its own, so that a fork from just before the next turn stands on its end.
"""

from __future__ import annotations

from panto.schema.codec import derive_id
from panto.session.command import Command
from panto.session.commands import CreateTurn, RetryTurn, SettleTurn
from panto.session.recovery import abandon
from panto.session.state import State, Turn


def begin(state: State, name: str) -> tuple[Command, ...]:
    """What puts all that waits, and this input after it, into a turn: a new one, or the parked one, whose unfinished
    calls end. A failed attempt has been settled before."""
    every = tuple(dict.fromkeys((*state.inputs, name)))
    if state.turn is None:
        return (create(every, name),)
    return abandon(state, tuple(n for n in every if n not in state.inputs or state.inputs[n].when == "step"))


def follow(state: State) -> tuple[Command, ...]:
    """The turn that follows by itself when one has come to rest: () where nothing but a command's output waits, or
    where the last one is only parked. A failed attempt is to be settled before."""
    due = any(said.source != "command" for said in state.inputs.values())
    over = state.turn is None or state.turn.status == "attempt_failed"
    return (create(tuple(state.inputs)),) if due and over else ()


def again(turn: Turn) -> RetryTurn:
    """The next attempt of a turn."""
    attempt = turn.attempt + 1
    return RetryTurn(turn=turn.turn, run=derive_id("run", turn.turn, attempt), attempt=attempt)


def settle(state: State) -> tuple[Command, ...]:
    """The end of a failed attempt that nobody retries."""
    turn = state.turn
    if turn is None or turn.status != "attempt_failed":
        return ()
    return (SettleTurn(turn=turn.turn, attempt=turn.attempt),)


def create(inputs: tuple[str, ...], name: str = "") -> CreateTurn:
    """A turn of these inputs, named after one of them ("" the first)."""
    turn = derive_id("turn", name or inputs[0])
    return CreateTurn(turn=turn, run=derive_id("run", turn, 1), inputs=inputs)
