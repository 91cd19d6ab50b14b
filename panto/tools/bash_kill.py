"""bash_kill: end a background job and everything it started."""

from __future__ import annotations

from collections.abc import Mapping

from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools.builtin import Builtin
from panto.tools.jobs import Jobs
from panto.tools.tool import Approval, ToolContext, ToolReply


class BashKill(Builtin):
    """Ends only what panto itself started, and ending it twice is ending it once: it does not count as mutating."""

    name = "bash_kill"
    subject = "job"
    schema = '{"type":"object","properties":{"job":{"type":"string"}},"required":["job"],"additionalProperties":false}'
    mutates = False
    replay = True
    approval: Approval = "read"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        job = self._jobs.get(str(arguments["job"]))
        await self._jobs.stop(job)
        said = f"{job.id}: {job.state()}"
        title = f"{job.id} {self.title({'job': job.command})}"
        return ToolReply(ToolOutcome(parts=(Text(said),), title=title, fact=job.state(), view=TextView(said)))
