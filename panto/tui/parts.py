"""What the application consists of; its layers stand on this: looks, frame, actions, and at the top `app`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from textual.app import App

from panto.schema.errors import PantoError
from panto.schema.signals import Left, Noticed
from panto.tui.now import Now
from panto.tui.settings import ScreenSettings
from panto.tui.widgets.completion import Completion
from panto.tui.widgets.composer import Composer
from panto.tui.widgets.question import QuestionPanel
from panto.tui.widgets.rule import Rule
from panto.tui.widgets.status import Status

if TYPE_CHECKING:
    from panto.tui.commands import Commands
    from panto.tui.early import Early
    from panto.tui.keys import Keys
    from panto.tui.link import Link
    from panto.tui.prompt import PromptDesk
    from panto.tui.terminal import Terminal
    from panto.tui.widgets.scroll import Transcript


class Parts(App[int], inherit_bindings=False):
    """The widgets are made here; `link`, `desk` and `commands` by the topmost layer, which they talk to."""

    link: Link
    desk: PromptDesk
    commands: Commands
    keys: Keys

    def __init__(self, settings: ScreenSettings, transcript: Transcript, early: Early | None) -> None:
        super().__init__(ansi_color=True)
        self.settings = settings
        self.early = early
        self.terminal: Terminal | None = early.terminal if early else None
        self.now = Now()
        self.transcript = transcript
        self.completion, self.rule, self.status = Completion(), Rule(), Status()
        self.question, self.reply, self.composer = QuestionPanel(), Composer(id="reply"), Composer(id="prompt")
        self.left: Left | None = None
        self.unfit: PantoError | None = None
        self.failure: BaseException | None = None

    def say(self, text: str, level: Literal["info", "attention", "wrong"] = "info", hint: str = "",
            key: str = "") -> None:  # fmt: skip
        """A notice of the screen's own in the transcript."""
        self.transcript.apply(Noticed(self.now.primary, text, level, hint, key))
