"""Textual's terminal driver with panto's own input thread and its own way to take and leave the terminal."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from textual import events
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from panto.tui.keyboard import ESCAPE_WAIT, Decoder
from panto.tui.terminal import QUESTIONS, TITLE_KEPT, Terminal, modify_other_keys, take

if TYPE_CHECKING:
    from textual.app import App

KITTY_DISAMBIGUATE_AND_BASE_KEYS = 0b101
SLOW_LINE_WAIT = 0.05
BLOCKED_S = 2.0
SETTLED_S = 0.12  # after the last of several sizes


class PantoDriver(LinuxDriver):
    """Reads keys without polling; holds them until the composer has the focus (`ready`)."""

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True,
                 size: tuple[int, int] | None = None) -> None:  # fmt: skip
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.terminal: Terminal | None = getattr(app, "terminal", None) or take()
        self.ready = threading.Event()
        self.first = b""  # bytes read before this driver began
        self.heard = 0.0  # when the application last took a Ctrl+C (monotonic)
        self._unheard: list[float] = []
        self._settling: asyncio.TimerHandle | None = None
        self._wake: tuple[int, int] = (-1, -1)
        if self.terminal is not None:
            self._file = open(self.terminal.fd_out, "w", encoding="utf-8", errors="replace", closefd=False)

    # --- output ----------------------------------------------------------------------------------------------

    def write(self, data: str) -> None:
        """Write to the terminal, unless it has been given back already."""
        given_back = self.terminal is not None and not self.terminal.taken
        if not given_back and self._writer_thread is not None:
            self._writer_thread.write(data)

    def start_application_mode(self) -> None:
        """Take the terminal (raw, alternate screen, mouse, paste and focus reports) and start both threads."""
        loop = asyncio.get_running_loop()

        def tell_size() -> None:
            size = Size(*self._get_terminal_size())
            self._app.post_message(events.Resize(size, size))

        def resized(*_: object) -> None:
            # Read when it is told: a signal within the handling of another would tell the older size last.
            loop.call_soon_threadsafe(tell_size)
            loop.call_soon_threadsafe(settle_later)

        def settle_later() -> None:
            if self._settling is not None:
                self._settling.cancel()
            self._settling = loop.call_later(SETTLED_S, self._settle)

        if self.terminal is not None:
            self.terminal.raw()
        assert self._file is not None
        self._writer_thread = WriterThread(self._file)
        self._writer_thread.start()
        signal.signal(signal.SIGWINCH, resized)
        loop.call_soon_threadsafe(tell_size)  # this may be the handler of a signal: the loop must wake
        if self.terminal is not None:
            early = getattr(self._app, "early", None)
            if early is None:  # otherwise the first frame stands there already, and must not be cleared
                self.write(f"{TITLE_KEPT.decode()}\x1b[?1049h{QUESTIONS}\x1b[2J")
                loop.call_soon_threadsafe(lambda: self._app.refresh(layout=True))  # after `fg` nothing stands there
        self.write(f"\x1b[?25l\x1b[?1004h\x1b[>{KITTY_DISAMBIGUATE_AND_BASE_KEYS}u\x1b[?2004h\x1b[?7l")
        self.write(modify_other_keys(True).decode())
        self._enable_mouse_support()
        self._request_terminal_sync_mode_support()
        self._wake = os.pipe()
        self._key_thread = threading.Thread(target=self._run_input_thread, name="panto-input", daemon=True)
        self._key_thread.start()

    def _settle(self) -> None:
        """Sizes came and went in a moment, and the terminal threw away what did not fit into one of them.

        What Textual has laid out may be for one that is gone, and what it holds for drawn may not stand there.
        """
        size = Size(*self._get_terminal_size())
        if size != self._app.size:
            self._app.post_message(events.Resize(size, size))
        for screen in self._app.screen_stack:
            if screen.size != size:
                screen.post_message(events.Resize(size, size))
        self._app.refresh(layout=True)

    def _get_terminal_size(self) -> tuple[int, int]:
        # COLUMNS and LINES are no truth about a terminal that can be resized.
        try:
            size = os.get_terminal_size(self.terminal.fd_out if self.terminal else 2)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def disable_input(self) -> None:
        """End the input thread; what was typed and not read is forgotten."""
        if self.exit_event.is_set() or self._key_thread is None:
            return
        self.exit_event.set()
        self.ready.set()
        os.write(self._wake[1], b"x")
        if threading.current_thread() is not self._key_thread:
            self._key_thread.join()
        self._key_thread = None
        for fd in self._wake:
            os.close(fd)
        self.exit_event.clear()

    def stop_application_mode(self) -> None:
        """Give the terminal back as it was found."""
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        if self._settling is not None:
            self._settling.cancel()
        self.disable_input()
        self.flush()
        self.close()
        self._writer_thread = None
        if self.terminal is not None:
            self.terminal.give_back()

    # --- input -----------------------------------------------------------------------------------------------

    def run_input_thread(self) -> None:
        """Read, decode, post; sleeps in `select` until there is a byte, a decision due, or the end."""
        self.ready.wait()
        decoder = Decoder(SLOW_LINE_WAIT if os.environ.get("SSH_CONNECTION") else ESCAPE_WAIT)
        first, self.first = self.first, b""
        if first:
            self._post(decoder.feed(first, time.monotonic()))
        fd, wake = self.fileno, self._wake[0]
        while not self.exit_event.is_set():
            readable, _, _ = select.select([fd, wake], [], [], decoder.wait(time.monotonic()))
            if wake in readable:
                return
            if fd not in readable:
                self._post(decoder.tick(time.monotonic()))
                continue
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            if not data:  # the terminal is gone
                self._app.call_from_thread(self._app.exit)
                return
            self._post(decoder.feed(data, time.monotonic()))

    def _post(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, events.Key) and message.key == "ctrl+c":
                self._insist()
            self.process_message(message)

    def _insist(self) -> None:
        """Ctrl+C again and again into an application that does not answer: leave hard, with the terminal given back."""
        now = time.monotonic()
        self._unheard = [at for at in self._unheard if at > self.heard and now - at < 10.0] + [now]
        if len(self._unheard) > 2 and now - self._unheard[0] > BLOCKED_S and self.terminal is not None:
            self.terminal.give_back()
            os._exit(128 + signal.SIGINT)
