"""Which key does what: the shipped table, and the person's changes to it.

Actions are names of `action_…` methods of the application; a `[keys]` table of the configuration says
`action = "key"`. Keys of text editing belong to the composer and are not listed here.
"""

from __future__ import annotations

from typing import NamedTuple


class KeyRow(NamedTuple):
    """One action: its name in the configuration, keys, and what the help says."""

    action: str
    keys: tuple[str, ...]
    meaning: str
    place: str = "everywhere"


TABLE: tuple[KeyRow, ...] = (
    KeyRow("send", ("enter",), "send; while a turn runs: steer it", "prompt"),
    KeyRow("newline", ("ctrl+j", "shift+enter", "ctrl+enter"), "new line", "prompt"),
    KeyRow("queue", ("alt+enter",), "queue for after the turn", "prompt"),
    KeyRow("take_back", ("alt+up",), "take the last queued message back", "prompt"),
    KeyRow("next_prompt", ("alt+down",), "next prompt", "transcript"),
    KeyRow("search_history", ("ctrl+r",), "search earlier prompts", "prompt"),
    KeyRow("next_mode", ("shift+tab",), "next of plan, ask, auto", "prompt"),
    KeyRow("editor", ("ctrl+g",), "the prompt in $EDITOR", "prompt"),
    KeyRow("paste_image", ("ctrl+v",), "the picture on the clipboard", "prompt"),
    KeyRow("escape", ("escape",), "close what is in front, else stop the turn; twice when idle: rewind"),
    KeyRow("interrupt", ("ctrl+c",), "copy a selection, else stop the turn, else clear; twice: leave"),
    KeyRow("leave", ("ctrl+d",), "leave, when the prompt is empty", "prompt"),
    KeyRow("open_last", ("ctrl+o",), "open or fold the last card; again: all of the turn"),
    KeyRow("transcript", ("ctrl+t",), "go to the transcript and back"),
    KeyRow("redraw", ("ctrl+l",), "redraw, go to the end"),
    KeyRow("page_up", ("pageup",), "scroll up"),
    KeyRow("page_down", ("pagedown",), "scroll down"),
    KeyRow("to_start", ("ctrl+home",), "to the beginning"),
    KeyRow("to_end", ("ctrl+end",), "to the end"),
    KeyRow("model", ("alt+p",), "choose the model"),
    KeyRow("reasoning", ("alt+r",), "next reasoning effort"),
    KeyRow("help", ("f1",), "keys and commands"),
    KeyRow("chord", ("ctrl+x",), "then s sessions, a agents, m model, t tree, e editor"),
    KeyRow("suspend", ("ctrl+z",), "suspend to the shell"),
)

CHORD = {"s": "sessions", "a": "agents", "m": "model", "t": "tree", "e": "editor"}

class Keys:
    """The table in force."""

    def __init__(self, changes: tuple[tuple[str, str], ...] = ()) -> None:
        self.problems: list[str] = []
        wanted: dict[str, tuple[str, ...]] = {row.action: row.keys for row in TABLE}
        for action, key in changes:
            if action not in wanted:
                self.problems.append(f"[keys] {action}: no such action; F1 lists them")
            else:
                wanted[action] = tuple(one.strip().lower() for one in key.split(",") if one.strip())
        self._by_action = wanted
        self.chosen = {key for action, _ in changes for key in wanted.get(action, ())}
        self._by_key = {key: action for action, keys in wanted.items() for key in keys}

    def action(self, key: str) -> str | None:
        """The action of a key, or None."""
        return self._by_key.get(key)

    def key(self, action: str) -> str:
        """An action's first key as people write it, "" when it has none."""
        keys = self._by_action.get(action, ())
        return spell(keys[0]) if keys else ""

    def rows(self) -> list[KeyRow]:
        """The table in force, for the help."""
        return [row._replace(keys=self._by_action[row.action]) for row in TABLE]


_SPELLING = {"escape": "Esc", "up": "↑", "down": "↓", "pageup": "PageUp", "pagedown": "PageDown"}


def spell(key: str) -> str:
    """A key as people write it: ctrl+o -> Ctrl+O."""
    return "+".join(_SPELLING.get(part, part.upper() if len(part) == 1 or part[0] == "f" else part.capitalize())
                    for part in key.split("+"))  # fmt: skip
