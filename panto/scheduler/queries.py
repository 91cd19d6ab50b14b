"""Answers to what a client may ask: read from sessions, store, catalogue; nothing is changed."""

from __future__ import annotations

from panto.agent.context import CHARS, estimate
from panto.scheduler.agent import Agent
from panto.scheduler.scheduler import Scheduler
from panto.schema.bodies import MessageBody
from panto.schema.queries import AgentRow, PromptPart, TurnRow
from panto.schema.records import message_text


async def context_parts(agent: Agent) -> tuple[PromptPart, ...]:
    """What fills an agent's context, by named part, in estimated tokens."""
    parts = [PromptPart(p.name, len(p.text) // CHARS, p.source) for p in agent.parts()]
    for spec in agent.tools():
        owner = agent.shared.registry.owner(spec.name) or "panto"
        parts.append(PromptPart(f"tool:{spec.name}", (len(spec.schema) + len(spec.description)) // CHARS, owner))
    messages = await agent.mailbox.ports.context.messages(agent.session.view.context)
    for role, name in (("user", "your messages"), ("assistant", "answers"), ("tool", "tool results")):
        parts.append(PromptPart(name, sum(estimate(m) for m in messages if m.role == role), "session"))
    return tuple(parts)


async def turn_rows(agent: Agent) -> tuple[TurnRow, ...]:
    """The session's turns, oldest first, each by what was said in it."""
    rows = []
    for turn in agent.session.view.turns:
        said = [await agent.session.body(name) for name in turn.inputs]
        text = "\n".join(message_text(b.message) for b in said if isinstance(b, MessageBody))
        files = tuple(dict.fromkeys(c.path for c in turn.changes if c.before != c.after))
        rows.append(TurnRow(turn.turn, text, turn.state, turn.time, files))
    return tuple(rows)


async def agent_rows(scheduler: Scheduler, primary: str) -> tuple[AgentRow, ...]:
    """The sessions under a primary."""
    rows = []
    for row in await scheduler.shared.store.list(under=primary, all=True, limit=500):
        open_here = scheduler.agents.get(row.id)
        state = "running" if open_here and open_here.in_turn else "parked" if row.owner else "idle"
        usage = open_here.session.view.usage if open_here else None
        rows.append(AgentRow(row.id, row.title or row.short, state, row.model, *((usage,) if usage else ())))
    return tuple(rows)
