"""The card of one tool call, in every state it can be in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style

from panto.schema.view import CardView
from panto.tui import units
from panto.tui.calls import Call
from panto.tui.sanitize import clean_line
from panto.tui.widgets.diff import DiffArt, hidden_words
from panto.tui.widgets.lines import NONE, Line, Look, Run, cut_runs, spread, width_of, wrap
from panto.tui.widgets.view import view_rows

FOLD = "fold"
_BOLD = Style(bold=True)
_OPEN_ROWS = 18
_TIMED = re.compile(r"\d (s|m|h|ms)\b")
_OUTPUT = 5  # column of output
_LEAD = Segment(" " * _OUTPUT)
_NUMBERED = re.compile(r"(\d+)   *")


def verb_run(verb: str) -> Run:
    """The verb in its field."""
    return (verb.ljust(6) + " ", _BOLD)


def card(call: Call, look: Look, arts: Sequence[DiffArt]) -> list[Line]:
    """The rows of a call's card. `arts` are its diffs."""
    lines = [head(call, look)]
    reason = _reason(call, fact(call, look), look)
    if reason:
        lines += _output(reason, look, True, look.palette.aside)
    if call.open and not call.live:
        return lines + _opened(call, look, arts)
    return lines + _folded(call, look, arts)


def head(call: Call, look: Look) -> Line:
    """The card's first row: glyph, verb, the argument that matters, the fact at the right."""
    title = call.title
    diffs = call.diffs
    if len(diffs) > 1:
        changes = [_change(diff.path, diff.added, diff.removed, look) for diff in diffs]
        title = f"{len(diffs)} files   " + f" {look.glyphs.dot} ".join(changes)
    left = [mark(call, look), (" ", NONE), verb_run(call.verb), (title, NONE)]
    said = fact(call, look)
    reason = _reason(call, said, look)
    if reason:
        said = [(said[0][0].partition(":")[0], said[0][1])]
    return Line(spread(left, said, look.right, look.glyphs.ellipsis), target=FOLD)


def _reason(call: Call, said: Sequence[Run], look: Look) -> str:
    """The reason behind a fact's colon, where both it and the title do not fit: it gets a row of its own."""
    if call.state not in ("unknown", "refused", "stopped") or not said or ":" not in said[0][0]:
        return ""
    size = sum(width_of(text) for text, _ in said)
    return said[0][0].partition(":")[2].strip() if 9 + width_of(call.title) + 2 + size > look.right else ""


def mark(call: Call, look: Look) -> Run:
    """The glyph of a call's state."""
    palette, glyphs = look.palette, look.glyphs
    if call.paused and call.live:
        return (glyphs.asks, palette.attention)
    match call.state:
        case "running" | "drafted":
            return (look.spinner, palette.accent)
        case "pending":
            return (glyphs.dot, palette.aside)
        case "waiting":
            return (glyphs.asks, palette.attention)
        case "done":
            return (glyphs.open if call.open else glyphs.ok, palette.aside)
        case "failed":
            return (glyphs.failed, palette.wrong)
        case "stopped" | "refused":
            return (glyphs.stopped, palette.attention)
        case "unknown":
            return (glyphs.asks, palette.attention)


def fact(call: Call, look: Look) -> list[Run]:
    """What stands at the right end of the head."""
    aside = look.palette.aside
    dot = f" {look.glyphs.dot} "
    took = call.took
    message = clean_line(call.message, 200)
    if call.paused and call.live:
        return [("goes on with Enter", look.palette.attention)]
    match call.state:
        case "drafted":
            return [(f"writing{dot}{units.size(call.size)}" if call.size else "writing", aside)]
        case "pending":
            return []
        case "waiting":
            return [("needs your answer", look.palette.attention)]
        case "running":
            since = look.now - call.started if call.started is not None else 0.0
            return [(units.seconds(since, whole=True), aside)] if since >= 1 else []
        case "stopped":
            after = f" after {units.seconds(took)}" if took is not None else ""
            said = f"stopped by you{after}" if call.started is not None else "not run: stopped"
            return [(said + (f"{dot}{message}" if message else ""), look.palette.attention)]
        case "refused":
            return [(f"not run: {message or 'you said no'}", look.palette.attention)]
        case "unknown":
            return [(f"outcome unknown: {message or 'nobody saw how it ended'}", look.palette.attention)]
        case "done" | "failed":
            return _result_fact(call, look, took, dot)


