"""An application that holds nothing but a transcript: in Textual's pilot, and in a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
from textual.app import App, ComposeResult

from panto.tui.colours import GLYPHS, palette
from panto.tui.widgets.scroll import Transcript
from tests.tui.transcript.script import Script

ROOT = Path(__file__).resolve().parents[3]
WIDTH, HEIGHT = 100, 30


class Stage(App[None]):
    CSS = """
    Screen { background: ansi_default; color: ansi_default; overflow: hidden; layers: base above; }
    Transcript { height: 1fr; }
    #cover { layer: above; position: absolute; offset: 4 10; width: 30; height: 3; background: ansi_blue; }
    """
    ENABLE_COMMAND_PALETTE = False
    motion = True

    def __init__(self) -> None:
        super().__init__(ansi_color=True)
        self.palette, self.glyphs = palette("dark"), GLYPHS
        self.script = Script()
        self.transcript = Transcript(clock=lambda: self.script.time)
        self.heard: list[Any] = []
        self.copied: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.transcript

    def on_mount(self) -> None:
        self.script.tell = self.transcript.apply
        self.transcript.focus()

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)

    def on_transcript_need_older(self, message: Transcript.NeedOlder) -> None:
        self.heard.append(message)

    def on_transcript_open_pager(self, message: Transcript.OpenPager) -> None:
        self.heard.append(message)

    def on_transcript_open_child(self, message: Transcript.OpenChild) -> None:
        self.heard.append(message)

    def on_transcript_unseen(self, message: Transcript.Unseen) -> None:
        self.heard.append(message)

    def rows(self) -> list[str]:
        """What the compositor shows."""
        return [
            "".join(segment.text for segment in strip).rstrip()
            for strip in self.screen._compositor.render_strips(self.size)
        ]

    async def settled(self) -> None:
        """Until nothing is waiting to be drawn and no colours are being worked out."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            await asyncio.sleep(0.01)
            transcript = self.transcript
            if not transcript.story.changed and transcript._work is None and transcript._handle is None:
                break
        await asyncio.sleep(0.02)


def in_pty(scene: str) -> tuple[pyte.Screen, bytes]:
    """Runs `scene` (a name in tests/tui/transcript/pty_scenes) under a pty; the last screen, and all bytes."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", PYTHONPATH=str(ROOT))
        os.execv(sys.executable, [sys.executable, "-m", "tests.tui.transcript.pty_scenes", scene])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    parts: list[bytes] = []
    deadline = time.monotonic() + 90
    try:
        while time.monotonic() < deadline:
            if not select.select([fd], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            parts.append(data)
    finally:
        os.close(fd)
        _, status = os.waitpid(pid, 0)
    raw = b"".join(parts)
    assert status == 0, raw.decode(errors="replace")[-3000:]
    screen = pyte.Screen(WIDTH, HEIGHT)
    cut = raw.rfind(b"\x1b[?1049l")
    pyte.ByteStream(screen).feed(raw[: cut if cut > 0 else None])
    return screen, raw


Play = Callable[[Stage], Any]
