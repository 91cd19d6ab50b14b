"""The full screen: the first frame before anything else is loaded, then the application, then the house."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from panto.app.argv import Arguments
from panto.app.paths import Paths
from panto.tools import regular
from panto.tui import early

if TYPE_CHECKING:
    from panto.app.ground import Ground
    from panto.tui.settings import ScreenSettings

BEGIN = "  Ask for something, or:  /help  keys and commands   /resume  earlier sessions   Ctrl+J  new line"
NO_MODEL = "  No model yet.   /login  paste or name a key    /model  local servers    /tour  offline, 2 minutes"
RULES = {"plan": "read only", "ask": "ask before running", "auto": "accept edits", "yolo": "runs everything"}


def run(arguments: Arguments, paths: Paths) -> int:
    """Opens the screen; returns the exit code when the person has left. Raises PantoError."""
    from panto import __version__

    headline = f"  panto {__version__}   {_short(paths)}  {_branch(paths)}".rstrip()
    mode = arguments.get("--mode") or os.environ.get("PANTO_MODE", "ask")
    first = early.start(early.EarlyGreeting((headline,), RULES.get(mode, RULES["ask"]), _short(paths)))
    lines: tuple[str, ...] = ()
    try:
        from panto.app import ground
        from panto.app.drive import drive

        stands = ground.read(paths, arguments.options)
        settings = _settings(stands, arguments, headline)
        from panto import tui

        left = drive(stands, arguments, lambda connect: tui.run(connect, first, settings), screen=True)
        lines = left.lines
        return left.code
    finally:
        if first is not None:
            first.terminal.give_back()
        for line in lines:
            print(line)


def _short(paths: Paths) -> str:
    home, cwd = os.path.expanduser("~"), str(paths.cwd)
    return "~" + cwd.removeprefix(home) if cwd == home or cwd.startswith(home.rstrip("/") + "/") else cwd


def _branch(paths: Paths) -> str:
    """The branch that is checked out; "" where there is none to be read."""
    try:
        head = regular.read(paths.root / ".git" / "HEAD", 4096).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _no_model(arguments: Arguments) -> str:
    return NO_MODEL.partition("    /tour")[0] if arguments.has("--no-extensions") else NO_MODEL


def _settings(ground: Ground, arguments: Arguments, headline: str) -> ScreenSettings:
    from panto import __version__
    from panto.app.catalog import likely
    from panto.app.ground import notices
    from panto.tui.settings import ScreenSettings

    config = ground.config
    warnings = (f"  {said}" + (f"   {hint}" if hint else "") for said, hint in notices(ground))
    return ScreenSettings(
        theme=config.screen.theme,
        leave=config.screen.leave,
        keys=tuple(config.keys.items()),
        prompt=" ".join(arguments.words),
        opening="sessions" if arguments.has("--resume") and not arguments.get("--resume") else "",
        version=__version__,
        greeting=(headline, BEGIN if likely(ground) else _no_model(arguments), *warnings),
        cwd=str(ground.paths.cwd),
        reduced_motion=bool(os.environ.get("PANTO_REDUCED_MOTION")),
    )


__all__ = ["run"]
