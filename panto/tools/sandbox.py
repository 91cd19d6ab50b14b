"""The sandbox around commands and workers: bubblewrap, where it is installed and works.

Inside it the workspace (with its repository) and the temporary directory can be written, all else only read;
directories with credentials are empty; processes outside cannot be seen, nor, where it is told so, the network.
"""

from __future__ import annotations

import asyncio
import os
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
_REFUSED = "(the sandbox lets commands write only in the workspace and the temporary directory)"


class Sandbox:
    """How programs are started. `hidden`: more paths to hide (panto's own credentials); `network`: it stays reachable.

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

    def words(self) -> str:
        """What is in force, for people; "" before it is known or where there is none."""
        if not self._works:
            return ""
        return "sandbox: writes only here" if self.network else "sandbox: no network, writes only here"

    async def wrap(self, argv: Sequence[str], workspace: str, cwd: str, spawner: Spawner) -> list[str]:
        """The command line that runs `argv` in `cwd`. Raises ToolFailure(unavailable): it must and cannot."""
        if not await self.in_force(spawner):
            if self.setting == "require":
                raise ToolFailure("not run: the sandbox is required, and bubblewrap does not work here", "unavailable")
            return list(argv)
        return [*self._prefix(workspace, cwd), *argv]

    def note(self, output: str) -> str:
        """Advice for output that shows the sandbox at work; ""."""
        return _REFUSED if self._works and "Read-only file system" in output else ""

    async def _probe(self, spawner: Spawner) -> bool:
        if shutil.which("bwrap") is None:
            return False
        argv = [*self._prefix("/", "/"), "true"]
        child = await spawner.start(argv, env={"PATH": os.environ.get("PATH", os.defpath)}, cwd="/")
        return await child.exited == 0

    def _prefix(self, workspace: str, cwd: str) -> list[str]:
        out = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--die-with-parent"]
        if not self.network:
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
