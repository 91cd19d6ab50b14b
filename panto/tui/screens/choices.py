"""A few values to choose one from: the permission mode, the reasoning effort."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panto.schema.ops import Op, SetMode, SetReasoning
from panto.tui.now import MODES
from panto.tui.screens.overlay import Overlay
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel

_MODE_MEANINGS = {
    "plan": "reads and plans, changes nothing",
    "ask": "asks before a write or a command",
    "auto": "edits files here, asks before commands",
    "yolo": "asks nothing at all",
}


class Choices(PickerPanel):
    """`rows`: values and what they mean; `present` is in force; `op` is submitted for the one that is chosen."""

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], present: str, op: Callable[[str], Op]) -> None:
        super().__init__()
        self.title = title
        self._rows, self._present, self._op = rows, present, op

    async def load(self) -> None:
        """The values are known."""
        aside = self.palette.aside
        width = max(len(value) for value, _ in self._rows) + 3
        self.entries = [
            Entry(value, [(value.ljust(width), PLAIN), (meaning, aside)],
                  [("in force", aside)] if value == self._present else [])
            for value, meaning in self._rows
        ]  # fmt: skip
        self.at = next((at for at, (value, _) in enumerate(self._rows) if value == self._present), 0)

    def choose(self, entry: Entry) -> None:
        """Use it from now on."""
        if entry.value != self._present:
            self.panto.link.submit(self._op(entry.value))
        self.dismiss()


class ModeScreen(Overlay):
    """The permission modes."""

    def __init__(self, present: str) -> None:
        rows = [(name, f"{label:<21}{_MODE_MEANINGS[name]}") for name, label in MODES.items()]
        super().__init__(Choices("what panto may do unasked", rows, present, lambda m: SetMode(m)))  # type: ignore[arg-type]


class ReasoningScreen(Overlay):
    """The reasoning efforts of the model in use."""

    def __init__(self, levels: Sequence[str], present: str) -> None:
        rows = [(level, "") for level in levels]
        super().__init__(Choices("how long the model thinks", rows, present, lambda level: SetReasoning(level)))
