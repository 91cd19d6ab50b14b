"""bash: a command line, in the foreground with a time limit or as a background job."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import TextView, View
from panto.tools import paths
from panto.tools.boxed import Ending, argv
from panto.tools.builtin import Builtin
from panto.tools.jobs import Jobs, exit_words
from panto.tools.output import Output
from panto.tools.processes import Child, Spawner, end, environment
from panto.tools.sandbox import Sandbox
from panto.tools.text import count, shown, visible
from panto.tools.tool import ToolContext, ToolReply

_TIMEOUT = 120
_LONGEST = 3_600
_DRAIN = 0.3
"""Seconds that the end of a finished shell's output is waited for: something else may still hold its pipe."""
_WANTS_PERSON = re.compile(
    r"a terminal is required|terminal prompts disabled|could not read (Username|Password)|/dev/tty"
    r"|no editor here|not a tty|stdin is not a (tty|terminal)|inappropriate ioctl|EOF when reading a line",
    re.IGNORECASE,
)
_ADVICE = "(there is no terminal, editor or input here: give answers as options, e.g. -m, -y, --non-interactive)"


class Bash(Builtin):
    name = "bash"
    subject = "command"
    schema = (
        '{"type":"object","properties":{"command":{"type":"string","minLength":1},'
        f'"timeout":{{"type":"number","minimum":1,"maximum":{_LONGEST},"description":"s, default {_TIMEOUT}"}},'
        '"cwd":{"type":"string"},"background":{"type":"boolean"}},"required":["command"],"additionalProperties":false}'
    )

    def __init__(self, spawner: Spawner, jobs: Jobs, sandbox: Sandbox) -> None:
        self._spawner = spawner
        self._jobs = jobs
        self._sandbox = sandbox

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        where = arguments.get("cwd")
        return paths.touched(str(where), cwd) if where else ()

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        return TextView(visible(str(arguments["command"])))

    async def limits(self, arguments: Mapping[str, object], context: ToolContext) -> str:
        await self._sandbox.in_force(self._spawner)
        box = self._sandbox.words(context.network(str(arguments["command"]))) or "no sandbox"
        if arguments.get("background"):
            return f"{box} · in the background, without a time limit"
        return f"{box} · up to {arguments.get('timeout', _TIMEOUT):g} s"

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        command = str(arguments["command"])
        if "\0" in command:
            raise ToolFailure("command holds a NUL byte")
        where = paths.real(str(arguments.get("cwd") or "."), context.cwd)
        if not os.path.isdir(where):
            raise ToolFailure(f"cwd: {shown(where)} is not a directory", "not_found")
        limit = arguments.get("timeout", _TIMEOUT)
        assert isinstance(limit, int | float)
        background = bool(arguments.get("background"))
        output = Output(context.spool, context.mask, None if background else lambda text: context.progress(text, None))
        boxed = not background and await self._sandbox.in_force(self._spawner)
        ending, network = Ending(boxed), self._sandbox.reached(context.network(command))
        try:
            inner = argv(command) if boxed else ["bash", "-c", command]
            child = await self._spawner.start(
                await self._sandbox.wrap(inner, context.cwd, where, self._spawner, network),
                env=environment(context, PWD=where), cwd=where,
                stdin=ending.write_end, stdout=output.write_end, stderr=output.write_end,
            )  # fmt: skip
        except BaseException:
            output.abandon()
            ending.abandon()
            raise
        output.begin()
        ending.begin(child)
        if background:
            job = self._jobs.add(context, command, child, output)
            said = f"{job.id} is running: bash_output shows what it prints, bash_kill ends it"
            outcome = ToolOutcome(parts=(Text(said),), title=self.title(arguments), fact=job.id, view=TextView(said))
            return ToolReply(outcome)
        run = _Run(self.title(arguments), child, ending.done, output, time.monotonic(), self._sandbox, network)
        try:
            return await _foreground(run, float(limit), context)
        except asyncio.CancelledError:
            child.kill()
            raise


@dataclass(frozen=True, slots=True)
class _Run:
    title: str
    child: Child
    done: asyncio.Future[tuple[int | None, int]]
    output: Output
    start: float
    sandbox: Sandbox
    network: bool

    def outcome(self, fact: str, note: str, is_error: bool) -> ToolOutcome:
        """What the command came to: its output, then a note in parentheses."""
        text = self.output.text()
        gap = "" if not text or text.endswith("\n") else "\n"
        return ToolOutcome(
            parts=(Text(f"{text}{gap}{note}" if text or note else "(no output)"),),
            is_error=is_error,
            title=self.title,
            fact=fact,
            view=TextView(self.output.tail(), tail=True),
            file=self.output.file,
        )


async def _foreground(run: _Run, limit: float, context: ToolContext) -> ToolReply:
    stop = asyncio.ensure_future(context.cancelled.wait())
    try:
        await asyncio.wait((run.done, stop), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
    if run.done.done():
        return await _finished(run, *run.done.result())
    stopped = context.cancelled.is_set()
    await end(run.child, context.deadline() if stopped else None)
    await run.output.settle(0.03, 0)
    took = time.monotonic() - run.start
    if stopped:
        outcome = run.outcome(f"stopped by you after {took:.1f} s", "(stopped by the user)", True)
        said = "stopped by the user; it may have had effects"
        raise ToolFailure(said, "cancelled", effects="unknown", outcome=outcome)
    note = f"(ended after its limit of {limit:g} s; give timeout, or run it with background)"
    outcome = run.outcome(f"timed out · {took:.1f} s", note, True)
    raise ToolFailure(f"timed out after {limit:g} s", "timeout", effects="unknown", outcome=outcome)


async def _finished(run: _Run, code: int | None, left: int) -> ToolReply:
    await run.output.settle(_DRAIN)
    took = time.monotonic() - run.start
    if code is None:
        outcome = run.outcome(f"exit code lost · {took:.1f} s", "(the exit code was lost)", True)
        said = "the sandbox ended without the command's exit code: whether the command succeeded is not known"
        raise ToolFailure(said, "internal", effects="unknown", outcome=outcome, lost=True)
    notes = []
    if code != 0:
        notes.append(f"({exit_words(code)} after {took:.1f} s)")
        end_of_it = run.output.tail(2_000)
        if _WANTS_PERSON.search(end_of_it):
            notes.append(_ADVICE)
        if advice := run.sandbox.note(end_of_it, run.network):
            notes.append(advice)
    if left:
        where = f"; what they print goes to {run.output.file}" if run.output.file else ""
        notes.append(f"({count(left, 'process')} it started still {'runs' if left == 1 else 'run'}{where})")
    fact = f"{count(run.output.lines, 'line')} · {took:.1f} s" if code == 0 else f"{exit_words(code)} · {took:.1f} s"
    return ToolReply(run.outcome(fact, "\n".join(notes), code != 0))
