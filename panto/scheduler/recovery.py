"""Opening a session for work: what is known of what was under way is recorded; nothing is sent, nothing runs."""

from __future__ import annotations

from panto.schema.bodies import AgentSetup
from panto.session import Session, Store
from panto.session.recovery import recovery


async def open_for_work(store: Store, name: str, *, take_over: bool = False) -> Session:
    """Open a session by id or unique prefix, and record lost jobs, unknown calls and finished interrupts.

    An active turn stays parked. Raises what `Store.open_session` raises.
    """
    session = await store.open_session(name, take_over=take_over)
    commands = recovery(session.state, await session.kept())
    if commands:
        await session.commit(*commands)
    return session


async def setup_of(session: Session) -> AgentSetup:
    """The setup an agent was left with."""
    name = session.state.settings.setup
    body = await session.body(name) if name else AgentSetup()
    assert isinstance(body, AgentSetup)
    return body
