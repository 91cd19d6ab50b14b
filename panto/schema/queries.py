"""What a client may ask to know. Each query names its answer's type; asking changes nothing."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from panto.schema.contributions import Contributions, ExtensionRow
from panto.schema.signals import Fact, StatusChanged
from panto.schema.value import Value

A = TypeVar("A")


class Query(Value, Generic[A], frozen=True):
    """A question whose answer is an A."""


class History(Value, frozen=True):
    """A page of facts, oldest first. `start` is the position (seq, index) of the first, None at the beginning."""

    facts: tuple[Fact, ...]
    start: tuple[int, int] | None


class AskHistory(Query[History], frozen=True, tag="history"):
    """The newest page before a position (None: the newest of all), at most about `limit` facts, whole turns first."""

    agent: str = ""
    before: tuple[int, int] | None = None
    limit: int = 400


class SessionRow(Value, frozen=True):
    """One line of the session list. `time` of the last commit, UTC seconds; `owner` says who writes ("" nobody)."""

    id: str
    short: str
    title: str
    cwd: str
    time: float
    model: str
    turns: int
    tokens: int
    cost: float | None = None
    last_prompt: str = ""
    forked_from: str = ""
    owner: str = ""
    broken: str = ""


class AskSessions(Query[tuple[SessionRow, ...]], frozen=True, tag="sessions"):
    """Sessions, newest first: those of `cwd` ("" all); `words` searches titles and messages."""

    cwd: str = ""
    words: str = ""
    limit: int = 200


class AskPreview(Query[History], frozen=True, tag="preview"):
    """The last facts of a session that is not open."""

    session: str
    limit: int = 60


class ModelRow(Value, frozen=True):
    """One usable model. Prices in USD per million tokens (None: unknown); `usable` "" or why it is not."""

    label: str
    id: str
    provider: str
    context: int
    price_input: float | None = None
    price_output: float | None = None
    reasoning: tuple[str, ...] = ()
    images: bool = False
    usable: str = ""


class AskModels(Query[tuple[ModelRow, ...]], frozen=True, tag="models"):
    """The catalogue, configured ones first, filtered by `words`."""

    words: str = ""
    limit: int = 200


class FileRow(Value, frozen=True):
    """A path relative to the working directory, `/` at the end of a directory."""

    path: str


class Files(Value, frozen=True):
    """Matches, best first; `total` files known; `complete` False while the index is still being read."""

    rows: tuple[FileRow, ...]
    total: int
    complete: bool = True


class AskFiles(Query[Files], frozen=True, tag="files"):
    """Files of the project that match what was typed after `@`."""

    text: str
    limit: int = 8


class CommandRow(Value, frozen=True):
    """A slash command: `usage` shows its arguments, `value` the present value where it has one."""

    name: str
    description: str
    usage: str = ""
    value: str = ""


class AskCommands(Query[tuple[CommandRow, ...]], frozen=True, tag="commands"):
    """All slash commands, built in and registered, in alphabetical order."""


class AskCompletions(Query[tuple[str, ...]], frozen=True, tag="completions"):
    """Values for a command's argument being typed."""

    command: str
    text: str


class PromptPart(Value, frozen=True):
    """A named part of what is sent: size in estimated tokens and where it comes from."""

    name: str
    tokens: int
    source: str


class AskContext(Query[tuple[PromptPart, ...]], frozen=True, tag="context"):
    """What fills the context, by named part."""

    agent: str = ""


class AgentRow(Value, frozen=True):
    """A child agent's session. `state`: running, completed, failed, cancelled; parked: its turn was broken off;
    idle: nothing was said to it yet. `tokens` in and out."""

    id: str
    name: str
    state: str
    model: str
    tokens: int = 0


class AskAgents(Query[tuple[AgentRow, ...]], frozen=True, tag="agents"):
    """Sessions under the primary."""


class TurnRow(Value, frozen=True):
    """A turn for /tree and rewind."""

    turn: str
    text: str
    state: Literal["active", "completed", "attempt_failed", "failed", "stopped", "refused", "superseded"]
    time: float
    files: tuple[str, ...] = ()


class AskTurns(Query[tuple[TurnRow, ...]], frozen=True, tag="turns"):
    """The session's turns, oldest first."""

    agent: str = ""


class SettingRow(Value, frozen=True):
    """A setting in force and where it comes from (file:line, environment, command line, default)."""

    key: str
    value: str
    source: str


class AskSettings(Query[tuple[SettingRow, ...]], frozen=True, tag="settings"):
    """What is in force and from where; values that could be secret are masked."""


class TrustRow(Value, frozen=True):
    """One thing the project brings: its path below the project's folder and what it would do.

    `changed`: it is new or another since the last agreement.
    """

    path: str
    what: str
    changed: bool = False


class ProjectTrust(Value, frozen=True):
    """Everything the folder at `folder` brings ("" it brings nothing), and whether its person agreed to exactly this.

    `seen` is the digest of the list, for SetTrust; "" where it can't be agreed to (`why` says why).
    """

    folder: str = ""
    rows: tuple[TrustRow, ...] = ()
    agreed: bool = False
    seen: str = ""
    why: str = ""


class AskTrust(Query[ProjectTrust], frozen=True, tag="trust"):
    """What of the project would run or be read as instructions, item by item."""


class AskStatus(Query[StatusChanged], frozen=True, tag="status"):
    """What the status line shows now."""

    agent: str = ""


class AskContributions(Query[Contributions], frozen=True, tag="contributions"):
    """What extensions add to the screen."""


class AskExtensions(Query[tuple[ExtensionRow, ...]], frozen=True, tag="extensions"):
    """Extensions in load order."""


class PromptText(Value, frozen=True):
    """A prompt a person wrote before."""

    text: str


class AskPrompts(Query[tuple[PromptText, ...]], frozen=True, tag="prompts"):
    """Earlier prompts of this directory, newest first, for the composer's history."""

    limit: int = 500
