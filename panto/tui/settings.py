"""What the application room pushes down to the screen, read once at start."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ScreenSettings(NamedTuple):
    """`[screen]` and `[keys]` of the configuration, and how this start was asked for.

    theme: a theme's name or "auto". leave: what stays in the scrollback. keys: action -> key, over the shipped ones.
    prompt: sent as soon as the engine is there. greeting: the lines at the top of a fresh session.
    opening: "sessions" opens the session picker first (`--resume` without an id).
    """

    theme: str = "auto"
    leave: Literal["last", "all", "nothing"] = "last"
    keys: tuple[tuple[str, str], ...] = ()
    prompt: str = ""
    opening: Literal["", "sessions"] = ""
    version: str = ""
    greeting: tuple[str, ...] = ()
    cwd: str = ""
    reduced_motion: bool = False
    mouse: bool = True
    notify: bool = True
