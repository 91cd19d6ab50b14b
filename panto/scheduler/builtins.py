"""The built-in slash commands that the engine carries out. What only a screen can do, the screen does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast, get_args

from panto.agent.approval import Mode
from panto.scheduler.commands import Command, CommandContext
from panto.scheduler.queries import agent_rows, context_parts, turn_rows
from panto.schema import ops
from panto.schema.errors import UsageError
from panto.schema.messages import Message, Text
from panto.tools.paths import storable

if TYPE_CHECKING:
    from panto.scheduler.client import LocalClient

INIT = """\
Look at this project and write an AGENTS.md at its root for coding agents: what it is, how it is laid out, the exact \
commands that build, test and check it, and the conventions a change must follow. Check every command you write down. \
Keep it under 60 lines. If there is one already, improve it."""

Run = Callable[[str, CommandContext], Awaitable[None]]


def register_builtins(client: LocalClient) -> None:
    """Register them all on a client's registry."""
    for command in (*_settings(client), *_sessions(client), *_looking(client), *_listing(client), *_doing(client)):
        client.commands.register(command)


def _op(client: LocalClient, make: Callable[[str, str], ops.Op]) -> Run:
    async def run(arguments: str, context: CommandContext) -> None:
        await client.submit(make(arguments, context.agent))

    return run


def _need(arguments: str, usage: str) -> str:
    if not arguments:
        raise UsageError(f"say which one: {usage}")
    return arguments


def _settings(client: LocalClient) -> tuple[Command, ...]:
    def mode(arguments: str, agent: str) -> ops.Op:
        if arguments not in get_args(Mode):
            said = f"{arguments!r} is not a mode" if arguments else "say which mode"
            raise UsageError(said, "plan, ask, auto or yolo")
        return ops.SetMode(cast(Mode, arguments), agent=agent)

    async def models(text: str) -> tuple[str, ...]:
        return tuple(row.label for row in client.scheduler.shared.catalog.rows(text, 20) if not row.usable)

    async def modes(text: str) -> tuple[str, ...]:
        return tuple(name for name in get_args(Mode) if name.startswith(text))

    async def levels(text: str) -> tuple[str, ...]:
        return tuple(n for n in client.agent.setup().model.spec.reasoning if n.startswith(text))

    def model(arguments: str, agent: str) -> ops.Op:
        label, _, reasoning = _need(arguments, "/model provider:alias").partition(" ")
        return ops.SetModel(label, reasoning.strip(), agent=agent)

    def reasoning(arguments: str, agent: str) -> ops.Op:
        setup = client.find(agent).setup()
        if arguments not in setup.model.spec.reasoning:
            said = f"{arguments!r} is no effort" if arguments else "say which effort"
            there = ", ".join(setup.model.spec.reasoning)
            raise UsageError(f"{said} of {setup.model.label}", there or "it has none to choose from")
        return ops.SetReasoning(arguments, agent=agent)

    return (
        Command("model", "choose the model", _op(client, model), "provider:alias [reasoning]", complete=models,
                value=lambda: client.agent.model),
        Command("reasoning", "how long the model thinks", _op(client, reasoning), "level", complete=levels,
                value=lambda: client.agent.reasoning),
        Command("mode", "plan · ask · auto · yolo", _op(client, mode), "mode", complete=modes,
                value=lambda: client.agent.mode),
    )  # fmt: skip


def _sessions(client: LocalClient) -> tuple[Command, ...]:
    async def rewind(arguments: str, context: CommandContext) -> None:
        turns = [t for t in await turn_rows(client.find(context.agent)) if t.state != "superseded"]
        words = arguments.split()
        files = "files" in words
        said = [word for word in words if word != "files"] or ["1"]
        if not turns:
            raise UsageError("there is no turn to take back")
        if len(said) > 1 or not said[0].isdecimal() or not 1 <= int(said[0]) <= len(turns):
            raise UsageError(f"say how many of the {len(turns)} turns to take back", "/rewind [NUMBER] [files]")
        turn = turns[-int(said[0])]
        await client.submit(ops.Rewind(turn.turn, files, context.agent))
        context.show(f"rewound to before: {turn.text[:80]}")

    async def rename(arguments: str, context: CommandContext) -> None:
        await client.submit(ops.Rename(_need(arguments, "/rename TITLE")))
        context.show(f"this session is now called: {arguments}")

    async def sessions(text: str) -> tuple[str, ...]:
        rows = await client.scheduler.shared.store.list(cwd=storable(client.agent.cwd), words=text, limit=20)
        return tuple(row.short for row in rows)

    async def export(arguments: str, context: CommandContext) -> None:
        write = client.scheduler.shared.export
        if write is None:
            raise UsageError("nothing here can write a session to a file")
        context.show(f"written to {await write(context.agent, arguments)}")

    return (
        Command("new", "leave this session and begin another", _op(client, lambda a, g: ops.NewSession())),
        Command("resume", "open another session",
                _op(client, lambda a, g: ops.OpenSession(_need(a, "/resume ID"))), "id", complete=sessions),
        Command("fork", "a session of its own from here", _op(client, lambda a, g: ops.Fork(agent=g))),
        Command("rename", "give this session a title", rename, "title"),
        Command("rewind", "take back the last turn or so many, with files if asked", rewind, "[number] [files]"),
        Command("compact", "go on from a summary", _op(client, lambda a, g: ops.Compact(a, g)), "[instructions]"),
        Command("export", "write this session to a file", export, "[file.md|.html|.jsonl] [!]"),
    )  # fmt: skip


