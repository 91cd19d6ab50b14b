"""Facts and views as plain lines: what a screen reader reads out and any terminal can print."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import assert_never

from panto.schema.bodies import Question, ToolOutcome
from panto.schema.events import ToolCallFailed
from panto.schema.queries import ProjectTrust
from panto.schema.records import call_status, outcome_text
from panto.schema.view import CardView, DiffView, ListView, ProgressView, TableView, TextView, View

MOST_LINES = 40
"""Of one view; the end of it is what counts."""


def clean(text: str) -> str:
    """Text without anything that moves a cursor or hides: control and format characters, line ends and tabs kept."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


def seconds(wait_s: float) -> str:
    """A wait for people: whole seconds, and tenths of a short one."""
    return f"{wait_s:.0f} s" if wait_s >= 3 else f"{wait_s:.1f} s"


def view_lines(view: View) -> Iterator[str]:
    """A view as lines, not cleaned."""
    match view:
        case TextView():
            yield from view.text.splitlines()
        case ListView():
            yield from view.items
        case TableView():
            yield "  ".join(view.columns)
            yield from ("  ".join(row) for row in view.rows)
        case DiffView():
            yield f"{view.path}: {view.added} added, {view.removed} removed"
            for hunk in view.hunks:
                yield f"at line {hunk.new_start}:"
                yield from (f"{kind or ' '} {line}" for kind, line in hunk.lines)
        case ProgressView():
            yield view.label + ("" if view.share is None else f" {view.share:.0%}")
        case CardView():
            yield " ".join(part for part in (view.title, view.fact) if part)
            for child in view.children:
                yield from (f"  {line}" for line in view_lines(child))
        case _:
            assert_never(view)


def bounded(lines: list[str], most: int = MOST_LINES) -> list[str]:
    """The last lines, and how many were left out."""
    left_out = len(lines) - most
    return [f"({left_out} lines before these)", *lines[-most:]] if left_out > 0 else lines


SUBJECT = 100
"""Characters of what a call is about."""


def call_words(name: str, given: object) -> str:
    """A call as a person is told of it: the tool and its first text argument, on one line, bounded."""
    texts = [value for value in given.values() if isinstance(value, str)] if isinstance(given, dict) else []
    subject = " ".join(next(iter(texts), "").split())
    return f"{name} {subject[:SUBJECT]}{'…' if len(subject) > SUBJECT else ''}".strip()


def call_lines(name: str, outcome: ToolOutcome | None, failed: ToolCallFailed | None) -> list[str]:
    """What a finished call came to."""
    words = [name, outcome.title if outcome else "", outcome.fact if outcome else ""]
    if failed:
        words.append(f"{call_status(failed)}: {failed.message}")
        unknown = failed.effects == "unknown" or failed.outcome == "unknown"
        if unknown and "may have had effects" not in failed.message:
            words.append("(it may have had effects)")
    elif outcome and outcome.is_error:
        words.append("failed")
    lines = [" ".join(word for word in words if word)]
    if outcome and outcome.view and (failed or outcome.is_error or isinstance(outcome.view, DiffView)):
        lines += bounded([f"  {line}" for line in view_lines(outcome.view)])
    return lines


def shell_lines(command: str, outcome: ToolOutcome) -> list[str]:
    """What a person's own command printed, and how it ended."""
    printed = outcome_text(outcome, "(no output)").rstrip("\n").split("\n")
    return [f"$ {command}", *bounded(printed), *([f"({outcome.fact})"] if outcome.fact else [])]


def question_lines(question: Question) -> list[str]:
    """A question with everything its answer depends on, and the words that answer it."""
    if question.kind == "ask":
        lines = [f"Question: {question.title}"]
        lines += [f"  {number}. {choice}" for number, choice in enumerate(question.choices, 1)]
        how = "Type your answer."
        if question.choices:
            how = "Type the numbers, or your own words." if question.multiple else "Type a number, or your own words."
        return [*lines, how]
    who = f" (child {question.child})" if question.child else ""
    lines = [f"Allow {question.tool} {question.title}?{who}"]
    if question.reason:
        lines.append("  because: " + "; ".join(question.reason.splitlines()))
    if question.limits:
        lines.append(f"  {question.limits}")
    if question.dangerous:
        lines.append("  careful: this cannot be undone")
    if question.view:
        lines += [f"  {line}" for line in view_lines(question.view)]
    elif question.arguments:
        lines.append(f"  {question.arguments}")
    always = f" | always (rule: {question.rule})" if question.rule else ""
    edit = "edit COMMAND" if question.tool == "bash" else "edit {arguments}"
    return [*lines, f"Type: once | session{always} | {edit} | no | no and why"]


def trust_lines(shown: ProjectTrust) -> list[str]:
    """What a project brings, a line for each thing that would happen, and how things stand."""
    if not shown.folder:
        return ["This project brings nothing that would run."]
    lines = [f"{shown.folder} brings:"]
    lines += [f"  {row.path}: {row.what}{'  (changed)' if row.changed else ''}" for row in shown.rows]
    if shown.agreed:
        lines.append("You have agreed to exactly this.")
    return [*lines, shown.why] if shown.why else lines
