"""How decide says no: one stable word for programs, one sentence for people."""

from __future__ import annotations

from panto.schema.errors import Refused
from panto.session.state import Call, Run, State


def need(condition: bool, reason: str, message: str) -> None:
    """Refuse unless the condition holds. Raises Refused."""
    if not condition:
        raise Refused(reason, message)


def the_run(state: State, run: str, *, interrupting: bool = False) -> Run:
    """The active run, if it is this one. `interrupting`: the command is accepted while an interrupt is under way."""
    if state.run is None or state.run.run != run:
        raise Refused("terminal", f"run {run[:8]} is not active")
    if state.run.interrupting and not interrupting:
        raise Refused("interrupting", f"run {run[:8]} is being interrupted")
    return state.run


def the_call(run: Run, call: str, *wanted: str) -> Call:
    """A call of the tool step in one of the wanted states."""
    found = run.calls.get(call)
    if found is None:
        raise Refused("settled", f"call {call[:8]} is not one of the calls that are due")
    if found.state not in wanted:
        reason = "settled" if found.finished else "call_state"
        raise Refused(reason, f"call {call[:8]} ({found.name}) is {found.state}, not {' or '.join(wanted)}")
    return found


def executing(run: Run, call: str, effect: str) -> Call:
    """A call that executes under this effect."""
    found = the_call(run, call, "executing")
    need(found.effect == effect, "effect", f"call {call[:8]} executes under another effect")
    return found


def waiting(run: Run, call: str, kind: str, question: str) -> Call:
    """A call that waits for the answer to this question."""
    found = the_call(run, call, "waiting")
    need(found.kind == kind, "call_state", f"call {call[:8]} waits for {found.kind}, not for {kind}")
    need(found.question == question, "question", f"call {call[:8]} waits for the answer to another question")
    return found
