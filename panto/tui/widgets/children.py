"""The card of a call that runs child agents: one row for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from rich.segment import Segment

from panto.schema.view import CardView
from panto.tui.calls import Call
from panto.tui.sanitize import clean_line
from panto.tui.widgets.card import FOLD, aside_line, fact, mark, verb_run
from panto.tui.widgets.lines import NONE, Line, Look, Run, spread, width_of
from panto.tui.widgets.view import aligned


def children_card(call: Call, look: Look) -> list[Line]:
    """The rows of the card: open while they run, one row when all have ended."""
    view = call.view if call.live or call.outcome is None or call.outcome.view is None else call.outcome.view
    whole = view if isinstance(view, CardView) else None
    cards = [child for child in whole.children if isinstance(child, CardView)] if whole is not None else []
    if not call.live:
        cards = _as_they_are(call, cards)
    if not cards:
        cards = [CardView(title=child.title, state=child.state) for child in call.children]
    title = f"{len(cards)} {'child' if len(cards) == 1 else 'children'}" if cards else call.title
    counted = _counts(call, cards, look)
    right: list[Run] = [(clean_line(whole.fact, 60), look.palette.aside)] if whole is not None and whole.fact else []
    right = right or fact(call, look)
    noun: list[Run] = [(title, NONE), ("   ", NONE)]
    if counted and 14 + sum(width_of(text) for text, _ in [*noun, (counted, NONE), *right]) > look.right:
        noun = []  # the states say how many there are
    left = [mark(call, look), (" ", NONE), verb_run(call.verb), *noun, (counted, look.palette.aside)]
    lines = [Line(spread(left, right, look.right, look.glyphs.ellipsis), target=FOLD)]
    if not call.live and not call.open:
        return lines
    for index, row in enumerate(aligned(cards, look, look.right - 2)[:40]):
        agent = call.children[index].agent if index < len(call.children) else ""
        target = f"child:{agent}" if agent else ""
        lines.append(Line([Segment("  "), *(Segment(*run) for run in row)], gutter=2, target=target))
    if len(cards) > 40:
        lines.append(aside_line(f"{look.glyphs.ellipsis} {len(cards) - 40} more", look))
    return lines


def _as_they_are(call: Call, cards: list[CardView]) -> list[CardView]:
    """What still ran when the call ended, in the background, may have ended since."""
    now = {child.title: child.state for child in call.children}
    return [
        replace(card, state=now.get(card.title.partition("\t")[0], card.state)) if card.state == "running" else card
        for card in cards
    ]


_CHILD_WORDS = {
    "running": "running", "waiting": "waiting", "done": "done", "failed": "failed", "stopped": "stopped by you",
}  # fmt: skip


def _counts(call: Call, cards: Sequence[CardView], look: Look) -> str:
    parts = []
    for state, word in _CHILD_WORDS.items():
        matching = [child for child in cards if child.state == state]
        if not matching:
            continue
        names = ""
        if state == "failed" and not call.live and len(matching) <= 2:
            names = ": " + ", ".join(clean_line(child.title.partition("\t")[0], 24) for child in matching)
        parts.append(f"{len(matching)} {word}{names}")
    return f" {look.glyphs.dot} ".join(parts)
