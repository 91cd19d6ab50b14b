"""What a client may ask: imperative. `agent` "" means the primary agent of the client."""

from __future__ import annotations

from typing import Literal

from panto.schema.messages import Image
from panto.schema.value import Value


class Prompt(Value, frozen=True, tag="prompt"):
    """Text from a person. `when` "step": start a turn, or steer the running one; "turn": queue for after it.

    `id` makes it repeatable: a known id is not submitted again ("" makes a new one).
    """

    text: str
    images: tuple[Image, ...] = ()
    when: Literal["step", "turn"] = "step"
    agent: str = ""
    id: str = ""


class Continue(Value, frozen=True, tag="continue"):
    """Go on with a parked turn, or retry a failed attempt."""

    agent: str = ""


class Interrupt(Value, frozen=True, tag="interrupt"):
    """Escape: stop the running turn and its foreground children within a second."""

    agent: str = ""


class Withdraw(Value, frozen=True, tag="withdraw"):
    """Take a submitted, undelivered input back ("" the last one); its text comes as InputReturned."""

    input: str = ""
    agent: str = ""


class Decide(Value, frozen=True, tag="decide"):
    """Answer an approval question.

    once | session (a rule for this session) | always (saved to the user's config) | no (with `reason`, told to the
    model). `arguments` (JSON text, "" unchanged) are the person's edited arguments.
    """

    call: str
    decision: Literal["once", "session", "always", "no"]
    reason: str = ""
    arguments: str = ""
    agent: str = ""


class Answer(Value, frozen=True, tag="answer"):
    """Answer an `ask` question or an external tool's call: chosen `choices` or free `text`; `refused` declines."""

    call: str
    text: str = ""
    choices: tuple[str, ...] = ()
    refused: bool = False
    agent: str = ""


class RetryNow(Value, frozen=True, tag="retry_now"):
    """Cut a retry wait short."""

    agent: str = ""


class SetModel(Value, frozen=True, tag="set_model"):
    """Use another model (provider:alias) from the next step on. `default`: also write it to the user's config."""

    model: str
    reasoning: str = ""
    default: bool = False
    agent: str = ""


class Login(Value, frozen=True, tag="login"):
    """Store a provider's key, which is checked first; what came of it is shown as a notice. It is in no repr."""

    provider: str
    key: str

    def __repr__(self) -> str:
        return f"Login({self.provider!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("provider", self.provider)]


class SetTrust(Value, frozen=True, tag="set_trust"):
    """Agree to what the project brings, or withdraw that. `seen`: the digest of the list the person was shown.

    Refused (Conflict) where the list is another by now. What was agreed to is used at once.
    """

    agreed: bool
    seen: str = ""


class SetReasoning(Value, frozen=True, tag="set_reasoning"):
    """Reasoning effort, one of the model's levels."""

    reasoning: str
    agent: str = ""


class SetMode(Value, frozen=True, tag="set_mode"):
    """Permission mode."""

    mode: Literal["plan", "ask", "auto", "yolo"]
    agent: str = ""


class Compact(Value, frozen=True, tag="compact"):
    """Summarise the context now; `instructions` steer the summary."""

    instructions: str = ""
    agent: str = ""


class Rewind(Value, frozen=True, tag="rewind"):
    """Supersede this turn and all later ones; `files`: also restore the files they changed."""

    turn: str
    files: bool = False
    agent: str = ""


class Fork(Value, frozen=True, tag="fork"):
    """A new session that shares the history up to just before `turn` ("" the head), and open it.

    What the turn began with comes back as InputReturned. A viewed session may be forked too; where a turn runs there,
    the head is what was settled before it, and nothing comes back.
    """

    turn: str = ""
    agent: str = ""


class NewSession(Value, frozen=True, tag="new_session"):
    """Leave this session (it stays resumable) and begin an empty one."""


class OpenSession(Value, frozen=True, tag="open_session"):
    """Leave this session and open another (any unique id prefix).

    own: to work in it; raises Owned (who, where) where another live process does. The others are the ways out of that:
    view follows it read-only, fork makes a session of one's own from what is settled in it, take_over ends the other
    process's right to write it (that process is told, and views it from then on).
    """

    session: str
    how: Literal["own", "view", "fork", "take_over"] = "own"


class Rename(Value, frozen=True, tag="rename"):
    """Give a session a title ("" session: this one)."""

    title: str
    session: str = ""


class DeleteSession(Value, frozen=True, tag="delete_session"):
    """Delete a session that is not open."""

    session: str


class RunCommand(Value, frozen=True, tag="run_command"):
    """A slash command as typed, e.g. "/compact keep the test names"."""

    text: str
    agent: str = ""


class RunShell(Value, frozen=True, tag="run_shell"):
    """A person's own `!` command. `hidden` (`!!`): its output stays from the model."""

    command: str
    hidden: bool = False
    agent: str = ""


class StopJob(Value, frozen=True, tag="stop_job"):
    """End a background job."""

    job: str
    agent: str = ""


class Shutdown(Value, frozen=True, tag="shutdown"):
    """Park what runs, close the session, end every child process."""


Op = (
    Prompt | Continue | Interrupt | Withdraw | Decide | Answer | RetryNow | SetModel | SetReasoning | SetMode | Compact
    | Rewind | Fork | NewSession | OpenSession | Rename | DeleteSession | RunCommand | RunShell | StopJob | Login
    | SetTrust | Shutdown
)  # fmt: skip