def _result_fact(call: Call, look: Look, took: float | None, dot: str) -> list[Run]:
    aside = look.palette.aside
    said = clean_line(call.outcome.fact, 80) if call.outcome is not None else ""
    if call.state == "failed" and not said:
        said = clean_line(call.message, 80) if not _messages(call) else "failed"
    if not said and call.verb == "run" and call.output.count:
        said = units.plural(call.output.count, "line")
    time = ""
    if took is not None and not _TIMED.search(said) and (call.verb == "run" or took >= 2):
        time = units.seconds(took)
    runs: list[Run] = [(said, look.palette.wrong if call.state == "failed" else aside)] if said else []
    if time:
        runs.append((dot + time if said else time, aside))
    return runs


def _change(path: str, added: int, removed: int, look: Look) -> str:
    parts = [clean_line(path)]
    if added:
        parts.append(f"+{added}")
    if removed:
        parts.append(f"{look.glyphs.minus}{removed}")
    return " ".join(parts)


# ---------------------------------------------------------------- below the head


def _folded(call: Call, look: Look, arts: Sequence[DiffArt]) -> list[Line]:
    if call.state in ("drafted", "pending", "refused"):
        return []
    if call.state == "failed":
        return _failure(call, look)
    if call.state in ("running", "waiting", "stopped", "unknown"):
        rows = 1 if look.short else 3
        last = call.tail.last(rows) or call.output.tail(rows)
        if call.shown is not None and call.live:
            return _view(call, look, 8)
        return [row for line in last for row in _output(line, look, call.wrapped, look.palette.aside)]
    if len(arts) == 1:
        return _folded_diff(arts[0], look)
    if call.shown is not None and not arts:
        return _view(call, look, 4 if look.short else 8)
    if call.quiet:
        return []
    return _tail(call, look, 1 if look.short else 3, look.palette.aside)


def _tail(call: Call, look: Look, rows: int, style: Style = NONE) -> list[Line]:
    """The last rows of the output, and how many are above them; one hidden line would cost the row that says so."""
    output = call.output
    if output.count == rows + 1 and rows > 1:
        rows += 1
    lines = [row for line in output.tail(rows) for row in _output(line, look, call.wrapped, style)]
    if output.count > rows:
        above = units.plural(output.count - rows, "line")
        lines.insert(0, aside_line(f"{look.glyphs.ellipsis} {above} above", look))
    return lines


def _failure(call: Call, look: Look) -> list[Line]:
    if call.output.count and call.output.text.strip():
        return _tail(call, look, 3 if look.short else 8)
    return [row for line in _messages(call)[: 3 if look.short else 8] for row in _output(line, look, True)]


def _messages(call: Call) -> list[str]:
    """The failure's own words, where they are more than fits at the right end."""
    lines = [line for line in (clean_line(raw, 1000) for raw in call.message.split("\n")[:20]) if line]
    return lines if len(lines) > 1 or (lines and width_of(lines[0]) > 40) else []


def _output(text: str, look: Look, wrapped: bool, style: Style = NONE, lead: Segment = _LEAD) -> list[Line]:
    """A line of output: cut at the right edge, or in as many rows as it takes (up to twenty)."""
    room = look.right - _OUTPUT
    if not wrapped:
        runs = cut_runs([(text, style)], room, look.glyphs.ellipsis)
        return [Line([lead, *(Segment(*run) for run in runs)], gutter=_OUTPUT)]
    return [Line([lead, *row], gutter=_OUTPUT, joint=joint) for row, joint in wrap([(text, style)], room)[:20]]


def aside_line(text: str, look: Look, right: str = "") -> Line:
    """A quiet row below the head that opens or folds the card when clicked; `right` ends at the right edge."""
    aside = look.palette.aside
    facts = [(right, aside)] if right else []
    segments = spread([(" " * _OUTPUT + text, aside)], facts, look.right, look.glyphs.ellipsis)
    return Line(segments, gutter=_OUTPUT, target=FOLD)


