"""Bytes from a terminal to events: a pure decoder that no input can break.

It knows the legacy encodings, kitty's (`CSI u`) and xterm's (`CSI 27;…~`), bracketed paste, mouse and focus. A
complete sequence it does not know is dropped, an incomplete one waits and is dropped, and text that arrives faster
than anyone types is a paste even without markers.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from functools import lru_cache

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.events import AppBlur, AppFocus, Key, Paste
from textual.keys import KEY_NAME_REPLACEMENTS, _character_to_key
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

ESCAPE_WAIT = 0.025
SEQUENCE_WAIT = 1.0
PASTE_WAIT = 3.0
BURST_GAP = 0.025  # nobody types two keys within this many seconds
LONG_RUN = 32  # more characters than this in one read were not typed

_START, _END = "\x1b[200~", "\x1b[201~"
_COMPLETE = re.compile(
    r"\x1b\[M[^\x1b]{3}|\x1b\[\[[A-E]|\x1b\[[0-?]*[ -/]*[@-~^$]|\x1bO[0-9;]*[ -~]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\"
)
_BEGUN = re.compile(r"\x1b(?:\[[\[0-?]*[ -/]*|\[M[^\x1b]{0,2}|O[0-9;]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?)\Z")
_BROKEN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O[0-9;]*)")
_CSI = re.compile(r"\x1b\[([\d:;]*)([~u@-Z])\Z")
_COLOUR = re.compile(r"\x1b\]11;rgb:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")
_CURSOR = re.compile(r"\x1b\[2;([23])R")  # where the cursor is behind one sign in the second row
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_TEXT = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_NOT_KEYS = {"\ufffd", "\ufeff"}
_BASE = {13: "enter", 27: "escape", 9: "tab", 127: "backspace", 8: "backspace", 32: "space", 57414: "enter"}
_ENDS = {"A": "up", "B": "down", "C": "right", "D": "left", "F": "end", "H": "home",
         "P": "f1", "Q": "f2", "R": "f3", "S": "f4"}  # fmt: skip
_TILDES = {1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end",
           11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10",
           23: "f11", 24: "f12"}  # fmt: skip


class GroundTold(Message, bubble=False):
    """The terminal said what its background colour is: `dark` or not."""

    def __init__(self, dark: bool) -> None:
        self.dark = dark
        super().__init__()


class WidthTold(Message, bubble=False):
    """The terminal said how wide it draws a sign of ambiguous width: two cells (`wide`) or one."""

    def __init__(self, wide: bool) -> None:
        self.wide = wide
        super().__init__()


def width_in(data: bytes) -> bool | None:
    """Whether the terminal said in these bytes that it draws such signs two cells wide; None where it said nothing."""
    found = _CURSOR.search(data.decode("latin-1"))
    return found[1] == "3" if found else None


def ground_in(data: bytes) -> bool | None:
    """Whether the terminal said in these bytes that its background is dark; None where it said nothing."""
    found = _COLOUR.search(data.decode("latin-1"))
    return _is_dark(found) if found else None


def _is_dark(found: re.Match[str]) -> bool:
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


class Decoder:
    """Feed it bytes and the time; it gives events. Times are seconds of a monotonic clock."""

    def __init__(self, escape_wait: float = ESCAPE_WAIT) -> None:
        self._escape_wait = escape_wait
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._mouse = XTermParser()
        self._held = ""  # an escape sequence that is not complete
        self._held_since = 0.0
        self._paste: list[str] | None = None
        self._burst = ""  # text that came too fast to be typed, until it pauses
        self._enter_at: float | None = None  # an Enter right behind other keys: typed, or part of a burst?
        self._last_text = -1.0
        self._last = 0.0

    def feed(self, data: bytes, now: float) -> list[Message]:
        """Events that these bytes complete."""
        events = self.tick(now)
        self._held += self._utf8.decode(data)
        self._last = now
        while self._held:
            before = len(self._held)
            if self._paste is not None:
                self._read_paste(events)
            elif self._held[0] != "\x1b":
                text, escape, rest = self._held.partition("\x1b")
                self._held = escape + rest
                self._read_text(text, now, events)
            elif not self._read_sequence(now, events):
                break
            if self._paste is not None and len(self._held) == before:
                break
        return events

    def wait(self, now: float) -> float | None:
        """Seconds until `tick` has something to decide, None when only more bytes can."""
        due = [at for at in (self._text_due(), self._held_due()) if at is not None]
        return max(0.0, min(due) - now) if due else None

    def tick(self, now: float) -> list[Message]:
        """Events that the passing of time completes."""
        events: list[Message] = []
        due = self._text_due()
        if due is not None and now >= due:
            self._settle_text(events)
        due = self._held_due()
        if due is not None and now >= due:
            if self._paste is not None:  # the end marker never came: what is there was meant
                events.append(Paste("".join(self._paste) + self._held))
                self._paste, self._held = None, ""
            elif self._held == "\x1b":
                self._held = ""
                events.append(Key("escape", "\x1b"))
            elif self._held == "\x1b\x1b":
                self._held = ""
                events += [Key("escape", "\x1b"), Key("escape", "\x1b")]
            else:
                self._held = ""
        return events

    def _text_due(self) -> float | None:
        return self._last + BURST_GAP if self._burst or self._enter_at is not None else None

    def _held_due(self) -> float | None:
        if self._paste is not None:
            return self._last + PASTE_WAIT
        if not self._held:
            return None
        lone = self._held in ("\x1b", "\x1b\x1b")
        return self._held_since + (self._escape_wait if lone else SEQUENCE_WAIT)

    # --- paste and text --------------------------------------------------------------------------------------

    def _read_paste(self, events: list[Message]) -> None:
        assert self._paste is not None
        end = self._held.find(_END)
        if end >= 0:
            events.append(Paste("".join(self._paste) + self._held[:end]))
            self._held, self._paste = self._held[end + len(_END) :], None
            return
        keep = next((n for n in range(min(len(_END) - 1, len(self._held)), 0, -1) if self._held.endswith(_END[:n])), 0)
        if len(self._held) > keep:
            self._paste.append(self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]

    def _read_text(self, text: str, now: float, events: list[Message]) -> None:
        at = 0
        while at < len(text):
            run = _TEXT.match(text, at)
            if run is None:
                self._settle_text(events)
                events += _legacy_key(text[at])
                at += 1
            else:
                self._read_run(run[0], now, events)
                at = run.end()

    def _read_run(self, run: str, now: float, events: list[Message]) -> None:
        """Printable characters, tabs and line breaks that came in one read."""
        rapid = now - self._last_text < BURST_GAP
        self._last_text = now
        if self._burst or self._enter_at is not None:
            self._burst += ("\r" if self._enter_at is not None else "") + run
            self._enter_at = None
            return
        breaks = [found.start() for found in _LINE_BREAK.finditer(run)]
        inner = bool(breaks) and (len(breaks) > 1 or breaks[0] < len(run.rstrip("\r\n")))
        if inner or (len(run) > LONG_RUN):
            self._burst = run
            return
        typed, enter = (run[:-1], True) if run[-1] == "\r" and (len(run) > 1 or rapid) else (run, False)
        for character in typed:
            events += _legacy_key(character)
        if enter:
            self._enter_at = now

    def _settle_text(self, events: list[Message]) -> None:
        """A pause: an Enter that nothing followed was typed; a burst is pasted whole."""
        if self._burst:
            text, self._burst = self._burst, ""
            lone = text.endswith("\r") and len(_LINE_BREAK.findall(text)) == 1
            events.append(Paste(text[:-1] if lone else text))
            if lone:
                events.append(Key("enter", "\r"))
        elif self._enter_at is not None:
            events.append(Key("enter", "\r"))
        self._enter_at = None

    # --- sequences -------------------------------------------------------------------------------------------

    def _read_sequence(self, now: float, events: list[Message]) -> bool:
        """Take one escape sequence from what is held; False when it is not complete."""
        held = self._held
        if len(held) == 1 or held == "\x1b\x1b":
            self._held_since = now if len(held) == 1 or not self._held_since else self._held_since
            return False
        doubled = held.startswith("\x1b\x1b")  # Alt with an arrow, as rxvt and others send it
        found = _COMPLETE.match(held, 1 if doubled else 0)
        if found:
            self._settle_text(events)
            self._held = held[found.end() :]
            self._held_since = now
            self._sequence(found[0], doubled, events)
            return True
        if _BEGUN.match(held, 1 if doubled else 0):
            self._held_since = self._held_since if self._held_since and self._pending_same(held) else now
            return False
        self._settle_text(events)
        broken = _BROKEN.match(held)
        if doubled:
            events.append(Key("escape", "\x1b"))
            self._held = held[1:]
        elif broken and len(broken[0]) > 2:
            self._held = held[broken.end() :]
        else:
            events += _alt_key(held[1])
            self._held = held[2:]
        self._held_since = now
        return True

    def _pending_same(self, held: str) -> bool:
        return len(held) > 2

    def _sequence(self, text: str, doubled: bool, events: list[Message]) -> None:
        if text == _START:
            self._paste = []
        elif text == "\x1b[I":
            events.append(AppFocus())
        elif text == "\x1b[O":
            events.append(AppBlur())
        elif text.startswith("\x1b[<"):
            mouse = self._mouse.parse_mouse_code(text)
            events += [mouse] if mouse is not None else []
        elif text.startswith("\x1b]"):
            colour = _COLOUR.match(text)
            if colour:
                events.append(GroundTold(_is_dark(colour)))
        elif cursor := _CURSOR.match(text):
            events.append(WidthTold(cursor[1] == "3"))
        elif text.startswith("\x1b[?"):
            if re.fullmatch(r"\x1b\[\?2026;[12]\$y", text):
                events.append(TerminalSupportsSynchronizedOutput())
        elif text[1] in "[O":
            events += [Key(f"alt+{key.key}", None) if doubled else key.copy() for key in _named(text)]


@lru_cache(maxsize=512)
def _named(text: str) -> tuple[Key, ...]:
    """Keys of one CSI or SS3 sequence; none when it is unknown, a key's release or a terminal's answer."""
    found = _CSI.match(text)
    if found and (key := _csi_key(found[1], found[2])) is not None:
        return key
    known = ANSI_SEQUENCES_KEYS.get(text)
    if isinstance(known, tuple):
        return tuple(Key(key.value, None) for key in known if key.value != "<ignore>")
    return ()


def _csi_key(fields: str, end: str) -> tuple[Key, ...] | None:
    parts = [field.split(":") for field in fields.split(";")]
    numbers = [[int(one) if one and len(one) < 8 else 0 for one in part] for part in parts]
    modifiers = numbers[1][0] if len(numbers) > 1 else 1
    if len(numbers) > 1 and len(numbers[1]) > 1 and numbers[1][1] == 3:
        return ()  # a key's release
    code = numbers[0][0]
    if end == "~" and code == 27 and len(numbers) > 2:
        return _key(_name(numbers[2][0]), modifiers, "")
    if end == "~":
        return _key(_TILDES.get(code, ""), modifiers, "") if code in _TILDES else None
    if end == "u":
        text = "".join(chr(one) for one in (numbers[2] if len(numbers) > 2 else ()) if 32 <= one < 0x110000)
        # Another keyboard layout: the third part is the key's place on the standard one, right for shortcuts.
        base = numbers[0][2] if len(numbers[0]) > 2 and modifiers > 2 and code > 127 else 0
        return _key(FUNCTIONAL_KEYS.get(f"{code}u", "") if code not in _BASE else "", modifiers, text, base or code)
    if end == "Z":
        return _key("tab", modifiers | 2 if modifiers > 1 else 2, "")
    if end in _ENDS and (code in (0, 1) or end in "ABCDFH"):
        return _key(_ENDS[end], modifiers, "")
    return None


def _name(code: int) -> str:
    if code in _BASE:
        return _BASE[code]
    if not 32 < code < 0x110000 or 0xD800 <= code < 0xE000:
        return ""
    name = _character_to_key(chr(code))
    return KEY_NAME_REPLACEMENTS.get(name, name)


def _key(name: str, modifiers: int, text: str, code: int = 0) -> tuple[Key, ...]:
    bits = max(0, modifiers - 1) & 0b1111  # shift 1, alt 2, ctrl 4, super 8; locks do not matter
    if text and not bits & 0b1110:
        return (Key(_name(ord(text)) or text, text),) if len(text) == 1 else tuple(_legacy_key(one)[0] for one in text)
    name = name or _name(code)
    if not name:
        return ()
    if code and len(name) == 1 and bits == 1 and chr(code).isprintable():
        return (Key(name.upper(), name.upper()),)
    if code and not bits and 32 <= code != 127 and code < 57344:
        return (Key(name, chr(code)),)
    held = [word for bit, word in ((2, "alt"), (4, "ctrl"), (1, "shift"), (8, "super")) if bits & bit]
    return (Key("+".join([*held, name]), None if held else {"enter": "\r", "tab": "\t"}.get(name)),)


def _legacy_key(character: str) -> list[Key]:
    """The key of one plain character."""
    if character in _NOT_KEYS:
        return []
    known = ANSI_SEQUENCES_KEYS.get(character)
    if isinstance(known, tuple):
        return [Key(key.value, character) for key in known]
    name = character if character.isalnum() else _name(ord(character)) or character
    return [Key(name, character)]


def _alt_key(character: str) -> list[Key]:
    """ESC and one more character."""
    if character in "\r\n":
        return [Key("alt+enter", None)]
    if character in "\x7f\x08":
        return [Key("alt+backspace", None)]
    if character == "\t":
        return [Key("alt+tab", None)]
    if not character.isprintable():
        return []
    name = f"shift+{character.lower()}" if character.isupper() else _name(ord(character)) or character
    return [Key(f"alt+{name}" if name != " " else "alt+space", None)]
