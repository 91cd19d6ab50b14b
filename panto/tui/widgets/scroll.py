"""The transcript on the screen: one virtual view, drawn a frame at a time, only the rows that changed.

The application half holds a `Transcript` and calls

- `load(history)`, `prepend(history)`, `apply(update)` for every fact and signal of the shown agent, `clear()`,
  `greet(lines)`;
- `toggle_last(all)`, `jump_prompt(-1 | +1)`, `to_end()`, `to_start()`, `page(-1 | +1)`, `scroll(rows)`,
  `search(words)`, `search_next(-1 | +1)`, `selected_text()`, `restyle()` after the palette changed;
- reads `at_end`, `unseen`, `activity(now)`;
- hears `NeedOlder`, `OpenPager`, `OpenChild`, `Unseen`.

It takes `palette`, `glyphs` and `motion` from the application where that has them. Keys it takes while it has the
focus: j k n p y w o, Enter, up, down, space, b, g, G, home, end; while words are searched n and p go from place to
place and Escape ends the search. Every other key is the application's.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterable, Iterator

from textual.events import Key
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from panto.schema.queries import History
from panto.schema.signals import Update
from panto.tui.colours import GLYPHS, Palette, palette
from panto.tui.items import Item
from panto.tui.items_calls import CallItem
from panto.tui.search import Search
from panto.tui.transcript import Story
from panto.tui.widgets.lines import Colourable, Look
from panto.tui.widgets.paint import Rows, Writer
from panto.tui.widgets.pointer import Pointer
from panto.tui.widgets.viewport import Viewport

FRAME = 1 / 30
SPINNER = 1 / 8
_SLICE = 0.004  # seconds of colouring in one frame


class Transcript(Pointer, Widget, can_focus=True):
    """See the module. `clock` gives UTC seconds."""

    ALLOW_SELECT = False

    class NeedOlder(Message):
        """The reader comes near the beginning of what is loaded; `before` is where the older page ends."""

        def __init__(self, before: tuple[int, int]) -> None:
            super().__init__()
            self.before = before

    class OpenPager(Message):
        """Show this text whole; it is safe to draw."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class OpenChild(Message):
        """Show this child agent's own transcript."""

        def __init__(self, agent: str) -> None:
            super().__init__()
            self.agent = agent

    class Unseen(Message):
        """So many rows have come below the window (0: none)."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    _loop: asyncio.AbstractEventLoop

    def __init__(self, *, id: str | None = None, clock: Callable[[], float] = time.time) -> None:
        super().__init__(id=id)
        self.clock = clock
        self.story = Story(clock)
        self.view = Viewport(self.story)
        self._shown = Rows()
        self._writer = Writer(self)
        self._handle: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._last_frame = 0.0
        self._inside: contextvars.Context | None = None
        self._work: Iterator[bool] | None = None
        self._told_unseen = 0
        self._asked_older: tuple[int, int] | None = None
        self._turn_open = ""

    # ---------------------------------------------------------------- what the application says

    def load(self, history: History) -> None:
        """Shows this page of a session, its end in view."""
        self.story.load(history)
        self._restart()

    def prepend(self, history: History) -> None:
        """Puts an older page before what is shown; nothing that is seen moves."""
        self._asked_older = None
        self.story.prepend(history)
        self.wake()

    def apply(self, update: Update) -> None:
        """A fact or signal of the shown agent; drawn with the next frame."""
        self.story.apply(update)
        self.wake()

    def clear(self) -> None:
        """Shows nothing."""
        self.story.reset()
        self._restart()

    def greet(self, lines: Iterable[str]) -> None:
        """The first lines of a fresh session; they scroll away. None: takes them away."""
        self.story.greet(lines)
        self.wake()

    def restyle(self) -> None:
        """The palette, the glyphs or reduced motion changed."""
        self._shown.clear()
        self.wake()
        self.refresh()

    def _restart(self) -> None:
        self._asked_older = None
        self._work = None
        self._shown.clear()
        self.view.restart()
        self.wake()

    # ---------------------------------------------------------------- what it tells

    @property
    def at_end(self) -> bool:
        """Whether the end is in view and followed."""
        return self.view.follow

    @property
    def unseen(self) -> int:
        """Rows that came below the window since its reader left the end."""
        return self.view.unseen

    def activity(self, now: float) -> str | None:
        """What is going on, in a few words; None: nothing."""
        return self.story.activity(now)

    def selected_text(self) -> str:
        """The selected text, "" when nothing is."""
        return self.view.selected_text()

    def clear_selection(self) -> None:
        """Nothing is selected any more."""
        if self.view.selection is not None:
            self.view.selection = None
            self.wake()

    # ---------------------------------------------------------------- moving

    def scroll_rows(self, rows: int) -> None:
        """Moves by rows, down when positive."""
        self.view.scroll(rows)
        self.wake(now=True)

    def page(self, direction: int) -> None:
        """Moves by a screen less two rows."""
        self.scroll_rows(direction * max(1, self.view.rows - 2))

    def to_end(self) -> None:
        """To the end, and follows it."""
        self.view.follow = True
        self.view.sync()
        self.view.place(self.view.max_top)
        self.wake(now=True)

    def to_start(self) -> None:
        """To the beginning of what is loaded."""
        self.view.place(0)
        self.wake(now=True)

    def jump_prompt(self, direction: int) -> bool:
        """To the prompt above (-1) or below (+1) the first row; whether there is one."""
        found = self.view.jump_prompt(direction)
        self.wake(now=True)
        return found

    # ---------------------------------------------------------------- opening and searching

    def toggle_last(self, all: bool = False) -> None:
        """Opens or folds the last card; `all`: every card of the last turn that has one."""
        cards = [item for item in self.story.items if item.kind in ("card", "notice") and item.can_open]
        if not cards:
            return
        last = cards[-1]
        wanted = last.open if all else not last.open
        for item in reversed(cards):
            if item is not last and (not all or item.turn != last.turn):
                break
            if item.open != wanted and item.toggle():
                self.story.note(item)
        self.view.selection = None
        self.wake()

    def search(self, words: str) -> int:
        """Marks the words everywhere and goes to the nearest place above the end; how many items hold them."""
        self.view.search = Search(words) if words.strip() else None
        if self.view.search is None:
            self.wake()
            return 0
        return self.search_next(-1, begin=True)

    def search_next(self, direction: int, begin: bool = False) -> int:
        """To the next place (+1 down, -1 up) that shows the words; how many items hold them."""
        search = self.view.search
        if search is None:
            return 0
        self.view.sync()
        layout = self.view.layout
        found = search.matches(layout.items)
        here = layout.index_of_serial(search.here)
        if found and (begin or here is None):
            self._show_match(search, found[-1], direction)
        elif found and here is not None:
            rows = [row for row in search.rows_in(layout.lines(here)) if (row - search.row) * direction > 0]
            if rows:
                search.row = rows[0] if direction > 0 else rows[-1]
                self.view.show_item(here, search.row)
            elif direction < 0:
                self._show_match(search, next((i for i in reversed(found) if i < here), found[-1]), direction)
            else:
                self._show_match(search, next((i for i in found if i > here), found[0]), direction)
        self.wake(now=True)
        return len(found)

    def _show_match(self, search: Search, index: int, direction: int) -> None:
        item = self.view.layout.items[index]
        rows = search.rows_in(self.view.layout.lines(index))
        if not rows and not item.open and item.toggle():
            self.story.note(item)
            self.view.sync()
            rows = search.rows_in(self.view.layout.lines(index))
        search.here = item.serial
        search.row = (rows[0] if direction > 0 else rows[-1]) if rows else 0
        self.view.show_item(index, search.row, centre=True)

    def typed_over(self, event: Key) -> None:
        """A character that means nothing here; the application may know where it belongs, at once."""
        take: Callable[[Key], bool] | None = getattr(self.app, "typed_over", None)
        if take is not None and take(event):
            event.stop()

    def open_item(self) -> None:
        """The current item, or the last card, whole in the pager; a child's row its own transcript."""
        item = self.view.current_item()
        if item is not None:
            self.post_message(self.OpenPager(item.pager()))

    def wrap_item(self) -> None:
        """Long lines of the current card wrap, or do not."""
        item = self.view.current_item()
        if isinstance(item, CallItem):
            item.wrap()
            self.story.note(item)
            self.wake()

    # ---------------------------------------------------------------- frames

    def wake(self, now: bool = False) -> None:
        """A frame is due: at once after a key, else at most thirty a second."""
        if self._inside is None or (self._handle is not None and not now and self._due <= self._last_frame + FRAME):
            return
        loop = self._loop
        due = loop.time() if now else max(loop.time(), self._last_frame + FRAME)
        if self._handle is not None:
            if self._due <= due:
                return
            self._handle.cancel()
        self._due = due
        self._handle = loop.call_at(due, self._frame, context=self._inside)

    def _frame(self) -> None:
        self._handle = None
        if self._inside is None or not self.size:
            return
        loop = self._loop
        self._last_frame = loop.time()
        self._draw()
        again = self._colour()
        if self.scrolls_by_itself():
            again = FRAME
        if again is None and self.view.moving:
            again = SPINNER if self._look().motion else 1.0
        if again is not None and self._handle is None:
            self._due = loop.time() + again
            self._handle = loop.call_at(self._due, self._frame, context=self._inside)

    def _draw(self) -> None:
        look = self._look()
        self.view.relook(look)
        self.view.sync()
        changed = self._shown.show(self.view.states(), look)
        if changed and not self._writer.write(self._shown, changed):
            first, last = changed[0], changed[-1]
            self.refresh(Region(0, first, self.size.width, last - first + 1))
        self._tell()

    def _tell(self) -> None:
        unseen = self.view.unseen
        if unseen != self._told_unseen:
            self._told_unseen = unseen
            self.post_message(self.Unseen(unseen))
        older = self.story.older
        if older is not None and older != self._asked_older and self.view.top < 2 * self.size.height:
            self._asked_older = older
            self.post_message(self.NeedOlder(older))

    def _colour(self) -> float | None:
        """Some milliseconds of syntax colours for what is in view; when to go on, None: nothing to do."""
        end = time.perf_counter() + _SLICE
        worked = False
        while time.perf_counter() < end:
            if self._work is None:
                self._work = self._uncoloured()
            if self._work is None:
                return FRAME / 2 if worked else None
            worked = True
            waits = next(self._work, None)
            if waits is None:
                self._work = None
                self.view.states()  # there may be more to colour
            elif waits:
                break
        return FRAME / 2

    def _uncoloured(self) -> Iterator[bool] | None:
        found = self.view.uncoloured
        return self._colouring(*found) if found is not None and found[1].wants_colours else None

    def _colouring(self, item: Item, art: Colourable) -> Iterator[bool]:
        yield from art.colour()
        if self.view.layout.index_of(item) is not None:
            self.story.touch(item)

    # ---------------------------------------------------------------- Textual

    def _look(self) -> Look:
        app = self.app
        colours: Palette = getattr(app, "palette", None) or palette("dark")
        motion: bool = getattr(app, "motion", True)
        now = self.clock()
        width, height = self.size
        return Look(width, height, colours, GLYPHS, int(now / SPINNER), now, motion, app.size.height - 3)

    def on_mount(self) -> None:
        """The loop and the application are there."""
        self._loop = asyncio.get_running_loop()
        self._inside = contextvars.copy_context()
        self.wake()

    def on_unmount(self) -> None:
        """No more frames."""
        self._inside = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def on_resize(self) -> None:
        """Another size: drawn before Textual asks for the rows."""
        self._fit()
        self.wake(now=True)

    def _fit(self) -> None:
        look = self._look()
        self.view.relook(look)
        self.view.sync()
        self._shown.show(self.view.states(), look)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows as they stand; past Textual's own cache."""
        strips = self._shown.strips
        if len(strips) != self.size.height or (strips and strips[0].cell_length != self.size.width):
            self._fit()
            strips = self._shown.strips
        blank = Strip.blank(self.size.width, self._look().palette.base)
        rows = [strips[y] if y < len(strips) else blank for y in crop.line_range]
        if crop.column_span == (0, self.size.width):
            return rows
        return [row.crop(*crop.column_span) for row in rows]

    def render_line(self, y: int) -> Strip:
        """One row."""
        return self.render_lines(Region(0, y, self.size.width, 1))[0]
