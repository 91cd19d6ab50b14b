"""What runs inside the pseudo-terminal: python -m tests.tui.transcript.pty_scenes NAME"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from textual.widgets import Static

from tests.tui.transcript.scenes import MARKDOWN, diffs
from tests.tui.transcript.script import main_screen
from tests.tui.transcript.stage import Stage


async def drawn(stage: Stage) -> None:
    """Until what has been said so far is on the screen; what turns or blinks goes on."""
    for _ in range(2_000):
        await asyncio.sleep(0.01)
        if not stage.transcript.story.changed and stage.transcript._work is None:
            break
    await asyncio.sleep(0.05)


async def play(stage: Stage) -> None:
    """Much that streams, folds, scrolls and runs, drawn by frames of changed rows only."""
    script, transcript = stage.script, stage.transcript
    main_screen(script)
    await drawn(stage)
    diffs(script)
    await drawn(stage)
    script.prompt("stream")
    for at in range(0, len(MARKDOWN), 5):
        script.stream(MARKDOWN[at : at + 5], 5)
        if at % 50 == 0:
            await asyncio.sleep(0.003)
    await drawn(stage)
    transcript.scroll_rows(-25)
    await drawn(stage)
    transcript.toggle_last()
    script.answer(MARKDOWN)
    await drawn(stage)
    transcript.page(-1)
    await drawn(stage)
    transcript.to_end()
    transcript.jump_prompt(-1)
    script.time += 60
    await drawn(stage)


async def frames(stage: Stage) -> None:
    await play(stage)
    await asyncio.sleep(0.4)


async def repainted(stage: Stage) -> None:
    """The same, then everything drawn once more by Textual's compositor."""
    await play(stage)
    stage.screen.refresh()
    await asyncio.sleep(0.4)


async def covered(stage: Stage) -> None:
    """Something lies over the transcript while it streams."""
    await stage.mount(Static("covered by this\nand this\nand this", id="cover"))
    await asyncio.sleep(0.2)
    stage.script.prompt("stream")
    for at in range(0, len(MARKDOWN), 20):
        stage.script.stream(MARKDOWN[at : at + 20], 20)
        await asyncio.sleep(0.003)
    await drawn(stage)
    await asyncio.sleep(0.4)


async def rest(stage: Stage) -> None:
    """A finished turn; then nothing happens between two marks."""
    stage.script.prompt("rest")
    stage.script.answer(MARKDOWN)
    stage.script.settle()
    await asyncio.sleep(0.5)
    await stage.settled()
    driver = stage._driver
    assert driver is not None
    driver.write("\x1b]2;mark\x07")
    await asyncio.sleep(3)
    driver.write("\x1b]2;mark\x07")


async def hostile(stage: Stage) -> None:
    """Escape sequences from everywhere."""
    from tests.tui.transcript.test_text import NASTY

    script = stage.script
    script.prompt(NASTY)
    (call,) = script.answer(NASTY + "\n\n```\n" + NASTY + "\n```\n", [(NASTY, {"path": NASTY})])
    script.start(call)
    script.progress(call, NASTY)
    await asyncio.sleep(0.3)


SCENES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "frames": frames, "repainted": repainted, "covered": covered, "rest": rest, "hostile": hostile,
}  # fmt: skip


class Player(Stage):
    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self.perform())

    async def perform(self) -> None:
        await asyncio.sleep(0.3)
        await SCENES[sys.argv[1]](self)
        self.exit()


if __name__ == "__main__":
    app = Player()
    app.run()
    sys.exit(app.return_code or 0)
