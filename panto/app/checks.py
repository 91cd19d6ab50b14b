"""What of the settings can be judged only when everything is loaded: names that extensions, too, may have brought."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from panto.agent.approval import NETWORK, Rule
from panto.app.argv import nearest
from panto.app.ground import Ground
from panto.schema.errors import UsageError

THEMES = ("auto", "light", "dark", "ansi", "contrast", "terminal", "high-contrast", "high contrast")
"""What a screen knows without extensions. It is said here again, since a screen's room is not loaded for this."""
Notices = list[tuple[str, str]]
"""Pairs of a line and the way out."""


def unknown_names(ground: Ground, tools: Iterable[str], themes: Iterable[str]) -> Notices:
    """Names in the settings that nothing has: a rule that speaks of no tool protects nothing."""
    return [*_rules(ground, {*tools, NETWORK}), *_theme(ground, {*THEMES, *themes})]


def _rules(ground: Ground, tools: set[str]) -> Notices:
    out: Notices = []
    for (table, effect), text, layer in ground.loaded.added:
        if table != "permissions":
            continue
        try:
            name = Rule.parse(text).tool
        except UsageError:
            continue  # it is told already
        if not any(fnmatchcase(tool, name) for tool in tools):
            near = nearest(name, tools)
            hint = f"did you mean {near}?" if near else f"there are: {', '.join(sorted(tools))}"
            out.append((f"{layer}: permissions.{effect}: {text!r} is a rule for no tool that there is", hint))
    return out


def _theme(ground: Ground, themes: set[str]) -> Notices:
    theme = ground.config.screen.theme
    if theme in themes:
        return []
    where = ground.loaded.sources.get(("screen", "theme"), "screen.theme")
    near = nearest(theme, themes)
    return [
        (f"{where}: there is no theme {theme!r}", f"did you mean {near}?" if near else f"there are: {_list(themes)}")
    ]


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
