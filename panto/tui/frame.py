"""Keeps the rows around the transcript true: rule, question or composer, status, hints, cursor, title."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, cast

from textual.events import AppBlur, AppFocus, DescendantFocus, Key, MouseScrollDown, MouseScrollUp
from textual.screen import Screen
from textual.timer import Timer

from panto.schema.ops import Op, RunCommand
from panto.schema.queries import AskCompletions
from panto.schema.signals import StatusChanged
from panto.tui import manners
from panto.tui.draft import clean
from panto.tui.driver import PantoDriver
from panto.tui.keyboard import ground_in, width_in
from panto.tui.keys import spell
from panto.tui.looks import Looks
from panto.tui.now import Held, Now
from panto.tui.prompt import run_outside
from panto.tui.widgets.composer import Desk
from panto.tui.widgets.status import short_model, short_path

if TYPE_CHECKING:
    from panto.tui.screens.agents import ChildScreen
    from panto.tui.signing import KeyDesk

TICK_S = 0.125
HINT_S = 2.0
READING = "reading · j k move · n p prompts · o open · y copy · / search · Esc back"
READING_NARROW = "reading · F1 keys · Esc back"
SEARCHING = "searching · n p to the next · Esc ends it"


class ReplyDesk(Desk):
    """Behind the text that a question asks for."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def key(self, event: Key) -> bool:
        """Enter answers; everything else edits or goes on."""
        action = self._frame.keys.action(event.key)
        if action == "newline":
            self._frame.reply.newline()
        elif action == "send":
            problem = self._frame.question.replied(self._frame.reply.draft.text)
            if problem:
                self._frame.passing_hint(problem)
        return action in ("newline", "send")

    def pasted(self, text: str) -> None:
        """Into the text, as it is."""
        self._frame.reply.draft.insert(clean(text))
        self._frame.reply.touched()


