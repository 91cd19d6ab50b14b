"""A session as lines of JSON: the schema's records, one object a line, each turn closed by `turn_ended`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from panto.remote.words import call_words
from panto.schema import events as ev
from panto.schema.messages import Usage
from panto.schema.records import Record, Recorder, usage_record
from panto.schema.signals import Fact, InputReturned, Left, StatusChanged, TextStreamed, Update

Status = Literal["completed", "failed", "interrupted", "refused", "limited"]
EXIT = {"completed": 0, "failed": 1, "interrupted": 130, "refused": 3, "limited": 1}
FAILED, USAGE, PROVIDER, INTERRUPTED = 1, 2, 4, 130
MOST = 5
"""Of refused calls that are told one by one."""
WHY = {
    "interrupted": ("cancelled", "interrupted"),
    "refused": ("permission", "a call was refused, since nobody is here to allow it"),
    "limited": ("limited", "a limit was reached"),
    "failed": ("internal", "failed"),
}


def line(record: Record) -> bytes:
    """A record as a line of UTF-8. Half a surrogate pair, which UTF-8 cannot hold, stays an escape."""
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:
        import json

        return json.dumps(record, default=msgspec.to_builtins).encode("ascii") + b"\n"


def ended(status: Status, kind: str, message: str, session: str = "") -> Record:
    """The last record of a run in which no turn came about."""
    return {
        "type": "turn_ended", "status": status, "text": "", "usage": usage_record(Usage()), "cost": None,
        "error": {"kind": kind, "message": message}, "session": session,
    }  # fmt: skip


def failed(kind: str, message: str) -> bytes:
    """`ended` for a failure, as a line."""
    return line(ended("failed", kind, message))


class Teller:
    """Tells updates as records, and keeps count of turns.

    `active`: the primary's turn runs. `end`, `code`: the last `turn_ended` record and the exit code it stands for.
    """

    def __init__(self, primary: str) -> None:
        self.primary = primary
        self.active = False
        self.end: Record | None = None
        self.code = 0
        self.waiting = ""
        """A parked turn of an earlier run, which goes on with the next thing that happens in it."""
        self.refused = False
        """Set it when a question could not be put to anybody: the turn then ends as refused."""
        self._calls: dict[str, str] = {}
        self._refusals: list[str] = []
        self._recorder = Recorder(primary)
        self._provider = False
        self._agents: dict[str, tuple[str, str]] = {}
        """Names of agents and who opened each."""
        self._unnamed: set[str] = set()
        """Agents whose turn has begun before it was told who they are."""

    def read(self, update: Update) -> Iterator[Record]:
        """The records of one update, in order."""
        if self._unnamed and not isinstance(update, Fact | StatusChanged):
            yield from self._named(update.agent)
        if isinstance(update, TextStreamed):  # by far the most frequent
            yield from self._recorder.records(update)
        elif isinstance(update, Fact):
            yield from self._fact(update)
        elif isinstance(update, InputReturned):
            yield {"type": "notice", "text": f"not sent: {update.text}"}
        elif isinstance(update, Left):
            if self.active:
                yield self._close(self._recorder.parked())
        else:
            yield from self._recorder.records(update)

    def resumed(self, turn: str) -> Record:
        """A turn that was begun in an earlier run goes on."""
        self.active, self.refused, self.waiting = True, False, ""
        self._refusals.clear()
        return {"type": "turn_started", "turn": turn}

    def broken(self, message: str, kind: str = "internal") -> Record:
        """The running turn cannot go on now; it stays where it is."""
        record = self._recorder.parked()
        record["status"], record["error"] = "failed", {"kind": kind, "message": message}
        self._provider = False
        return self._close(record)

    def _fact(self, fact: Fact) -> Iterator[Record]:
        if self.waiting and not self.active and fact.agent == self.primary and fact.event.machine == "run":
            yield self.resumed(self.waiting)  # a prompt woke it
        match fact.event:
            case ev.JobStarted(kind="child", job=job, title=title):
                self._agents[job] = (title, fact.agent)
                yield from self._named(job)
            case ev.TurnStarted() | ev.TurnRetried() if fact.agent != self.primary:
                self._unnamed.add(fact.agent)
                if fact.agent in self._agents:
                    yield from self._named(fact.agent)
            case ev.TurnStarted(turn=turn) | ev.TurnRetried(turn=turn):
                if isinstance(fact.event, ev.TurnStarted):
                    list(self._recorder.records(fact))
                self._provider = False
                yield self.resumed(turn)
            case ev.TurnSettled() | ev.TurnStopped() | ev.TurnAttemptFailed():
                yield from self._named(fact.agent)
                yield from self._ended(fact)
            case event:
                if isinstance(event, ev.ModelStepCompleted):
                    yield from self._named(fact.agent)
                if isinstance(event, ev.RunEnded) and fact.agent == self.primary:
                    self._provider = event.failed == "provider"
                if isinstance(event, ev.ToolCallFailed) and (event.unattended or self.refused):
                    why = event.message.removeprefix("refused: ")
                    self._refusals.append(f"{self._calls.get(event.call, 'a call')}: {why}")
                for record in self._recorder.records(fact):
                    if record["type"] == "tool_call":
                        self._calls[str(record["id"])] = call_words(str(record["name"]), record["arguments"])
                    yield record

    def _ended(self, fact: Fact) -> Iterator[Record]:
        if isinstance(fact.event, ev.TurnAttemptFailed):
            # Whoever reads records is told of the failure now, whether or not the turn is tried again later.
            fact = msgspec.structs.replace(fact, event=ev.TurnSettled(fact.event.turn, "failed"))
        if fact.agent == self.primary and not self.active:
            return  # it was told before
        for record in self._recorder.records(fact):
            if fact.agent == self.primary:
                yield self._close(record)
            else:
                words = {"completed": "completed", "refused": "completed", "interrupted": "cancelled"}
                yield self._agent(fact.agent, words.get(str(record["status"]), "failed"))

    def _close(self, record: Record) -> Record:
        if self.refused and record["status"] == "completed":
            record["status"] = "refused"
        status = str(record["status"])
        if status in WHY:
            kind, message = WHY[status]
            if status == "refused" and self._refusals:
                more = f"\nand {len(self._refusals) - MOST} more" if len(self._refusals) > MOST else ""
                message = "\n".join(self._refusals[:MOST]) + more
            said = record["error"] if isinstance(record["error"], dict) else {}
            record["error"] = {"kind": said.get("kind") or kind, "message": said.get("message") or message}
        self.active = False
        self.end = record
        self.code = PROVIDER if status == "failed" and self._provider else EXIT[status]
        return record

    def _named(self, agent: str) -> Iterator[Record]:
        """That an agent runs: once it is known by name, or at the latest when something comes of it."""
        if agent in self._unnamed:
            self._unnamed.discard(agent)
            yield self._agent(agent, "running")

    def _agent(self, agent: str, status: str) -> Record:
        name, parent = self._agents.get(agent, ("", self.primary))
        return {"type": "agent", "id": agent, "parent": parent, "name": name, "status": status}
