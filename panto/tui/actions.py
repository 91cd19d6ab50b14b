"""What keys and commands do: one method for each action of the key table."""

from __future__ import annotations

import os
import time

from textual.events import Event, Key

from panto.schema.ops import Interrupt, SetMode, SetReasoning
from panto.schema.queries import AskCommands, AskHistory, AskModels
from panto.tui import manners
from panto.tui.commands import merged
from panto.tui.keys import CHORD
from panto.tui.viewing import Viewing

TWICE_S = 1.5
CHORD_SHOWN_S = 0.3
MODES = ("plan", "ask", "auto")


class Actions(Viewing, inherit_bindings=False):
    """The layer below `app`."""

    _escaped_at = -10.0
    _interrupted_at = -10.0
    chord = False

    def press(self, key: str) -> bool:
        """Do what a key stands for; False when it stands for nothing."""
        if self.chord:
            self.chord_key(key)
            return True
        action = self.keys.action(key)
        if action is None:
            return self.shortcut(key)
        if self.screen is self.main or action in ("interrupt", "redraw", "suspend"):
            getattr(self, f"action_{action}")()
        return True

    def action_send(self) -> None:
        """Send, or steer."""
        self.desk.send()

    def action_newline(self) -> None:
        """Break the line."""
        self.composer.newline()

    def action_queue(self) -> None:
        """Queue for after the turn; with nothing running there is nothing to wait for: a new line."""
        if self.now.busy:
            self.desk.send("turn")
        else:
            self.composer.newline()

    def action_take_back(self) -> None:
        """The last undelivered message back into the prompt; in the transcript: the previous prompt."""
        if self.focused is self.transcript:
            self.transcript.jump_prompt(-1)
        else:
            self.desk.take_back()

    def action_next_prompt(self) -> None:
        """The next prompt of the transcript."""
        self.transcript.jump_prompt(1)

    def action_search_history(self) -> None:
        """Search earlier prompts."""
        self.desk.search()

    def action_next_mode(self) -> None:
        """The next of plan, ask and auto."""
        mode = self.now.mode
        after = MODES[(MODES.index(mode) + 1) % 3] if mode in MODES else "ask"
        self.link.submit(SetMode(after))  # type: ignore[arg-type]

    def action_editor(self) -> None:
        """The prompt in an editor."""
        self.link.start(self.desk.edit())

    def action_paste_image(self) -> None:
        """The clipboard's picture into the prompt."""
        self.link.start(self.desk.paste_image())

    def action_escape(self) -> None:
        """Close what is in front, else stop the turn, else (twice, empty, idle) rewind."""
        now = time.monotonic()
        twice, self._escaped_at = now - self._escaped_at < TWICE_S, -10.0  # only one that closed nothing counts
        if self.screen is not self.main:
            self.close_overlay()  # it has just been opened and does not take the keys yet
        elif self.chord:
            self._end_chord()
        elif self.signing is not None:
            self.signing.end()
        elif self.reply.display:
            self.question.back()
        elif self.focused is self.transcript:
            self.back_to_prompt()
        elif self.link.early and not self.link.ready:
            self.desk.take_back()
        elif self.now.busy and not self.now.read_only:
            self.rule.stopping = True
            self.link.submit(Interrupt())
            self.sync()
        elif twice and not self.composer.draft.text and self.now.turns:
            self.action_tree()
        else:
            self._escaped_at = now

    def action_interrupt(self) -> None:
        """Copy a selection, else stop the turn, else clear; a second time: leave."""
        now = time.monotonic()
        twice, self._interrupted_at = now - self._interrupted_at < TWICE_S, now
        selected = self.transcript.selected_text() or self.composer.draft.selected()
        if selected and not twice:
            self.copy(selected)
            self._interrupted_at = -10.0
        elif twice:
            self.action_leave_now()
        elif self.now.busy and not self.now.read_only:
            self.rule.stopping = True
            self.link.submit(Interrupt())
            self.passing_hint("Ctrl+C again leaves")
        else:
            self.composer.clear()
            self.passing_hint("Ctrl+C again leaves")

    async def on_event(self, event: Event) -> None:
        """Every Ctrl+C is heard, whoever takes it; after any other key the next one is a first one again."""
        if isinstance(event, Key):
            self.some_focus()
            if event.key == "ctrl+c":
                self.heard_interrupt(time.monotonic())
            elif event.key != "ctrl+d":
                self._interrupted_at = -10.0
        await super().on_event(event)

    def action_leave(self) -> None:
        """Leave when the prompt is empty, after asking when jobs run."""
        if self.composer.draft.text:
            self.composer.edit("delete", None)
        elif self.now.status and self.now.status.jobs and time.monotonic() - self._interrupted_at > TWICE_S:
            self._interrupted_at = time.monotonic()
            self.passing_hint(f"{self.now.status.jobs} in the background end with panto · again to leave")
        else:
            self.action_leave_now()

    def action_leave_now(self) -> None:
        """Leave."""
        self.leave(0)

    def action_open_last(self) -> None:
        """Open or fold the last card; soon again: all of the turn."""
        now = time.monotonic()
        again, self._opened_at = now - self._opened_at < TWICE_S, now
        self.transcript.toggle_last(again)

    _opened_at = -10.0

    def action_transcript(self) -> None:
        """To the transcript and back."""
        if self.focused is self.transcript:
            self.back_to_prompt()
        else:
            self.transcript.focus()
            self.sync()

    def action_redraw(self) -> None:
        """Draw everything anew and go to the end."""
        self.transcript.to_end()
        self.refresh(layout=True)

    def action_page_up(self) -> None:
        """A page up."""
        self.transcript.page(-1)

    def action_page_down(self) -> None:
        """A page down."""
        self.transcript.page(1)

    def action_to_start(self) -> None:
        """To the beginning."""
        self.transcript.to_start()

    def action_to_end(self) -> None:
        """To the end."""
        self.transcript.to_end()

    def action_reasoning(self) -> None:
        """The next reasoning effort of this model."""
        self.link.start(self._next_reasoning())

    async def _next_reasoning(self) -> None:
        levels, status = await self._levels(), self.now.status
        if levels and status is not None:
            at = levels.index(status.reasoning) if status.reasoning in levels else -1
            self.link.submit(SetReasoning(levels[(at + 1) % len(levels)]))
        else:
            self.passing_hint("this model has no reasoning efforts")

    async def _levels(self) -> tuple[str, ...]:
        """The reasoning efforts of the model in use."""
        label = self.now.status.model if self.now.status is not None else ""
        rows = await self.link.ask(AskModels(words=label)) or ()
        return next((row.reasoning for row in rows if row.label == label), ())

    def action_chord(self) -> None:
        """Ctrl+X: the next letter opens something; what is possible shows after a moment."""
        self.chord = True
        names = "   ".join(f"{key} {name}" for key, name in CHORD.items())
        self.set_timer(CHORD_SHOWN_S, lambda: self.hint(names) if self.chord else None)

    def chord_key(self, key: str) -> None:
        """The letter after Ctrl+X."""
        self._end_chord()
        if key in CHORD:
            getattr(self, f"action_{CHORD[key]}")()

    def _end_chord(self) -> None:
        self.chord = False
        self.hint("")

    def action_suspend(self) -> None:
        """To the shell; `fg` comes back."""
        self.action_suspend_process()

    def action_help(self) -> None:
        """Keys and commands."""
        from panto.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen())

    def action_model(self) -> None:
        """Choose the model."""
        from panto.tui.screens.models import ModelScreen

        self.push_screen(ModelScreen())

    def action_sessions(self) -> None:
        """Choose a session."""
        from panto.tui.screens.sessions import SessionScreen

        self.push_screen(SessionScreen())

    def action_agents(self) -> None:
        """Child agents."""
        from panto.tui.screens.agents import AgentScreen

        self.push_screen(AgentScreen())

    def action_tree(self) -> None:
        """Turns."""
        from panto.tui.screens.turns import TurnScreen

        self.push_screen(TurnScreen())

    def action_settings(self) -> None:
        """What is in force."""
        from panto.tui.screens.settings import SettingScreen

        self.push_screen(SettingScreen())

    def action_waiting(self) -> None:
        """Messages that wait."""
        from panto.tui.screens.queue import QueueScreen

        self.push_screen(QueueScreen())

    def action_context(self) -> None:
        """What fills the context."""
        from panto.tui.screens.context import ContextScreen

        self.push_screen(ContextScreen())

    def action_cost(self) -> None:
        """What this session came to."""
        from panto.tui.screens.cost import CostScreen

        self.push_screen(CostScreen())

    def action_changes(self) -> None:
        """What the last turn changed in files."""
        from panto.tui.screens.changes import ChangesScreen

        self.push_screen(ChangesScreen(self.transcript.story.items))

    def action_extensions(self) -> None:
        """What was loaded, and what is wrong with it."""
        from panto.tui.screens.extensions import ExtensionScreen

        self.push_screen(ExtensionScreen())

    def action_jobs(self) -> None:
        """What runs in the background."""
        from panto.tui.screens.jobs import JobScreen

        self.push_screen(JobScreen())

    def action_tools(self) -> None:
        """What the model may call."""
        from panto.tui.screens.tools import ToolScreen

        self.push_screen(ToolScreen())

    def action_trust(self) -> None:
        """What the project brings."""
        from panto.tui.screens.trust import TrustScreen

        self.push_screen(TrustScreen())

    def action_mode(self) -> None:
        """Choose the permission mode."""
        from panto.tui.screens.choices import ModeScreen

        self.push_screen(ModeScreen(self.now.mode))

    def action_efforts(self) -> None:
        """Choose the reasoning effort."""
        self.link.start(self._choose_effort())

    async def _choose_effort(self) -> None:
        from panto.tui.screens.choices import ReasoningScreen

        levels = await self._levels()
        if levels and self.now.status is not None:
            self.push_screen(ReasoningScreen(levels, self.now.status.reasoning))
        else:
            self.say("this model has no reasoning efforts", "attention")

    def action_theme(self) -> None:
        """Choose the colours."""
        from panto.tui.screens.themes import ThemeScreen

        self.push_screen(ThemeScreen())

    def find(self, words: str) -> None:
        """Search the transcript."""
        found = self.transcript.search(words)
        if found:
            self.transcript.focus()
            self.passing_hint(f"{found} found · n p to the next")
        elif words:
            self.passing_hint("not found")

    def show_text(self, text: str) -> None:
        """A text on the whole screen."""
        from panto.tui.screens.pager import PagerScreen

        self.push_screen(PagerScreen(text))

    def show_child(self, agent: str, name: str = "") -> None:
        """A child agent's transcript, live."""
        from panto.tui.screens.agents import ChildScreen

        self.child = ChildScreen(agent, name)
        self.push_screen(self.child)

    async def ask_commands(self) -> None:
        """Know the commands there are now."""
        rows = merged(await self.link.ask(AskCommands()) or (), self.theme_name)
        if rows != self.desk.rows:
            self.desk.rows = rows
            self.desk.again()

    async def load_older(self, before: tuple[int, int]) -> None:
        """Put the page before what is loaded in front of it."""
        page = await self.link.ask(AskHistory(before=before))
        if page is not None:
            self.transcript.prepend(page)

    def copy(self, text: str) -> None:
        """Put text on the clipboard."""
        sequence = manners.copy(text)
        if not sequence:
            self.say("too long for the terminal's clipboard", "attention", "/export writes it to a file")
            return
        self.tell_terminal(sequence)
        lines = text.count("\n") + 1
        extra = " (tmux: set-clipboard on)" if os.environ.get("TMUX") else ""
        self.passing_hint(f"copied {lines} line{'s' if lines > 1 else ''}{extra}")

    def copy_answer(self) -> None:
        """Copy the last answer."""
        if self.now.answer:
            self.copy(self.now.answer)
        else:
            self.say("nothing to copy yet", "attention")