def _folded_diff(art: DiffArt, look: Look) -> list[Line]:
    rows, hidden, places = art.rows(look, look.right, limit=3 if look.short else 12, context=0 if look.short else 2)
    lines = [_diff_line(row, art) for row in rows]
    words = hidden_words(hidden, places, clean_line(art.path), look)
    if words:
        keys = f"Ctrl+O opens {look.glyphs.dot} /diff whole turn" if look.width >= 100 else ""
        lines.append(aside_line(words, look, keys))
    return lines


def _diff_line(row: list[Run], art: DiffArt) -> Line:
    lead = len(row[0][0]) if row else 0
    gutter = sum(len(text) for text, _ in row[:3]) if len(row) > 3 else lead
    return Line([Segment(*run) for run in row], gutter=gutter, art=art)


def _view(call: Call, look: Look, limit: int) -> list[Line]:
    view = call.shown
    if view is None:
        return []
    if isinstance(view, CardView):
        rows = [row for child in view.children for row in view_rows(child, look, look.right - _OUTPUT)]
    else:
        rows = view_rows(view, look, look.right - _OUTPUT)
    lines = [Line([Segment(" " * _OUTPUT), *(Segment(*run) for run in row)], gutter=_OUTPUT) for row in rows[:limit]]
    if len(rows) > limit:
        lines.append(aside_line(f"{look.glyphs.ellipsis} {len(rows) - limit} more", look))
    return lines


def _opened(call: Call, look: Look, arts: Sequence[DiffArt]) -> list[Line]:
    bar = Segment(look.glyphs.bar + "    ", look.palette.aside)
    if arts:
        return [*_opened_diffs(arts, look), _foot("", look)]
    if call.shown is not None:
        rows = view_rows(call.shown, look, look.right - _OUTPUT)[:200]
        return [*(Line([bar, *(Segment(*run) for run in row)], gutter=_OUTPUT) for row in rows), _foot("", look)]
    output = call.output
    if not output.count:
        said = [clean_line(line) for line in call.message.split("\n")[:_OPEN_ROWS]] if call.message else ["no output"]
        return [row for line in said for row in _output(line, look, True, look.palette.aside, bar)]
    texts = output.head(_OPEN_ROWS) if call.reading else output.tail(_OPEN_ROWS)
    lines = [row for text in texts for row in _output(text, look, call.wrapped, NONE, bar)]
    if call.name == "read":
        lines = [_numbered(line, look) for line in lines]
    first = 1 if call.reading else max(1, output.count - len(texts) + 1)
    return [*lines, _foot(f"lines {first}{look.glyphs.stopped}{first + len(texts) - 1} of {output.count}", look)]


def _opened_diffs(arts: Sequence[DiffArt], look: Look) -> list[Line]:
    lines = []
    for art in arts:
        if len(arts) > 1:
            name = _change(art.path, art.added, art.removed, look)
            lines.append(Line([Segment("  "), Segment(name, look.palette.aside)], gutter=2))
        lines += [_diff_line(row, art) for row in art.rows(look, look.right)[0]]
    return lines


def _numbered(line: Line, look: Look) -> Line:
    """A line of a file as `read` gives it: its number is an aside, and no part of what is copied."""
    if len(line.segments) < 2:
        return line
    text = line.segments[1].text
    match = _NUMBERED.match(text)
    if match is None:
        return line
    lead = match.group(1).rjust(4) + "  "
    segments = [line.segments[0], Segment(lead, look.palette.aside), Segment(text[match.end() :]), *line.segments[2:]]
    return Line(segments, gutter=_OUTPUT + len(lead), joint=line.joint)


def _foot(said: str, look: Look) -> Line:
    dot = f" {look.glyphs.dot} "
    keys = dot.join(("Enter pager", "w wrap", "y copy", "o fold") if look.width >= 80 else ("Enter pager", "o fold"))
    aside = look.palette.aside
    bar = look.glyphs.bar + "    "
    return Line(spread([(bar, aside), (said, aside)], [(keys, aside)], look.right), gutter=5, target=FOLD)
