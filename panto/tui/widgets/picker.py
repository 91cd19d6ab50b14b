"""A list to choose from, over the whole screen: filter at the top, rows, a preview at the right, keys at the bottom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.style import Style
from textual.events import Click, Key, MouseScrollDown, MouseScrollUp, Paste
from textual.geometry import Offset

from panto.tui.draft import Draft, clean
from panto.tui.widgets.lines import Line, Run, cut_middle, width_of
from panto.tui.widgets.panel import PLAIN, Panel, key_rows, line, ruled, sides

PREVIEW_FROM = 100
AIRY_FROM = 16
_BOLD = Style(bold=True)


class Entry(NamedTuple):
    """One choice: its first row, an optional second one, and what it stands for. `heading` cannot be chosen."""

    value: Any
    left: Sequence[Run]
    right: Sequence[Run] = ()
    below: Sequence[Run] = ()
    words: str = ""
    heading: bool = False


class PickerPanel(Panel, can_focus=True):
    """Subclasses give `load`, what the rows look like, and what keys do."""

    shows_cursor = True
    title = ""
    right = ""
    placeholder = "type to search"
    hints: Sequence[tuple[str, str]] = (("Enter", "choose"), ("Esc", "back"))
    empty = "nothing here"
    saves = "save"
    previews = False
    fits_width = False  # its rows are made for a width: another one makes others

    def __init__(self) -> None:
        super().__init__()
        self.filter = Draft()
        self.entries: list[Entry] = []
        self.at = 0
        self.top = 0
        self.reading = False
        self.asking = ""  # a question at the bottom: y answers it
        self.naming: Draft | None = None  # a text asked for in the filter's place
        self.preview: list[Line] = []
        self.wants_preview = self.previews
        self.zoomed = False  # the preview in place of the list, where there is no room for both
        self._owners: list[int] = []  # which entry each row that is shown belongs to

    # --- for subclasses --------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Fill `entries`; again when the filter changes and `searches` is true."""

    searches = False

    def name_of(self, value: Any) -> object:
        """What stays the same about a row when the list is loaded anew."""
        return getattr(value, "id", value)

    def moved(self) -> None:
        """Another row is current."""

    def choose(self, entry: Entry) -> None:
        """Enter on a row."""

    def other(self, key: str, entry: Entry | None) -> bool:
        """Any other key; True when it meant something."""
        return False

    def confirmed(self, entry: Entry | None) -> None:
        """`y` to what `asking` asks."""

    def named(self, entry: Entry | None, text: str) -> None:
        """Enter behind what `naming` asked for."""

    def leaving(self) -> None:
        """Escape: it goes off the screen."""

    # --- data ------------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """Load anew."""
        self.reading = not self.entries and not self.filter.text
        self.panto.link.start(self._reload())
        self.redraw()

    def forget(self) -> None:
        """Other colours: rows are made anew."""
        super().forget()
        if self.is_mounted:
            self.reload()

    async def _reload(self) -> None:
        before = self.current
        while self.is_mounted and not self.panto.link.ready and self.panto.link.failed is None:
            await asyncio.sleep(0.05)  # the engine is still being built
        await self.load()
        self.reading = False
        if before is not None:
            name = self.name_of(before.value)
            same = (at for at, one in enumerate(self.shown()) if not one.heading and self.name_of(one.value) == name)
            self.at = next(same, self.at)
        self.settle()

    def shown(self) -> list[Entry]:
        """Entries that match the filter; headings only above something."""
        if self.searches or not self.filter.text.strip():
            return self.entries
        words = self.filter.text.lower().split()
        kept = [one for one in self.entries if one.heading or all(word in _text(one).lower() for word in words)]
        below = [*kept[1:], Entry(None, (), heading=True)]
        return [one for one, after in zip(kept, below, strict=False) if not one.heading or not after.heading]

    @property
    def current(self) -> Entry | None:
        """The current row."""
        rows = self.shown()
        return rows[self.at] if 0 <= self.at < len(rows) and not rows[self.at].heading else None

    def settle(self) -> None:
        """Keep the current row within the list, then draw."""
        rows = self.shown()
        self.at = max(0, min(self.at, len(rows) - 1))
        if rows and rows[self.at].heading:
            self.at = next((at for at in range(self.at, len(rows)) if not rows[at].heading), 0)
        self.moved()
        self.redraw()

    def move(self, step: int) -> None:
        """Up or down by rows, over headings."""
        rows = self.shown()
        at = max(0, min(self.at + step, len(rows) - 1))
        way = 1 if step > 0 else -1
        while 0 <= at < len(rows) and rows[at].heading:
            at += way
        if not 0 <= at < len(rows):  # a heading is the end of the list: back to what can be chosen
            at = max(0, min(at, len(rows) - 1))
            while 0 <= at < len(rows) and rows[at].heading:
                at -= way
        if 0 <= at < len(rows):
            self.at = at
            self.moved()
            self.redraw()

    def on_mount(self) -> None:
        """Load and take the keys."""
        self.focus()
        self.reload()

    def on_resize(self) -> None:
        """Another room for the preview."""
        if self.fits_width and self.entries:
            self.reload()
        self.settle()

    # --- drawing ---------------------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Everything."""
        self._place_cursor()
        aside = self.palette.aside
        head = [ruled([(self.title, _BOLD)], [(self.right, aside)] if self.right else [], width, aside), self._field()]
        rows = self.shown()
        count = sum(1 for one in rows if not one.heading)
        number = sum(1 for one in rows[: self.at + 1] if not one.heading)
        foot = [ruled([], [(f"{number} of {count}", aside)] if count else [], width, aside), *self._hint_rows(width)]
        room = max(1, height - len(head) - len(foot) - 1)
        beside = self.wants_preview and width >= PREVIEW_FROM
        if self.zoomed and not beside:
            shown = self.preview[-room:]
            return [*head, Line(()), *shown, *[Line(())] * (room - len(shown)), *foot]
        left_width = width * 6 // 10 if beside else width
        body = self._body(rows, left_width, room)
        if beside:
            body = [self._beside(one, at, left_width, width) for at, one in enumerate(body)]
        return [*head, Line(()), *body, *foot]

    def _field(self) -> Line:
        draft = self.naming if self.naming is not None else self.filter
        mark = ("› ", self.palette.accent)
        return line([mark, (draft.text, PLAIN)] if draft.text else [mark, (self.placeholder, self.palette.aside)])

    def _hint_rows(self, width: int) -> list[Line]:
        if self.note:
            return [sides([("  " + self.note, self.palette.attention)], [], width)]
        if self.asking:
            keys: list[Run] = [("   y", self.palette.accent), ("  yes   ", self.palette.aside),
                               ("n", self.palette.accent), ("  no", self.palette.aside)]  # fmt: skip
            asked = cut_middle(self.asking, max(8, width - 3 - sum(width_of(text) for text, _ in keys)))
            return [sides([("  " + asked, self.palette.attention), *keys], [], width)]
        pairs = (("Enter", self.saves), ("Esc", "back")) if self.naming is not None else self.hints
        if self.wants_preview and width < PREVIEW_FROM:
            pairs = [("←" if self.zoomed else "→", "list" if self.zoomed else "preview"), *pairs]
        shown = list(pairs)
        while len(rows := key_rows(shown, width, self.palette)) > 2 and len(shown) > 1:
            del shown[-2]  # the way out is the last to go
        return rows

    @property
    def preview_width(self) -> int:
        """Cells for a row of the preview."""
        width = self.size.width
        return max(20, width - 2 if width < PREVIEW_FROM else width - width * 6 // 10 - 3)

    def _body(self, rows: list[Entry], width: int, room: int) -> list[Line]:
        if not rows:
            words = "loading" if self.reading else self.empty if not self.filter.text else "nothing matches"
            first = line([("  " + words, self.palette.aside)])
            return [first, *[Line(())] * (room - 1)]
        airy = room >= AIRY_FROM  # a blank row above each heading but the first
        heights = [2 if one.below or (one.heading and at and airy) else 1 for at, one in enumerate(rows)]
        self.top = min(self.top, self.at)
        while sum(heights[self.top : self.at + 1]) > room:
            self.top += 1
        out: list[Line] = []
        self._owners = []
        for at in range(self.top, len(rows)):
            made = self._entry(rows[at], at == self.at, width)
            made = [Line(()), *made] if rows[at].heading and at > self.top and airy else made
            if len(out) + len(made) > room:
                break
            out += made
            self._owners += [at] * len(made)
        return out + [Line(())] * (room - len(out))

    def _entry(self, entry: Entry, here: bool, width: int) -> list[Line]:
        if entry.heading:
            return [sides([("  ", PLAIN), *entry.left], [], width)]
        mark = ("▸ " if here else "  ", self.palette.accent)
        left = [(text, style + _BOLD if here and at == 0 else style) for at, (text, style) in enumerate(entry.left)]
        ground = self.palette.current if here else None
        rows = [sides([mark, *left], [*entry.right, ("  ", PLAIN)] if entry.right else [], width, ground)]
        if entry.below:
            rows.append(sides([("    ", PLAIN), *entry.below], [], width, ground))
        return rows

    def _beside(self, left: Line, at: int, left_width: int, width: int) -> Line:
        base: list[Run] = [(text, (left.ground or PLAIN) + (style or PLAIN)) for text, style, _ in left.segments]
        used = sum(width_of(text) for text, _ in base)
        base.append((" " * max(0, left_width - used), PLAIN))
        base.append((f"{self.glyphs.bar} ", self.palette.aside))
        if at < len(self.preview):
            shown = self.preview[at]
            ground = shown.ground or PLAIN
            base += [(text, ground + (style or PLAIN)) for text, style, _ in shown.segments]
        return line(base)

    def _place_cursor(self) -> None:
        if self.has_focus and self.app.screen is self.screen:
            draft = self.naming if self.naming is not None else self.filter
            self.app.cursor_position = Offset(2 + width_of(draft.text[: draft.cursor]), 1)

    # --- keys ------------------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Move, filter, choose, or hand on to the subclass."""
        if event.key in ("ctrl+l", "ctrl+z"):
            return
        event.stop()
        if self.note:
            self.note = ""
            self.redraw()
        if self.asking:
            self._answer(event.key)
        elif self.naming is not None:
            self._type_name(event)
        elif event.key in ("escape", "ctrl+c"):
            self.dismiss()
        elif event.key in _STEPS:
            step = _STEPS[event.key]
            self.move(step if abs(step) != _PAGE else step // _PAGE * max(1, len(set(self._owners)) - 1))
        elif event.key in ("left", "right") and self.wants_preview:
            self.zoomed = event.key == "right"
            self.moved()
            self.redraw()
        elif event.key == "enter":
            if self.current is not None:
                self.choose(self.current)
        elif not self.other(event.key, self.current):
            self._type(self.filter, event)

    def _answer(self, key: str) -> None:
        if key not in ("y", "n", "escape", "ctrl+c"):
            return  # only an answer is one
        self.asking = ""
        if key == "y":
            self.confirmed(self.current)
        self.redraw()

    def _type_name(self, event: Key) -> None:
        assert self.naming is not None
        if event.key == "escape":
            self.naming = None
        elif event.key == "enter":
            text, self.naming = self.naming.text.strip(), None
            self.named(self.current, text)
        else:
            self._edit(self.naming, event)
        self.redraw()

    def _type(self, draft: Draft, event: Key) -> None:
        if self._edit(draft, event):
            self.at = self.top = 0
            if self.searches:
                self.reload()
            self.settle()

    def _edit(self, draft: Draft, event: Key) -> bool:
        if event.key == "backspace":
            draft.backspace()
        elif event.key in ("ctrl+u", "ctrl+w", "alt+backspace"):
            draft.kill(0 if event.key == "ctrl+u" else draft.word_left(draft.cursor), draft.cursor)
        elif event.character and event.character.isprintable() and not event.key.startswith(("ctrl+", "alt+")):
            draft.insert(event.character)
        else:
            return False
        return True

    def on_paste(self, event: Paste) -> None:
        """Pasted into the filter."""
        event.stop()
        (self.naming or self.filter).insert(clean(event.text).replace("\n", " "))
        if self.searches and self.naming is None:
            self.reload()
        self.settle()

    def dismiss(self) -> None:
        """Back to what was there before."""
        self.leaving()
        self.panto.close_overlay()

    # --- mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: Click) -> None:
        """A click chooses a row, a second one takes it."""
        event.stop()
        row = event.y - 3
        owners = self._owners
        if 0 <= row < len(owners) and not self.asking:
            again, self.at = self.at == owners[row], owners[row]
            self.settle()
            if again and self.current is not None:
                self.choose(self.current)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Down."""
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Up."""
        event.stop()
        self.move(-3)


_PAGE = 1000
_STEPS = {"up": -1, "down": 1, "ctrl+p": -1, "ctrl+n": 1, "pageup": -_PAGE, "pagedown": _PAGE, "home": -9999,
          "end": 9999, "ctrl+home": -9999, "ctrl+end": 9999}  # fmt: skip


def _text(entry: Entry) -> str:
    return entry.words or " ".join(text for text, _ in [*entry.left, *entry.right, *entry.below])



