"""The whole life of the screen: from the first frame's hand-over to what stays in the scrollback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from panto.schema.client import Client
from panto.schema.errors import PantoError, UsageError
from panto.tui.early import Early
from panto.tui.farewell import farewell
from panto.tui.settings import ScreenSettings
from panto.tui.terminal import GRACE_S, Terminal, restore_and_die, take

log = logging.getLogger(__name__)
if TYPE_CHECKING:
    from panto.tui.app import PantoApp

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Farewell(NamedTuple):
    """How it ended: the process's exit code and the lines to leave in the scrollback."""

    code: int
    lines: tuple[str, ...]


async def run(connect: Callable[[], Awaitable[Client]], early: Early | None, settings: ScreenSettings) -> Farewell:
    """Run the screen in the running loop until the person leaves or a signal ends it.

    `connect` builds the engine once the prompt takes keys. `early` is the first frame, or None: then the terminal is
    taken here. Raises UsageError where there is no terminal fit for a screen.
    """
    _prepare_environment()
    terminal = early.terminal if early is not None else take()
    if terminal is None:
        raise UsageError("no terminal to draw on", "use -p for a run without a screen")
    from panto.tui.app import PantoApp
    from panto.tui.driver import PantoDriver
    from panto.tui.widgets.scroll import Transcript

    app = PantoApp(connect, settings, Transcript(id="transcript"), early)
    app.terminal = terminal
    app.driver_class = PantoDriver
    guard = Guard(terminal, asyncio.get_running_loop(), lambda code: app.leave(code), lambda: app.leaving)
    guard.install()
    try:
        code = await app.run_async(mouse=settings.mouse)
    finally:
        terminal.give_back()
        guard.remove()
    if app.unfit is not None:
        raise app.unfit
    failure = app.failure or app._exception
    if failure is not None:
        log.error("the screen failed", exc_info=failure)
        way = f"nothing is lost: panto --resume {app.now.primary[:8]}   (details are in the log)"
        raise PantoError(f"the screen failed: {type(failure).__name__}: {failure}", way) from failure
    lines = () if guard.number == signal.SIGHUP else farewell(app.now, app.left, settings, _shown(app, settings))
    return Farewell(128 + guard.number if guard.number else code or 0, lines)


def _shown(app: PantoApp, settings: ScreenSettings) -> list[str]:
    """What the scrollback gets of the transcript."""
    from panto.tui.printed import item_lines, last_answer

    items = app.transcript.story.items
    if settings.leave == "all":
        return [line.text.removeprefix("  ").rstrip() for line in item_lines(items, app.look)]
    return last_answer(items, app.look) if app.now.answer else []


def _prepare_environment() -> None:
    """What Textual reads while it is imported."""
    os.environ.setdefault("TEXTUAL_FPS", "120")
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    if "NO_COLOR" in os.environ:
        os.environ["TEXTUAL_THEME"] = "ansi-dark"


class Guard:
    """Signals that end panto: the terminal is given back at once, the session closed, and if that hangs, killed.

    A thread of its own sees signals too: where the main one is in code that is not Python (an extension's loop), no
    handler would ever run.
    """

    def __init__(self, terminal: Terminal, loop: asyncio.AbstractEventLoop, leave: Callable[[int], None],
                 leaving: Callable[[], bool]) -> None:  # fmt: skip
        self._terminal = terminal
        self._loop = loop
        self._leave = leave
        self._leaving = leaving
        self._before: dict[int, object] = {}
        self._wake = (-1, -1)
        self.number = 0

    def install(self) -> None:
        """From now on signals come here (also while the loop is busy)."""
        for number in (*_ENDING, signal.SIGINT):
            self._before[number] = signal.signal(number, self._caught)
        self._wake = os.pipe()
        os.set_blocking(self._wake[1], False)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="panto-signals", daemon=True).start()
        threading.excepthook = self._thread_failed

    def remove(self) -> None:
        """Signals end the process again, without the screen's part; but one Ctrl+C too many cuts no last words off."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake[1])  # ends the thread
        for number in self._before:
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.SIG_IGN)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and not self.number and self._leaving():
            return  # an impatient Ctrl+C, typed while the terminal was being given back
        if self.number:
            restore_and_die(self._terminal, number)
        self.number = number
        self._terminal.give_back()
        self._loop.call_soon_threadsafe(self._leave, 128 + number)

    def _watch(self) -> None:
        fd = self._wake[0]
        while numbers := os.read(fd, 64):
            with contextlib.suppress(RuntimeError):  # closed
                self._loop.call_soon_threadsafe(int)  # a signal that another thread took does not wake the loop itself
            ending = next((number for number in numbers if number in (*_ENDING, signal.SIGINT)), 0)
            if ending and not (ending == signal.SIGINT and self._leaving()):
                time.sleep(GRACE_S)
                self._terminal.give_back()
                os._exit(128 + ending)
        os.close(fd)

    def _thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        """A thread that dies must not do so unseen."""
        error = failed.exc_value or RuntimeError(f"{failed.thread} failed")
        self._loop.call_soon_threadsafe(
            self._loop.call_exception_handler, {"message": "a thread failed", "exception": error}
        )
