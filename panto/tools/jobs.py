"""Background commands of this process: started by bash, asked for and ended by bash_output and bash_kill."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools.output import Output
from panto.tools.processes import Child, end
from panto.tools.text import count, one_line
from panto.tools.tool import ToolContext


@dataclass(frozen=True, slots=True)
class JobNotice:
    """Something durable about a job: it started (status ""), or ended as `status`, having printed `outcome`."""

    session: str
    job: str
    title: str
    call: str
    status: Literal["", "completed", "failed", "cancelled"] = ""
    outcome: ToolOutcome | None = None


@dataclass(slots=True, eq=False)
class Job:
    """One background command. `read` is how far (in characters) the model has been shown its output."""

    id: str
    session: str
    call: str
    command: str
    child: Child
    output: Output
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    read: int = 0
    stopped: bool = False

    def running(self) -> bool:
        return not self.child.exited.done()

    def state(self) -> str:
        """In words: "running 12 s", "exit 0 after 3.1 s"."""
        if self.running():
            return f"running {time.monotonic() - self.started:.0f} s"
        return f"{exit_words(self.child.exited.result())} after {self.seconds:.1f} s"


def exit_words(code: int) -> str:
    """How a program ended: "exit 1", "killed by signal 9"."""
    return f"exit {code}" if code >= 0 else f"killed by signal {-code}"


class Jobs:
    """The background commands of a process. `listen` hears what the ledger should know; calls come on the loop."""

    def __init__(self) -> None:
        self.listen: Callable[[JobNotice], None] | None = None
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, context: ToolContext, command: str, child: Child, output: Output) -> Job:
        """Take over a started command. Its id comes from its effect: no later process gives it again."""
        name = f"job-{context.effect[:6]}"
        if name in self._jobs:
            name += f"-{len(self._jobs)}"
        job = Job(name, context.session, context.call, command, child, output)
        self._jobs[job.id] = job
        self._tell(JobNotice(job.session, job.id, one_line(command), job.call))
        task = asyncio.get_running_loop().create_task(self._watch(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def get(self, name: str) -> Job:
        """A job by its id. Raises ToolFailure(not_found), naming those there are."""
        if name not in self._jobs:
            there = ", ".join(f"{job.id} ({one_line(job.command, 40)})" for job in self._jobs.values()) or "none"
            raise ToolFailure(f"there is no job {name!r} (jobs end with panto); there are: {there}", "not_found")
        return self._jobs[name]

    def running(self) -> tuple[Job, ...]:
        """Those still running."""
        return tuple(job for job in self._jobs.values() if job.running())

    async def stop(self, job: Job) -> None:
        """End a job and all it started."""
        job.stopped = job.running()
        await end(job.child, None, grace=1.0)

    async def close(self) -> None:
        """End all jobs, together."""
        await asyncio.gather(*(self.stop(job) for job in self._jobs.values() if not job.child.gone.is_set()))

    async def _watch(self, job: Job) -> None:
        code = await job.child.exited
        job.seconds = time.monotonic() - job.started
        await job.output.settle(0.3)
        fact = f"{count(job.output.lines, 'line')} · {job.seconds:.1f} s"
        outcome = ToolOutcome(
            parts=(Text(f"{job.id}: {job.state()}\n{job.output.text()}"),),
            is_error=code != 0,
            title=one_line(job.command),
            fact=fact if code == 0 else f"{exit_words(code)} · {job.seconds:.1f} s",
            view=TextView(job.output.tail(), tail=True),
            file=job.output.file,
        )
        status: Literal["completed", "failed", "cancelled"] = "completed" if code == 0 else "failed"
        if job.stopped:
            status = "cancelled"
        self._tell(JobNotice(job.session, job.id, one_line(job.command), job.call, status, outcome))

    def _tell(self, notice: JobNotice) -> None:
        if self.listen is not None:
            self.listen(notice)
