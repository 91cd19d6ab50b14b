"""Small things that the rooms are handed: where outputs go, rules, texts, and what may be written for the person."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from panto.agent.approval import Rule
from panto.agent.ports import Limits
from panto.agent.prompt import Part
from panto.app import config_edit
from panto.app.ground import Ground
from panto.scheduler import AgentSettings, Command, CommandContext
from panto.schema import ops, queries
from panto.schema.errors import ConfigError, UsageError
from panto.tools.instructions import find as instructions

if TYPE_CHECKING:
    from panto.app.build import House
    from panto.app.catalog import Models
    from panto.schema.queries import Files as FileRows
    from panto.session import Store
    from panto.tools.builtins import ToolSettings
    from panto.tools.processes import Spawner

NOWHERE = Path(os.devnull) / "sessions"
"""A place that cannot be written: the store then lives in memory."""
Notices = list[tuple[str, str]]
"""What the person should know: a line and the way out."""


def rules(ground: Ground, notices: Notices) -> tuple[Rule, ...]:
    """The permission rules in force; a line that is no rule becomes a notice."""
    out = []
    project = str(ground.paths.project_config)
    for (table, effect), text, layer in ground.loaded.added:
        if table != "permissions":
            continue
        scope: Literal["user", "project"] = "project" if layer == project else "user"
        try:
            out.append(Rule.parse(text, cast(Literal["allow", "ask", "deny"], effect), scope))
        except UsageError as e:
            notices.append((f"{layer}: permissions.{effect}: {e.message}", e.hint))
    return tuple(out)


def agent_settings(ground: Ground, default: str) -> AgentSettings:
    """What the settings say of agents; `default` is the model of those that have none of their own."""
    config = ground.config
    return AgentSettings(
        limits=Limits(steps=config.limits.steps, cost=config.limits.budget_usd),
        compact_at=config.compaction.threshold if config.compaction.auto else 0.0,
        repeat=config.limits.repeat,
        network=config.tools.network,
        default_mode=config.mode,
        default_model=default,
        default_reasoning=config.reasoning,
    )


def spool(store: Store) -> str:
    """The folder for outputs too long for a model, beside the sessions that name them."""
    folder = store.root / "outputs"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # a session in memory: its outputs are gone with it, too
        import atexit
        import shutil
        import tempfile

        made = tempfile.mkdtemp(prefix="panto-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return made
    return str(folder)


def platform() -> str:
    """The system, in words for a model."""
    name = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    return f"{name} {os.uname().machine}" if hasattr(os, "uname") else name


def replaced_parts(ground: Ground, notices: Notices) -> dict[str, Part]:
    """Parts of the system prompt that the config replaces, read; paths are relative to the file that names them."""
    out = {}
    for name, said in ground.config.prompt.parts.items():
        source = ground.loaded.sources.get(("prompt", "parts", name), "").rpartition(":")[0]
        path = Path(source or ".").parent / os.path.expanduser(said)
        try:
            out[name] = Part(name, path.read_text(encoding="utf-8", errors="replace"), str(path))
        except OSError as e:
            notices.append((f"prompt.parts.{name}: {path}: {e.strerror}", "the shipped text is used"))
    return out


def _user_config(ground: Ground) -> Path:
    if ground.paths.user_config is None:
        raise ConfigError("there is no home folder to write settings to", "config.toml", hint="set PANTO_CONFIG_DIR")
    return ground.paths.user_config


def save_rule(ground: Ground, rule: str) -> None:
    """Adds an allow rule to the person's config. Raises ConfigError."""
    config_edit.add_rule(_user_config(ground), "allow", rule)


def save_model(ground: Ground, label: str, reasoning: str) -> None:
    """Makes a model the default in the person's config. Raises ConfigError."""
    config_edit.set_value(_user_config(ground), (), "model", label)
    if reasoning:
        config_edit.set_value(_user_config(ground), (), "reasoning", reasoning)


async def close_store(opening: Awaitable[Store]) -> None:
    """Closes the store, also one that is still being opened."""
    await (await opening).close()


async def close_hands(hands: ToolSettings) -> None:
    """Ends every background command, then whatever else was started."""
    await hands.jobs.close()
    hands.spawner.close()


class Files:
    """An index of files for each working directory that is asked about."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._indexes: dict[str, object] = {}

    async def search(self, cwd: str, text: str, limit: int) -> FileRows:
        """Files of `cwd` that match what was typed after `@`."""
        from panto.tools.files import FileIndex

        index = self._indexes.setdefault(cwd, FileIndex(cwd, self._spawner))
        assert isinstance(index, FileIndex)
        return await index.search(text, limit)


async def export(store: Store, session: str, path: str, cwd: str) -> str:
    """Writes a session to a file (by its ending: .md, .html, else JSON lines); returns its path.

    A file that is there is written over only where ` !` follows its name. Raises UsageError.
    """
    from panto.app.session_commands import KINDS, export_bytes

    over = path.endswith(" !") or not path  # the name that panto chose is this session's own
    target = Path(cwd) / os.path.expanduser(path.removesuffix(" !").strip() or f"panto-{session[:8]}.md")
    if target.exists() and not over:
        raise UsageError(f"{target} is there already", f"/export {path} ! writes over it")
    data = await export_bytes(store, session, KINDS.get(target.suffix.lower(), "jsonl"))
    await asyncio.to_thread(config_edit.write_atomically, target, data)
    return str(target)


def commands(client: House, models: Models) -> Iterable[Command]:
    """Slash commands that stand on this room."""

    async def start_tour(arguments: str, at: CommandContext) -> None:
        await client.submit(ops.SetModel("tour:guide", agent=at.agent))
        await client.submit(ops.Prompt("Show me around.", agent=at.agent))

    async def examine(arguments: str, at: CommandContext) -> None:
        from panto.app import doctor

        at.show(await doctor.report(client))

    async def providers(text: str) -> tuple[str, ...]:
        from panto.app.login import providers

        return tuple(name for name in providers(models) if name.startswith(text))

    async def login(arguments: str, at: CommandContext) -> None:
        """Where a screen asks for the key itself, this is not reached."""
        if not arguments or arguments not in await providers(arguments):
            at.show(f"/login PROVIDER takes a key for one of: {', '.join(await providers(''))}")
        else:
            at.show(f"in another terminal: panto login {arguments}   (the key is checked and stored; then /model)")

    async def show_trust(arguments: str, at: CommandContext) -> None:
        """Where a client puts the list before the person itself, this is not reached."""
        from panto.remote.words import trust_lines

        shown = await client.ask(queries.AskTrust())
        hint = "" if shown.agreed or not shown.folder else "\npanto trust, in another terminal, agrees to it"
        at.show("\n".join(trust_lines(shown)) + hint)

    return (
        Command("trust", "what this project brings, and whether it is used", show_trust),
        Command("tour", "panto shows itself, offline, in two minutes", start_tour),
        Command("doctor", "what works, what is missing, and how to mend it", examine),
        Command("login", "give panto a provider's key", login, "provider", complete=providers),
    )


__all__ = [
    "NOWHERE", "Files", "agent_settings", "close_hands", "close_store", "commands", "export", "instructions",
    "platform", "replaced_parts", "rules", "save_model", "save_rule", "spool",
]  # fmt: skip
