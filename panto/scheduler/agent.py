"""An open session and what its model is asked with. Every handle on it shares this one object."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import pathlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec.structs import replace

from panto.agent import prompt as prompts
from panto.agent.approval import Verdict
from panto.agent.context import Context
from panto.agent.ports import Control, Limits, Ports, Setup
from panto.scheduler.conversation import Conversation
from panto.scheduler.mailbox import Mailbox, Parked, Source
from panto.scheduler.permission import judge, reaches_network
from panto.scheduler.shared import Shared
from panto.schema.bodies import AgentSetup, MessageBody
from panto.schema.errors import Corrupt, Missing, UsageError
from panto.schema.events import (
    CheckpointMade,
    CwdChanged,
    InputAccepted,
    InputSubmitted,
    InputWithdrawn,
    JobEnded,
    JobLost,
    JobStarted,
    ModeChanged,
    ModelChanged,
    ModelStepCompleted,
    ReasoningChanged,
    TitleChanged,
    TurnAttemptFailed,
    TurnRetried,
    TurnSettled,
    TurnStarted,
    TurnStopped,
    TurnSuperseded,
)
from panto.schema.messages import Message, SystemBlock, ToolChoice, ToolSpec
from panto.schema.records import message_text
from panto.schema.signals import Fact, InputReturned, Signal, StatusChanged, ToolProgressed, Update
from panto.schema.view import View
from panto.session import Session, Spent, stage
from panto.session.commands import ChangeModel, ChangeReasoning, ChangeSetup
from panto.tools import regular
from panto.tools.paths import storable
from panto.tools.tool import Tool, ToolContext

if TYPE_CHECKING:
    from panto.scheduler.job import Job


class Keeper(Protocol):
    """Who keeps agents: hears what they tell, and ends what their running calls have opened."""

    def tell(self, update: Update) -> None: ...
    def interrupted(self, agent: Agent, deadline: float, parking: bool) -> None: ...
    def rested(self, agent: Agent, parked: Parked | None) -> None: ...


class Agent:
    """One agent: its session, inbox, setup. `opener` is the agent in whose lane it was made (None: a primary)."""

    def __init__(
        self, shared: Shared, session: Session, keeper: Keeper, opener: Agent | None = None,
        setup: AgentSetup | None = None,
    ) -> None:  # fmt: skip
        self.shared = shared
        self.session = session
        self.opener = opener
        self.setup_body = setup or AgentSetup()
        self.handles = 1
        self.job: Job | None = None
        self.dispatch = True
        self.limits: Limits | None = None
        self._tell = keeper.tell
        self._keeper = keeper
        self.under: dict[str, Spent] = {}
        """What each session under this one used."""
        self._texts: dict[str, str] = {}
        self._returned: list[str] = []
        self.wants_model = False
        """Whether a turn waits because there was no usable model for it."""
        self._parts: tuple[prompts.Part, ...] | None = None
        ports = Ports(
            session=session, context=Context(session), setup=self.setup,
            by_hand=lambda: shared.attended and self.opener is None, complete=shared.complete,
            tool=shared.registry.get, judge=self.judge, tool_context=self.tool_context, hooks=shared.hooks,
            signal=self._tell, child=self.name if opener else "",
        )  # fmt: skip
        self.mailbox = Mailbox(
            ports, depth=session.depth, log=shared.log, on_rest=self._rest,
            on_interrupt=lambda by, parking: keeper.interrupted(self, by, parking),
        )  # fmt: skip
        self.conversation = Conversation(session, self.mailbox, lambda: self.setup_body.system)
        self._unsubscribe = session.subscribe(self._fact)

    # --- who it is ---------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def name(self) -> str:
        """How a person is told of it: its title, else its short id."""
        return self.session.state.settings.title or self.session.id[:8]

    @property
    def cwd(self) -> str:
        """Its working directory, absolute."""
        stored = self.session.state.settings.cwd
        return self.shared.cwd if not stored or stored == storable(self.shared.cwd) else stored

    @property
    def cost(self) -> float | None:
        """What it and the sessions under it cost in USD; None where no price is known."""
        known = [c for c in (self.session.view.cost, *(each.cost for each in self.under.values())) if c is not None]
        return sum(known) if known else None

    @property
    def in_turn(self) -> bool:
        """Whether a turn runs."""
        return self.mailbox.in_turn

    @property
    def mode(self) -> str:
        """The permission mode in force; a child's is its opener's until it has one of its own."""
        own = self.session.state.settings.mode
        if self.opener is None and self.shared.run_mode:
            return self.shared.run_mode
        return own or (self.opener.mode if self.opener else self.shared.settings.default_mode)

    @property
    def model(self) -> str:
        """The label in force ("" none)."""
        own = self.session.state.settings.model
        return own or (self.opener.model if self.opener else self.shared.settings.default_model)

    @property
    def reasoning(self) -> str:
        """The reasoning effort in force ("" the model's own)."""
        own = self.session.state.settings.reasoning
        return own or (self.opener.reasoning if self.opener else self.shared.settings.default_reasoning)

    # --- what its model is asked with --------------------------------------------------------------------------

    def parts(self) -> tuple[prompts.Part, ...]:
        """The system prompt's parts; fixed until `reload`."""
        if self._parts is None:
            if not self.setup_body.base_prompt:
                self._parts = ()
            else:
                here = prompts.Surroundings(storable(self.cwd), self.shared.platform, self._day(), _in_git(self.cwd))
                found, extra = self.shared.instructions(self.cwd), self.shared.extra_parts()
                self._parts = prompts.build(here, found, extra, self.shared.replaced_parts)
        return self._parts

    def _day(self) -> str:
        """The day of the session's first turn, so that the prompt's bytes never change with the date."""
        turns = self.session.view.turns
        return datetime.date.fromtimestamp(turns[0].time if turns else time.time()).isoformat()

    def reload(self) -> None:
        """Read the project's rules and the extensions' parts again, from the next request on."""
        self._parts = None

    def system(self) -> tuple[SystemBlock, ...]:
        """All system blocks: panto's parts, then the agent's own messages."""
        own = (
            SystemBlock(f"system:{number}", text)
            for number, message in enumerate(self.setup_body.system, 1)
            if (text := message_text(message)).strip()
        )
        return (*prompts.blocks(self.parts()), *own)

    def tools(self) -> tuple[ToolSpec, ...]:
        """The declarations in force."""
        if self.setup_body.tools is not None:
            return self.setup_body.tools
        return self.opener.tools() if self.opener else self.shared.registry.specs()

    def setup(self) -> Setup:
        """What the next request is made with. Raises UsageError where there is no usable model."""
        if not self.model:
            raise UsageError("no model is chosen", "/model picks one, /login sets a provider up, /tour works offline")
        shared = self.shared.settings
        limits = shared.limits if self.opener is None else Limits(steps=shared.limits.steps)
        return Setup(
            model=self.shared.catalog.resolve(self.model),
            reasoning=self.reasoning,
            system=self.system(),
            tools=self.tools(),
            tool_choice=self.setup_body.tool_choice,
            attended=self.shared.attended,
            dispatch=self.dispatch,
            parallel=shared.parallel,
            limits=self.limits or limits,
            compact_at=shared.compact_at,
            repeat=shared.repeat,
        )

    async def change_setup(self, **changes: object) -> None:
        """Record a changed setup: tools, tool_choice, system, base_prompt."""
        self.setup_body = replace(self.setup_body, **changes)
        body = stage(self.setup_body)
        await self.session.commit(ChangeSetup(setup=body.digest), bodies=(body,))

    async def set_tools(self, tools: tuple[ToolSpec, ...]) -> None:
        """Declare exactly these from the next request on."""
        await self.change_setup(tools=tools)

    async def set_config(
        self, *, model: str | None = None, reasoning: str | None = None, tool_choice: ToolChoice | None = None
    ) -> None:
        """Merge into what is in force; recorded. Raises UsageError for an unknown model or level."""
        if model is not None:
            self.shared.catalog.resolve(model)
            await self.session.commit(ChangeModel(model=model))
        if reasoning is not None:
            await self.session.commit(ChangeReasoning(reasoning=reasoning))
        if tool_choice is not None:
            await self.change_setup(tool_choice=tool_choice)
        self._status()

    async def take_on(self, model: str, reasoning: str, tools: tuple[ToolSpec, ...] | None) -> None:
        """Have what is given ("" and None: nothing) in force; recorded where it is not already."""
        settings = self.session.state.settings
        await self.set_config(
            model=model if model not in ("", settings.model) else None,
            reasoning=reasoning if reasoning not in ("", settings.reasoning) else None,
        )
        if tools is not None and tools != self.setup_body.tools:
            await self.set_tools(tools)

    def judge(self, tool: Tool, arguments: Mapping[str, object]) -> Verdict:
        """May this call run? Its own mode and rules, and those of every agent above it."""
        return judge(self, tool, arguments)

    def tool_context(
        self, run: str, call: str, effect: str, raw: str, control: Control | None = None
    ) -> ToolContext:
        """A call's surroundings as plain values. `control`: what stops it (None: what stops the turn)."""
        control, shared = control or self.mailbox.control or Control(), self.shared

        def progress(text: str, view: View | None) -> None:
            self._tell(ToolProgressed(self.id, call, text, view))

        return ToolContext(
            session=self.id, run=run, call=call, effect=effect, agent=self.id, cwd=self.cwd, progress=progress,
            fresh=self.session.view.files, spool=shared.spool, raw=raw, env_drop=shared.env_drop,
            env_pass=shared.env_pass, mask=shared.mask(), cancelled=control.interrupt,
            deadline=lambda: control.deadline, network=lambda command: not run or reaches_network(self, command),
        )  # fmt: skip

    # --- its inbox ---------------------------------------------------------------------------------------------

    async def submit(
        self, message: Message, when: Literal["step", "turn"], *, id: str = "", source: Source = "extension"
    ) -> str:
        """A durable input into the inbox; its id. A `step` input joins the running turn, or starts one.

        A `turn` input to an idle agent starts a turn only where a person is there and has not interrupted since; else
        it waits for the next prompt.
        """
        waits = when == "turn" and not self.in_turn and (not self.shared.attended or self.interrupted)
        return await self.mailbox.prompt(message, when=when, id=id, source=source, start=not waits)

    @property
    def interrupted(self) -> bool:
        """Whether the last turn was stopped by a person."""
        turns = self.session.view.turns
        return bool(turns) and turns[-1].state == "stopped"

    # --- telling -----------------------------------------------------------------------------------------------

    def _fact(self, fact: Fact) -> None:
        self._tell(fact)
        match fact.event:
            case InputSubmitted(input=name) if isinstance(fact.body, MessageBody):
                self._texts[name] = message_text(fact.body.message)
            case InputAccepted(input=name):
                self._texts.pop(name, None)
            case InputWithdrawn(input=name, returned=True):
                self._return(self._texts.pop(name, ""))
            case _:
                pass
        if type(fact.event) in STATUS_EVENTS:
            self._status()

    def _return(self, text: str) -> None:
        """Give texts back together, in the order they were said."""
        if not text:
            return
        if not self._returned:
            asyncio.get_running_loop().call_soon(self._give_back)
        self._returned.append(text)

    def _give_back(self) -> None:
        texts, self._returned = self._returned, []
        self._tell(InputReturned(self.id, "\n".join(texts)))

    async def recall(self) -> None:
        """Know the texts of inputs that waited before this process, in case they are taken back, and how full it is."""
        for name, said in self.session.state.inputs.items():
            try:
                body = await self.session.body(said.body)
            except (Missing, Corrupt):
                continue
            if isinstance(body, MessageBody):
                self._texts.setdefault(name, message_text(body.message))
        await self.recount()

    async def recount(self) -> None:
        """Know about how full the context is, where no vendor has counted it since it was replaced."""
        if not self.session.view.used and self.session.view.turns:
            with contextlib.suppress(UsageError):  # no usable model: it is counted once there is one
                await self.mailbox.ports.context.recount(self.setup())

    def _rest(self, parked: Parked | None) -> None:
        if parked is not None or self.session.state.turn is None:
            self.wants_model = parked is not None and isinstance(parked.problem, UsageError)
        self._keeper.rested(self, parked)
        self._status()

    def _status(self) -> None:
        self._tell(self.status())

    def signal(self, signal: Signal) -> None:
        """Tell readers something live."""
        self._tell(signal)

    def status(self) -> StatusChanged:
        """What the status line shows."""
        view, state = self.session.view, self.session.state
        try:
            size = self.shared.catalog.resolve(self.model).spec.context if self.model else 0
        except UsageError:
            size = 0
        return StatusChanged(
            agent=self.id, model=self.model, reasoning=self.reasoning, mode=self.mode, cwd=storable(self.cwd),
            branch=_branch(self.cwd), context_used=self.mailbox.ports.context.used or view.used, context_size=size,
            cost=self.cost, usage=view.usage, jobs=len(state.jobs), busy=self.mailbox.busy, title=state.settings.title,
            parked=self.mailbox.parked, agent_tokens=sum(each.tokens for each in self.under.values()),
            prefix_broken=self.mailbox.ports.context.broken_prefix,
        )  # fmt: skip

    def forget(self) -> None:
        """Stop listening: the session is being closed."""
        self._unsubscribe()


STATUS_EVENTS: frozenset[type] = frozenset((
    ModelStepCompleted, TurnStarted, TurnAttemptFailed, TurnRetried, TurnSettled, TurnStopped, TurnSuperseded,
    ModelChanged, ReasoningChanged, ModeChanged, CwdChanged, TitleChanged, JobStarted, JobEnded, JobLost,
    CheckpointMade,
))  # fmt: skip
"""Facts after which the status line is told anew."""


def _git_dir(cwd: str) -> pathlib.Path | None:
    for place in (pathlib.Path(cwd), *pathlib.Path(cwd).parents):
        if (place / ".git").exists():
            return place / ".git"
    return None


def _in_git(cwd: str) -> bool:
    return _git_dir(cwd) is not None


def _branch(cwd: str) -> str:
    """The checked-out branch, or the short commit id; "" outside a repository. Reads one small file."""
    git = _git_dir(cwd)
    try:
        if git is not None and git.is_file():  # a linked work tree names its own directory
            git = pathlib.Path(cwd, regular.read(git, 4096).decode("utf-8").removeprefix("gitdir:").strip())
        head = regular.read(git / "HEAD", 4096).decode("utf-8").strip() if git else ""
    except (OSError, ValueError):  # a path with a NUL too
        return ""
    return head.rsplit("refs/heads/", 1)[-1] if head.startswith("ref:") else head[:8]
