"""Opening a session for work: what is known of what was under way is recorded; nothing is sent, nothing runs."""

from __future__ import annotations

from panto.schema.bodies import AgentSetup, MessageBody
from panto.schema.messages import Message, Text
from panto.session import Session, Store, stage
from panto.session.command import Command
from panto.session.commands import SubmitInput
from panto.session.ids import new_id
from panto.session.recovery import recovery

LOST = "(panto was closed meanwhile. Background commands that ended with it, their outcome unknown:\n{})"


async def open_for_work(store: Store, name: str, *, take_over: bool = False) -> Session:
    """Open a session by id or unique prefix, and record lost jobs, unknown calls and finished interrupts.

    An active turn stays parked. Raises what `Store.open_session` raises.
    """
    session = await store.open_session(name, take_over=take_over)
    try:
        await _recover(session)
    except BaseException:  # else this process would hold it, and nobody could open it again
        await session.close()
        raise
    return session


async def _recover(session: Session) -> None:
    lost = [job for job in session.state.jobs.values() if job.kind == "command"]
    commands: list[Command] = [*recovery(session.state, await session.kept())]
    told = stage(MessageBody(Message("user", (Text(LOST.format("\n".join(f"{j.job}: {j.title}" for j in lost))),))))
    if lost:  # the model is told with the next prompt
        commands.append(SubmitInput(input=new_id(), body=told.digest, source="command"))
    if commands:
        await session.commit(*commands, bodies=(told,) if lost else ())


async def setup_of(session: Session) -> AgentSetup:
    """The setup an agent was left with."""
    name = session.state.settings.setup
    body = await session.body(name) if name else AgentSetup()
    assert isinstance(body, AgentSetup)
    return body
