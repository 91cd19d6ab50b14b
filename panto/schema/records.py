"""Updates as records: the one vocabulary of stream-json, Lua jobs and the Python library.

A record is a plain dict with a `type`. Records of an agent other than the recorder's own carry `agent`. Readers
ignore fields they do not know; fields are only ever added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from panto.schema.bodies import Body, MessageBody, Question, ResultBody, TextBody, ToolOutcome
from panto.schema.codec import loads
from panto.schema.events import (
    InputAccepted,
    ModelStepCompleted,
    ModelStepStarted,
    RunCreated,
    RunEnded,
    ToolCallAnswered,
    ToolCallApproved,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallHeld,
    ToolStepOpened,
    TurnSettled,
    TurnStarted,
    TurnStopped,
)
from panto.schema.messages import Arguments, Json, Message, Text, ToolCall, Usage
from panto.schema.signals import (
    Asked,
    Fact,
    Noticed,
    ReasoningStreamed,
    RetryWaiting,
    StepReset,
    TextStreamed,
    ToolProgressed,
    Update,
)

Record = dict[str, object]


def usage_record(usage: Usage) -> Record:
    """Tokens by name, all five always there."""
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    return {name: getattr(usage, name) for name in names}


def message_text(message: Message) -> str:
    """A message's text parts joined."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def outcome_text(body: Body | None, otherwise: str = "") -> str:
    """What the model was told of a call, as text."""
    if not isinstance(body, ToolOutcome):
        return otherwise
    return "\n".join(part.text for part in body.parts if isinstance(part, Text | Json)) or otherwise


def call_status(event: ToolCallFailed) -> str:
    """A failed call's state in the words used outside: cancelled, unknown, denied or error."""
    if event.cause == "interrupted" or event.cls == "cancelled":
        return "cancelled"
    if event.outcome == "unknown":
        return "unknown"
    return "denied" if event.cls == "permission_denied" else "error"


def arguments_value(arguments: Arguments) -> object:
    """A call's arguments as data, or the verbatim text where they were not JSON."""
    return loads(arguments.text) if isinstance(arguments, Json) else arguments.text


@dataclass
class _Turn:
    """What one agent's running turn has come to so far."""

    turn: str = ""
    text: str = ""
    usage: Usage = Usage()
    cost: float | None = None
    error: Record | None = None
    calls: tuple[ToolCall, ...] = ()
    names: dict[str, str] = field(default_factory=dict)


