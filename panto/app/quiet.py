"""A house for looking into: everything is loaded, extensions too, and nothing is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from panto.app import log
from panto.app.ground import Ground
from panto.schema.ops import Shutdown

if TYPE_CHECKING:
    from panto.app.build import House


@asynccontextmanager
async def opened(ground: Ground) -> AsyncIterator[House]:
    """Opens a house whose session lives in memory, and closes it afterwards. Raises PantoError."""
    from panto.app import build

    logged = log.install(lambda: ground.paths.log_file, False)
    async with AsyncExitStack() as house:
        client = await build.open_house(ground, build.Start(keep=False), house, logged)
        yield client
        await client.submit(Shutdown())
