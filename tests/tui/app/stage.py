"""A mounted application over a stub client, and what its screen says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from panto.schema.client import Client
from panto.tui.app import PantoApp
from panto.tui.settings import ScreenSettings
from panto.tui.widgets.scroll import Transcript
from tests.tui.stub_client import StubClient
from tests.tui.transcript.script import Script

SETTINGS = ScreenSettings(theme="dark", cwd="/tmp/shop", greeting=("panto 0.1   ~/shop  main",))


class Stage:
    """What a test holds."""

    def __init__(self, app: PantoApp, pilot: Pilot[int], client: StubClient) -> None:
        self.app = app
        self.pilot = pilot
        self.client = client
        self.script: Script | None = None  # of a scene that is written by hand

    def rows(self) -> list[str]:
        """The screen as text."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.rows())

    async def until(self, true: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if true():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"never: {what}\n{self.text()}\n{self.client.ops}")

    async def see(self, text: str) -> None:
        """Wait until this is on the screen."""
        await self.until(lambda: text in self.text(), text)

    async def typed(self, text: str) -> None:
        """Keys one after the other."""
        await self.pilot.press(*({" ": "space", "\n": "ctrl+j", "/": "slash", "@": "at"}.get(key, key) for key in text))

    async def press(self, *keys: str) -> None:
        """Keys, not so quickly that answers are taken for typing."""
        for key in keys:
            await self.pilot.press(key)
            await self.until(lambda: not self.app.question._letter, "a letter that answers")
        await self.pilot.pause()

    async def alive(self) -> None:
        """Wait until a question takes keys."""
        await self.until(lambda: self.app.question.held is not None, "a question")
        await self.until(lambda: self.app.question.alive, "the question takes keys")
        self.app.question.redraw()

    async def settled(self) -> None:
        """Wait until nothing is left to be drawn, colours of code included."""
        def at_rest(one: Transcript) -> bool:
            found = one.view.uncoloured
            return not (one.story.changed or one._work is not None or (found is not None and found[1].wants_colours))

        before = ""
        while True:
            self.app.screen.refresh()
            await self.pilot.pause()
            await self.until(lambda: all(map(at_rest, self.app.screen.query(Transcript))), "rest")
            now = self.text()
            if now.strip() and now == before:
                return
            before = now

    def ops(self, kind: type) -> list[object]:
        """The ops of a kind that were submitted."""
        return [op for op in self.client.ops if isinstance(op, kind)]


@asynccontextmanager
async def stage(
    client: StubClient | None = None, size: tuple[int, int] = (120, 36), settings: ScreenSettings = SETTINGS,
    wait: asyncio.Event | None = None,
) -> AsyncIterator[Stage]:  # fmt: skip
    """Open the application; with `wait` the engine is there only when that is set."""
    client = client or StubClient()

    async def connect() -> Client:
        if wait is not None:
            await wait.wait()
        return client

    made: Stage | None = None

    def now() -> float:
        return made.script.time if made is not None and made.script is not None else time.time()

    app = PantoApp(connect, settings, Transcript(id="transcript", clock=now))
    async with app.run_test(size=size) as pilot:
        made = Stage(app, pilot, client)
        if wait is None:
            await made.until(lambda: app.link.ready and app.desk.rows, "the engine")
        yield made
