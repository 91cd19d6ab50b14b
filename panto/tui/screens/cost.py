"""What this session came to: tokens, cache, cost, and each turn's part of it."""

from __future__ import annotations

from panto.schema.queries import AskStatus, AskTurns, TurnRow
from panto.schema.signals import StatusChanged
from panto.tui.sanitize import clean_line
from panto.tui.screens.overlay import Overlay
from panto.tui.units import money, tokens
from panto.tui.widgets.lines import Line, Run
from panto.tui.widgets.panel import PLAIN, line, sides
from panto.tui.widgets.sheet import BOLD, Sheet


class CostSheet(Sheet):
    """Sums at the top, then turns, oldest first."""

    title = "cost"
    status: StatusChanged | None = None
    turns: tuple[TurnRow, ...] = ()

    async def load(self) -> None:
        """Ask for both."""
        self.status = await self.panto.link.ask(AskStatus())
        self.turns = await self.panto.link.ask(AskTurns()) or ()

    def made(self, width: int) -> list[Line]:
        """Figures end in one column, what belongs to them follows."""
        status, right = self.status, min(width, 104) - 2
        if status is None:
            return [line([("  nothing is known yet", self.palette.aside)])]
        usage, cost = status.usage, status.cost
        cached = f"{round(100 * usage.cache_read / usage.input)} % read from the cache" if usage.cache_read else ""
        written = f"{tokens(usage.cache_write)} written to it" if usage.cache_write else ""
        thought = f"{tokens(usage.reasoning)} of it reasoning" if usage.reasoning else ""
        price = "" if cost is not None else f"no price is known for {clean_line(status.model) or 'this model'}"
        with_ = "agents included" if cost is not None and status.agent_tokens else ""
        out = [
            self._figure("in", tokens(usage.input), " · ".join(part for part in (cached, written) if part)),
            self._figure("out", tokens(usage.output), thought),
            self._figure("cost", "–" if cost is None else money(cost) or "$0", price or with_),
        ]
        if status.agent_tokens:
            out.insert(2, self._figure("agents", tokens(status.agent_tokens), "in and out"))
        if status.prefix_broken:
            why = f"  what was cached last became useless because {clean_line(status.prefix_broken)}"
            out.append(line([(why, self.palette.aside)]))
        if self.turns:
            out += [Line(()), sides([("  turn", self.palette.aside)], self._columns("in", "out", "cost"), right)]
            out += [self._turn(number, turn, right) for number, turn in enumerate(self.turns, 1)]
        return out

    def _figure(self, name: str, figure: str, more: str) -> Line:
        aside = self.palette.aside
        return line([(f"  {name:<6}", aside), (f"{figure:>8}", BOLD), (f"   {more}", aside)])

    def _columns(self, used: str, said: str, cost: str) -> list[Run]:
        return [(f"{used:>8}{said:>8}{cost:>9}", self.palette.aside)]

    def _turn(self, number: int, row: TurnRow, right: int) -> Line:
        sums = self.panto.transcript.story.turns.get(row.turn)
        gone = row.state == "superseded"
        text = clean_line(row.text, 200) or "(no words)"
        left: list[Run] = [(f"  {number:>3}  ", self.palette.aside), (text, self.palette.aside if gone else PLAIN)]
        left += [("   taken back", self.palette.aside)] if gone else []
        if sums is None:
            return sides(left, [], right)
        used, said = sums.usage.input, sums.usage.output
        return sides(left, self._columns(tokens(used), tokens(said), money(sums.cost) or "–"), right)


class CostScreen(Overlay):
    """The sheet."""

    def __init__(self) -> None:
        super().__init__(CostSheet())
