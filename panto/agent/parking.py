"""What becomes of what runs when panto is ended: the run stays active, its calls say that nobody has stopped them."""

from __future__ import annotations

import re

from msgspec.structs import replace

from panto.agent.dispatch import Step
from panto.agent.ports import Control, Ports
from panto.agent.words import LEFT
from panto.schema.bodies import ToolOutcome
from panto.schema.events import Cause
from panto.schema.messages import Text
from panto.session import stage
from panto.session.command import Command
from panto.session.commands import FailCall, RecoverModel
from panto.session.run_machine import CANCELLED
from panto.session.state import Call, Run


def left(step: Step) -> Step:
    """What stopping calls came to, where nobody has stopped them: panto is being ended."""
    commands: list[Command] = []
    bodies = list(step.bodies)
    for command in step.commands:
        if isinstance(command, FailCall) and command.cls == "cancelled":
            after = "; it may have had effects" if command.effects == "unknown" else ""
            command = replace(command, cause="left", message=f"{LEFT} while this ran{after}")
            for place, body in enumerate(bodies):
                if body.digest == command.outcome_digest and isinstance(body.value, ToolOutcome):
                    bodies[place] = stage(_outcome(body.value))
                    command = replace(command, outcome_digest=bodies[place].digest)
        commands.append(command)
    return Step(tuple(commands), tuple(bodies), step.paths)


def _outcome(outcome: ToolOutcome) -> ToolOutcome:
    """A stopped tool's own words, which take it that a person has stopped it, where panto was ended."""
    parts = (
        replace(part, text=re.sub(r"\(stopped by the user\)$", f"({LEFT})", part.text)) if isinstance(part, Text)
        else part for part in outcome.parts
    )  # fmt: skip
    return replace(outcome, parts=tuple(parts), fact=re.sub(r"^stopped by you", LEFT, outcome.fact))


def unknown(run: Run, call: Call, message: str, cause: Cause) -> FailCall:
    """A call of which nobody can say what became of it."""
    return FailCall(
        run=run.run, call=call.call, effect=call.effect, cls="cancelled" if cause == "left" else "internal",
        outcome="unknown", message=message, effects="unknown", cause=cause,
    )  # fmt: skip


def never_run(control: Control, run: Run) -> tuple[FailCall, ...]:
    """Calls whose start was recorded and which then were not run: it is known that nothing happened."""
    cause: Cause = "left" if control.parking else "interrupted"
    message = f"{LEFT} before this ran" if control.parking else CANCELLED
    return tuple(
        FailCall(run=run.run, call=call.call, effect=call.effect, cls="cancelled", message=message, cause=cause)
        for call in run.unfinished
        if call.state == "executing" and call.call in control.reviewed and call.call not in control.launched
    )


async def park(ports: Ports, control: Control, run: Run) -> None:
    """Record what became of what ran, and leave the run active: a model step is open again, a call is unknown."""
    why: tuple[str, Cause] = (f"{LEFT} while this ran", "left")
    if not control.parking:  # a former drive broke off
        why = ("what became of it was lost", "exception")
    commands: list[Command] = [*never_run(control, run)]
    if run.phase == "executing":
        commands.append(RecoverModel(run=run.run, effect=run.effect))
    commands += (
        unknown(run, call, *why)
        for call in run.unfinished
        if call.state == "executing" and not call.replay and call.call in control.launched
    )
    if commands:
        await ports.session.commit(*commands)
