"""Running without a screen: prompts in, the answer or records out, an exit code at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from panto.remote import stdio, words
from panto.remote.jsonl import FAILED, INTERRUPTED, PROVIDER, USAGE, Teller, ended, line
from panto.remote.requests import BadRequest, read_request
from panto.schema import ops
from panto.schema.client import Client
from panto.schema.codec import canonical
from panto.schema.errors import Missing, Owned, PantoError, ProviderError, StorageFailed, UsageError
from panto.schema.events import AnyEvent, InputAccepted, InputRejected, InputWithdrawn
from panto.schema.queries import AskStatus, AskTurns
from panto.schema.records import Record
from panto.schema.signals import Fact, Left, Noticed, ReasoningStreamed, StatusChanged, TextStreamed, Update

SHORT = 8
"""Characters of a session's id that a person types."""
ALLOW = "a rule under [permissions] in config.toml (panto config show says where) allows it; --mode auto or yolo, more"
STUCK_S = 0.3
GIVEN_UP = "the turn could not go on; it can be continued later"
ENDS = ("storage", "ownership_lost")
"""Keys of notices after which a turn is given up; the kinds of error that its end then has."""
Format = Literal["text", "json", "stream-json"]


@dataclass(frozen=True)
class Task:
    """What to do: `prompt` (None: go on with what was parked), how to tell, and whether stdin holds a conversation.

    `notices` are told as records before anything else.
    """

    prompt: str | None = None
    output: Format = "text"
    conversation: bool = False
    notices: tuple[str, ...] = ()


async def run(connect: Callable[[], Awaitable[Client]], task: Task) -> int:
    """Connects, runs the task, shuts the engine down; returns the exit code. The last record is always a turn's end.

    SIGINT is Escape; SIGTERM, SIGHUP and a closed stdout park the turn, so that a later run can go on with it.
    """
    return await Run(task).run(connect)


