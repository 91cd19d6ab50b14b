"""The application: mounts the parts and routes between them; decides nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.events import Key, Resize
from textual.screen import Screen

from panto.schema.errors import Owned, PantoError
from panto.schema.ops import Op, OpenSession, Prompt, RunCommand
from panto.schema.queries import AskContributions, AskPrompts, AskStatus, History
from panto.schema.signals import (
    ContributionsChanged,
    InputReturned,
    Left,
    ReasoningStreamed,
    StatusChanged,
    TextStreamed,
    ToolProgressed,
    Update,
)
from panto.tui.actions import Actions
from panto.tui.commands import Commands
from panto.tui.keys import Keys
from panto.tui.link import Connect, Link
from panto.tui.prompt import PromptDesk
from panto.tui.screens.overlay import Overlay
from panto.tui.settings import ScreenSettings

if TYPE_CHECKING:
    from panto.tui.early import Early
    from panto.tui.widgets.scroll import Transcript

_DELTAS = (TextStreamed, ReasoningStreamed, ToolProgressed)


class MainScreen(Screen[None], inherit_bindings=False):
    """The one screen; pickers lie over it."""


class PantoApp(Actions, inherit_bindings=False):
    """Holds the line to the engine and hands on what comes from either side."""

    CSS_PATH = "panto.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None

    def __init__(self, connect: Connect, settings: ScreenSettings, transcript: Transcript,
                 early: Early | None = None) -> None:  # fmt: skip
        super().__init__(settings, transcript, early)
        self.link = Link(connect, self)
        self.keys = Keys(settings.keys)
        self.commands = Commands(self)
        self.desk = PromptDesk(self, self.composer, self.completion)
        self.begin_frame()

    def get_default_screen(self) -> Screen[None]:
        """The main screen."""
        return MainScreen()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield from (self.transcript, self.completion, self.rule, self.question, self.reply, self.composer, self.status)

    def on_mount(self) -> None:
        """The composer takes the keys, then the engine is built."""
        self.composer.focus()
        self.take_over()
        self.sync()
        self.call_after_refresh(self._connect)

    def _connect(self) -> None:
        # Returns nothing: what a callback returns, Textual waits for, and no key would be taken meanwhile.
        self.link.start(self.link.open())

    def _print_error_renderables(self) -> None:
        """A traceback is not for the terminal: `life` writes it to the log and says what to do."""

    # --- from the engine ---------------------------------------------------------------------------------------

    async def opened(self, primary: str, history: History, read_only: bool) -> None:
        """Draw a session anew."""
        self.begin_session(primary)
        self.now.read_only, self.now.partial = read_only, history.start is not None
        if read_only:
            self.link.start(self.find_holder())
        for fact in history.facts:
            self.now.apply(fact, time.monotonic())
        self.now.running = False
        self.transcript.load(history)
        fresh = not self.now.turns and history.start is None
        if fresh:
            self.transcript.greet(self.settings.greeting)
        status = await self.link.ask(AskStatus())
        contributions = await self.link.ask(AskContributions())
        if status is not None:
            self.now.apply(told := self.now.as_here(status), time.monotonic())
            self.transcript.apply(told)  # a turn that was left unfinished says so
            self.model_told(status)
        if contributions is not None:
            self.now.contributions = contributions
            self.shortcuts_told()
        await self.ask_commands()
        self.desk.remember(tuple(one.text for one in await self.link.ask(AskPrompts()) or ()))
        self.sync()
        if self.settings.opening == "sessions":
            self.action_sessions()
        if self.settings.prompt:
            self.link.submit(Prompt(self.settings.prompt))
        for problem in self.keys.problems:
            self.say(problem, "attention")
        self.keys.problems.clear()
        self.settings = self.settings._replace(prompt="", opening="")

    def update(self, update: Update) -> None:
        """Something happened: everyone concerned hears of it."""
        update = self.met(self.now.as_here(update))
        self.now.apply(update, time.monotonic())
        if update.agent in (self.now.primary, ""):
            self.transcript.apply(update)
        elif self.child is not None:
            self.child.hear(update)
        if isinstance(update, StatusChanged):
            self.model_told(update)
        elif isinstance(update, ContributionsChanged):
            self.shortcuts_told()
            self.link.start(self.ask_commands())
        elif isinstance(update, InputReturned):
            if update.agent not in (self.now.primary, ""):
                self.say(f"an agent was stopped before it heard: {update.text}", "attention")
            elif update.text in self.swallowed:
                self.swallowed.remove(update.text)
            else:
                self.desk.give_back(update.text)
        if not isinstance(update, _DELTAS):
            self.sync()

    def refused(self, op: Op | None, error: PantoError) -> None:
        """Show why, and give back what was written."""
        if isinstance(op, Prompt):
            self.desk.give_back(op.text)
        elif isinstance(op, RunCommand) and not self.composer.draft.text:
            self.composer.set_text(op.text)  # to be mended
        self.answered.clear()
        self.rule.stopping = False
        if isinstance(error, Owned) and isinstance(op, OpenSession):
            self.offer_ways(error.owner)
        else:
            self.say(error.message, "wrong", error.hint)
            if isinstance(self.screen, Overlay):
                self.screen.tell(error.message)
        self.sync()

    def unusable(self, error: PantoError) -> None:
        """Leave: whoever called says why."""
        self.unfit = error
        self.leave(2)

    def crashed(self, error: BaseException) -> None:
        """End: `life` says what failed."""
        self.failure = error
        self.exit(1, return_code=1)

    def gone(self, left: Left) -> None:
        """The engine has closed: nothing is left to show."""
        self.left = left
        self.leave(self.return_code or 0)

    # --- from the person ---------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Keys that no widget took."""
        event.stop()
        self.press(event.key)

    def on_transcript_unseen(self, message: Transcript.Unseen) -> None:
        """Rows came below a reader who scrolled up."""
        self.rule.unseen = message.count
        self.rule.redraw()

    def on_transcript_need_older(self, message: Transcript.NeedOlder) -> None:
        """The beginning of what is loaded is near."""
        self.link.start(self.load_older(message.before))

    def on_transcript_open_pager(self, message: Transcript.OpenPager) -> None:
        """Something whole."""
        self.show_text(message.text)

    def on_transcript_open_child(self, message: Transcript.OpenChild) -> None:
        """A child agent's own transcript."""
        self.show_child(message.agent)

    def on_resize(self, _event: Resize) -> None:
        """Another size."""
        self.call_after_refresh(self.place_completion)
