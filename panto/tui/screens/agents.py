"""Child agents, and the transcript of one of them, live: read, told something, stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual.events import Key, Paste

from panto.schema.ops import Interrupt, Prompt, RunCommand
from panto.schema.queries import AgentRow, AskAgents, AskHistory
from panto.schema.signals import Update
from panto.tui.draft import Draft, clean
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import tokens
from panto.tui.widgets.lines import Line, Run
from panto.tui.widgets.panel import PLAIN, Panel, line, ruled
from panto.tui.widgets.picker import Entry, PickerPanel
from panto.tui.widgets.scroll import Transcript
from panto.tui.widgets.status import short_model

if TYPE_CHECKING:
    from panto.tui.app import PantoApp

RESUME = "agents.resume"
"""The command, of an extension, that goes on with an agent that rests."""

FRESH_S = 1.0


def can_resume(app: PantoApp) -> bool:
    """Whether something here can go on with an agent that rests."""
    return any(row.name.lstrip("/") == RESUME for row in app.desk.rows)


async def tell(app: PantoApp, agent: str, text: str) -> None:
    """Steer an agent that runs, or go on with one that rests."""
    rows = await app.link.ask(AskAgents()) or ()
    running = any(row.id == agent and row.state == "running" for row in rows)
    if running:
        app.link.submit(Prompt(text, agent=agent))
    elif can_resume(app):
        app.link.submit(RunCommand(f"/{RESUME} {agent} {text}"))
    else:
        app.say("this agent rests, and no extension here goes on with one", "attention")


class Agents(PickerPanel):
    """The children of this session."""

    title = "agents"
    empty = "no child agents in this session"
    hints = (("Enter", "its transcript"), ("Ctrl+T", "tell it something"), ("Ctrl+D", "stop it"), ("Esc", "back"))
    saves = "tell it"

    def on_mount(self) -> None:
        """Load, and again while it is open."""
        super().on_mount()
        self.set_interval(FRESH_S, self.reload)

    async def load(self) -> None:
        """Ask for them."""
        rows = await self.panto.link.ask(AskAgents()) or ()
        self.entries = [self._row(row) for row in rows]
        count = sum(row.state == "running" for row in rows)
        self.right = f"{count} running" if count else ""

    def _row(self, row: AgentRow) -> Entry:
        colours, glyphs = self.palette, self.glyphs
        mark: Run = {
            "running": (self.panto.spinner, colours.accent), "completed": (glyphs.ok, colours.aside),
            "failed": (glyphs.failed, colours.wrong), "idle": (glyphs.dot, colours.aside),
        }.get(row.state, (glyphs.stopped, colours.attention))  # fmt: skip
        facts = f"{clean_line(short_model(row.model), 24):<16}{row.state:<12}"
        right: list[Run] = [(facts + f"{tokens(row.tokens):>6}", colours.aside)]
        return Entry(row, [mark, (" " + (clean_line(row.name) or row.id[:8]), PLAIN)], right)

    def choose(self, entry: Entry) -> None:
        """Open its transcript."""
        self.panto.show_child(entry.value.id, clean_line(entry.value.name))

    def other(self, key: str, entry: Entry | None) -> bool:
        """Stop one, or say something to it."""
        if entry is None or key not in ("ctrl+d", "ctrl+t"):
            return False
        if key == "ctrl+d" and entry.value.state == "running":
            self.panto.link.submit(Interrupt(agent=entry.value.id))
            self.reload()
        elif key == "ctrl+t":
            self.naming = Draft()
            self.redraw()
        return True

    def named(self, entry: Entry | None, text: str) -> None:
        """What it is told."""
        if entry is not None and text:
            self.panto.link.start(tell(self.panto, entry.value.id, text))


class AgentScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Agents())


class ChildFoot(Panel, can_focus=True):
    """Two rows: whose transcript it is, and the keys, or what is being written to it."""

    def __init__(self, agent: str, name: str, transcript: Transcript) -> None:
        super().__init__()
        self.agent, self.name_, self.transcript = agent, name or agent[:8], transcript
        self.draft: Draft | None = None

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The rule and the hints."""
        aside, accent = self.palette.aside, self.palette.accent
        activity = self.transcript.activity(time.time())
        left: list[Run] = [(self.name_, PLAIN)] + ([(f" · {activity}", aside)] if activity else [])
        rule = ruled(left, [], width, aside, self.glyphs.rule)
        if self.draft is not None:
            shown = self.draft.text[-max(10, width - 6) :]
            return [rule, line([("› ", accent), (shown, PLAIN), (self.glyphs.bar, accent)])]
        pairs = (("Esc", "back"), ("t", "tell it something"), ("Ctrl+D", "stop it"), ("n p", "prompts"), ("o", "open"))
        return [rule, line([run for key, says in pairs for run in ((f"  {key}", accent), (f" {says}", aside))])]

    def write(self) -> None:
        """Take the keys."""
        self.draft = Draft()
        self.focus()
        self.redraw()

    def on_key(self, event: Key) -> None:
        """What is written; Enter sends it."""
        if self.draft is None or event.key in ("ctrl+l", "ctrl+z"):
            return
        event.stop()
        if event.key == "enter" and self.draft.text.strip():
            self.panto.link.start(tell(self.panto, self.agent, self.draft.text.strip()))
        if event.key in ("enter", "escape", "ctrl+c"):
            self.draft = None
            self.transcript.focus()
        elif event.key == "backspace":
            self.draft.backspace()
        elif event.key == "ctrl+u":
            self.draft.kill(0, self.draft.cursor)
        elif event.character and event.character.isprintable() and not event.key.startswith(("ctrl+", "alt+")):
            self.draft.insert(event.character)
        self.redraw()

    def on_paste(self, event: Paste) -> None:
        """Pasted into what is written."""
        event.stop()
        if self.draft is not None:
            self.draft.insert(clean(event.text).replace("\n", " "))
            self.redraw()


class ChildScreen(Overlay):
    """One child's transcript; updates of `agent` come by `hear`."""

    def __init__(self, agent: str, name: str = "") -> None:
        self.agent = agent
        self.transcript = Transcript(id="transcript")
        self.foot = ChildFoot(agent, name, self.transcript)
        super().__init__(self.transcript, self.foot)

    @property
    def panto(self) -> PantoApp:
        """The application, by its own type."""
        return cast("PantoApp", self.app)

    def on_mount(self) -> None:
        """Load what there is."""
        self.transcript.focus()
        self.set_interval(1.0, self.foot.redraw)
        self.panto.link.start(self._load())

    async def _load(self) -> None:
        history = await self.panto.link.ask(AskHistory(agent=self.agent))
        if history is not None:
            self.transcript.load(history)

    def hear(self, update: Update) -> None:
        """Something happened; perhaps to this child."""
        if update.agent == self.agent:
            self.transcript.apply(update)

    def on_key(self, event: Key) -> None:
        """Back, or a word to it."""
        if event.key in ("escape", "q", "ctrl+c"):
            event.stop()
            self.panto.close_overlay()
        elif event.key == "t":
            event.stop()
            self.foot.write()
        elif event.key == "ctrl+d":
            event.stop()
            self.panto.link.submit(Interrupt(agent=self.agent))
