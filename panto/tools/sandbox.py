"""The sandbox around commands and workers: bubblewrap, where it is installed and works.

Inside it the workspace (with its repository) and the temporary directory can be written, all else only read;
directories with credentials are empty; processes outside cannot be seen, nor, where it is told so, the network.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from typing import Literal

from panto.schema.errors import ToolFailure
from panto.tools.instructions import repository
from panto.tools.processes import Spawner

Setting = Literal["auto", "off", "require"]

_HIDDEN = (
    "~/.ssh", "~/.gnupg", "~/.aws", "~/.azure", "~/.kube", "~/.docker", "~/.config/gcloud", "~/.config/gh",
    "~/.password-store", "~/.local/share/keyrings", "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium",
    "~/.netrc", "~/.pgpass", "~/.npmrc", "~/.pypirc", "~/.git-credentials", "~/.config/git/credentials",
    "~/.cargo/credentials.toml",
)  # fmt: skip
"""Where programs keep credentials."""
_UNREACHED = re.compile(
    r"Network is unreachable|Could not resolve|Temporary failure in name resolution|Name or service not known"
    r"|getaddrinfo|Cannot assign requested address|Failed to connect|Connection refused|[Nn]ame resolution",
)
_NO_NETWORK = "(the sandbox keeps this from the network; a rule network(COMMAND *) in the settings would allow it)"
_REFUSED = "(the sandbox lets commands write only in the workspace and the temporary directory)"


class Sandbox:
    """How programs are started. `hidden`: more paths to hide (panto's own credentials).

    `network`: it stays reachable, unless a call says otherwise.

    "auto" uses bubblewrap where it works, "require" refuses to run anything without it, "off" never uses it.
    """

    def __init__(self, setting: Setting = "off", *, hidden: Sequence[str] = (), network: bool = True) -> None:
        self.setting: Setting = setting
        self.network = network
        self._hidden = (*_HIDDEN, *hidden)
        self._works: bool | None = None if setting != "off" else False
        self._probing = asyncio.Lock()

    async def in_force(self, spawner: Spawner) -> bool:
        """Whether commands run in the sandbox; tries once, then knows."""
        async with self._probing:
            if self._works is None:
                self._works = await self._probe(spawner)
            return self._works

    def words(self, network: bool | None = None) -> str:
        """What is in force, for people; "" before it is known or where there is none. `network` None: as set."""
        if not self._works:
            return ""
        return "sandbox: writes only here" if self.reached(network) else "sandbox: no network, writes only here"

    def reached(self, network: bool | None) -> bool:
        """Whether a program reaches the network; `network` is what was said for it (None: nothing)."""
        return self.network if network is None else network

    async def wrap(
        self, argv: Sequence[str], workspace: str, cwd: str, spawner: Spawner, network: bool | None = None
    ) -> list[str]:
        """The command line that runs `argv` in `cwd`; `network` None: as set.

        Raises ToolFailure(unavailable): it must be in the sandbox, or kept from the network, and cannot.
        """
        reached = self.reached(network)
        if await self.in_force(spawner):
            return [*self._prefix(workspace, cwd, reached), *argv]
        why = "bubblewrap does not work here" if self.setting != "off" else "tools.sandbox is off"
        if self.setting == "require":
            raise ToolFailure(f"not run: the sandbox is required, and {why}", "unavailable")
        if not reached:
            said = f"not run: the settings keep it from the network, which takes the sandbox, and {why}"
            raise ToolFailure(said, "unavailable")
        return list(argv)

    def note(self, output: str, network: bool) -> str:
        """Advice for output that shows the sandbox at work; ""."""
        if not self._works:
            return ""
        if not network and _UNREACHED.search(output):
            return _NO_NETWORK
        return _REFUSED if "Read-only file system" in output else ""

    async def _probe(self, spawner: Spawner) -> bool:
        if shutil.which("bwrap") is None:
            return False
        argv = [*self._prefix("/", "/", self.network), "true"]
        child = await spawner.start(argv, env={"PATH": os.environ.get("PATH", os.defpath)}, cwd="/")
        return await child.exited == 0

    def _prefix(self, workspace: str, cwd: str, network: bool) -> list[str]:
        out = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--die-with-parent"]
        if not network:
            out.append("--unshare-net")
        for path in {os.path.realpath(tempfile.gettempdir()), "/tmp", "/var/tmp"}:
            if os.path.isdir(path):
                out += ["--bind", path, path]
        for place in (repository(workspace), workspace):
            if place and place != "/":
                out += ["--bind", place, place]
        for name in self._hidden:
            path = os.path.realpath(os.path.expanduser(name))
            if os.path.isdir(path):
                out += ["--tmpfs", path]
            elif os.path.exists(path):
                out += ["--ro-bind", "/dev/null", path]
        return [*out, "--chdir", cwd, "--"]
