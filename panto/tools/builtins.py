"""The built-in tools, put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from panto.tools.ask import Ask
from panto.tools.bash import Bash
from panto.tools.bash_kill import BashKill
from panto.tools.bash_output import BashOutput
from panto.tools.edit import Edit
from panto.tools.fetch import Fetch, HttpGet
from panto.tools.glob import Glob
from panto.tools.grep import Grep
from panto.tools.jobs import Jobs
from panto.tools.ls import Ls
from panto.tools.processes import Spawner
from panto.tools.read import Read
from panto.tools.sandbox import Sandbox
from panto.tools.tool import Tool
from panto.tools.write import Write


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What the built-in tools are made with.

    `spawner` and `jobs` are the process's own: close both at its end. `http_get` None: there is no `fetch`.
    """

    spawner: Spawner = field(default_factory=Spawner)
    jobs: Jobs = field(default_factory=Jobs)
    sandbox: Sandbox = field(default_factory=Sandbox)
    http_get: HttpGet | None = None
    fetch_private: bool = False


def builtin_tools(settings: ToolSettings) -> tuple[Tool, ...]:
    """The built-in tools in the order a model is told of them."""
    spawner, jobs = settings.spawner, settings.jobs
    tools: tuple[Tool, ...] = (
        Read(), Write(), Edit(), Bash(spawner, jobs, settings.sandbox), BashOutput(jobs), BashKill(jobs),
        Grep(spawner), Glob(spawner), Ls(), Ask(),
    )  # fmt: skip
    return tools if settings.http_get is None else (*tools, Fetch(settings.http_get, settings.fetch_private))
