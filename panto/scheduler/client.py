"""The door for screens and programs: ops in; facts, signals and answers of the whole tree out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar, cast

from panto.agent import compaction, waiting
from panto.agent.hooks import Block
from panto.scheduler.agent import Agent
from panto.scheduler.builtins import register_builtins
from panto.scheduler.commands import BUILTIN, CommandContext, Commands
from panto.scheduler.feed import Feed
from panto.scheduler.queries import answer
from panto.scheduler.scheduler import Scheduler
from panto.scheduler.shown import Shown
from panto.scheduler.switching import Switching
from panto.scheduler.undo import undo
from panto.scheduler.viewed import Viewed
from panto.schema import ops, queries
from panto.schema.bodies import Question, ToolOutcome
from panto.schema.codec import canonical, derive_id
from panto.schema.contributions import Contributions, ExtensionRow
from panto.schema.errors import PantoError, ProviderError, Refused, SessionError, ToolFailure, UsageError
from panto.schema.messages import Image, Message, Text
from panto.schema.queries import Query
from panto.schema.records import outcome_text
from panto.schema.signals import Asked, ContributionsChanged, ShellRun, Update
from panto.session import stage
from panto.session.commands import (
    ChangeMode,
    ChangeTitle,
    GrantApproval,
    SubmitInput,
    Supersede,
    WithdrawInput,
)
from panto.session.ids import new_id

A = TypeVar("A")

TITLE = 72
"""Characters of the first prompt that make a session's title."""


