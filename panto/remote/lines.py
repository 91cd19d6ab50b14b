"""The linear client: every fact a line, every answer a typed word. For screen readers and plain terminals."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from panto.remote import stdio, words
from panto.schema import events as ev
from panto.schema import ops
from panto.schema import signals as sg
from panto.schema.bodies import MessageBody, Question, ResultBody, ToolOutcome
from panto.schema.client import Client
from panto.schema.codec import BadText, canonical, loads
from panto.schema.errors import PantoError
from panto.schema.queries import AskHistory, AskStatus, AskTrust
from panto.schema.records import message_text

HISTORY = 60
"""Facts read out of a session that is resumed."""


@dataclass(frozen=True)
class Opening:
    """`prompt` is sent at once ("" none); `greeting` and `notices` are printed first."""

    prompt: str = ""
    greeting: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


async def run(connect: Callable[[], Awaitable[Client]], opening: Opening) -> int:
    """Talks with a person line by line until they leave; returns the exit code. Raises PantoError from connecting."""
    return await Lines(await connect(), opening).run()


class Lines:
    """One conversation on stdin and stdout."""

    def __init__(self, client: Client, opening: Opening) -> None:
        self.client = client
        self.opening = opening
        self.active = False
        self.calls: dict[str, str] = {}
        self.questions: dict[str, tuple[str, Question]] = {}
        self.partial = ""
        self.streamed = False
        self._key_for = ""
        self._list_seen = ""
        self._leaving = False
        self._jobs: set[asyncio.Future[None]] = set()

    async def run(self) -> int:
        with stdio.signals(self._interrupt, self._leave):
            updates = self.client.subscribe()
            await self._open()
            typing = asyncio.ensure_future(self._type())
            try:
                await self._follow(updates)
            finally:
                typing.cancel()
                if self._key_for:
                    stdio.echo(True)
        return 0

    async def _open(self) -> None:
        status = await self.client.ask(AskStatus())
        for line in (*self.opening.greeting, *self.opening.notices):
            self.say(line)
        self.say(f"Model {status.model or 'none yet'}, mode {status.mode}, in {status.cwd}.")
        history = await self.client.ask(AskHistory(limit=HISTORY))
        for fact in history.facts:
            self._fact(fact, old=True)
        if status.parked:
            self.say("The last turn stopped midway. /continue goes on with it; a new prompt replaces what was left.")
        if self.opening.prompt:
            self.say(f"> {self.opening.prompt}")
            await self._submit(ops.Prompt(self.opening.prompt))
        self._ready()

    async def _follow(self, updates: AsyncIterator[sg.Update]) -> None:
        async for update in updates:
            if isinstance(update, sg.Fact):
                self._fact(update)
            else:
                self._signal(update)
            if isinstance(update, sg.Left):
                return

    # ------------------------------------------------------------ what is said

    def say(self, text: str) -> None:
        """A line, cleaned; the unfinished line before it is ended."""
        self._flush()
        print(words.clean(text), flush=True)

    def _ready(self) -> None:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)

    def _flush(self) -> None:
        if self.partial:
            print(words.clean(self.partial), flush=True)
            self.partial = ""

    def _signal(self, update: sg.Signal) -> None:
        primary = update.agent == self.client.primary
        match update:
            case sg.TextStreamed() if primary:
                self.streamed = True
                *whole, self.partial = (self.partial + update.text).split("\n")
                if whole:
                    print(words.clean("\n".join(whole)), flush=True)
            case sg.StepReset() if primary:
                self.say("(The answer broke off. It is asked for again; what was read so far does not count.)")
                self.streamed = False
            case sg.RetryWaiting():
                self.say(f"({update.cause}. Trying again in {words.seconds(update.wait_s)}.)")
            case sg.Noticed():
                self.say(f"Note: {update.text}" + (f" {update.hint}" if update.hint else ""))
            case sg.ShellRun(outcome=outcome, slash=False) if outcome is not None:
                self.say("\n".join(words.shell_lines(update.command, outcome)))
                self._ready()
            case sg.Asked(over=True):
                self.questions.pop(update.id, None)
            case sg.Asked():
                self.questions[update.id] = (update.agent, update.question)
                self.say("\n".join(words.question_lines(update.question)))
                self._ready()
            case sg.InputReturned():
                self.say(f"Not sent: {update.text}")
            case sg.Left():
                for line in update.summary:
                    self.say(line)
            case _:
                pass

    def _fact(self, fact: sg.Fact, old: bool = False) -> None:
        child = fact.agent != self.client.primary
        match fact.event:
            case ev.InputAccepted() if old and isinstance(fact.body, MessageBody):
                self.say(f"> {message_text(fact.body.message)}")
            case ev.TurnStarted() | ev.TurnRetried() if not child:
                self.active = True
            case ev.ModelStepCompleted() if isinstance(fact.body, ResultBody) and not child:
                if not self.streamed:
                    self.say(fact.body.result.text())
                self._flush()
                self.streamed = False
            case ev.ToolStepOpened(calls=calls):
                self.calls |= {binding.call: binding.name for binding in calls}
            case ev.ToolCallHeld(call=call) if isinstance(fact.body, Question) and not old:
                self.questions[call] = (fact.agent, fact.body)
                self.say("\n".join(words.question_lines(fact.body)))
                self._ready()
            case ev.ToolCallCompleted() | ev.ToolCallAnswered() | ev.ToolCallFailed() as event:
                self.questions.pop(event.call, None)
                outcome = fact.body if isinstance(fact.body, ToolOutcome) else None
                failed = event if isinstance(event, ev.ToolCallFailed) else None
                name = self.calls.pop(event.call, "call")
                self.say("\n".join(words.call_lines(name, outcome, failed)))
            case ev.RunEnded(status="failed", message=message):
                self.say(f"Failed: {message}")
            case ev.TurnSettled() | ev.TurnStopped() | ev.TurnAttemptFailed() if not child:
                self._turn_over(fact.event, old)
            case _:
                pass

    def _turn_over(self, event: ev.TurnSettled | ev.TurnStopped | ev.TurnAttemptFailed, old: bool) -> None:
        self.active = False
        self._flush()
        if isinstance(event, ev.TurnStopped):
            self.say("Stopped." if event.reason == "cancelled" else f"Stopped by a limit: {event.reason}.")
        elif isinstance(event, ev.TurnAttemptFailed) and not old:
            self.say("/continue tries again.")
        if not old:
            self._ready()

    # ------------------------------------------------------------ what is typed

    async def _type(self) -> None:
        queue = await stdio.lines()
        while (data := await queue.get()) is not None:
            text = data.decode("utf-8", "replace").strip()
            if self._key_for:
                await self._key(text)
            elif self._list_seen:
                await self._agree(text)
            elif text:
                await self._typed(text)
            elif not self.active:
                self._ready()
        self._leave()

    async def _typed(self, text: str) -> None:
        if self.questions and not text.startswith("/"):
            call, (agent, question) = next(iter(self.questions.items()))
            op = _answer(call, agent, question, text)
            if op is None:
                self.say("Type once, session, always, edit and what to run instead, no, or no and why.")
                return
            await self._submit(op)
        elif text.startswith("/login ") and text[7:].strip():
            self._key_for = text[7:].strip()
            self.say(f"Paste the key for {self._key_for} and press Enter. It is not shown. An empty line leaves it.")
            stdio.echo(False)
        elif text == "/trust":
            await self._trust()
        elif text == "/continue":
            await self._submit(ops.Continue())
        elif text == "/quit":
            self._leave()
        elif text.startswith("/"):
            await self._submit(ops.RunCommand(text))
        elif text.startswith("!"):
            hidden = text.startswith("!!")
            await self._submit(ops.RunShell(text.lstrip("!").strip(), hidden=hidden))
        else:
            await self._submit(ops.Prompt(text))

    async def _key(self, key: str) -> None:
        """What was typed is a provider's key, or nothing."""
        stdio.echo(True)
        provider, self._key_for = self._key_for, ""
        if key:
            await self._submit(ops.Login(provider, key))
        else:
            self.say("No key was given; nothing is changed.")
        self._ready()

    async def _trust(self) -> None:
        """What the project brings, and whether it shall be used."""
        shown = await self.client.ask(AskTrust())
        for line in words.trust_lines(shown):
            self.say(line)
        if shown.agreed:
            self.say("Type remove to take it back; anything else leaves it.")
        elif shown.seen:
            self.say("Type yes to use all of it from now on; anything else leaves it unused.")
        self._list_seen = shown.seen
        self._ready()

    async def _agree(self, text: str) -> None:
        """What was typed answers the list."""
        seen, self._list_seen = self._list_seen, ""
        word = text.lower()
        if word in ("yes", "y"):
            await self._submit(ops.SetTrust(True, seen))
        elif word == "remove":
            await self._submit(ops.SetTrust(False))
        else:
            self.say("Nothing is changed.")
        self._ready()

    async def _submit(self, op: ops.Op) -> None:
        try:
            await self.client.submit(op)
        except PantoError as e:
            self.say(e.message + (f" {e.hint}" if e.hint else ""))

    def _interrupt(self) -> None:
        """Ctrl+C: the turn; when nothing runs, the program."""
        if self.active:
            self._start(ops.Interrupt())
        else:
            self._leave()

    def _leave(self) -> None:
        if not self._leaving:
            self._leaving = True
            self._start(ops.Shutdown())

    def _start(self, op: ops.Op) -> None:
        job = asyncio.ensure_future(self._submit(op))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)


