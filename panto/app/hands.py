"""The hands: what the tools are made with, when they are got ready, and what of it is shown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from panto.app.ground import Ground
from panto.app.web import WebGet
from panto.providers import complete
from panto.schema.errors import ToolStop
from panto.schema.queries import SettingRow
from panto.tools.builtins import ToolSettings
from panto.tools.sandbox import Sandbox

if TYPE_CHECKING:
    from panto.agent.ports import Complete
    from panto.providers.http import Http
    from panto.providers.model import Model
    from panto.providers.retry import Wait
    from panto.schema.messages import ModelResult, Request
    from panto.schema.stream import StreamPart


def made(ground: Ground, http: Http) -> ToolSettings:
    """What the built-in tools are made with; `rooms.close_hands` ends what they start."""
    tools = ground.config.tools
    hidden = tuple(str(path) for path in (ground.paths.credentials, ground.paths.trust) if path)
    reached = tools.network and "network" not in ground.config.permissions.deny
    box = Sandbox(tools.sandbox, hidden=hidden, network=reached)
    return ToolSettings(sandbox=box, http_get=WebGet(http), fetch_private=tools.fetch_private)


def warming(hands: ToolSettings) -> Complete:
    """`complete`, which starts the keeper of programs while the first reply comes in: nobody waits for it then."""
    ready: list[asyncio.Task[None]] = []

    async def warm() -> None:
        with contextlib.suppress(ToolStop):  # the first command will say it
            await asyncio.to_thread(hands.spawner.warm)

    async def asked(
        model: Model,
        request: Request,
        *,
        on_part: Callable[[StreamPart], None],
        on_wait: Callable[[Wait], None],
        on_reset: Callable[[int], None],
        retry_now: asyncio.Event,
    ) -> ModelResult:
        def heard(part: StreamPart) -> None:
            if not ready:
                ready.append(asyncio.ensure_future(warm()))
            on_part(part)

        return await complete(model, request, on_part=heard, on_wait=on_wait, on_reset=on_reset, retry_now=retry_now)

    return asked


def rows(shown: tuple[SettingRow, ...], box: Sandbox) -> tuple[SettingRow, ...]:
    """The settings, and beside the sandbox's what came of it."""
    words = box.words()
    return tuple(
        replace(row, value=f"{row.value}  ({words})") if words and row.key == "tools.sandbox" else row for row in shown
    )