class Run:
    """One headless run."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.out = stdio.Output(1, self._leave)
        self._connecting: asyncio.Future[Client] | None = None
        self._client: Client | None = None
        self._teller = Teller("")
        self._last: Record = {}
        self._rejected = ""
        self._wrong, self._kind = "", "internal"
        self._interrupts = 0
        self._told_to_go = False
        self._going = False
        self._stdin_open = task.conversation
        self._undelivered = 0
        self._questions: dict[str, str] = {}
        self._jobs: set[asyncio.Future[None]] = set()

    async def run(self, connect: Callable[[], Awaitable[Client]]) -> int:
        with stdio.signals(self._interrupt, self._leave):
            try:
                code = await self._run(connect)
            except PantoError as e:
                code = self._refuse(e)
            finally:
                if self._last.get("type") != "turn_ended":  # a fault of our own is on its way up
                    self._put(ended("failed", "internal", "a fault in panto; its log says more"))
            await self.out.drained()
        if self.out.failed:
            stdio.say(f"panto: cannot write to standard output: {self.out.failed}")
            return code or FAILED
        return code

    async def _run(self, connect: Callable[[], Awaitable[Client]]) -> int:
        self._connecting = asyncio.ensure_future(connect())
        await asyncio.wait([self._connecting])
        if self._connecting.cancelled():
            return self._interrupted()
        self._client = client = self._connecting.result()
        self._teller = Teller(client.primary)
        updates = client.subscribe()
        try:
            await self._begin(client)
            await self._follow(client, updates)
        finally:
            self._go()
            await self._until_left(updates)
        return self._finish()

    # ------------------------------------------------------------ the run itself

    async def _begin(self, client: Client) -> None:
        status = await client.ask(AskStatus())
        self._put({"type": "session", "id": client.primary, "cwd": status.cwd, "model": status.model})
        for text in self.task.notices:
            self._put({"type": "notice", "text": text})
        turns = await client.ask(AskTurns()) if status.parked else ()
        going = [turn for turn in turns if turn.state in ("active", "attempt_failed")]
        if going and going[-1].state == "active":
            self._teller.waiting = going[-1].turn
        if self.task.prompt is not None:
            await self._submit(ops.Prompt(self.task.prompt))
        elif not self.task.conversation:
            if not going:
                raise UsageError("nothing in this session is waiting to be continued", "give it a prompt")
            self._put(self._teller.resumed(going[-1].turn))
            await self._submit(ops.Continue())
        if self.task.conversation:
            self._start(self._converse())

    async def _follow(self, client: Client, updates: AsyncIterator[Update]) -> None:
        """Tells what happens until there is nothing more to wait for."""
        silent = self.task.output != "stream-json"
        async for update in updates:
            if silent and isinstance(update, TextStreamed | ReasoningStreamed):
                continue
            if isinstance(update, Fact) and update.agent == self._teller.primary:
                self._count(update.event)
            if not self._ends_it(update):
                for record in self._teller.read(update):
                    self._tell(record)
            if isinstance(update, StatusChanged) and update.parked and not update.busy:
                self._start(self._stuck(client))
            if isinstance(update, Left) or self._done():
                return
            if self.out.full:
                await self.out.drained()

    def _ends_it(self, update: Update) -> bool:
        """Whether this notice is why the turn is about to be given up: then its end tells it."""
        if not isinstance(update, Noticed) or update.level != "wrong":
            return False
        ends = update.key in ENDS and update.agent == self._teller.primary and self._teller.active
        self._kind = update.key if ends else "internal"
        self._wrong = f"{update.text}\n{update.hint}".strip() if ends else update.text
        return ends

    async def _stuck(self, client: Client) -> None:
        """The engine gave the turn up without ending it (a disk that is full, a model that is gone): say so.

        A turn that is just about to begin looks the same for a moment.
        """
        await asyncio.sleep(STUCK_S)
        if self._going or not self._teller.active:
            return
        status = await client.ask(AskStatus())
        if status.parked and not status.busy and self._teller.active:
            self._tell(self._teller.broken(self._wrong or GIVEN_UP, self._kind))
            if not self._stdin_open:
                self._go()

    def _count(self, event: AnyEvent) -> None:
        """Prompts that are still to be delivered."""
        match event:
            case InputAccepted() | InputWithdrawn():
                self._undelivered = max(0, self._undelivered - 1)
            case InputRejected(reason=reason):
                self._undelivered = max(0, self._undelivered - 1)
                self._rejected = reason or "the prompt was refused"
            case _:
                pass

    def _done(self) -> bool:
        if self._teller.active or self._told_to_go:
            return False  # when told to go, the engine says when it has left
        over = self._teller.end is not None or bool(self._rejected)
        return over and not self._stdin_open and not self._undelivered

    async def _until_left(self, updates: AsyncIterator[Update]) -> None:
        """Waits for the engine's end; what it still says about a running turn is told."""
        async for update in updates:
            if self._teller.active:
                for record in self._teller.read(update):
                    self._tell(record)
            if isinstance(update, Left):
                return

    def _finish(self) -> int:
        end = self._teller.end
        if end is None:
            if self._told_to_go:
                return self._interrupted()
            if self._rejected:
                raise PantoError(f"the prompt was refused: {self._rejected}")
            raise UsageError("no prompt came", 'a line like {"type":"prompt","text":"…"} on stdin is one')
        if self._last is not end:  # a notice came after it, or the format shows nothing else
            self._put(end)
        if self.task.output == "text":
            text = str(end["text"])
            if text:
                self.out.put((text if text.endswith("\n") else text + "\n").encode("utf-8", "replace"))
        if isinstance(error := end["error"], dict) and not self.out.closed:
            self._say_end(str(end["status"]), str(error["message"]))
        return self._teller.code

    def _say_end(self, status: str, message: str) -> None:
        """Why the turn did not come to its end, and the way on, for people."""
        said = status if status == "interrupted" else f"{status}: " + message.replace("\n", "\n       ")
        hint = ""
        if status == "interrupted":
            hint = f"panto --resume {self._teller.primary[:SHORT]} goes on with this session"
        elif status == "refused":
            hint = ALLOW
        stdio.say(words.clean(f"panto: {said}") + (f"\n       {hint}" if hint else ""))

    # ------------------------------------------------------------ telling

    def _put(self, record: Record) -> None:
        """A record to stdout, if the format has it."""
        self._last = record
        if self.task.output == "stream-json" or (self.task.output == "json" and record["type"] == "turn_ended"):
            self.out.put(line(record))

    def _tell(self, record: Record) -> None:
        """A record of the session; people read what concerns them on stderr."""
        kind = record["type"]
        if kind == "question":  # also one of a child's: whoever holds the call gets the answer
            self._questions[str(record["id"])] = str(record["kind"])
            if not self._stdin_open:
                self._start(self._decline())
        elif kind == "tool_result":
            self._questions.pop(str(record["id"]), None)
        if self.task.output == "stream-json":
            self._put(record)
        elif kind == "question" and self._stdin_open:
            stdio.say(words.clean(_question(record)))
        elif kind == "notice":
            hint = f"\n       {record['hint']}" if record.get("hint") else ""
            stdio.say(f"panto: {record['text']}{hint}")
        elif kind == "retry":
            stdio.say(f"panto: {record['cause']}; trying again in {words.seconds(float(str(record['wait_s'])))}")

    def _interrupted(self) -> int:
        self._put(ended("interrupted", "cancelled", "interrupted", self._teller.primary))
        if not self.out.closed:  # whoever closed it wants to hear nothing more
            stdio.say("panto: interrupted")
        return INTERRUPTED

    def _refuse(self, e: PantoError) -> int:
        """An error outside any turn: on stderr for people, as a last record for programs."""
        stdio.say(f"panto: {e.message}" + (f"\n       {e.hint}" if e.hint else ""))
        kind, code = "internal", FAILED
        if isinstance(e, UsageError | Owned | Missing):
            kind, code = "usage", USAGE
        elif isinstance(e, ProviderError):
            kind, code = e.kind, PROVIDER
        elif isinstance(e, StorageFailed):
            kind = "storage"
        self._put(ended("failed", kind, e.message, self._teller.primary))
        return code

    # ------------------------------------------------------------ what comes in

    async def _converse(self) -> None:
        """Reads requests from stdin until it ends; then nobody is there to answer questions."""
        queue = await stdio.lines()
        number = 0
        while (data := await queue.get()) is not None:
            number += 1
            if not data.strip():
                continue
            try:
                op = read_request(data, self._questions)
                await self._submit(op)
                if isinstance(op, ops.Decide | ops.Answer):
                    self._questions.pop(op.call, None)
            except BadRequest as e:
                self._tell({"type": "notice", "text": f"line {number} of stdin: {e}"})
            except PantoError as e:
                self._tell({"type": "notice", "text": f"line {number} of stdin: {e.message}"})
        self._stdin_open = False
        await self._decline()
        if not self._teller.active and not self._undelivered:
            self._go()

    async def _submit(self, op: ops.Op) -> None:
        assert self._client is not None
        if isinstance(op, ops.Prompt):
            self._undelivered += 1
        try:
            await self._client.submit(op)
        except PantoError:
            if isinstance(op, ops.Prompt):
                self._undelivered -= 1
            raise

    async def _decline(self) -> None:
        for call, kind in list(self._questions.items()):
            before, self._teller.refused = self._teller.refused, True
            reason = "nobody is here to answer any more"
            try:
                if kind == "approval":
                    await self._submit(ops.Decide(call, "no", reason=reason))
                else:
                    await self._submit(ops.Answer(call, text=reason, refused=True))
            except PantoError:  # it has been answered
                self._teller.refused = before

    # ------------------------------------------------------------ being told to go

    def _interrupt(self) -> None:
        """Escape; when nothing runs, or a second time, leave."""
        self._interrupts += 1
        if self._client is None or not self._teller.active or self._interrupts > 1:
            self._leave()
        else:
            self._start(self._submit(ops.Interrupt()))
            if not self.task.conversation:
                self.out.hurry()

    def _leave(self) -> None:
        self._told_to_go = True
        self.out.hurry()
        if self._connecting and not self._connecting.done():
            self._connecting.cancel()
        else:
            self._go()

    def _go(self) -> None:
        if not self._going and self._client is not None:
            self._going = True
            self._start(self._submit(ops.Shutdown()))

    def _start(self, work: Awaitable[None]) -> None:
        job = asyncio.ensure_future(work)
        self._jobs.add(job)
        job.add_done_callback(self._ended)

    def _ended(self, job: asyncio.Future[None]) -> None:
        self._jobs.discard(job)
        error = None if job.cancelled() else job.exception()
        if isinstance(error, PantoError):
            stdio.say(f"panto: {error.message}")
        elif error is not None:
            raise error


def _question(record: Record) -> str:
    """A question for whoever reads no records, and what answers it."""
    if record["kind"] == "ask":
        choices = [str(choice) for choice in choices] if isinstance(choices := record.get("choices"), list) else []
        what = f"{record.get('text')}" + (f" ({' | '.join(choices)})" if choices else "")
        answer = '"reply","id":"%s","text":"…"'
    else:
        reasons = "; ".join(str(record.get("reason", "")).splitlines())
        what = f"allow {record['tool']} {canonical(record.get('arguments')).decode()}? ({reasons})"
        answer = '"answer","id":"%s","decision":"once|session|no"'
    return f"panto: {what}\n       {{\"type\":{answer % record['id']}}} on stdin answers"


__all__ = ["Task", "run"]