def _answer(call: str, agent: str, question: Question, text: str) -> ops.Op | None:
    """A typed line as the answer to a question; None if it is none of the words."""
    if question.kind == "ask":
        numbers = [part for part in text.replace(",", " ").split() if part.isdigit()]
        picked = [int(n) - 1 for n in numbers if 0 < int(n) <= len(question.choices)]
        if picked and len(picked) == len(text.replace(",", " ").split()):
            return ops.Answer(call, choices=tuple(question.choices[n] for n in picked), agent=agent)
        return ops.Answer(call, text=text, agent=agent)
    word, _, reason = text.partition(" ")
    match word.lower().rstrip(","):
        case "once" | "y" | "yes":
            return ops.Decide(call, "once", agent=agent)
        case "session" | "s":
            return ops.Decide(call, "session", agent=agent)
        case "always" | "a" if question.rule:
            return ops.Decide(call, "always", agent=agent)
        case "edit" | "e" if arguments := _edited(question, reason):
            return ops.Decide(call, "once", arguments=arguments, agent=agent)
        case "no" | "n":
            return ops.Decide(call, "no", reason=reason.removeprefix("and ").strip(), agent=agent)
        case _:
            return None


def _edited(question: Question, text: str) -> str:
    """The arguments' JSON text with what was typed: another command, or for other tools a whole object; "" neither."""
    try:
        given = loads(question.arguments or "{}")
        if isinstance(given, dict) and isinstance(given.get("command"), str):
            return canonical({**given, "command": text}).decode("utf-8") if text.strip() else ""
        return text if isinstance(loads(text), dict) else ""
    except BadText:
        return ""


__all__ = ["Opening", "run"]
