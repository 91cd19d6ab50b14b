"""Slash commands: a registry of what is built in and what extensions add, one name each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from difflib import get_close_matches

from panto.schema.errors import UsageError
from panto.schema.queries import CommandRow
from panto.schema.view import View

BUILTIN = "panto"
"""The owner of built-in commands."""

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Where a command runs: the agent's session id, the effect its durable input stands for, how it is stopped.

    `show` puts text before the person; `progress(text, view)` says how far it is. Once `cancelled` is set it has until
    `deadline()` (monotonic seconds).
    """

    agent: str
    effect: str
    show: Show
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Callable[[str, View | None], None] = lambda text, view: None
    deadline: Callable[[], float | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. `run(args as typed, context)`; `complete(text)` gives values for its argument; `value()` the
    present one."""

    name: str
    description: str
    run: Callable[[str, CommandContext], Awaitable[None]]
    usage: str = ""
    owner: str = BUILTIN
    complete: Callable[[str], Awaitable[tuple[str, ...]]] | None = None
    value: Callable[[], str] = lambda: ""


class Commands:
    """All slash commands by name, without the slash."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}

    def register(self, command: Command) -> None:
        """Add a command. Raises UsageError where the name is taken."""
        taken = self._commands.get(command.name)
        if taken is not None:
            raise UsageError(f"there is already a command /{command.name} (of {taken.owner})")
        self._commands[command.name] = command

    def withdraw(self, owner: str) -> None:
        """Take away all commands of an owner."""
        self._commands = {name: c for name, c in self._commands.items() if c.owner != owner}

    def find(self, text: str) -> tuple[Command, str]:
        """The command this line names, exactly, and its arguments. Raises UsageError: never guessed, never sent."""
        name, _, arguments = text.strip().removeprefix("/").partition(" ")
        command = self._commands.get(name)
        if command is None:
            near = get_close_matches(name, self._commands, 3)
            hint = "did you mean " + " or ".join(f"/{n}" for n in near) + "?" if near else "/help lists all commands"
            raise UsageError(f"there is no command /{name}", hint)
        return command, arguments.strip()

    def rows(self) -> tuple[CommandRow, ...]:
        """All commands in alphabetical order."""
        return tuple(
            CommandRow(c.name, c.description, c.usage, c.value())
            for c in sorted(self._commands.values(), key=lambda c: c.name)
        )
