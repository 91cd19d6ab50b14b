"""One loop for one run: whoever talks with the agent asks for the house, and it is closed after them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

from panto.app import log
from panto.app.argv import Arguments
from panto.app.ground import Ground

if TYPE_CHECKING:
    from panto.schema.client import Client

T = TypeVar("T")
Connect = Callable[[], "Awaitable[Client]"]


def drive(
    ground: Ground,
    arguments: Arguments,
    use: Callable[[Connect], Awaitable[T]],
    *,
    attended: bool = True,
    screen: bool = False,
) -> T:
    """Runs `use` in a loop of its own and returns what it returns. What it connects to is built when it asks.

    `attended`: somebody can answer questions. `screen`: keys are typed meanwhile, and must not wait for imports.
    """
    gc.set_threshold(50_000, 20, 100)  # looking through all that a start imports, again and again, costs 15 ms of it
    logged = log.install(lambda: ground.paths.log_file, arguments.has("--debug"))

    async def run() -> T:
        async with AsyncExitStack() as house:

            async def connect() -> Client:
                if screen:
                    await asyncio.to_thread(_load)
                from panto.app import build

                start = build.Start(
                    resume=arguments.get("--resume"),
                    last=arguments.has("--continue"),
                    fork=arguments.get("--fork"),
                    attended=attended,
                    extensions=not arguments.has("--no-extensions"),
                    asked=frozenset(name for name in ("model", "reasoning", "mode") if arguments.has(f"--{name}")),
                    offer=screen,
                )
                return await build.open_house(ground, start, house, logged)

            return await use(connect)

    return asyncio.run(run())


def _load() -> None:
    import panto.app.build  # noqa: F401
