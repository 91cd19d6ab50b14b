"""Choose the model: what each costs, and what switching costs."""

from __future__ import annotations

from panto.schema.ops import SetModel
from panto.schema.queries import AskModels, ModelRow
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import money, tokens
from panto.tui.widgets.lines import Run
from panto.tui.widgets.panel import PLAIN
from panto.tui.widgets.picker import Entry, PickerPanel


class Models(PickerPanel):
    """Only what can be used; where nothing can, why not."""

    title = "model"
    fits_width = True
    empty = "no model can be used yet: /login sets a provider up"
    hints = (("Enter", "this session"), ("Ctrl+S", "default from now on"), ("← →", "reasoning"), ("Esc", "back"))

    def __init__(self) -> None:
        super().__init__()
        self.efforts: dict[str, str] = {}

    async def load(self) -> None:
        """The catalogue."""
        rows = await self.panto.link.ask(AskModels()) or ()
        usable = [row for row in rows if not row.usable]
        self.rows = usable or list(rows)
        self._fill()
        current = self.panto.now.status.model if self.panto.now.status else ""
        self.at = next((at for at, row in enumerate(self.rows) if row.label == current), 0)

    def _fill(self) -> None:
        self.entries = [self._row(row) for row in self.rows]

    def _row(self, row: ModelRow) -> Entry:
        aside = self.palette.aside
        status = self.panto.now.status
        current = status is not None and status.model == row.label
        left: list[Run] = [(clean_line(row.label), PLAIN)]
        effort = self._effort(row)
        if effort:
            left.append((f"  {effort}", self.palette.accent))
        if current:
            left.append(("  in use", aside))
        if row.usable:
            return Entry(row, left, [(clean_line(row.usable), self.palette.attention)], words=f"{row.label} {row.id}")
        width, price = self.app.size.width, "price unknown"
        if row.price_input is not None and row.price_output is not None:
            price = f"{_price(row.price_input):>7} in {_price(row.price_output):>7} out"
            price = price if row.price_input or row.price_output else "free"
        images = "images   " if row.images and width >= 100 else ""
        window = f"{tokens(row.context) if row.context else '?':>7}"
        words = f"{row.label} {row.id} {row.provider}"
        if width < 72:
            return Entry(row, left, [(window, aside)], [(price.strip(), aside)], words)
        return Entry(row, left, [(images + price + window, aside)], words=words)

    def _effort(self, row: ModelRow) -> str:
        if not row.reasoning:
            return ""
        status = self.panto.now.status
        now = status.reasoning if status else ""
        return self.efforts.get(row.label, now if now in row.reasoning else row.reasoning[len(row.reasoning) // 2])

    def moved(self) -> None:
        """Say what the switch costs."""
        entry, status = self.current, self.panto.now.status
        self.right = "prices per million tokens"
        if entry is None or status is None or entry.value.label == status.model or not status.context_used:
            return
        used, price = status.context_used, entry.value.price_input
        cost = f": about {money(used * price / 1_000_000)}" if price else ""
        self.right = f"{tokens(used)} tokens are sent again{cost}"

    def other(self, key: str, entry: Entry | None) -> bool:
        """Reasoning by arrow, default by Ctrl+S."""
        if entry is None or key not in ("left", "right", "ctrl+s"):
            return False
        row: ModelRow = entry.value
        if key == "ctrl+s":
            self._set(row, default=True)
        elif row.reasoning:
            at = row.reasoning.index(self._effort(row)) + (1 if key == "right" else -1)
            self.efforts[row.label] = row.reasoning[max(0, min(at, len(row.reasoning) - 1))]
            self._fill()
            self.redraw()
        return True

    def choose(self, entry: Entry) -> None:
        """For this session."""
        self._set(entry.value, default=False)

    def _set(self, row: ModelRow, default: bool) -> None:
        if row.usable:
            self.panto.say(f"{row.label}: {row.usable}", "attention", "/login sets a provider up")
        else:
            self.panto.link.submit(SetModel(row.label, self._effort(row), default))
        self.dismiss()


def _price(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars else "free"


class ModelScreen(Overlay):
    """The list."""

    def __init__(self) -> None:
        super().__init__(Models())
