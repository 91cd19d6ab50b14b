"""What the parts of a `Story` share: the list of items, what changed in it, turns, notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from panto.schema import messages as m
from panto.schema.bodies import Body, MessageBody, TextBody
from panto.schema.messages import Usage
from panto.schema.signals import Fact
from panto.tui import units
from panto.tui.calls import Call
from panto.tui.items import ErrorItem, Item, NoticeItem


@dataclass(slots=True)
class Turn:
    """A turn's sums; times in UTC seconds."""

    started: float
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0

    def facts(self, now: float) -> list[str]:
        """Its closing words: time, tokens, cost."""
        words = [units.seconds(now - self.started)]
        if self.usage.input or self.usage.output:
            words += [f"{units.tokens(self.usage.input)} in", f"{units.tokens(self.usage.output)} out"]
        return words + [units.money(self.cost)]


@dataclass(slots=True)
class Queued:
    """An input that is not delivered yet. `when`: "step" or "turn"."""

    id: str
    text: str
    when: str
    source: str = "person"
    images: tuple[str, ...] = ()


class Base:
    """The shared state."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.items: list[Item] = []  # the same list for ever: others look at it
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self.items.clear()
        self.queued: list[Queued] = []
        self.turns: dict[str, Turn] = {}
        self.runs: dict[str, str] = {}
        self.turn = ""  # the running or last turn
        self.calls: dict[str, Call] = {}
        self.call_items: dict[str, Item] = {}
        self.settings: dict[str, str] = {}
        self.superseded: set[str] = set()
        self.parked = False
        self.phase = ""  # what the model does: "", waiting, thinking, writing, stopping
        self.phase_since = 0.0
        self._notices: dict[str, NoticeItem] = {}
        self._orphans: list[Fact] = []
        self._seen = (-1, -1)
        self._page_start: tuple[int, int] | None = None
        self._touched: dict[int, Item] = {}
        self._openable: Item | None = None
        self._reshaped: int | None = 0

    # ---------------------------------------------------------------- items

    def append(self, item: Item) -> None:
        """Puts an item at the end."""
        self.insert(len(self.items), item)

    def insert(self, at: int, item: Item) -> None:
        """Puts an item before the one at `at`."""
        item.dim = item.turn in self.superseded
        if item.can_open and item.kind in ("card", "notice") and at == len(self.items):
            self._opens_last(item)
        self.items.insert(at, item)
        self._reshape(at)

    def _opens_last(self, item: Item) -> None:
        """From now on this is what the key for the last card opens."""
        before, self._openable = self._openable, item
        if isinstance(before, NoticeItem):
            before.last = False
            self.touch(before)

    def remove(self, item: Item) -> None:
        """Takes an item out, if it is there; near the end this is quick."""
        for at in range(len(self.items) - 1, -1, -1):
            if self.items[at] is item:
                del self.items[at]
                self._touched.pop(item.serial, None)
                self._reshape(at)
                return

    def touch(self, item: Item) -> None:
        """An item is drawn otherwise now."""
        item.touch()
        self._touched[item.serial] = item

    def note(self, item: Item) -> None:
        """An item that has touched itself."""
        self._touched[item.serial] = item

    def take_changes(self) -> tuple[list[Item], int | None]:
        """Items drawn otherwise, and the first index from which the list itself changed, since the last call."""
        changes = list(self._touched.values()), self._reshaped
        self._touched, self._reshaped = {}, None
        return changes

    @property
    def changed(self) -> bool:
        """Whether `take_changes` has something."""
        return bool(self._touched) or self._reshaped is not None

    @property
    def older(self) -> tuple[int, int] | None:
        """Where the history goes on before what is loaded, None at its beginning."""
        return self._page_start

    def _reshape(self, at: int) -> None:
        self._reshaped = at if self._reshaped is None else min(self._reshaped, at)

    def _adopt(self, older: Base) -> None:
        for item in older.items:
            if item.turn in self.superseded:
                item.dim = True
        self.items[:0] = older.items
        self._reshape(0)
        self.turns = {**older.turns, **self.turns}
        self.runs = {**older.runs, **self.runs}
        self.calls = {**older.calls, **self.calls}
        self.call_items = {**older.call_items, **self.call_items}
        self.superseded |= older.superseded

    # ---------------------------------------------------------------- notices and errors

    def notice(self, text: str, level: str, hint: str = "", key: str = "", detail: str = "") -> None:
        """A line for a person; one with a key replaces the last with that key where it stands."""
        known = self._notices.get(key) if key else None
        if known is not None and known in self.items[-40:]:
            known.text, known.level, known.hint, known.detail = text, level, hint, detail
            self.touch(known)
            return
        item = NoticeItem(self.turn, text, level, hint, detail)
        if key:
            self._notices[key] = item
        self.append(item)

    def withdraw_notice(self, key: str) -> None:
        """Takes a keyed notice away."""
        item = self._notices.pop(key, None)
        if item is not None:
            self.remove(item)

    def retried(self) -> None:
        """The last error is being tried again: what to do next is no longer said."""
        error = self.failed_here()
        if error is not None:
            error.hint = ""
            self.touch(error)

    def failed_here(self) -> ErrorItem | None:
        """The error near the end that still says what to do next."""
        for item in reversed(self.items[-20:]):
            if isinstance(item, ErrorItem) and item.hint:
                return item
        return None

    # ---------------------------------------------------------------- small things

    def turn_began(self, turn: str, run: str, now: float) -> None:
        """A run belongs to a turn."""
        self.turns.setdefault(turn, Turn(now))
        self.runs[run] = turn
        self.turn = turn
        self.withdraw_notice("parked")

    def set_phase(self, phase: str) -> None:
        """What the model does from now on."""
        if phase != self.phase:
            self.phase, self.phase_since = phase, self._clock()

    def message_text(self, body: Body | None) -> str:
        """The text of a message body, of plain text too."""
        match body:
            case MessageBody(message=message):
                return message_text(message.parts)
            case TextBody(text=text):
                return text
        return ""

    def clear_step(self) -> None:
        """A turn ended: nothing streams."""

    def drop_drafts(self) -> None:
        """Calls being written are no more."""


def message_text(parts: Iterable[m.Part]) -> str:
    """The visible text of a message."""
    return "".join(part.text for part in parts if isinstance(part, m.Text))
