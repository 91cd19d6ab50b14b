"""One row for several reading calls of one step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rich.segment import Segment

from panto.tui import units
from panto.tui.calls import Call, State
from panto.tui.sanitize import clean_line
from panto.tui.widgets.card import FOLD, head, mark, verb_run
from panto.tui.widgets.lines import NONE, Line, Look, Run, mix, spread


def batch(calls: Sequence[Call], look: Look, opened: bool) -> list[Line]:
    """One row for several reading calls; opened, one row each below it."""
    state = batch_state(calls)
    lead = Call("", calls[0].name if len({call.name for call in calls}) == 1 else "read", state=state, open=opened)
    title, said = _batch_words(calls, look, state)
    left = [mark(lead, look), (" ", NONE), verb_run(lead.verb), (_batch_noun(calls, look), NONE), ("   ", NONE), *title]
    lines = [Line(spread(left, said, look.right, look.glyphs.ellipsis), target=FOLD)]
    if opened:
        inner = replace(look, width=min(look.width, 104) - 2)
        lines += [Line([Segment("  "), *head(call, inner).segments], gutter=2) for call in calls]
    return lines


def batch_state(calls: Sequence[Call]) -> State:
    """The state of the whole: what needs a person first, then what runs, then what went wrong."""
    states = {call.state for call in calls}
    order: tuple[State, ...] = ("waiting", "running", "pending", "drafted", "unknown", "failed", "stopped", "refused")
    found: State = next((state for state in order if state in states), "done")
    return "running" if found in ("pending", "drafted") else found


_NOUNS = {
    "read": ("file", "files"), "grep": ("search", "searches"), "glob": ("pattern", "patterns"),
    "ls": ("folder", "folders"),
}  # fmt: skip


def _batch_noun(calls: Sequence[Call], look: Look) -> str:
    parts = []
    for name in dict.fromkeys(call.name for call in calls):
        count = sum(call.name == name for call in calls)
        one, many = _NOUNS.get(name, ("call", "calls"))
        parts.append(f"{count} {one if count == 1 else many}")
    return f" {look.glyphs.dot} ".join(parts)


def _batch_words(calls: Sequence[Call], look: Look, state: str) -> tuple[list[Run], list[Run]]:
    aside = look.palette.aside
    done = [call for call in calls if call.state == "done"]
    if state == "waiting":
        return [], [("needs your answer", look.palette.attention)]
    if state == "running":
        started = min((call.started for call in calls if call.started is not None), default=look.now)
        since = look.now - started
        return [(f"{len(done)} done", aside)], [(units.seconds(since, whole=True), aside)] if since >= 1 else []
    failed = [call for call in calls if call.state != "done"]
    said: list[Run] = [(_sum_of_facts(done), aside)]
    if failed:
        reason = clean_line(failed[0].message.partition("\n")[0], 60) or "failed"
        more = f" {look.glyphs.dot} {len(failed) - 1} more failed" if len(failed) > 1 else ""
        name = failed[0].title
        reason = reason if name and name in reason else f"{name}: {reason}"
        style = mix(NONE, look.palette.wrong)
        return [(f"{len(done)} read {look.glyphs.dot} " if done else "", aside), (reason + more, style)], said
    return [(f"{calls[0].title} {look.glyphs.ellipsis} {calls[-1].title}", aside)], said


def _sum_of_facts(calls: Sequence[Call]) -> str:
    total = 0
    for call in calls:
        match = re.match(r"(\d+) lines?\b", call.outcome.fact) if call.outcome is not None else None
        total += int(match.group(1)) if match else call.output.count
    return units.plural(total, "line") if total else ""
