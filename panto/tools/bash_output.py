"""bash_output: what a background job has printed and how it stands."""

from __future__ import annotations

from collections.abc import Mapping

from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools.builtin import Builtin
from panto.tools.jobs import Jobs
from panto.tools.text import MODEL_LIMIT, both_ends, count
from panto.tools.tool import Approval, ToolContext, ToolReply


class BashOutput(Builtin):
    name = "bash_output"
    subject = "job"
    schema = (
        '{"type":"object","properties":{"job":{"type":"string"},"since":{"type":"integer","minimum":0}},'
        '"required":["job"],"additionalProperties":false}'
    )
    mutates = False
    replay = True
    approval: Approval = "read"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        job = self._jobs.get(str(arguments["job"]))
        since = arguments.get("since", job.read)
        assert isinstance(since, int)
        text, job.read = job.output.since(since)
        lost = job.read - len(text) - since
        where = f" (in {job.output.file})" if job.output.file else ""
        early = f"… {lost:,} earlier characters left out{where} …\n" if lost > 0 else ""
        gap = "" if not text or text.endswith("\n") else "\n"
        said = f"{early}{both_ends(text, MODEL_LIMIT, where)}{gap}({job.id}: {job.state()}; next since: {job.read})"
        outcome = ToolOutcome(
            parts=(Text(said),),
            title=f"{job.id} {self.title({'job': job.command})}",
            fact=f"{count(text.count(chr(10)), 'line')} · {job.state()}",
            view=TextView(text, tail=True),
            file=job.output.file,
        )
        return ToolReply(outcome)