class Frame(Looks, inherit_bindings=False):
    """The layer between colours and actions."""

    main: Screen[object]
    looked_at = True
    last_key = -10.0
    _ticking: Timer | None = None
    _asked: Held | None = None
    _was_busy = False
    _title = ""
    leaving = False
    _passing = ""
    _model_told = ""
    child: ChildScreen | None = None
    signing: KeyDesk | None = None

    def begin_frame(self) -> None:
        """Before anything is mounted."""
        self.answered: set[str] = set()
        self.swallowed: list[str] = []
        self._warned: set[str] = set()
        self.begin_looks()
        self.begin_session("")

    def begin_session(self, primary: str) -> None:
        """Another session is shown."""
        contributions = self.now.contributions
        self.now = Now(primary=primary, contributions=contributions)
        self.answered.clear()
        self.rule.now = self.status.now = self.now
        self.rule.stopping = False
        self.status.cwd = self.settings.cwd

    def take_over(self) -> None:
        """The composer has the focus: take what was typed into the first frame, and let keys come."""
        self._ticking = self.set_interval(TICK_S if self.motion else 1.0, self._tick, pause=True)
        self.main = self.screen
        driver = self._driver
        if isinstance(driver, PantoDriver):
            if self.early is not None:
                shown, driver.first = self.early.stop()
                self.told_early(ground_in(driver.first), width_in(driver.first))
                if shown:
                    self.composer.set_text(shown)
                self.early = None
            driver.ready.set()
        self.transcript.greet(self.settings.greeting)
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)

    # --- what is going on --------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make the rows around the transcript say what is true now."""
        now = self.now
        self.rule.unseen = self.transcript.unseen
        if not now.busy:
            self.rule.stopping = False
        held = next((one for one in now.asked if one.call not in self.answered), None)
        held = held if self.signing is None else None  # no question while a key is being typed
        if held is not self._asked:
            self._show_question(held)
        self._hint_waiting()
        if self._ticking is not None:
            if now.busy or now.retry is not None:
                self._ticking.resume()
            else:
                self._ticking.pause()
        self._announce(held)
        if self.composer.placeholder != self._invitation():
            self.composer.placeholder = self._invitation()
            self.composer.redraw()
        self.rule.redraw()
        self.status.redraw()
        self.brought_themes()

    def _invitation(self) -> str:
        if self.now.read_only:
            return "only viewed here   Enter: fork it or take it over"
        no_model = self.now.status is not None and not self.now.status.model
        return "you can type already; it is sent when a model is there" if no_model else ""

    def _tick(self) -> None:
        self.step += 1
        self.rule.redraw()

    def activity(self) -> str:
        """What runs, in the words of the transcript."""
        return self.transcript.activity(self.transcript.clock()) or "working"

    def shortcuts_told(self) -> None:
        """Say once which keys of extensions are taken already."""
        for one in self.now.contributions.shortcuts:
            action = self.keys.action(one.key)
            if action is not None and one.key not in self._warned:
                self._warned.add(one.key)
                what = f"{spell(one.key)} is taken by panto ({action.replace('_', ' ')}): the shortcut of an extension"
                self.say(f"{what} for {one.command or one.description} does not work", "attention",
                         f'[keys] {action} = "…" in config.toml frees the key')  # fmt: skip

    def model_told(self, status: StatusChanged) -> None:
        """Find out whether the model's short name says which it is."""
        if status.model and status.model != self._model_told:
            self._model_told = status.model
            self.link.start(self._ask_names(status.model))

    async def _ask_names(self, label: str) -> None:
        short = short_model(label)
        labels = await self.link.ask(AskCompletions("model", short), quiet=True) or ()
        others = [one for one in labels if one != label and short_model(one) == short]
        self.status.full_name = bool(others)
        self.status.redraw()

    def shortcut(self, key: str) -> bool:
        """A key an extension took; False when none did."""
        taken = next((one for one in self.now.contributions.shortcuts if one.key == key), None)
        if taken is not None:
            self.link.submit(RunCommand(taken.command))
        return taken is not None

    # --- questions ---------------------------------------------------------------------------------------------

    def _show_question(self, held: Held | None) -> None:
        self._asked = held
        self.reply.display = False
        self.composer.display = held is None
        self.question.display = held is not None
        self.rule.left = ""
        if held is None:
            self.question.held = None
            self.hint("")
            self.composer.focus()
            return
        self.completion.close()
        self.question.cwd = short_path(self.now.status.cwd if self.now.status else "")
        self.question.ask(held, self.last_key)

    def _hint_waiting(self) -> None:
        if self._asked is not None:
            waiting = sum(1 for one in self.now.asked if one.call not in self.answered)
            self.rule.left = self.question.title()
            self.rule.right = self.question.fact(waiting)

    def decided(self, held: Held, op: Op) -> None:
        """An answer: to the engine; the next question may come."""
        self.answered.add(held.call)
        self.link.submit(op)
        self.sync()

    def reply_wanted(self, text: str | None) -> None:
        """A text is wanted, None: not any more."""
        self.reply.display = text is not None
        if text is not None:
            self.reply.desk = ReplyDesk(self)
            self.reply.clear()
            self.reply.set_text(text)
            self.reply.focus()
        self._hint_waiting()
        self.rule.redraw()

    def typed_over(self, event: Key) -> bool:
        """A character that means nothing in the transcript is the beginning of a prompt; whether it was one."""
        typed = event.character is not None and event.character.isprintable() and self.keys.action(event.key) is None
        if self._asked is not None or self.signing is not None or self.screen is not self.main or not typed:
            return False
        self.main.set_focus(self.composer)  # at once: the next key is already on its way
        begins = event.character == "/" and not self.composer.draft.text
        self.composer.edit(event.key, event.character)
        if begins:
            self.composer.set_text("/search ")  # as in every pager
        return True

    def typed_early(self, key: str, character: str | None) -> None:
        """A key that came before the question was alive belongs to the draft."""
        self.last_key = time.monotonic()
        self.composer.edit(key, character)

    def back_to_prompt(self) -> None:
        """Focus where typing goes."""
        self.main.set_focus(self.reply if self.signing else self.question if self._asked else self.composer)
        self.sync()

    def some_focus(self) -> None:
        """A key goes somewhere: Textual takes the focus away for a mouse that is reported outside the screen."""
        if not self._running or self.screen.focused is not None:
            return
        if self.screen is self.main:
            self.back_to_prompt()
        else:
            self.screen.focus_next()

    # --- hints, title, notices ---------------------------------------------------------------------------------

    def hint(self, text: str) -> None:
        """Words at the rule's right end, "" the mode again; a passing hint that stands there passes by itself."""
        if self._asked is None and self.rule.right != text and (text or self.rule.right != self._passing):
            self.rule.right = text
            self.rule.redraw()

    def focus_moved(self) -> None:
        """Say how to come back from the transcript."""
        reading = self.focused is self.transcript
        words = (READING if self.size.width >= 110 else READING_NARROW) if reading else ""
        words = SEARCHING if reading and self.transcript.view.search is not None else words
        own = self.rule.right in ("", READING, READING_NARROW, SEARCHING)
        if self._asked is None and own and self.rule.right != words:
            self.rule.right = words
            self.rule.redraw()

    def passing_hint(self, text: str) -> None:
        """A hint that goes by itself."""
        self.rule.right = self._passing = text
        self.rule.redraw()
        self.set_timer(HINT_S, lambda: self._hint_over(text))

    def _hint_over(self, text: str) -> None:
        if self._passing == text:
            self._passing = ""
        if self.rule.right == text:
            self.rule.right = ""
            self._hint_waiting()
            self.focus_moved()
            self.rule.redraw()

    def say_sent(self, text: str) -> None:
        """A prompt was sent; before the engine is there, show that it is kept."""
        if not self.link.ready:
            self.say(f"» {text}", hint="sent as soon as panto is ready", key="early")

    def _announce(self, held: Held | None) -> None:
        busy = self.now.busy
        if held is None and self._was_busy and not busy:
            self._call_for("panto: done")
        self._was_busy = busy
        sign = "? " if held else "⠿ " if busy else ""
        name = (self.now.status.title if self.now.status else "") or short_path(self.settings.cwd)
        title = f"{sign}panto · {name}" if name else f"{sign}panto"
        if title != self._title:
            if held and not self._title.startswith("?"):
                self._call_for("panto asks: " + self.question.title())
            self._title = title
            self.tell_terminal(manners.title(title))

    def _call_for(self, text: str) -> None:
        if not self.looked_at and self.settings.notify:
            self.tell_terminal(manners.notice(text))

    def tell_terminal(self, sequence: str) -> None:
        """Write a sequence that draws nothing."""
        if self._driver is not None and not self._driver.is_headless:
            self._driver.write(sequence)

    # --- places ------------------------------------------------------------------------------------------------

    def place_completion(self) -> None:
        """Directly above the rule."""
        if self.completion.display:
            rows = self.completion.styles.height
            height = int(rows.value) if rows is not None else 1
            self.completion.styles.offset = (0, max(0, self.rule.region.y - height))

    @property
    def cursor_shown(self) -> str:
        """The sequence that shows or hides the terminal's cursor."""
        return "\x1b[?25h" if getattr(self.focused, "shows_cursor", False) else "\x1b[?25l"

    def _begin_update(self) -> None:
        self.tell_terminal("\x1b[?2026h\x1b[?25l")

    def _end_update(self) -> None:
        self.tell_terminal(f"{self.cursor_shown}\x1b[?2026l")

    async def outside(self, command: list[str]) -> int:
        """Run a program on the terminal, panto out of the way; returns its exit code. Raises OSError."""
        with self.suspend():
            code = await run_outside(command)
        cast(PantoDriver, self._driver).ready.set()
        self.refresh(layout=True)
        return code

    def close_overlay(self) -> None:
        """Back to what lies below."""
        if self.screen is not self.main:
            self.child = None if self.screen is self.child else self.child
            self.pop_screen()

    def swallow(self, text: str) -> None:
        """This text is about to come back, and not for the prompt."""
        self.swallowed.append(text)

    def heard_interrupt(self, now: float) -> None:
        """The loop lives: the driver need not help."""
        if isinstance(self._driver, PantoDriver):
            self._driver.heard = now

    def take_completion(self) -> None:
        """A click chose a row."""
        self.desk.take()

    def leave(self, code: int) -> None:
        """Shut the engine down, then end."""
        if not self.leaving:
            self.leaving = True
            self.now.unfinished = self.now.busy or bool(self.now.status and self.now.status.parked)
            self.hint("leaving")
            self.link.start(self._leave(code))

    async def _leave(self, code: int) -> None:
        await self.link.close()
        self.exit(code, return_code=code)

    # --- from the terminal ---------------------------------------------------------------------------------------

    def on_descendant_focus(self, _event: DescendantFocus) -> None:
        """The keys go elsewhere now."""
        self.focus_moved()

    def on_mouse_scroll_up(self, _event: MouseScrollUp) -> None:
        """The wheel beside the transcript means it all the same."""
        self.transcript.scroll_rows(-3)

    def on_mouse_scroll_down(self, _event: MouseScrollDown) -> None:
        """The other way."""
        self.transcript.scroll_rows(3)

    def on_app_blur(self, event: AppBlur) -> None:
        """The person looks elsewhere. Textual would take the focus away meanwhile, and not always give it back."""
        event.prevent_default()
        self.looked_at = False

    def on_app_focus(self, event: AppFocus) -> None:
        """The person is back."""
        event.prevent_default()
        self.looked_at = True
