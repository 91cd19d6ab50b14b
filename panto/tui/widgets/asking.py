"""What a question says and takes, without its panel: limits, text to edit, wrapped rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.style import Style
from textual.events import Key

from panto.schema.bodies import Question
from panto.schema.view import DiffView
from panto.tui import units
from panto.tui.colours import Palette
from panto.tui.sanitize import clean_line
from panto.tui.widgets.diff import diff_rows
from panto.tui.widgets.lines import Line, Look, Run, width_of, wrap
from panto.tui.widgets.panel import PLAIN, line, sides


def question_letter(event: Key) -> bool:
    """Whether a key is one printable character."""
    return event.character is not None and event.character.isprintable() and not event.key.startswith(("ctrl+", "alt+"))


def limits(question: Question) -> list[str]:
    """What bounds a call, as its tool says, or else as far as its arguments do."""
    if question.limits:
        return [clean_line(question.limits)]
    try:
        arguments = json.loads(question.arguments or "{}")
    except ValueError:
        return []
    seconds = arguments.get("timeout") if isinstance(arguments, dict) else None
    return [f"up to {units.seconds(float(seconds), whole=True)}"] if isinstance(seconds, int | float) else []


def editable(question: Question) -> str:
    """What `e` opens: a command as text, anything else as readable JSON."""
    try:
        arguments = json.loads(question.arguments or "{}")
    except ValueError:
        return question.arguments
    if isinstance(arguments, dict) and isinstance(arguments.get("command"), str):
        return str(arguments["command"])
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def edited(question: Question, text: str) -> str:
    """The arguments' JSON text after an edit. Raises ValueError when it is none."""
    try:
        arguments = json.loads(question.arguments or "{}")
    except ValueError:
        arguments = {}
    if isinstance(arguments, dict) and isinstance(arguments.get("command"), str):
        return json.dumps({**arguments, "command": text}, ensure_ascii=False)
    if not isinstance(json.loads(text), dict):
        raise ValueError("an object is wanted")
    return text


def wrapped(text: str, width: int, body: Style, pad: str, first: str = "", style: Style = PLAIN) -> list[Line]:
    rows: list[Line] = []
    for part in text.split("\n"):
        for segments, _ in wrap([(part, body)], max(8, width)):
            lead = first if not rows else " " * width_of(first)
            rows.append(line([(pad, PLAIN), (lead, style), *((s.text, s.style or PLAIN) for s in segments)]))
    return rows


def choice_rows(
    choices: Sequence[str], picked: int, marked: set[int] | None, palette: Palette, width: int
) -> list[Line]:
    """What one may choose from, each whole; `marked` where several may be, None where one."""
    rows: list[Line] = []
    for at, choice in enumerate(choices):
        mark = "" if marked is None else "[x] " if at in marked else "[ ] "
        lead: list[Run] = [("  ▸ " if at == picked else "    ", palette.accent), (f"{at + 1}  {mark}", PLAIN)]
        field = sum(width_of(text) for text, _ in lead)
        for segments, _ in wrap([(clean_line(choice, 2000), PLAIN)], max(8, width - field - 2)):
            runs = [*lead, *((part.text, part.style or PLAIN) for part in segments)]
            rows.append(sides(runs, [], width, palette.current if at == picked else None))
            lead = [(" " * field, PLAIN)]
    return rows


def whole_diff(view: DiffView, look: Look, room: int) -> list[list[Run]]:
    """A change with nothing cut; what the view itself leaves out is said."""
    rows = diff_rows(view, look, room, whole=True)
    left = view.added + view.removed - sum(kind != " " for hunk in view.hunks for kind, _ in hunk.lines)
    more = f"     {look.glyphs.ellipsis} {units.plural(left, 'more changed line')}   e shows everything"
    return [*rows, [(more, look.palette.attention)]] if left > 0 else rows
