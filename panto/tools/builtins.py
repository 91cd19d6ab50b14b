"""The built-in tools, put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from panto.tools.bash import Bash
from panto.tools.bash_kill import BashKill
from panto.tools.bash_output import BashOutput
from panto.tools.edit import Edit
from panto.tools.glob import Glob
from panto.tools.grep import Grep
from panto.tools.jobs import Jobs
from panto.tools.ls import Ls
from panto.tools.processes import Spawner
from panto.tools.read import Read
from panto.tools.sandbox import Sandbox, Setting
from panto.tools.tool import Tool
from panto.tools.write import Write


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What the built-in tools are made with. `spawner` and `jobs` are the process's own; close both at its end."""

    sandbox: Setting = "auto"
    spawner: Spawner = field(default_factory=Spawner)
    jobs: Jobs = field(default_factory=Jobs)


def builtin_tools(settings: ToolSettings) -> tuple[Tool, ...]:
    """The built-in tools in the order a model is told of them."""
    spawner, jobs = settings.spawner, settings.jobs
    return (
        Read(), Write(), Edit(), Bash(spawner, jobs, Sandbox(settings.sandbox)), BashOutput(jobs), BashKill(jobs),
        Grep(spawner), Glob(spawner), Ls(),
    )  # fmt: skip
