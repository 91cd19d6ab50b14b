"""Slash commands: the few that only open something on the screen, and the way of all others to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from panto.schema.ops import NewSession, OpenSession, RunCommand
from panto.schema.queries import CommandRow
from panto.tui.signing import sign_in

if TYPE_CHECKING:
    from panto.tui.app import PantoApp

VISUAL = (
    CommandRow("agents", "child agents and their transcripts"),
    CommandRow("context", "what fills the context, by part"),
    CommandRow("copy", "copy the last answer"),
    CommandRow("help", "keys and commands"),
    CommandRow("model", "choose the model", "[name]"),
    CommandRow("new", "leave this session and begin another"),
    CommandRow("queue", "messages that wait: change, order, drop"),
    CommandRow("quit", "leave panto"),
    CommandRow("resume", "open an earlier session", "[id]"),
    CommandRow("rewind", "go back to an earlier turn"),
    CommandRow("search", "search the transcript", "<words>"),
    CommandRow("sessions", "all sessions"),
    CommandRow("settings", "what is in force, and from where"),
    CommandRow("theme", "choose the colours", "[name]"),
    CommandRow("tree", "turns: rewind or fork from any"),
)


def merged(rows: tuple[CommandRow, ...], theme: str) -> tuple[CommandRow, ...]:
    """The engine's commands and the screen's own, in alphabetical order; present values where the screen knows them."""
    known = {row.name.lstrip("/"): row for row in (*VISUAL, *rows)}
    known["theme"] = CommandRow("theme", "choose the colours", "[name]", theme)
    return tuple(known[name] for name in sorted(known))


class Commands:
    """Runs what was typed after a slash."""

    def __init__(self, app: PantoApp) -> None:
        self._app = app
        self._own: dict[str, Callable[[str], object]] = {
            "agents": lambda _rest: app.action_agents(),
            "context": lambda _rest: app.action_context(),
            "copy": lambda _rest: app.copy_answer(),
            "cost": lambda _rest: app.action_cost(),
            "diff": lambda _rest: app.action_changes(),
            "exit": lambda _rest: app.action_leave_now(),
            "extensions": self._extensions,
            "help": lambda _rest: app.action_help(),
            "jobs": lambda _rest: app.action_jobs(),
            "login": lambda rest: app.link.start(sign_in(app, rest.partition(" ")[0])),
            "new": lambda _rest: app.link.submit(NewSession()),
            "queue": lambda _rest: app.action_waiting(),
            "quit": lambda _rest: app.action_leave_now(),
            "resume": self._resume,
            "rewind": self._rewind,
            "search": app.find,
            "sessions": lambda _rest: app.action_sessions(),
            "settings": lambda _rest: app.action_settings(),
            "theme": self._theme,
            "tools": lambda _rest: app.action_tools(),
            "tree": lambda _rest: app.action_tree(),
            "trust": lambda _rest: app.action_trust(),
        }
        self._lists: dict[str, Callable[[], None]] = {
            "mode": app.action_mode, "model": app.action_model, "reasoning": app.action_efforts,
        }  # fmt: skip

    def values(self, name: str) -> tuple[str, ...] | None:
        """What may follow one of the screen's own commands, None where the engine is to be asked."""
        if name == "theme":
            return self._app.themes()
        return None if name not in self._own or name in ("extensions", "login") else ()

    def run(self, text: str, rows: tuple[CommandRow, ...]) -> bool:
        """Run a command as typed; False (and said so) when there is none of this name. Nothing is guessed."""
        name, _, rest = text[1:].partition(" ")
        name, rest = name.strip(), rest.strip()
        if name in self._lists and not rest:
            self._lists[name]()
        elif name in self._own:
            self._own[name](rest)
        elif any(row.name.lstrip("/") == name for row in rows):
            self._app.link.submit(RunCommand(text))
        elif not self._app.link.ready:
            self._app.say("still starting: commands come in a moment", "attention")
            return False
        else:
            self._app.say(f"no command /{name}", "attention", "/help lists them; nothing was sent")
            return False
        return True

    def _resume(self, rest: str) -> None:
        if rest:
            self._app.link.submit(OpenSession(rest))
        else:
            self._app.action_sessions()

    def _extensions(self, rest: str) -> None:
        if rest:
            self._app.link.submit(RunCommand(f"/extensions {rest}"))
        else:
            self._app.action_extensions()

    def _rewind(self, rest: str) -> None:
        if rest:
            self._app.link.submit(RunCommand(f"/rewind {rest}"))
        else:
            self._app.action_tree()

    def _theme(self, rest: str) -> None:
        if rest:
            self._app.set_theme(rest)
        else:
            self._app.action_theme()