def _looking(client: LocalClient) -> tuple[Command, ...]:
    async def context(arguments: str, at: CommandContext) -> None:
        agent = client.find(at.agent)
        parts = await context_parts(agent)
        size = agent.status().context_size
        total = sum(p.tokens for p in parts)
        share = f" of {size / 1000:.0f}k" if size else ""
        lines = [f"about {total / 1000:.1f}k tokens{share} would be sent now"]
        lines += [f"{p.tokens:>8}  {p.name}  ({p.source})" for p in parts if p.tokens]
        at.show("\n".join(lines))

    async def cost(arguments: str, at: CommandContext) -> None:
        agent = client.find(at.agent)
        view, broken = agent.session.view, agent.mailbox.ports.context.broken_prefix
        usage, under = view.usage, agent.under.values()
        share = f", {100 * usage.cache_read // usage.input}% read from the cache" if usage.input else ""
        price = "no price is known" if agent.cost is None else f"${agent.cost:.4f}"
        theirs = sum(each.tokens for each in under), sum(each.cost or 0.0 for each in under)
        agents = f"\n{len(under)} agents: {theirs[0]} tokens, ${theirs[1]:.4f} of it" if under else ""
        at.show(
            f"{price}: {usage.input} tokens in{share}, {usage.output} out ({usage.reasoning} of them reasoning), "
            f"{usage.cache_write} written to the cache{agents}"
            + (f"\nthe cached prefix was last broken because {broken}" if broken else "")
        )

    return (
        Command("context", "what fills the context, by part", context),
        Command("cost", "tokens, cache share and cost of this session", cost),
    )


def _listing(client: LocalClient) -> tuple[Command, ...]:
    async def tools(arguments: str, at: CommandContext) -> None:
        agent = client.find(at.agent)
        owner = agent.shared.registry.owner
        at.show("\n".join(f"{s.name:<14} {owner(s.name) or 'panto'}" for s in agent.tools()))

    async def jobs(arguments: str, at: CommandContext) -> None:
        found = client.find(at.agent).session.state.jobs.values()
        at.show("\n".join(f"{job.job}  {job.kind}  {job.title}" for job in found) or "no background jobs")

    async def agents(arguments: str, at: CommandContext) -> None:
        rows = await agent_rows(client.scheduler, client.primary)
        at.show("\n".join(f"{r.id[:8]}  {r.state:<9} {r.model:<20} {r.name}" for r in rows) or "no child agents")

    async def listing(arguments: str, at: CommandContext) -> None:
        rows = ((f"/{row.name} {row.usage}".rstrip(), row.description) for row in client.commands.rows())
        at.show("\n".join(f"{head:<32}  {said}" if len(head) < 33 else f"{head}\n{'':34}{said}" for head, said in rows))

    async def diff(arguments: str, at: CommandContext) -> None:
        turns = client.find(at.agent).session.view.turns
        names = dict.fromkeys(c.path for t in turns[-1:] for c in t.changes if c.before != c.after)
        at.show("\n".join(names) or "the last turn changed no file")

    return (
        Command("tools", "what the model may call", tools),
        Command("jobs", "background jobs", jobs),
        Command("agents", "child agents", agents),
        Command("diff", "files that the last turn changed", diff),
        Command("help", "keys and commands", listing),
    )


def _doing(client: LocalClient) -> tuple[Command, ...]:
    async def init(arguments: str, at: CommandContext) -> None:
        await client.find(at.agent).mailbox.prompt(Message("user", (Text(f"{INIT}\n\n{arguments}".strip()),)))

    async def reload(arguments: str, at: CommandContext) -> None:
        client.find(at.agent).reload()
        if client.on_reload is not None:
            await client.on_reload()
        at.show("project rules are read again at the next request, extensions were now")

    return (
        Command("init", "write an AGENTS.md for this project", init, "[what to mind]"),
        Command("reload", "read project rules and extensions again", reload),
    )