class LocalClient(Switching):
    """A client in the engine's own process. See `schema.client.Client`.

    `files(text, limit)` answers what is typed after `@`; `extensions()` tells of extensions.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        agent: Agent,
        *,
        files: Callable[[str, str, int], Awaitable[queries.Files]] | None = None,
        extensions: Callable[[], tuple[ExtensionRow, ...]] = lambda: (),
    ) -> None:
        super().__init__(scheduler, agent)
        self.commands = Commands()
        self.contributions = Contributions()
        self.on_reload: Callable[[], Awaitable[None]] | None = None
        """Loads extensions again, where there are any."""
        self.files = files
        self.extensions = extensions
        self._feeds: list[Feed] = []
        self._prompts = asyncio.Lock()
        self._asked: dict[str, asyncio.Future[ops.Answer | None]] = {}
        scheduler.readers.append(self._hear)
        register_builtins(self)
        self._begun(agent)

    # --- out ---------------------------------------------------------------------------------------------------

    def _hear(self, update: Update) -> None:
        for feed in self._feeds:
            feed.put(update)

    def subscribe(self) -> AsyncIterator[Update]:
        """All updates from now on; ends after `Left`."""
        feed = Feed()
        self._feeds.append(feed)
        return self._read(feed)

    async def _read(self, feed: Feed) -> AsyncIterator[Update]:
        try:
            async for update in feed:
                yield update
        finally:
            self._feeds.remove(feed)

    def contribute(self, contributions: Contributions) -> None:
        """What extensions add to the screen has changed."""
        self.contributions = contributions
        self._hear(ContributionsChanged(self.primary, contributions))

    async def question(self, agent: str, question: Question) -> ops.Answer | None:
        """Put a question outside any call before the person; None where nobody answers or they decline."""
        if not self.scheduler.shared.attended or not self._feeds:
            return None
        name = new_id()
        self._asked[name] = asyncio.get_running_loop().create_future()
        self._hear(Asked(agent, name, question))
        try:
            return await self._asked[name]
        finally:
            self._asked.pop(name, None)
            self._hear(Asked(agent, name, question, over=True))

    async def ask(self, query: Query[A]) -> A:
        """Answer a query. Raises PantoError."""
        return cast(A, await answer(self, query))

    # --- in ----------------------------------------------------------------------------------------------------

    async def submit(self, op: ops.Op) -> None:
        """Ask for something; returns when it is durable or under way. Raises PantoError."""
        self._may(op)
        match op:
            case ops.Prompt():
                await self._prompt(op)
            case ops.Continue():
                await self.find(op.agent).mailbox.resume()
            case ops.Interrupt():
                await self.find(op.agent).mailbox.interrupt()
            case ops.Withdraw():
                await self.find(op.agent).mailbox.withdraw(op.input)
            case ops.Decide():
                await self._decide(op)
            case ops.Answer():
                asked = self._asked.pop(op.call, None)
                if asked is not None and not asked.done():
                    asked.set_result(None if op.refused else op)
                elif asked is None:
                    await self._holder(op.agent, op.call).mailbox.answer(op)
            case ops.RetryNow():
                if (control := self.find(op.agent).mailbox.control) is not None:
                    control.retry_now.set()
            case ops.RunCommand():
                await self._command(op)
            case ops.RunShell():
                await self._shell(op)
            case ops.StopJob():
                await self._stop_job(op)
            case ops.Shutdown():
                await self._shutdown()
            case _:
                await self._change(op)

    def _may(self, op: ops.Op) -> None:
        """Raises ViewOnly where an op would change a session that is only viewed here."""
        if isinstance(op, ops.Rename):
            agent = self._agent if op.session in ("", self.primary) else None
        elif isinstance(op, ops.Fork | ops.RunCommand):  # what a command asks for is looked at by itself
            agent = None
        else:
            name = getattr(op, "agent", None)
            agent = None if name is None else self.find(name)
        if isinstance(agent, Viewed):
            raise agent.refusal

    async def _change(self, op: ops.Op) -> None:
        shared = self.scheduler.shared
        match op:
            case ops.SetModel():
                agent = self.find(op.agent)
                await agent.set_config(model=op.model, reasoning=op.reasoning or None)
                if agent.wants_model:
                    await agent.mailbox.resume()
                if op.default:
                    shared.save_model(op.model, op.reasoning)
            case ops.SetReasoning():
                await self.find(op.agent).set_config(reasoning=op.reasoning)
            case ops.SetMode():
                agent = self.find(op.agent)
                run_mode, shared.run_mode = shared.run_mode, "" if agent.opener is None else shared.run_mode
                try:
                    await agent.session.commit(ChangeMode(mode=op.mode))
                except SessionError:
                    shared.run_mode = run_mode
                    raise
            case ops.Compact():
                await self._compact(self.find(op.agent), op.instructions)
            case ops.Rewind():
                await self._rewind(self.find(op.agent), op)
            case ops.Fork():
                await self._fork(self.find(op.agent), op.turn)
            case ops.NewSession():
                await self._new()
            case ops.OpenSession():
                await self._open(op)
            case ops.Rename() if not op.session or op.session == self.primary:
                await self._agent.session.commit(ChangeTitle(title=op.title))
            case ops.Rename():
                await shared.store.rename(op.session, op.title)
            case ops.DeleteSession():
                await shared.store.delete((op.session,))
            case _:
                raise UsageError(f"unknown op {type(op).__name__}")

    async def _prompt(self, op: ops.Prompt) -> None:
        agent = self.find(op.agent)
        images = [await asyncio.to_thread(fitted, image) for image in op.images]
        message = Message("user", (*((Text(op.text),) if op.text else ()), *images))
        hooks = self.scheduler.shared.hooks
        async with self._prompts:  # a hook may take its time: what was said first stays first
            if hooks.watches("input"):
                verdict = await hooks.input(agent.id, message)
                if isinstance(verdict, Block):
                    self.show(verdict.reason) if verdict.reason else None
                    return
                message = verdict or message
            titled = agent.session.state.settings.title
            await agent.mailbox.prompt(message, when=op.when, id=op.id, source="person")
        if images:
            self._unseen(agent)
        if not titled:
            await self._entitle(agent, op.text)

    def _unseen(self, agent: Agent) -> None:
        """Say that a model sees no images, where it does not."""
        try:
            sees = agent.shared.catalog.resolve(agent.model).spec.images
        except PantoError:
            return  # the turn says what is wrong with the model
        if not sees:
            self.show(f"{agent.model} takes no images: it is told that one is left out", level="attention",
                      hint="another model sees it; images = true in config.toml where your own does")  # fmt: skip

    async def _entitle(self, agent: Agent, text: str) -> None:
        """Call a session after what was said first in it."""
        if title := " ".join(text[: TITLE * 100].split())[:TITLE]:
            await agent.session.commit(ChangeTitle(title=title))

    def _holder(self, name: str, call: str) -> Agent:
        """The agent whose call waits: the one named, else whichever holds it."""
        if name:
            return self.find(name)
        for agent in self.scheduler.agents.values():
            run = agent.session.state.run
            if run is not None and call in run.calls:
                return agent
        raise UsageError("this question has been answered already")

    async def _decide(self, op: ops.Decide) -> None:
        question = await self._holder(op.agent, op.call).mailbox.decide(op)
        if op.decision == "session" and question.rule:
            await self._agent.session.commit(GrantApproval(grant=new_id(), rule=question.rule))
        elif op.decision == "always" and question.rule:
            self.scheduler.shared.save_rule(question.rule)
            await self._agent.session.commit(GrantApproval(grant=new_id(), rule=question.rule))

    async def _command(self, op: ops.RunCommand) -> None:
        agent = self.find(op.agent)
        command, arguments = self.commands.find(op.text)
        if command.owner == BUILTIN:
            await command.run(arguments, CommandContext(agent.id, derive_id("command", new_id()), self.show))
            return
        name, body = new_id(), stage_text(op.text)  # an extension's command is a durable input of its own
        await agent.session.commit(
            SubmitInput(input=name, body=body.digest, source="command"),
            WithdrawInput(input=name, returned=False),
            bodies=(body,),
        )

        def begun() -> None:  # what takes its time is worth a title, as a prompt is
            if not agent.session.state.settings.title:
                self.scheduler.run_in_background(asyncio.ensure_future(self._entitle(agent, op.text)))

        with agent.mailbox.aside() as control, Shown(agent.id, f"command-{name}", op.text, self._hear, begun) as shown:
            effect = derive_id("command", name)
            at = CommandContext(
                agent.id, effect, self.show, control.interrupt, shown.progress, lambda: control.deadline
            )
            await command.run(arguments, at)

    async def _shell(self, op: ops.RunShell) -> None:
        """A person's own command: shown as it runs, its output kept for the next prompt unless hidden."""
        agent, call = self.find(op.agent), f"shell-{new_id()}"
        bash = self.scheduler.shared.registry.get("bash")
        if bash is None:
            raise UsageError("there is no shell tool")
        self._hear(ShellRun(agent.id, call, op.command))
        try:
            with agent.mailbox.aside() as control:
                context = agent.tool_context("", call, call, canonical({"command": op.command}).decode(), control)
                outcome = (await bash.run({"command": op.command}, context)).outcome
        except ToolFailure as failure:
            outcome = failure.outcome or ToolOutcome((Text(failure.message),), is_error=True)
        self._hear(ShellRun(agent.id, call, op.command, outcome))
        if not op.hidden:
            text = outcome_text(outcome, "(no output)")
            said = Message("user", (Text(f"I ran `{op.command}` myself ({outcome.fact or 'done'}):\n\n{text}"),))
            await agent.mailbox.prompt(said, source="command", start=False)

    async def _stop_job(self, op: ops.StopJob) -> None:
        jobs = self.scheduler.jobs
        if jobs is None:
            raise UsageError("there are no background jobs")
        try:
            await jobs.stop(jobs.get(op.job))
        except ToolFailure as failure:
            raise UsageError(failure.message) from None

    async def _compact(self, agent: Agent, instructions: str) -> None:
        if agent.in_turn:
            raise UsageError("a turn is running", "wait for it, or Escape stops it")
        self.show("compacting…", key="compact")
        try:
            with agent.mailbox.aside() as control:
                work = compaction.compact(agent.mailbox.ports, agent.setup(), instructions)
                done = await waiting.unless(control.interrupt, work)
        except (ProviderError, Refused) as error:
            self.show(f"not compacted: {error.message}", level="wrong", hint=error.hint, key="compact")
            return
        said = {None: "not compacted: it was stopped", False: "nothing to compact yet", True: "compacted"}
        self.show(said[done], key="compact")

    async def _rewind(self, agent: Agent, op: ops.Rewind) -> None:
        if agent.in_turn:
            raise UsageError("a turn is running", "Escape stops it first")
        turns = agent.session.view.turns
        first = next((n for n, turn in enumerate(turns) if turn.turn == op.turn), None)
        if first is None:
            raise UsageError(f"there is no turn {op.turn[:8]}")
        taken = tuple(turns[first:])
        await agent.session.commit(Supersede(turn=op.turn))
        agent.mailbox.ports.context.replaced()
        await agent.recount()
        if op.files:
            self.show(await undo(agent, taken))


def fitted(image: Image) -> Image:
    """An image within what every vendor takes, before it enters history. Raises UsageError for what is none."""
    from panto.tools.images import fit

    try:
        picture = fit(image.data, image.name or "the image")
    except ToolFailure as failure:
        raise UsageError(failure.message) from None
    return Image(picture.media_type, picture.data, image.name)


def stage_text(text: str) -> Any:
    """A command line as a message body."""
    from panto.schema.bodies import MessageBody

    return stage(MessageBody(Message("user", (Text(text),))))
