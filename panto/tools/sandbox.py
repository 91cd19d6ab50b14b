"""The sandbox around commands and workers: bubblewrap, where it is there and works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from panto.tools.processes import Spawner

Setting = Literal["auto", "off", "require"]


class Sandbox:
    def __init__(self, setting: Setting = "auto") -> None:
        self.setting = setting

    async def wrap(self, argv: Sequence[str], workspace: str, spawner: Spawner) -> list[str]:
        return list(argv)
