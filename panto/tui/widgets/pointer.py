"""Keys and mouse of the transcript: choose, open, select, scroll."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual import events

from panto.tui.sanitize import clean
from panto.tui.selection import Place, Selection, word_at
from panto.tui.widgets.lines import Line

if TYPE_CHECKING:
    from panto.tui.items import Item
    from panto.tui.widgets.scroll import Transcript

_WHEEL = 3
_CHOSEN = ("prompt", "prose", "card", "notice", "error")


class Pointer:
    """Mixed into the transcript."""

    _pressed: Place | None = None
    _dragged = False
    _pointer = (0, 0)

    # ---------------------------------------------------------------- keys

    def on_key(self, event: events.Key) -> None:
        """The transcript's own keys; others go on to the application."""
        me = cast("Transcript", self)
        page = max(1, me.view.rows - 2)
        actions: dict[str, Callable[[], object]] = {
            "j": lambda: self._step(1),
            "down": lambda: self._step(1),
            "k": lambda: self._step(-1),
            "up": lambda: self._step(-1),
            "n": lambda: me.jump_prompt(1),
            "p": lambda: me.jump_prompt(-1),
            "o": self._toggle_current,
            "y": self._copy_current,
            "w": me.wrap_item,
            "enter": self._open_current,
            "space": lambda: me.scroll_rows(page),
            "b": lambda: me.scroll_rows(-page),
            "g": me.to_start,
            "home": me.to_start,
            "G": me.to_end,
            "upper_g": me.to_end,
            "end": me.to_end,
        }
        if me.view.search is not None:
            actions["n"] = lambda: me.search_next(1)
            actions["p"] = lambda: me.search_next(-1)
            actions["escape"] = lambda: me.search("")
        # A key may have been on its way here when the prompt took the keys.
        action = actions.get(event.key) if me.screen.focused is me else None
        if action is not None:
            action()
            if event.key != "escape":  # which goes on, back to the prompt
                event.stop()
                event.prevent_default()
        else:
            me.typed_over(event)

    def on_focus(self) -> None:
        """Keys act on the last item in view."""
        if cast("Transcript", self).view.current_item() is None:
            self._choose_last()

    def on_blur(self) -> None:
        """Keys act on nothing."""
        me = cast("Transcript", self)
        me.view.current = me.view.current_row = 0
        me.wake()

    def _choose_last(self) -> None:
        me = cast("Transcript", self)
        seen = [index for index, row, _ in me.view.visible() if row == 0]
        chosen = [index for index in seen if me.view.layout.items[index].kind in _CHOSEN]
        me.view.current_row = 0
        if chosen:
            me.view.current = me.view.layout.items[chosen[-1]].serial
            me.wake(now=True)

    def _step(self, direction: int) -> None:
        me = cast("Transcript", self)
        layout = me.view.layout
        index = layout.index_of_serial(me.view.current)
        if index is None:
            self._choose_last()
            return
        lines = layout.lines(index)
        rows = [0, *(row for row, line in enumerate(lines) if line.target.startswith("child:"))]
        beyond = [row for row in rows[::direction] if (row - me.view.current_row) * direction > 0]
        if beyond:
            me.view.current_row = beyond[0]
            me.view.show_item(index, beyond[0])
            me.wake(now=True)
            return
        me.view.current_row = 0
        at = index + direction
        while 0 <= at < len(layout.items):
            if layout.items[at].kind in _CHOSEN and layout.height(at):
                me.view.current = layout.items[at].serial
                me.view.show_item(at)
                break
            at += direction
        else:
            me.view.scroll(direction * _WHEEL)
        me.wake(now=True)

    def _toggle_current(self) -> None:
        me = cast("Transcript", self)
        item = me.view.current_item()
        if item is not None:
            self._toggle(item)

    def _toggle(self, item: Item) -> None:
        me = cast("Transcript", self)
        if item.toggle():
            me.view.selection = None
            me.story.note(item)
            me.view.follow = False
            me.view.sync()
            me.view.place(me.view.top)
            me.wake(now=True)

    def _copy_current(self) -> None:
        me = cast("Transcript", self)
        text = me.view.selected_text()
        item = me.view.current_item()
        if not text and item is not None:
            text = clean(item.copy())
        if text:
            me.app.copy_to_clipboard(text)

    def _open_current(self) -> None:
        me = cast("Transcript", self)
        line = me.view.current_line()
        kind, _, agent = line.target.partition(":") if line is not None else ("", "", "")
        if kind == "child":
            me.post_message(me.OpenChild(agent))
        else:
            me.open_item()

    # ---------------------------------------------------------------- mouse

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        event.stop()
        cast("Transcript", self).scroll_rows(_WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        event.stop()
        cast("Transcript", self).scroll_rows(-_WHEEL)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Selecting may begin."""
        me = cast("Transcript", self)
        if event.button != 1:
            return
        event.stop()
        me.clear_selection()
        self._pressed = me.view.nearest(event.x, event.y)
        self._dragged = False
        self._pointer = (event.x, event.y)
        me.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Selecting, while the button is down."""
        me = cast("Transcript", self)
        if self._pressed is None or (event.x, event.y) == self._pointer:
            return
        event.stop()
        self._pointer = (event.x, event.y)
        self._dragged = True
        self._select_to_pointer()
        me.wake()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """The selection stays; a press without movement is a click."""
        me = cast("Transcript", self)
        if self._pressed is not None:
            event.stop()
            me.release_mouse()
        self._pressed = None

    def on_click(self, event: events.Click) -> None:
        """Once: what the row offers. Twice: the word. Thrice: the line."""
        me = cast("Transcript", self)
        event.stop()
        if self._dragged:
            self._dragged = False
            return
        found = me.view.place_at(event.x, event.y)
        if found is None:
            return
        place, line = found
        if event.chain == 1:
            self._choose(place)
            self._clicked(place, line)
        elif event.chain == 2:
            start, end = word_at(line, place.char)
            self._select(Place(place.item, place.row, start), Place(place.item, place.row, end))
        else:
            self._select(Place(place.item, place.row, 0), Place(place.item, place.row, len(line.text)))

    def _choose(self, place: Place) -> None:
        me = cast("Transcript", self)
        index = me.view.layout.index_of_serial(place.item)
        if index is not None and me.has_focus and me.view.layout.items[index].kind in _CHOSEN:
            lines = me.view.layout.lines(index)
            child = 0 <= place.row < len(lines) and lines[place.row].target.startswith("child:")
            me.view.current, me.view.current_row = place.item, place.row if child else 0
            me.wake(now=True)

    def _clicked(self, place: Place, line: Line) -> None:
        me = cast("Transcript", self)
        kind, _, value = line.target.partition(":")
        if kind == "prompt":
            index = me.view.layout.index_of_serial(int(value))
            if index is not None:
                me.view.place(me.view.layout.first_row(index))
                me.wake(now=True)
        elif kind == "child":
            me.post_message(me.OpenChild(value))
        elif kind == "fold":
            index = me.view.layout.index_of_serial(place.item)
            if index is not None:
                self._toggle(me.view.layout.items[index])

    def _select(self, anchor: Place, head: Place) -> None:
        me = cast("Transcript", self)
        me.view.selection = Selection(anchor, head)
        me.wake(now=True)

    def _select_to_pointer(self) -> None:
        me = cast("Transcript", self)
        head = me.view.nearest(*self._pointer)
        if self._pressed is not None and head is not None:
            me.view.selection = Selection(self._pressed, head)

    def scrolls_by_itself(self) -> bool:
        """Scrolls a step while a selection is dragged past an edge; whether it does."""
        me = cast("Transcript", self)
        if self._pressed is None or not self._dragged:
            return False
        y = self._pointer[1]
        if 0 <= y < me.view.rows:
            return False
        me.view.scroll(-1 if y < 0 else 1)
        self._select_to_pointer()
        return True
