"""Every screen and dialog at three sizes, light and dark, as pictures; tests/tui/picture.py says how to accept them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.style import Style

from tests.tui.app.scenes import SCENES, client
from tests.tui.app.stage import SETTINGS, Stage, stage
from tests.tui.picture import matches, picture

HERE = Path(__file__).parent / "snapshots"
SIZES = ((120, 36), (80, 24), (60, 20))
GREETING = (
    "panto 0.1   ~/shop  main",
    "Ask for something, or:  /help  keys and commands   /resume  earlier sessions   Ctrl+J  new line",
)


def seen(on: Stage) -> str:
    """The screen as a picture."""
    strips = on.app.screen._compositor.render_strips()
    rows = [[(segment.text, segment.style or Style()) for segment in strip] for strip in strips]
    return picture(rows, on.app.size.width, on.app.palette)


@pytest.mark.parametrize("name", SCENES)
def test_a_screen_looks_as_it_was_looked_at(name: str) -> None:
    async def run() -> None:
        for size in SIZES:
            settings = SETTINGS._replace(greeting=GREETING, theme="dark", reduced_motion=True)
            async with stage(client(), size, settings) as on:
                await SCENES[name](on)
                for theme in ("dark", "light"):
                    on.app.show_theme(theme)
                    await on.settled()
                    matches(HERE / f"{name}-{size[0]}x{size[1]}-{theme}.svg", seen(on))

    asyncio.run(run())
