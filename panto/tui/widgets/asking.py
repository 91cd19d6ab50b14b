"""What a question says and takes, without its panel: limits, text to edit, wrapped rows."""

from __future__ import annotations

import json

from rich.style import Style
from textual.events import Key

from panto.schema.bodies import Question
from panto.tui import units
from panto.tui.sanitize import clean_line
from panto.tui.widgets.lines import Line, width_of, wrap
from panto.tui.widgets.panel import PLAIN, line


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