class Recorder:
    """Turns updates into records. One for each reader; it remembers only the turns that run.

    `agent` is the session id whose records carry no `agent` field.
    """

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self._turns: dict[str, _Turn] = {}

    def records(self, update: Update) -> Iterator[Record]:
        """The records of one update, in order; none for updates that say nothing outside."""
        for record in self._records(update):
            if update.agent != self.agent:
                record["agent"] = update.agent
            yield record

    def parked(self) -> Record:
        """The record of a turn that was parked (quit, TERM, HUP): interrupted."""
        return self._ended(self.agent, "interrupted")

    def _turn(self, agent: str) -> _Turn:
        return self._turns.setdefault(agent, _Turn())

    def _records(self, update: Update) -> Iterator[Record]:
        match update:
            case Fact():
                yield from self._fact(update)
            case TextStreamed():
                yield {"type": "text_delta", "text": update.text}
            case ReasoningStreamed():
                yield {"type": "reasoning_delta", "text": update.text}
            case StepReset():
                yield {"type": "reset", "generation": update.generation}
            case RetryWaiting():
                yield {"type": "retry", "status": update.status, "wait_s": update.wait_s, "attempt": update.attempt,
                       "cause": update.cause}  # fmt: skip
            case ToolProgressed():
                record: Record = {"type": "progress", "call": update.call}
                yield record | ({"text": update.text} if update.text else {"view": update.view})
            case Noticed():
                notice: Record = {"type": "notice", "text": update.text}
                if update.hint:
                    notice["hint"] = update.hint
                yield notice
            case Asked(over=False):
                yield _question(update.id, update.question)

    def _fact(self, fact: Fact) -> Iterator[Record]:
        turn = self._turn(fact.agent)
        match fact.event:
            case TurnStarted(turn=name):
                self._turns[fact.agent] = _Turn(name)
                yield {"type": "turn_started", "turn": name}
            case RunCreated():
                turn.error = None
            case InputAccepted() if isinstance(fact.body, MessageBody):
                yield {"type": "message", "role": "user", "text": message_text(fact.body.message)}
            case ModelStepStarted(step=step):
                yield {"type": "step_started", "step": step}
            case ModelStepCompleted() as event:
                yield from self._step_ended(turn, event, fact.body)
            case ToolStepOpened(calls=calls):
                for binding in calls:
                    turn.names[binding.call] = binding.name
                    given = arguments_value(turn.calls[binding.index].arguments) if turn.calls else None
                    yield {"type": "tool_call", "id": binding.call, "name": binding.name, "arguments": given}
            case ToolCallHeld(call=call) if isinstance(fact.body, Question):
                yield _question(call, fact.body)
            case ToolCallApproved(call=call):
                yield {"type": "approved", "id": call}
            case ToolCallCompleted() | ToolCallAnswered() | ToolCallFailed() as event:
                yield _result(event, fact.body)
            case RunEnded() as event:
                self._run_ended(turn, event, fact.body)
            case TurnSettled(status=status):
                yield self._ended(fact.agent, status)
            case TurnStopped(reason=reason):
                yield self._ended(fact.agent, "interrupted" if reason == "cancelled" else "limited")
            case _:
                pass  # what is not said outside: settings, checkpoints, bookkeeping of steps

    def _step_ended(self, turn: _Turn, event: ModelStepCompleted, body: Body | None) -> Iterator[Record]:
        turn.usage = turn.usage + event.usage
        if event.cost is not None:
            turn.cost = (turn.cost or 0.0) + event.cost
        if isinstance(body, ResultBody):
            turn.calls = body.result.calls()
            text = body.result.text()
            if text.strip():
                turn.text = text
                yield {"type": "message", "role": "assistant", "text": text}
        yield {"type": "step_ended", "step": event.step, "usage": usage_record(event.usage), "cost": event.cost}

    def _run_ended(self, turn: _Turn, event: RunEnded, body: Body | None) -> None:
        if isinstance(body, TextBody) and body.text.strip():
            turn.text = body.text
        if event.status == "failed":
            turn.error = {"kind": event.error_kind or event.failed or "internal", "message": event.message}
        elif event.status == "stopped" and event.stopped != "cancelled":
            turn.error = {"kind": event.stopped or "limited", "message": event.message}

    def _ended(self, agent: str, status: str) -> Record:
        turn = self._turns.pop(agent, _Turn())
        return {
            "type": "turn_ended",
            "status": status,
            "text": turn.text,
            "usage": usage_record(turn.usage),
            "cost": turn.cost,
            "error": turn.error,
            "session": agent,
        }


def _question(call: str, question: Question) -> Record:
    given: object = loads(question.arguments) if question.arguments else None
    record: Record = {"type": "question", "id": call, "kind": question.kind, "tool": question.tool, "arguments": given,
                      "reason": question.reason}  # fmt: skip
    if question.kind == "ask":
        record |= {"text": question.title, "choices": list(question.choices), "multiple": question.multiple}
    return record


def _result(event: ToolCallCompleted | ToolCallAnswered | ToolCallFailed, body: Body | None) -> Record:
    record: Record = {"type": "tool_result", "id": event.call}
    if isinstance(event, ToolCallFailed):
        record["status"] = call_status(event)
        if event.effects == "unknown" or event.outcome == "unknown":
            record["effects"] = "unknown"
        text = outcome_text(body)
        record["text"] = f"{event.message}\n{text}" if text else event.message
    else:
        record["status"] = "error" if isinstance(body, ToolOutcome) and body.is_error else "ok"
        record["text"] = outcome_text(body)
    record["duration_ms"] = 0 if isinstance(event, ToolCallAnswered) else event.duration_ms
    return record
