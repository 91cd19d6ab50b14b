"""Model steps: what streams, what it comes to, what went wrong on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from panto.schema import events as e
from panto.schema import messages as m
from panto.schema import signals as s
from panto.schema.bodies import ResultBody
from panto.tui import units
from panto.tui.items import ErrorItem, Item, NoticeItem, ProseItem, ReasoningItem
from panto.tui.story import Base

StepFact = (
    e.ModelStepPrepared | e.ModelStepWithdrawn | e.ModelStepStarted | e.ModelStepRecovered | e.ModelStepRejected
    | e.ModelStepCompleted | e.InterruptRequested | e.RunEnded
)  # fmt: skip

_DOT = "·"
_WORDS = {"waiting": "waiting for the model", "thinking": "thinking", "writing": "writing", "stopping": "stopping"}
_KEPT = "Nothing is lost: your prompt is kept.   Enter tries again   "
_HINTS = {
    "auth": _KEPT + "/login another key   Alt+P other model",
    "permission": _KEPT + "Alt+P other model   /login another key",
    "not_found": _KEPT + "Alt+P other model   /doctor looks for the cause",
    "quota": _KEPT + "Alt+P other model",
    "overflow": "Nothing is lost.   /compact makes room   Alt+P a model with a larger window",
}
_CAUSES = {408: "timed out", 429: "rate limited", 503: "overloaded", 529: "overloaded"}
_FAILED = {
    "malformed": "the model's answers could not be read",
    "context": "the context does not fit the model's window",
    "storage": "the session could not be written",
    "internal": "something broke inside panto",
    "ownership_lost": "another panto took this session over",
}


@dataclass(slots=True)
class Retry:
    """Tries of one model call that failed. `until`: UTC seconds, when the next is due; 0 while one is under way."""

    cause: str
    status: int
    began: float
    attempt: int
    attempts: int
    until: float

    @property
    def words(self) -> str:
        """The cause in a few words, with its HTTP status."""
        if self.status in _CAUSES or self.status >= 500:
            return f"{_CAUSES.get(self.status, 'the server failed')} ({self.status})"
        status = str(self.status)
        return f"{self.cause} ({status})" if self.status and status not in self.cause else self.cause


class StepsPart(Base):
    """The part of a story that follows the model."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._stream: list[Item] = []
        self._retry: Retry | None = None
        super().__init__(clock)

    def reset(self) -> None:
        super().reset()
        self._stream = []
        self._retry = None

    # ---------------------------------------------------------------- signals

    def text_streamed(self, text: str) -> None:
        """More visible text."""
        last = self._stream[-1] if self._stream else None
        if not isinstance(last, ProseItem):
            if not text.strip() and last is None:
                return  # leading blanks make no item
            self._begin_stream()
            last = ProseItem(self.turn, streaming=True)
            self._stream.append(last)
            self.append(last)
        self.set_phase("writing")
        last.append(text)
        self.note(last)

    def reasoning_streamed(self, text: str) -> None:
        """More reasoning."""
        last = self._stream[-1] if self._stream else None
        if not isinstance(last, ReasoningItem):
            self._begin_stream()
            last = ReasoningItem(self.turn, started=self._clock(), streaming=True)
            self._stream.append(last)
            self.append(last)
        self.set_phase("thinking")
        last.append(text)
        self.note(last)

    def _begin_stream(self) -> None:
        self._settle_retry()
        for item in self._stream:
            if isinstance(item, ReasoningItem) and item.streaming:
                item.finish(None, self._clock())
                self.note(item)

    def drop_stream(self) -> None:
        """What streamed in this step no longer counts."""
        for item in self._stream:
            self.remove(item)
        self._stream = []
        self.drop_drafts()

    def clear_step(self) -> None:
        """Nothing streams any longer: what is there stays as it is."""
        for item in self._stream:
            if isinstance(item, ProseItem):
                item.finish()
            elif isinstance(item, ReasoningItem):
                item.finish(None, self._clock())
            self.note(item)
        self._stream = []
        self.drop_drafts()

    # ---------------------------------------------------------------- facts

    def step_fact(self, fact: s.Fact, event: StepFact) -> None:
        """A fact of a model step, or of the run's end."""
        match event:
            case e.ModelStepStarted():
                self.set_phase("waiting")
                self.phase_since = fact.time
            case e.ModelStepRecovered():
                self.drop_stream()
            case e.ModelStepRejected(problem=problem):
                self.drop_stream()
                self.append(NoticeItem(self.turn, f"the answer could not be read and is asked for again: {problem}"))
            case e.ModelStepCompleted(run=run, usage=usage, cost=cost):
                self._count(run, usage, cost)
                self._completed(fact)
            case e.InterruptRequested():
                self.set_phase("stopping")
            case e.RunEnded():
                self._ended(fact, event)
            case e.ModelStepPrepared() | e.ModelStepWithdrawn():
                pass

    def _count(self, run: str, usage: m.Usage, cost: float | None) -> None:
        turn = self.turns.get(self.runs.get(run, ""))
        if turn is not None:
            turn.usage += usage
            turn.cost += cost or 0.0

    def _completed(self, fact: s.Fact) -> None:
        self._settle_retry()
        self.set_phase("")
        if not isinstance(fact.body, ResultBody):
            self.clear_step()
            return
        wanted = _said(fact.body.result.message.parts)
        kinds = [ProseItem if kind == "text" else ReasoningItem for kind, _ in wanted]
        if [type(item) for item in self._stream] == kinds:
            for item, (_, text) in zip(self._stream, wanted, strict=True):
                if isinstance(item, ProseItem):
                    item.finish(text)
                elif isinstance(item, ReasoningItem):
                    item.finish(text, self._clock())
                self.note(item)
        else:
            at = self._stream_start()
            for item in self._stream:
                self.remove(item)
            for offset, (kind, text) in enumerate(wanted):
                fresh = ProseItem(self.turn, text) if kind == "text" else ReasoningItem(self.turn, text)
                self.insert(min(at + offset, len(self.items)), fresh)
        self._stream = []
        for note in fact.body.result.notes:
            self.append(NoticeItem(self.turn, note))
        if fact.body.result.finish.reason == "length":
            self.append(NoticeItem(self.turn, "cut off by the output limit", "attention"))
        elif fact.body.result.finish.reason == "content_filter":
            self.append(NoticeItem(self.turn, "cut off by the provider's content filter", "attention"))

    def _stream_start(self) -> int:
        if self._stream:
            for at in range(len(self.items) - 1, -1, -1):
                if self.items[at] is self._stream[0]:
                    return at
        return len(self.items)

    def _ended(self, fact: s.Fact, event: e.RunEnded) -> None:
        self.set_phase("")
        if event.status == "failed":
            self.drop_stream()
            self.append(self._error(fact, event))
            self._retry = None
            return
        self._retry = None
        text = self.message_text(fact.body)
        prose = [item for item in self._stream if isinstance(item, ProseItem)]
        self.clear_step()
        if text.strip() and "".join(item.source() for item in prose).strip() != text.strip():
            for item in prose:
                self.remove(item)
            self.append(ProseItem(self.turn, text))

    def _error(self, fact: s.Fact, event: e.RunEnded) -> ErrorItem:
        reason = event.failed or "internal"
        said = event.message or _FAILED.get(reason, "the model could not be reached")
        if reason in ("storage", "ownership_lost") and event.message:
            said = f"{_FAILED[reason]}: {event.message}"
        hint = _HINTS.get(event.error_kind or "", _KEPT + "Alt+P other model   /doctor looks for the cause")
        if reason == "ownership_lost":
            hint = "This window only shows it now.   /fork goes on with a copy"
        elif reason == "storage":
            hint = "What ran is held in memory.   Enter tries to write it again   /doctor looks for the cause"
        tries = ""
        if self._retry is not None:
            took = units.seconds(max(0.0, fact.time - self._retry.began))
            tries = f"{units.plural(self._retry.attempt, 'try').replace('trys', 'tries')} in {took}"
        at = time.strftime("%H:%M", time.localtime(fact.time)) if fact.time else ""
        return ErrorItem(self.turn, said, tries, at, hint)

    # ---------------------------------------------------------------- retries

    def retry_waiting(self, signal: s.RetryWaiting) -> None:
        """A model call failed and is tried again."""
        now = self._clock()
        began = self._retry.began if self._retry is not None else now
        self._retry = Retry(
            signal.cause, signal.status, began, signal.attempt, signal.attempts, now + max(0.0, signal.wait_s)
        )

    def retry_resumed(self) -> None:
        """The wait is over."""
        if self._retry is not None:
            self._retry.until = 0.0

    def _settle_retry(self) -> None:
        retry, self._retry = self._retry, None
        if retry is not None:
            took = units.seconds(max(0.0, self._clock() - retry.began))
            tries = f"sent again, answered on try {retry.attempt} after {took}"
            self.append(NoticeItem(self.turn, f"{retry.words.rstrip('.')} {_DOT} {tries}"))

    # ---------------------------------------------------------------- words for the rule

    def retry_activity(self, now: float) -> str | None:
        """The cause, the countdown and the count of tries while a retry waits."""
        retry = self._retry
        if retry is None or not retry.until:
            return None
        left = max(0, round(retry.until - now))
        return f"{retry.words} · again in {left} s · try {retry.attempt} of {retry.attempts}"

    def step_activity(self, now: float) -> str | None:
        """What the model does."""
        words = _WORDS.get(self.phase)
        if words is None:
            return None
        since = now - self.phase_since
        return f"{words} · {units.seconds(since, whole=True)}" if since >= 1 else words


def _said(parts: Iterable[m.Part]) -> list[tuple[str, str]]:
    """Reasoning and text of a message in order, neighbours of one kind joined, blank ones left out."""
    said: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, m.Text | m.Reasoning) and part.text:
            kind = "text" if isinstance(part, m.Text) else "reasoning"
            if said and said[-1][0] == kind:
                said[-1] = (kind, said[-1][1] + part.text)
            else:
                said.append((kind, part.text))
    return [(kind, text) for kind, text in said if text.strip()]
