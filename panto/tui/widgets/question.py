"""A question in the prompt's place: an approval, or what the `ask` tool wants to know.

No key counts in the first 0.4 s or while someone types, and a dangerous call needs `y`. What is typed meanwhile goes
on into the draft, which is kept and comes back. A letter answers when no other follows at once: words are never an
answer, whenever they are typed, and after them Enter is none either.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.style import Style
from textual.events import Key, MouseScrollDown, MouseScrollUp, Paste

from panto.schema.bodies import Question
from panto.schema.ops import Answer, Decide, Interrupt, Op
from panto.schema.view import DiffView, TextView
from panto.tui.now import Held
from panto.tui.sanitize import clean, clean_line
from panto.tui.widgets.asking import choice_rows, editable, edited, limits, question_letter, whole_diff, wrapped
from panto.tui.widgets.lines import Line, Run, width_of
from panto.tui.widgets.panel import PLAIN, Panel, line
from panto.tui.widgets.view import view_rows

DEAD_S = 0.4
PAUSE_S = 0.8
"""How long a person who was typing when it came must have stopped before a key is an answer."""
TYPING_S = 0.6
"""The same after a key that went into the draft while the question stood there."""
LETTER_S = 0.25
"""How long a letter waits for another one: two in a row are typing."""
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
    problem = ""  # what is wrong with the text that was given
    typed = False  # something was typed while this question stood here
    _letter = ""  # an answer that waits whether more is typed
    _letters = 0
    _page = 1  # rows of what is asked about that stand on the screen at once

    def ask(self, held: Held, last_key: float) -> None:
        """Put this question. `last_key`: when the person typed last (monotonic seconds)."""
        self.held, self.step, self.scroll, self.picked = held, "", 0, 0
        self.problem, self.typed, self._letter, self.alive_at = "", False, "", 0.0
        self.marked: set[int] = set()
        self._quiet_until(max(time.monotonic() + DEAD_S, last_key + PAUSE_S))
        self.fit()
        self.focus()

    def _quiet_until(self, until: float) -> None:
        self.alive_at = max(until, self.alive_at)
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
        view = self.question.view
        path = f"{clean_line(view.path)}  +{view.added} −{view.removed}" if isinstance(view, DiffView) else ""
        count = f"1 of {waiting} waiting" if waiting > 1 else ""
        return " · ".join(part for part in (path, count) if part)

    # --- drawing ---------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Adapt the height to what is shown."""
        width = self.screen.size.width or 80
        self.styles.height = len(self._all(width, self._room()))
        self.redraw()

    def on_resize(self) -> None:
        """Another size of the screen: the keys stay in sight."""
        if self.held is not None:
            self.fit()

    def _room(self) -> int:
        return max(4, self.screen.size.height * 6 // 10)

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The whole thing asked about, why, and the keys."""
        return self._all(width, self._room()) if self.held else []

    def _all(self, width: int, room: int) -> list[Line]:
        body, why, keys = self._body(width), self._why(width), self._keys(width)
        airy = self.question.dangerous or room >= 18
        blank = [Line(())] if airy else []
        space = room - len(why) - len(keys) - 3 * len(blank)
        if space < 3:  # all but the keys scrolls: they are never out of sight
            body, why, blank = [*body, *why], [], []
            space = max(2, self.screen.size.height - 3 - len(keys))
        self._page = space - 1  # rows beside the one that says where this is
        self.scroll = max(0, min(self.scroll, len(body) - self._page if len(body) > space else 0))
        if len(body) > space:
            shown = body[self.scroll : self.scroll + self._page]
            below = len(body) - self.scroll - len(shown)
            hint = f"    lines {self.scroll + 1}–{self.scroll + len(shown)} of {len(body)}   PageUp PageDown"
            body = [*shown, line([(hint + (f"   {below} below" if below else ""), self.palette.aside)])]
        return [*blank, *body, *(blank if why else []), *why, *blank, *keys]

    def _body(self, width: int) -> list[Line]:
        question, pad = self.question, " " * INDENT
        if question.kind == "ask":
            rows = wrapped(clean(question.title), width - INDENT - 2, _BOLD, pad)
            chosen = self.marked if question.multiple else None
            return [*rows, *choice_rows(question.choices, self.picked, chosen, self.palette, width)]
        view = question.view
        if question.tool == "bash":
            command = view.text if isinstance(view, TextView) else question.title
            return wrapped(clean(command), width - INDENT - 4, _BOLD, pad, first="$ ", style=self.palette.accent)
        if isinstance(view, DiffView):
            return [line([(pad, PLAIN), *row]) for row in whole_diff(view, self.panto.look, width - INDENT)]
        if view is not None:
            return [line([(pad, PLAIN), *row]) for row in view_rows(view, self.panto.look, width - INDENT)]
        return wrapped(clean(question.title or question.arguments), width - INDENT - 2, _BOLD, pad)

    def _why(self, width: int) -> list[Line]:
        question, aside, pad = self.question, self.palette.aside, " " * INDENT
        if self.step == "always":
            return [line([(pad + "from now on allowed:  ", PLAIN), (clean_line(question.rule), _BOLD)])]
        rows: list[Line] = []
        path = clean_line(question.view.path) if isinstance(question.view, DiffView) else ""
        path = path if width_of(path) > width - 60 else ""  # the rule has no room for it
        where = " · ".join(part for part in (path, self.cwd, *limits(question)) if part)
        if question.kind == "approval" and where:
            rows += wrapped(where, width - INDENT - 2, aside, pad)
        label = "asks because  "
        style = self.palette.attention if question.dangerous else aside
        for text in clean(question.reason).split("\n") if question.reason else []:
            rows += wrapped(text, width - INDENT - len(label) - 2, style, pad, first=label, style=style)
            label = " " * len(label)  # a reason each, one below the other
        if self.problem:
            rows += wrapped(self.problem, width - INDENT - 2, self.palette.wrong, pad)
        elif self.typed and not self.step:
            draft = clean_line(self.panto.composer.draft.opened()[-200:])
            rows += wrapped(f"typed into the prompt, which comes back: {draft}", width - INDENT - 2, aside, pad)
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
            return [("Enter", "no, and go on" if self.step == "why" else "run it like this"), ("Esc", "back")]
        if question.kind == "ask":
            pick = [("Enter", "choose")] if question.choices else []
            mark = [("Space", "mark")] if question.multiple else []
            return [*pick, *mark, ("Tab", "own words"), ("Esc", "no answer")]
        dangerous = question.dangerous
        pairs = [("y" if dangerous or self.typed else "Enter or y", "once")]
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
            self._typing(event)
        elif question_letter(event) and self.question.kind == "approval" and not self.step:
            self._letter_key(event)
        elif event.key in ("pageup", "pagedown"):
            self._scroll(-self._page if event.key == "pageup" else self._page)
        elif self.step == "always":
            self._confirm(event.key)
        elif self.question.kind == "ask":
            self._ask_key(event)
        else:
            self._approval_key(event.key)

    def on_paste(self, event: Paste) -> None:
        """A paste is never an answer to an approval: it belongs to the draft."""
        event.stop()
        if self.held is None:
            return
        if self.step in ("why", "edit"):
            self.panto.reply.on_paste(event)
        elif self.question.kind == "ask":
            self.begin("edit", clean(event.text))
        else:
            self._quiet_until(time.monotonic() + TYPING_S)
            self.typed = True
            self.panto.composer.on_paste(event)
            self.fit()

    # Typing is never an answer: a letter waits a moment for another one.

    def _typing(self, event: Key) -> None:
        """A key of someone who types: into the draft, and more quiet is wanted."""
        if event.character and event.character.isprintable():
            self._quiet_until(time.monotonic() + TYPING_S)
            self.typed = True
            self.panto.typed_early(event.key, event.character)
            self.fit()
        elif event.key == "backspace":
            self._quiet_until(time.monotonic() + TYPING_S)
            self.panto.typed_early(event.key, None)
        else:
            self._quiet_until(time.monotonic() + DEAD_S)

    def _letter_key(self, event: Key) -> None:
        if self._letter:
            first, self._letter = self._letter, ""
            self._typing(Key(first, first))
        if (event.character or " ") not in self._letters_of_answers():
            self._typing(event)
        elif self.alive:
            self._letter, self._letters = event.key, self._letters + 1
            number = self._letters
            self.set_timer(LETTER_S, lambda: self._letter_stands(number))
        else:
            self._typing(event)

    def _letters_of_answers(self) -> str:
        dangerous = self.question.dangerous
        return "yen" + ("" if dangerous else "s") + ("a" if self.question.rule and not dangerous else "")

    def _letter_stands(self, number: int) -> None:
        if self._letter and number == self._letters and self.held is not None:
            key, self._letter = self._letter, ""
            self._approval_key(key)

    def _approval_key(self, key: str) -> None:
        question = self.question
        if self._letter:  # another key right behind a letter: the letter was meant
            letter, self._letter = self._letter, ""
            self._approval_key(letter)
            return
        match key:
            case "y":
                self._decide("once")
            case "enter" if not question.dangerous and not self.typed:
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

    def _ask_key(self, event: Key) -> None:
        key, count = event.key, len(self.question.choices)
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
        elif question_letter(event) and key != "space":
            self.begin("edit", event.character or "")  # own words need no key before them
        self.redraw()

    def _confirm(self, key: str) -> None:
        if key in ("enter", "a"):
            self._decide("always")
        elif key == "escape":
            self.back()

    def begin(self, step: str, text: str) -> None:
        """Ask for a text."""
        self.step, self.problem = step, ""
        self.fit()
        self.panto.reply_wanted(text)

    def back(self) -> None:
        """From a step back to the question."""
        self.step = self.problem = ""
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
                self.problem = f"not valid JSON: {error}"
                self.fit()
                return self.problem
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
