"""A stored session as text for people: plain lines, Markdown, or one HTML page that needs nothing else."""

from __future__ import annotations

import html as escaping
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from panto.remote.words import call_lines, call_words, clean, view_lines
from panto.schema import events as ev
from panto.schema.bodies import MessageBody, ResultBody, TextBody, ToolOutcome
from panto.schema.messages import ToolCall
from panto.schema.records import arguments_value, message_text, outcome_text
from panto.schema.signals import Fact
from panto.schema.view import DiffView

if TYPE_CHECKING:
    from panto.session import Store

PAGE = 2000


class Story(NamedTuple):
    """A session as it is told: its facts, oldest first, and its turns (their numbers, 0 taken back)."""

    id: str
    title: str
    model: str
    cwd: str
    facts: list[Fact]
    turns: dict[str, int]


class Entry(NamedTuple):
    """One thing that was said or done. `kind`: turn, user, assistant, call or note; `head` a line, `body` the rest."""

    kind: str
    head: str
    body: str = ""


async def read(store: Store, name: str) -> Story:
    """A session, whole. Raises as Store.view."""
    viewer = await store.view(name)
    out: list[Fact] = []
    before = None
    try:
        while True:
            page = await viewer.history(before, PAGE)
            out[:0] = page.facts
            before = page.start
            if before is None or not page.facts:
                break
        settings, turns = viewer.state.settings, viewer.view.turns
        kept = [turn.turn for turn in turns if turn.state != "superseded"]
        numbers = {turn.turn: kept.index(turn.turn) + 1 if turn.turn in kept else 0 for turn in turns}
        return Story(viewer.id, settings.title, settings.model, settings.cwd, out, numbers)
    finally:
        await viewer.close()


def entries(story: Story) -> Iterator[Entry]:
    """What a reader wants to see of the facts, in order; at the end, calls that have come to nothing yet."""
    names: dict[str, str] = {}
    given: tuple[ToolCall, ...] = ()
    for fact in story.facts:
        match fact.event:
            case ev.TurnStarted(turn=turn):
                yield Entry("turn", _turn(turn, story.turns.get(turn, 0), fact.time))
            case ev.InputAccepted() if isinstance(fact.body, MessageBody):
                yield Entry("user", "", message_text(fact.body.message))
            case ev.ModelStepCompleted() if isinstance(fact.body, ResultBody):
                given = fact.body.result.calls()
                if text := fact.body.result.text().strip():
                    yield Entry("assistant", "", text)
            case ev.ToolStepOpened(calls=calls):
                names |= {b.call: _called(b.name, given[b.index : b.index + 1]) for b in calls}
            case ev.ToolCallHeld(call=call):
                names[call] += ": waits for an answer"
            case ev.ToolCallCompleted() | ev.ToolCallAnswered() | ev.ToolCallFailed() as event:
                yield _call(names.pop(event.call, "call").partition(" ")[0], event, fact.body)
            case ev.RunEnded(status="stopped") as event:
                if isinstance(fact.body, TextBody) and fact.body.text.strip():
                    yield Entry("assistant", "", fact.body.text)
                limit = "" if event.stopped == "cancelled" else f" by a limit: {event.stopped}"
                yield Entry("note", f"stopped{limit}")
            case ev.RunEnded(status="failed", message=message):
                yield Entry("note", f"failed: {message}")
            case ev.CheckpointMade():
                yield Entry("note", "the context was summarised here")
            case _:
                pass
    for text in names.values():
        yield Entry("call", text if text.endswith("answer") else f"{text}: has not ended")


def heading(story: Story) -> str:
    """What the session is, on one line."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(story.facts[0].time)) if story.facts else ""
    return " · ".join(
        part for part in (story.title or "(no title)", story.model, when, story.id[:8], story.cwd) if part
    )


def _turn(turn: str, number: int, started: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(started))
    return f"turn {number} · {when} · {turn[:8]}" if number else f"a turn that was taken back · {when} · {turn[:8]}"


def _called(name: str, call: tuple[ToolCall, ...]) -> str:
    return call_words(name, arguments_value(call[0].arguments) if call else None)


def _call(name: str, event: ev.ToolCallCompleted | ev.ToolCallAnswered | ev.ToolCallFailed, body: object) -> Entry:
    outcome = body if isinstance(body, ToolOutcome) else None
    failed = event if isinstance(event, ev.ToolCallFailed) else None
    head = call_lines(name, outcome, failed)[0]
    if outcome and isinstance(outcome.view, DiffView):
        return Entry("call", head, "\n".join(view_lines(outcome.view)))
    return Entry("call", head, outcome_text(outcome) if outcome else "")


def lines(story: Story) -> Iterator[str]:
    """Plain lines, fit for a terminal; calls without what they printed."""
    yield clean(heading(story))
    for entry in entries(story):
        match entry.kind:
            case "turn":
                yield ""
                yield f"── {entry.head}"
            case "user":
                yield ""
                yield clean("> " + entry.body.replace("\n", "\n> "))
            case "assistant":
                yield ""
                yield clean(entry.body)
            case _:
                yield clean(f"  {entry.head}")


def markdown(story: Story) -> str:
    """The session as Markdown, whole."""
    out = [f"*{clean(heading(story))}*\n"]
    for entry in entries(story):
        match entry.kind:
            case "user":
                out.append(f"## You\n\n{entry.body}\n")
            case "assistant":
                out.append(f"{entry.body}\n")
            case "call":
                out.append(f"**{_code(clean(entry.head))}**\n")
                if entry.body.strip():
                    fence = _fence(entry.body)
                    out.append(f"{fence}\n{clean(entry.body)}\n{fence}\n")
            case "turn":
                pass
            case _:
                out.append(f"*{clean(entry.head)}*\n")
    return "\n".join(out)


def _fence(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def _code(text: str) -> str:
    ticks = "`"
    while ticks in text:
        ticks += "`"
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def html(story: Story) -> str:
    """The session as one page: no script, nothing loaded from anywhere; what was said is text, never markup."""
    title = story.title or story.id
    parts = [f'<div class="note">{escaping.escape(clean(heading(story)))}</div>']
    for entry in entries(story):
        head, body = (escaping.escape(clean(text)) for text in (entry.head, entry.body))
        if entry.kind == "turn":
            continue
        if entry.kind == "call" and body:
            parts.append(f'<details class="call"><summary>{head}</summary><pre>{body}</pre></details>')
        else:
            parts.append(f'<div class="{entry.kind}">{head or body}</div>')
    return _PAGE.format(title=escaping.escape(title), parts="\n".join(parts))


_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
body {{ max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif;
  color: #1b1b1b; background: #fff; }}
div {{ white-space: pre-wrap; margin: .8rem 0; }}
.user {{ border-left: 3px solid #2a62c9; padding-left: .8rem; }}
.note {{ color: #666; font-style: italic; }}
.call {{ margin: .3rem 0; font-size: .9rem; color: #444; }}
pre {{ overflow-x: auto; background: #f4f4f4; padding: .6rem; }}
@media (prefers-color-scheme: dark) {{ body {{ color: #ddd; background: #181818; }} pre {{ background: #242424; }}
  .call {{ color: #aaa; }} }}
</style></head><body>
{parts}
</body></html>
"""
