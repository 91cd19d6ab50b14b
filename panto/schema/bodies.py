"""Bodies: the large values that events name by digest."""

from __future__ import annotations

from typing import Literal

from panto.schema.codec import Digest
from panto.schema.messages import Message, ModelResult, ResultPart, ToolChoice, ToolSpec
from panto.schema.value import Value
from panto.schema.view import View


class ToolOutcome(Value, frozen=True, tag="tool_outcome"):
    """What a call came to: `parts` for the model (bounded), `view` for the screen, `file` with the full text.

    `title` is the one argument that matters (a path, a command), `fact` the short right-hand fact
    ("34 lines", "+2 −4", "exit 1").
    """

    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False
    title: str = ""
    fact: str = ""
    view: View | None = None
    file: str = ""


class Question(Value, frozen=True, tag="question"):
    """What a person is asked.

    approval: `tool` wants to run with `arguments` (JSON text); `reason` is why it asks; `view` shows the exact
    diff or command; `dangerous` asks for a deliberate key; `rule` is what "always" would save; `limits` is what bounds
    it, e.g. "sandbox: no network, writes only here · up to 120 s". `reason` may have several lines, a reason each.
    ask: the tool's own question with `choices`.
    """

    kind: Literal["approval", "ask"]
    tool: str
    title: str
    reason: str = ""
    arguments: str = ""
    view: View | None = None
    dangerous: bool = False
    rule: str = ""
    choices: tuple[str, ...] = ()
    multiple: bool = False
    child: str = ""
    limits: str = ""


class RequestManifest(Value, frozen=True, tag="request_manifest"):
    """A frozen request: parameters, and digests of its parts, each stored once, so that a session grows linearly.

    `system`: digests of SystemBlock, `tools`: of ToolSpec, `messages`: of Message. `provider` is the config name.
    `former`: the manifest of an earlier request, whose first `kept` messages come before `messages` (None: none).
    """

    provider: str
    protocol: str
    label: str
    model: str
    system: tuple[Digest, ...]
    tools: tuple[Digest, ...]
    messages: tuple[Digest, ...]
    tool_choice: ToolChoice = ToolChoice()
    reasoning: str = ""
    max_output: int | None = None
    schema: str = ""
    options: str = "{}"
    context_digest: str = ""
    former: Digest | None = None
    kept: int = 0


class AgentSetup(Value, frozen=True, tag="agent_setup"):
    """What an agent was opened with. `tools` None: the shared set. `system`: its own system messages, the first of
    its conversation; `base_prompt` False leaves panto's prompt parts out. Limits 0: none."""

    tools: tuple[ToolSpec, ...] | None = None
    tool_choice: ToolChoice = ToolChoice()
    system: tuple[Message, ...] = ()
    base_prompt: bool = True
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class TextBody(Value, frozen=True, tag="text_body"):
    """Plain text: streamed text kept from a stopped step, arguments as JSON text, an extension's value."""

    text: str


class MessageBody(Value, frozen=True, tag="message_body"):
    """A user message or a summary."""

    message: Message


class ResultBody(Value, frozen=True, tag="result_body"):
    """A model's result."""

    result: ModelResult


Body = ToolOutcome | Question | RequestManifest | AgentSetup | TextBody | MessageBody | ResultBody
