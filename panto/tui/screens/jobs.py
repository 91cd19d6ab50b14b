"""Commands that run in the background: how long each has run, and the way to end it. Children are in /agents."""

from __future__ import annotations

from panto.schema.ops import StopJob
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import seconds
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel


class Jobs(PickerPanel):
    """Oldest first."""

    title = "background jobs"
    placeholder = "type to search commands"
    empty = "nothing runs in the background"
    hints = (("Ctrl+D", "end it"), ("Esc", "back"))

    def on_mount(self) -> None:
        """Load, and again each second: clocks run, and jobs end by themselves."""
        super().on_mount()
        self.set_interval(1.0, self.reload)

    async def load(self) -> None:
        """Those that began and have not ended."""
        aside, now = self.palette.aside, self.panto.transcript.clock()
        self.entries = [
            Entry(job, [(clean_line(title, 300), PLAIN)], [(seconds(now - began, whole=True), aside)])
            for job, (title, began) in self.panto.now.jobs.items()
        ]

    def other(self, key: str, entry: Entry | None) -> bool:
        """End one."""
        if key != "ctrl+d" or entry is None:
            return False
        self.panto.link.submit(StopJob(entry.value))
        return True


class JobScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Jobs())
