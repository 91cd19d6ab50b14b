"""Signals: live and droppable. A reader that misses them all still sees every fact.

`agent` is the session id of the agent concerned. Text deltas may be merged, never dropped while a reader keeps up.
"""

from __future__ import annotations

from typing import Literal

from panto.schema.bodies import Body, Question, ToolOutcome
from panto.schema.contributions import Contributions
from panto.schema.events import AnyEvent
from panto.schema.messages import Usage
from panto.schema.value import Value
from panto.schema.view import View


class Fact(Value, frozen=True):
    """A committed event as readers get it: once, in commit order. `body` is the body it shows, already read.

    `agent` session id; `seq` commit, `index` place in it; `time` UTC seconds; `under` the primary's id ("" itself).
    `body`: the Message of input_submitted and input_accepted, the ModelResult, the ToolOutcome, the Question, the
    summary, the kept text of run_ended, the new arguments of tool_call_approved, the arguments of tool_call_started.
    """

    agent: str
    seq: int
    index: int
    time: float
    event: AnyEvent
    body: Body | None = None


class TextStreamed(Value, frozen=True, tag="text_streamed"):
    """More visible text of the running step."""

    agent: str
    step: int
    text: str


class ReasoningStreamed(Value, frozen=True, tag="reasoning_streamed"):
    """More reasoning of the running step."""

    agent: str
    step: int
    text: str


class CallDrafted(Value, frozen=True, tag="call_drafted"):
    """The model is writing a call's arguments; `size` bytes so far."""

    agent: str
    step: int
    index: int
    name: str
    size: int


class StepReset(Value, frozen=True, tag="step_reset"):
    """Drop the deltas of this step: it is tried again. `generation` counts tries from 1."""

    agent: str
    step: int
    generation: int


class RetryWaiting(Value, frozen=True, tag="retry_waiting"):
    """A model call failed and is tried again in `wait_s` seconds: `attempt` of `attempts`."""

    agent: str
    cause: str
    status: int
    wait_s: float
    attempt: int
    attempts: int


class RetryResumed(Value, frozen=True, tag="retry_resumed"):
    """The wait is over (or was cut short)."""

    agent: str


class ToolProgressed(Value, frozen=True, tag="tool_progressed"):
    """A running call says how far it is: more output text (a tail), or a whole view that replaces the last."""

    agent: str
    call: str
    text: str = ""
    view: View | None = None


class ShellRun(Value, frozen=True, tag="shell_run"):
    """A person's own command began (`outcome` None) or ended; what it prints meanwhile is ToolProgressed of `id`.

    `slash`: an extension's slash command that shows how far it is, not one of the shell.
    """

    agent: str
    id: str
    command: str
    outcome: ToolOutcome | None = None
    slash: bool = False


class SessionOwner(Value, frozen=True):
    """Who writes a session: its full id and title ("" none), the process and its host.

    `alive`: the process was seen running, on this machine. False: it is on another one (or in a container of its own),
    where only its lease, renewed within the last half minute, speaks for it.
    """

    session: str
    pid: int
    host: str
    alive: bool = True
    title: str = ""


class Noticed(Value, frozen=True, tag="noticed"):
    """Something a person should know. `key`: a later one with the same key replaces it.

    `owner`: this run was to open a session that another process writes, and shows an empty one instead; what may be
    offered is `OpenSession(owner.session, how=...)` with "view", "fork" or "take_over", or to stay here. Where it is
    an op that is refused so, `Owned` carries the same.
    """

    agent: str
    text: str
    level: Literal["info", "attention", "wrong"] = "info"
    hint: str = ""
    key: str = ""
    owner: SessionOwner | None = None


class StatusChanged(Value, frozen=True, tag="status_changed"):
    """What the status line shows, whole. Tokens; `cost` in USD for the session and its children; None: no price.

    `agent_tokens`: what its children used, in and out; `usage` is without them. `prefix_broken`: which part of the
    request last changed so that what the vendor had cached no longer fitted.
    """

    agent: str
    model: str
    reasoning: str
    mode: str
    cwd: str
    branch: str = ""
    context_used: int = 0
    context_size: int = 0
    cost: float | None = None
    usage: Usage = Usage()
    jobs: int = 0
    busy: bool = False
    title: str = ""
    parked: bool = False
    agent_tokens: int = 0
    prefix_broken: str = ""


class Asked(Value, frozen=True, tag="asked"):
    """An extension asks outside any call; op `Answer` with this `id` as its call answers. `over`: no longer asked."""

    agent: str
    id: str
    question: Question
    over: bool = False


class InputReturned(Value, frozen=True, tag="input_returned"):
    """Escape took these undelivered inputs back; their text belongs in the composer."""

    agent: str
    text: str


class ContributionsChanged(Value, frozen=True, tag="contributions_changed"):
    """Extensions changed what they add to the screen: the whole of it, now."""

    agent: str
    contributions: Contributions


class SessionOpened(Value, frozen=True, tag="session_opened"):
    """The client now looks at another session: draw it anew from its history.

    `read_only`: it is written by another process and followed here; ops that would change it raise ViewOnly. Another
    session, a new one, a fork or taking it over ends that. It is also told of the session at hand, when another
    process has taken it over.
    """

    agent: str
    read_only: bool = False


class Left(Value, frozen=True, tag="left"):
    """The engine is closed; nothing follows. `summary` lines are for the terminal left behind."""

    agent: str
    summary: tuple[str, ...] = ()


Signal = (
    TextStreamed | ReasoningStreamed | CallDrafted | StepReset | RetryWaiting | RetryResumed | ToolProgressed
    | ShellRun | Noticed | StatusChanged | Asked | InputReturned | ContributionsChanged | SessionOpened | Left
)  # fmt: skip

Update = Fact | Signal
