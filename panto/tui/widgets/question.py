"""A question in the prompt's place: an approval, or what the `ask` tool wants to know.

No key counts in the first 0.4 s or while someone types, and a dangerous call needs `y`. What is typed meanwhile goes
on into the draft, which is kept and comes back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from rich.style import Style
from textual.events import Key, MouseScrollDown, MouseScrollUp

from panto.schema.bodies import Question
from panto.schema.ops import Answer, Decide, Interrupt, Op
from panto.schema.view import DiffView, TextView
from panto.tui.now import Held
from panto.tui.sanitize import clean, clean_line
from panto.tui.widgets.lines import Line, Run, width_of, wrap
from panto.tui.widgets.panel import PLAIN, Panel, line, sides
from panto.tui.widgets.view import view_rows

DEAD_S = 0.4
INDENT = 4
_BOLD = Style(bold=True)


class QuestionPanel(Panel, can_focus=True):
    """Asks `held`. `step`: "" the question itself, "why" or "edit" while the reply is written, "always" to confirm."""

    held: Held | None = None
    step = ""
    cwd = ""
    alive_at = 0.0
    scroll = 0
    picked = 0
    _more = 0

    def ask(self, held: Held, last_key: float) -> None:
        """Put this question. `last_key`: when the person typed last (monotonic seconds)."""
        self.held, self.step, self.scroll, self.picked = held, "", 0, 0
        self.marked: set[int] = set()
        self._quiet_until(max(time.monotonic(), last_key))
        self.fit()
        self.focus()

    def _quiet_until(self, since: float) -> None:
        self.alive_at = since + DEAD_S
        self.set_timer(max(0.01, self.alive_at - time.monotonic()) + 0.01, self.redraw)

    @property
    def alive(self) -> bool:
        """Whether keys count by now."""
        return time.monotonic() >= self.alive_at

    @property
    def question(self) -> Question:
        """What is asked."""
        assert self.held is not None
        return self.held.question

    def title(self) -> str:
        """The words in the rule."""
        who = f"{clean_line(self.question.child)}: " if self.question.child else ""
        if self.question.kind == "ask":
            return who + "a question"
        if self.step == "why":
            return who + "no, because"
        tool = self.question.tool
        words = {"bash": "run this command?", "edit": "make this edit?", "write": "write this file?"}
        danger = "dangerous: " if self.question.dangerous else ""
        return who + danger + words.get(tool, f"allow {clean_line(tool)}?")

    def fact(self, waiting: int) -> str:
        """The words at the rule's right end."""
        if waiting > 1:
            return f"1 of {waiting} waiting"
        view = self.question.view
        return f"{clean_line(view.path)}  +{view.added} −{view.removed}" if isinstance(view, DiffView) else ""

    # --- drawing ---------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Adapt the height to what is shown."""
        width = self.screen.size.width or 80
        self.styles.height = len(self._all(width, self._room()))
        self.redraw()

    def _room(self) -> int:
        return max(4, self.screen.size.height * 6 // 10)

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The whole thing asked about, why, and the keys."""
        return self._all(width, self._room()) if self.held else []

    def _all(self, width: int, room: int) -> list[Line]:
        body, why, keys = self._body(width), self._why(width), self._keys(width)
        airy = self.question.dangerous or room >= 18
        blank = [Line(())] if airy else []
        space = max(3, room - len(why) - len(keys) - 3 * len(blank))
        self._more = max(0, len(body) - space)
        self.scroll = max(0, min(self.scroll, self._more))
        if self._more:
            shown = body[self.scroll : self.scroll + space - 1]
            below = len(body) - self.scroll - len(shown)
            hint = f"    lines {self.scroll + 1}–{self.scroll + len(shown)} of {len(body)}   PageUp PageDown"
            body = [*shown, line([(hint + (f"   {below} below" if below else ""), self.palette.aside)])]
        return [*blank, *body, *(blank if why else []), *why, *blank, *keys]

    def _body(self, width: int) -> list[Line]:
        question, pad = self.question, " " * INDENT
        if question.kind == "ask":
            rows = _wrapped(clean(question.title), width - INDENT - 2, _BOLD, pad)
            return [*rows, *self._choices(width)]
        view = question.view
        if question.tool == "bash":
            command = view.text if isinstance(view, TextView) else question.title
            return _wrapped(clean(command), width - INDENT - 4, _BOLD, pad, first="$ ", style=self.palette.accent)
        if view is not None:
            return [line([(pad, PLAIN), *row]) for row in view_rows(view, self.panto.look, width - INDENT)]
        return _wrapped(clean(question.title or question.arguments), width - INDENT - 2, _BOLD, pad)

    def _choices(self, width: int) -> list[Line]:
        rows: list[Line] = []
        for at, choice in enumerate(self.question.choices):
            here = at == self.picked
            mark = ("[x] " if at in self.marked else "[ ] ") if self.question.multiple else ""
            runs = [("  ▸ " if here else "    ", self.palette.accent), (f"{at + 1}  {mark}{clean_line(choice)}", PLAIN)]
            rows.append(sides(runs, [], width, self.palette.current if here else None))
        return rows

    def _why(self, width: int) -> list[Line]:
        question, aside, pad = self.question, self.palette.aside, " " * INDENT
        if self.step == "always":
            return [line([(pad + "from now on allowed:  ", PLAIN), (clean_line(question.rule), _BOLD)])]
        rows: list[Line] = []
        if question.kind == "approval" and self.cwd:
            rows.append(line([(pad + self.cwd, aside)]))
        for text in clean(question.reason).split("\n") if question.reason else []:
            style = self.palette.attention if question.dangerous else aside
            label = "asks because  " if not rows or len(rows) == 1 else ""
            rows += _wrapped(label + text, width - INDENT - 2, style, pad)
        return rows

    def _keys(self, width: int) -> list[Line]:
        pairs = self._pairs()
        colours = self.palette
        rows: list[list[Run]] = [[(" " * INDENT, PLAIN)]]
        used = INDENT
        for key, meaning in pairs:
            size = width_of(key) + width_of(meaning) + 6
            if used + size > width and used > INDENT:
                rows.append([(" " * INDENT, PLAIN)])
                used = INDENT
            style = colours.accent if self.alive else colours.aside
            rows[-1] += [(key, style), (f"  {meaning}    ", colours.aside)]
            used += size
        return [line(row) for row in rows]

    def _pairs(self) -> list[tuple[str, str]]:
        question = self.question
        if self.step == "always":
            return [("Enter", "save this rule"), ("Esc", "back")]
        if self.step:
            return [("Enter", "no, and go on" if self.step == "why" else "run it so"), ("Esc", "back")]
        if question.kind == "ask":
            pick = [("Enter", "choose")] if question.choices else []
            mark = [("Space", "mark")] if question.multiple else []
            return [*pick, *mark, ("Tab", "own words"), ("Esc", "no answer")]
        dangerous = question.dangerous
        pairs = [("y" if dangerous else "Enter or y", "once")]
        if not dangerous:
            edits = question.tool in ("edit", "write")
            pairs.append(("s", "edits in this session" if edits else "this session"))
            if question.rule:
                pairs.append(("a", "always (shows the rule)"))
        return [*pairs, ("e", "edit first"), ("n", "no, go on"), ("Tab", "no, and why"), ("Esc", "no, stop")]

    # --- keys ------------------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Answer; early keys go to the draft, unknown ones to the application."""
        if self.held is None or event.key in ("ctrl+c", "f1", "ctrl+l", "ctrl+t", "ctrl+z", "ctrl+o", "ctrl+d"):
            return
        event.stop()
        if self.step in ("why", "edit"):  # the keys behind Tab or e, before the focus has moved
            self.panto.reply.on_key(event)
        elif not self.alive and event.key != "escape":
            self._quiet_until(time.monotonic())
            if event.character and event.character.isprintable():
                self.panto.typed_early(event.key, event.character)
        elif event.key in ("pageup", "pagedown"):
            self._scroll(-8 if event.key == "pageup" else 8)
        elif self.step == "always":
            self._confirm(event.key)
        elif self.question.kind == "ask":
            self._ask_key(event.key)
        else:
            self._approval_key(event.key)

    def _approval_key(self, key: str) -> None:
        question = self.question
        match key:
            case "y":
                self._decide("once")
            case "enter" if not question.dangerous:
                self._decide("once")
            case "s" if not question.dangerous:
                self._decide("session")
            case "a" if not question.dangerous and question.rule:
                self.step = "always"
                self.fit()
            case "n":
                self._decide("no")
            case "tab":
                self.begin("why", "")
            case "e":
                self.begin("edit", editable(question))
            case "escape":
                self._send(Interrupt())
            case "up" | "down":
                self._scroll(-1 if key == "up" else 1)
            case _:
                pass

    def _ask_key(self, key: str) -> None:
        count = len(self.question.choices)
        if key in ("up", "down") and count:
            self.picked = (self.picked + (1 if key == "down" else -1)) % count
        elif key.isdigit() and 0 < int(key) <= count:
            self.picked = int(key) - 1
            if self.question.multiple:
                self.marked ^= {self.picked}
        elif key == "space" and self.question.multiple:
            self.marked ^= {self.picked}
        elif key == "enter" and count:
            chosen = sorted(self.marked) or [self.picked]
            self._answer(choices=tuple(self.question.choices[at] for at in chosen))
        elif key == "tab" or (key == "enter" and not count):
            self.begin("edit", "")
        elif key == "escape":
            self._answer(refused=True)
        self.redraw()

    def _confirm(self, key: str) -> None:
        if key in ("enter", "a"):
            self._decide("always")
        elif key == "escape":
            self.back()

    def begin(self, step: str, text: str) -> None:
        """Ask for a text."""
        self.step = step
        self.fit()
        self.panto.reply_wanted(text)

    def back(self) -> None:
        """From a step back to the question."""
        self.step = ""
        self.panto.reply_wanted(None)
        self.fit()
        self.focus()

    def replied(self, text: str) -> str:
        """The text was given; returns what is wrong with it, "" when it was taken."""
        if self.question.kind == "ask":
            self._answer(text=text)
        elif self.step == "why":
            self._decide("no", reason=text)
        else:
            try:
                arguments = edited(self.question, text)
            except ValueError as error:
                return f"not valid JSON: {error}"
            self._decide("once", arguments=arguments)
        return ""

    def _decide(self, decision: str, reason: str = "", arguments: str = "") -> None:
        assert self.held is not None
        self._send(Decide(self.held.call, decision, reason, arguments, self.held.agent))  # type: ignore[arg-type]

    def _answer(self, text: str = "", choices: tuple[str, ...] = (), refused: bool = False) -> None:
        assert self.held is not None
        self._send(Answer(self.held.call, text, choices, refused, self.held.agent))

    def _send(self, op: Op) -> None:
        assert self.held is not None
        if self.step:
            self.panto.reply_wanted(None)
        self.step = ""
        self.panto.decided(self.held, op)

    def _scroll(self, rows: int) -> None:
        self.scroll += rows
        self.redraw()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Show more."""
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Show what was before."""
        event.stop()
        self._scroll(-3)


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


def _wrapped(text: str, width: int, body: Style, pad: str, first: str = "", style: Style = PLAIN) -> list[Line]:
    rows: list[Line] = []
    for part in text.split("\n"):
        for segments, _ in wrap([(part, body)], max(8, width)):
            lead = first if not rows else " " * width_of(first)
            rows.append(line([(pad, PLAIN), (lead, style), *((s.text, s.style or PLAIN) for s in segments)]))
    return rows



