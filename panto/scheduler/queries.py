"""Answers to what a client may ask: read from sessions, store, catalogue; nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from panto.agent.words import CHARS, estimate
from panto.scheduler.agent import Agent
from panto.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from panto.scheduler.client import LocalClient
from panto.schema import queries
from panto.schema.bodies import MessageBody
from panto.schema.errors import Corrupt, Missing, UsageError
from panto.schema.queries import AgentRow, PromptPart, Query, TurnRow
from panto.schema.records import message_text
from panto.tools.paths import storable


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
        said = []
        for name in turn.inputs:
            try:
                said.append(await agent.session.body(name))
            except (Missing, Corrupt):
                continue
        texts = [message_text(b.message) for b in said if isinstance(b, MessageBody)]
        own = [text for text in texts if not text.startswith("I ran `")]  # what a person's own command said went along
        text = "\n".join(own or texts)
        files = tuple(dict.fromkeys(c.path for c in turn.changes if c.before != c.after))
        rows.append(TurnRow(turn.turn, text, turn.state, turn.time, files))
    return tuple(rows)


async def agent_rows(scheduler: Scheduler, primary: str) -> tuple[AgentRow, ...]:
    """The sessions under a primary."""
    store, rows = scheduler.shared.store, []
    found = await store.list(under=primary, all=True, limit=500)
    closed = await store.endings([row.id for row in found if row.id not in scheduler.agents])
    for row in found:
        agent = scheduler.agents.get(row.id)
        state = _child_state(agent) if agent else "running" if row.owner else closed.get(row.id, "idle")
        rows.append(AgentRow(row.id, row.title or row.short, state, row.model, row.tokens))
    return tuple(rows)


def _child_state(agent: Agent) -> str:
    """How a child is called outside: see the table of states."""
    turns = agent.session.view.turns
    if agent.in_turn or not turns:
        return "running" if agent.in_turn else "idle"
    names = {"completed": "completed", "refused": "completed", "stopped": "cancelled", "superseded": "cancelled"}
    return "parked" if turns[-1].state == "active" else names.get(turns[-1].state, "failed")


async def history(client: LocalClient, query: queries.AskHistory) -> queries.History:
    """A page of an agent's history; of a child that is closed, too."""
    store, primary = client.scheduler.shared.store, client.primary
    if query.agent and query.agent not in client.scheduler.agents:
        if query.agent in await store.spent(primary):
            return await store.history(query.agent, query.before, query.limit)
    return await client.find(query.agent).session.history(query.before, query.limit)


async def answer(client: LocalClient, query: Query[Any]) -> object:
    """The answer to a query. Raises PantoError."""
    shared = client.scheduler.shared
    match query:
        case queries.AskHistory():
            return await history(client, query)
        case queries.AskStatus():
            return client.find(query.agent).status()
        case queries.AskSessions():
            return await shared.store.list(cwd=storable(query.cwd), words=query.words, limit=query.limit)
        case queries.AskPreview():
            return await shared.store.history(query.session, None, query.limit)
        case queries.AskModels():
            return shared.catalog.rows(query.words, query.limit)
        case queries.AskFiles():
            nothing = queries.Files((), 0)
            return await client.files(client.agent.cwd, query.text, query.limit) if client.files else nothing
        case queries.AskCommands():
            return client.commands.rows()
        case queries.AskCompletions():
            command, _ = client.commands.find(query.command)
            return await command.complete(query.text) if command.complete else ()
        case queries.AskContext():
            return await context_parts(client.find(query.agent))
        case queries.AskAgents():
            return await agent_rows(client.scheduler, client.primary)
        case queries.AskTurns():
            return await turn_rows(client.find(query.agent))
        case queries.AskSettings():
            return shared.settings_rows()
        case queries.AskContributions():
            return client.contributions
        case queries.AskExtensions():
            return client.extensions()
        case queries.AskPrompts():
            said = await shared.store.prompts(storable(client.agent.cwd), query.limit)
            return tuple(queries.PromptText(text) for text in said)
        case _:
            raise UsageError(f"unknown query {type(query).__name__}")
