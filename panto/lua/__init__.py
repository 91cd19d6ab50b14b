"""Extensions and scripts in Lua: the state, the driver, and what `require('panto')` means.

Floor 5. Its door: lupa, imported here and nowhere else, and not before there is something to load. Its rule: Lua sees
plain values and Python sees plain values; what lies between is numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from panto.lua.hooks import Listeners
from panto.lua.sources import LuaSettings

if TYPE_CHECKING:
    from panto.lua.extensions import Extensions
    from panto.scheduler.client import LocalClient
    from panto.tools.processes import Spawner
    from panto.tools.sandbox import Sandbox

__all__ = ["Listeners", "LuaSettings", "open_extensions"]


async def open_extensions(
    settings: LuaSettings,
    client: LocalClient,
    listeners: Listeners,
    spawner: Spawner,
    add_provider: Callable[[str, Mapping[str, Any]], None],
    sandbox: Sandbox | None = None,
) -> Extensions:
    """Make the Lua state of a session and load its extensions; `close()` it before the scheduler is closed.

    `listeners` are the hooks and observer that `client`'s agents were made with. `add_provider(name, table)` takes a
    provider that an extension brings, unless there is one of that name. Isolated tools run under `sandbox`. Registers
    /extensions.
    """
    from panto.lua.extension_commands import register
    from panto.lua.extensions import Extensions
    from panto.tools.sandbox import Sandbox

    extensions = Extensions(settings, client, listeners, spawner, add_provider, sandbox or Sandbox("off"))
    client.extensions = extensions.rows
    register(client.commands, extensions)
    await extensions.load()
    return extensions
