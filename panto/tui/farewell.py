"""What stays in the terminal: the title, the last answer, what it came to, and how to come back."""

from __future__ import annotations

from collections.abc import Sequence

from panto.schema.messages import Usage
from panto.schema.signals import Left
from panto.tui.now import Now
from panto.tui.sanitize import clean_line
from panto.tui.settings import ScreenSettings
from panto.tui.units import money, plural, tokens

ANSWER_LINES = 20


def farewell(now: Now, left: Left | None, settings: ScreenSettings, shown: Sequence[str]) -> tuple[str, ...]:
    """The lines, none for a session in which nothing was said or with `leave = "nothing"`.

    `shown`: the last answer as it was drawn, or all of the transcript with `leave = "all"`.
    """
    if settings.leave == "nothing" or not now.turns:
        return ()
    title = (now.status.title if now.status else "") or now.first_prompt
    answer = list(shown)
    if settings.leave == "last" and len(answer) > ANSWER_LINES:
        answer = [*answer[: ANSWER_LINES - 1], f"… {len(answer) - ANSWER_LINES + 1} more lines"]
    said = left.summary if left is not None else ()
    turns = said[0].partition(" · ")[0] if now.partial and said else plural(now.turns, "turn")
    usage = now.status.usage if now.status else Usage()
    used = usage.input + usage.output or now.tokens
    facts = [turns, f"{tokens(used)} tokens", money(now.cost or 0.0)]
    added, removed = now.lines
    files = now.changes.total
    if len(files) == 1:
        facts.insert(0, f"{clean_line(next(iter(files)))} +{added} −{removed}")
    elif files:
        facts.insert(0, f"{len(files)} files +{added} −{removed}")
    back = [line.strip() for line in said if "--resume" in line] or [f"panto --resume {now.primary[:8]}"]
    unfinished = ["this turn is not finished: come back and press Enter to go on"] if now.unfinished else []
    body = [clean_line(title, 100), *answer, " · ".join(fact for fact in facts if fact), "", *unfinished, *back]
    return tuple(f"  {line}".rstrip() for line in body)
