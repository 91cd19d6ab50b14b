"""The one `match` from facts and signals to what is shown.

A `Story` folds the updates of one agent to items; on resume it folds the same facts again and comes to the same items.
It draws nothing and knows no widget: `widgets/scroll` shows its items and asks `take_changes` what is new.
`activity` says in a few words what is going on, for the rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import assert_never

from panto.schema import events as e
from panto.schema import signals as s
from panto.schema.queries import History
from panto.tui.items import ClosingItem, GreetingItem, NoticeItem
from panto.tui.story import Base
from panto.tui.story_calls import CallsPart
from panto.tui.story_inputs import InputsPart
from panto.tui.story_steps import StepsPart

__all__ = ["Story"]


class Story(StepsPart, CallsPart, InputsPart, Base):
    """The items of one agent's transcript, oldest first.

    `clock` gives UTC seconds. `queued` holds inputs that are not delivered yet. Facts already seen are ignored.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)

    # ---------------------------------------------------------------- history

    def load(self, history: History) -> None:
        """Begins anew with this page of history."""
        self.reset()
        self._page_start = history.start
        for fact in history.facts:
            self.apply(fact)

    def prepend(self, history: History) -> int:
        """Puts an older page before what is there; returns how many items it brought."""
        older = Story(self._clock)
        for fact in history.facts:
            older.apply(fact)
        self._page_start = history.start
        orphans, self._orphans = self._orphans, []
        for fact in orphans:
            older._seen = (-1, -1)
            older.apply(fact)
        self._orphans = older._orphans
        self._adopt(older)
        return len(older.items)

    def greet(self, lines: Iterable[str]) -> None:
        """Puts a fresh session's first lines at the top; again replaces them."""
        if self.items and isinstance(self.items[0], GreetingItem):
            self.remove(self.items[0])
        lines = list(lines)
        if lines:
            self.insert(0, GreetingItem(lines))

    # ---------------------------------------------------------------- live

    def apply(self, update: s.Update) -> None:
        """One fact or signal of this agent."""
        match update:
            case s.Fact():
                if (update.seq, update.index) > self._seen:
                    self._seen = (update.seq, update.index)
                    self._fact(update)
            case s.TextStreamed(text=text):
                self.text_streamed(text)
            case s.ReasoningStreamed(text=text):
                self.reasoning_streamed(text)
            case s.CallDrafted(index=index, name=name, size=size):
                self.call_drafted(index, name, size)
            case s.StepReset():
                self.drop_stream()
            case s.RetryWaiting():
                self.retry_waiting(update)
            case s.RetryResumed():
                self.retry_resumed()
            case s.ToolProgressed(call=call, text=text, view=view):
                self.call_progressed(call, text, view)
            case s.ShellRun():
                self.shell_run(update)
            case s.Noticed(key="compact", text="compacted"):
                self.withdraw_notice("compact")  # the checkpoint's own line says it, and holds the summary
            case s.Noticed():
                self.notice(update.text, update.level, update.hint, key=update.key)
            case s.StatusChanged():
                self._status(update)
            case s.InputReturned() | s.Asked() | s.ContributionsChanged() | s.SessionOpened() | s.Left():
                pass
            case _:
                assert_never(update)

    def _status(self, status: s.StatusChanged) -> None:
        if status.parked == self.parked:
            return
        self.parked = status.parked
        if status.parked and not status.model:
            self.notice("your prompt is kept", "info", "it is sent when a model is chosen", key="parked")
        elif status.parked and not self.failed_here():
            self.notice("stopped here: this turn is not finished", "attention", "Enter continues", key="parked")
        elif not status.parked:
            self.withdraw_notice("parked")
        self.pause_calls(status.parked)

    def _fact(self, fact: s.Fact) -> None:
        event = fact.event
        match event:
            case (
                e.InputSubmitted() | e.InputWithdrawn() | e.InputRejected() | e.InputAccepted()
            ):  # fmt: skip
                self.input_fact(fact, event)
            case (
                e.ToolStepOpened() | e.ToolCallHeld() | e.ToolCallApproved() | e.ToolCallAnswered()
                | e.ToolCallStarted() | e.ToolCallCompleted() | e.ToolCallFailed() | e.ResultSuperseded()
            ):  # fmt: skip
                self.call_fact(fact, event)
            case e.JobStarted() | e.JobEnded() | e.JobLost():
                self.job_fact(fact, event)
            case (
                e.ModelStepPrepared() | e.ModelStepWithdrawn() | e.ModelStepStarted() | e.ModelStepRecovered()
                | e.ModelStepRejected() | e.ModelStepCompleted() | e.InterruptRequested() | e.RunEnded()
            ):  # fmt: skip
                if isinstance(event, e.ModelStepCompleted):
                    self.note_arguments(fact)
                self.step_fact(fact, event)
            case e.RunCreated(run=run, turn=turn) | e.TurnStarted(run=run, turn=turn):
                self.turn_began(turn, run, fact.time)
            case e.TurnRetried(run=run, turn=turn):
                self.turn_began(turn, run, fact.time)
                self.retried()
            case e.TurnSettled(turn=turn, status=status):
                ended = "refused: a call needed a person" if status == "refused" else ""
                self._close(turn, fact.time, ended, quiet=status == "failed")
            case e.TurnStopped(turn=turn, reason=reason):
                self._close(turn, fact.time, _STOPPED[reason])
            case e.TurnSuperseded(turn=turn):
                self._supersede(turn)
            case e.TurnAttemptFailed():
                self.phase = ""
            case e.CheckpointMade() | e.CheckpointInvalidated():
                self._checkpoint(fact, event)
            case e.ApprovalGranted(rule=rule):
                self._allowed(rule)
            case e.ModelChanged(model=model):
                self._setting("model", model)
            case e.CwdChanged(cwd=cwd):
                self._setting("folder", cwd)
            case (
                e.ReasoningChanged() | e.ModeChanged() | e.TitleChanged() | e.ApprovalRevoked() | e.MetadataSet()
                | e.SetupChanged() | e.ExtensionAppended()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)

    def _allowed(self, rule: str) -> None:
        last = self.items[-1] if self.items else None
        if not (isinstance(last, NoticeItem) and rule in last.text):  # that it is saved says more
            self.notice(f"allowed in this session: {rule}", "info")

    # ---------------------------------------------------------------- turns and settings

    def _close(self, turn: str, now: float, ended: str, quiet: bool = False) -> None:
        self.phase = ""
        self.clear_step()
        state = self.turns.get(turn)
        if quiet:
            self.retried()  # settled as failed: its error offers nothing more
            return
        if state is None:
            return
        self.append(ClosingItem(turn, state.facts(now), ended))

    def _supersede(self, turn: str) -> None:
        self.superseded.add(turn)
        for item in self.items:
            if item.turn == turn and not item.dim:
                item.dim = True
                self.touch(item)

    def _checkpoint(self, fact: s.Fact, event: e.CheckpointMade | e.CheckpointInvalidated) -> None:
        if isinstance(event, e.CheckpointInvalidated):
            self.notice("the summary no longer holds: the whole history is sent again", "info")
            return
        said = "context compacted" + (" by itself" if event.automatic else "")
        item = NoticeItem(self.turn, said, detail=self.message_text(fact.body))
        self.append(item)

    def _setting(self, name: str, value: str) -> None:
        known, self.settings[name] = self.settings.get(name), value
        if known is not None and known != value and self.turns:
            self.append(NoticeItem("", f"{name} is now {value}"))

    # ---------------------------------------------------------------- for the rule

    def activity(self, now: float) -> str | None:
        """What is going on, e.g. "make docs · 12 s"; None when nothing is. `now` in UTC seconds."""
        if self.parked:
            return None
        return self.retry_activity(now) or self.call_activity(now) or self.step_activity(now)


_STOPPED: dict[e.StopReason, str] = {
    "cancelled": "stopped by you",
    "loop_guard": "stopped: the same call again and again",
    "steps": "stopped: step limit",
    "budget": "stopped: budget used up",
}

