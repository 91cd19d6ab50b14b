"""Child agents, and the transcript of one of them, live."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.events import Key

from panto.schema.ops import Interrupt
from panto.schema.queries import AgentRow, AskAgents, AskHistory
from panto.schema.signals import Update
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import tokens
from panto.tui.widgets.lines import Line, Run
from panto.tui.widgets.panel import PLAIN, Panel, line, ruled
from panto.tui.widgets.picker import Entry, PickerPanel
from panto.tui.widgets.scroll import Transcript
from panto.tui.widgets.status import short_model


class Agents(PickerPanel):
    """The children of this session."""

    title = "agents"
    empty = "no child agents in this session"
    hints = (("Enter", "its transcript"), ("Ctrl+D", "stop it"), ("Esc", "back"))

    async def load(self) -> None:
        """Ask for them."""
        rows = await self.panto.link.ask(AskAgents()) or ()
        self.entries = [self._row(row) for row in rows]

    def _row(self, row: AgentRow) -> Entry:
        colours, glyphs = self.palette, self.glyphs
        mark: Run = {
            "running": (self.panto.spinner, colours.accent), "completed": (glyphs.ok, colours.aside),
            "failed": (glyphs.failed, colours.wrong),
        }.get(row.state, (glyphs.stopped, colours.attention))  # fmt: skip
        facts = f"{clean_line(short_model(row.model), 24):<16}{row.state:<12}"
        right: list[Run] = [(facts + f"{tokens(row.usage.input + row.usage.output):>6}", colours.aside)]
        return Entry(row, [mark, (" " + (clean_line(row.name) or row.id[:8]), PLAIN)], right)

    def choose(self, entry: Entry) -> None:
        """Open its transcript."""
        self.panto.show_child(entry.value.id, clean_line(entry.value.name))

    def other(self, key: str, entry: Entry | None) -> bool:
        """Stop one."""
        if key != "ctrl+d" or entry is None:
            return False
        self.panto.link.submit(Interrupt(agent=entry.value.id))
        self.reload()
        return True


class AgentScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Agents())


class ChildFoot(Panel):
    """Two rows: whose transcript it is, and the keys."""

    name_ = ""
    transcript: Transcript

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The rule and the hints."""
        aside = self.palette.aside
        activity = self.transcript.activity(time.time())
        left: list[Run] = [(self.name_, PLAIN)] + ([(f" · {activity}", aside)] if activity else [])
        accent = self.palette.accent
        keys = [("  Esc", accent), (" back   ", aside), ("n p", accent), (" prompts   ", aside), ("o", accent),
                (" open a card", aside)]  # fmt: skip
        return [ruled(left, [], width, aside, self.glyphs.rule), line(keys)]


class ChildScreen(Overlay):
    """One child's transcript; updates of `agent` come by `hear`."""

    def __init__(self, agent: str, name: str = "") -> None:
        self.agent = agent
        self.transcript = Transcript(id="transcript")
        self.foot = ChildFoot()
        self.foot.name_ = name or agent[:8]
        self.foot.transcript = self.transcript
        super().__init__(self.transcript, self.foot)

    def on_mount(self) -> None:
        """Load what there is."""
        self.transcript.focus()
        self.set_interval(1.0, self.foot.redraw)
        from panto.tui.app import PantoApp

        app = self.app
        assert isinstance(app, PantoApp)
        app.link.start(self._load(app))

    async def _load(self, app: object) -> None:
        from panto.tui.app import PantoApp

        assert isinstance(app, PantoApp)
        history = await app.link.ask(AskHistory(agent=self.agent))
        if history is not None:
            self.transcript.load(history)

    def hear(self, update: Update) -> None:
        """Something happened; perhaps to this child."""
        if update.agent == self.agent:
            self.transcript.apply(update)

    def on_key(self, event: Key) -> None:
        """Back."""
        if event.key in ("escape", "q", "ctrl+c"):
            event.stop()
            from panto.tui.app import PantoApp

            app = self.app
            assert isinstance(app, PantoApp)
            app.close_overlay()
