"""Tool calls and jobs: from the first byte of their arguments to their outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

from panto.schema import events as e
from panto.schema import messages as m
from panto.schema.bodies import ResultBody, TextBody, ToolOutcome
from panto.schema.signals import Fact, ShellRun
from panto.schema.view import CardView, View
from panto.tui import units
from panto.tui.calls import READING, Call, Child
from panto.tui.items import Item, NoticeItem
from panto.tui.items_calls import BatchItem, CallItem
from panto.tui.sanitize import clean_line
from panto.tui.story import Base

CallFact = (
    e.ToolStepOpened | e.ToolCallHeld | e.ToolCallApproved | e.ToolCallAnswered | e.ToolCallStarted
    | e.ToolCallCompleted | e.ToolCallFailed | e.ResultSuperseded
)  # fmt: skip
JobFact = e.JobStarted | e.JobEnded | e.JobLost

BATCH = 3
"""Reading calls of one step from which on they share a row."""


class CallsPart(Base):
    """The part of a story that follows tool calls."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._drafts: dict[int, CallItem] = {}
        self._arguments: list[str] = []
        self._jobs: dict[str, e.JobStarted] = {}
        super().__init__(clock)

    def reset(self) -> None:
        super().reset()
        self._drafts = {}
        self._arguments = []
        self._jobs = {}

    # ---------------------------------------------------------------- drafts and progress

    def call_drafted(self, index: int, name: str, size: int) -> None:
        """The model writes a call's arguments. Reading calls are short, and may become one row: they are not shown."""
        self.set_phase("writing")
        if name in READING or not name:
            return
        item = self._drafts.get(index)
        if item is None:
            item = self._drafts[index] = CallItem(self.turn, Call("", name, state="drafted"))
            self.append(item)
        item.call.size = size
        self.touch(item)

    def drop_drafts(self) -> None:
        for item in self._drafts.values():
            self.remove(item)
        self._drafts = {}

    def call_progressed(self, key: str, text: str, view: View | None) -> None:
        """A running call says more."""
        call = self.calls.get(key)
        if call is None or not call.live:
            return
        if text:
            call.tail.add(text)
        if view is not None:
            call.view = view
        self._touch_call(key)

    def shell_run(self, run: ShellRun) -> None:
        """A person's own command: a card like any other command's, of no turn."""
        call = self.calls.get(run.id)
        if call is None:
            name, _, words = run.command.partition(" ") if run.slash else ("bash", "", run.command)
            arguments = json.dumps({"command": words}) if words else ""
            call = self.calls[run.id] = Call(run.id, name, arguments, state="running")
            call.started = self._clock()
            self.call_items[run.id] = item = CallItem("", call)
            self.append(item)
        if run.outcome is not None:
            call.ended = self._clock()
            call.settle(_shell_end(run.outcome), run.outcome)
        self._touch_call(run.id)

    def pause_calls(self, paused: bool) -> None:
        """The turn is parked, or goes on."""
        for key, call in self.calls.items():
            if call.live or call.paused:
                call.paused = paused
                self._touch_call(key)

    def _touch_call(self, key: str) -> None:
        item = self.call_items.get(key)
        if item is not None:
            self.touch(item)

    # ---------------------------------------------------------------- facts

    def call_fact(self, fact: Fact, event: CallFact) -> None:
        """A fact about a call, or about all calls of a step."""
        if isinstance(event, e.ToolStepOpened):
            self._step_opened(event)
            return
        call = self.calls.get(event.call)
        if call is None:
            self._orphans.append(fact)
            return
        outcome = fact.body if isinstance(fact.body, ToolOutcome) else None
        match event:
            case e.ToolCallHeld():
                call.state, call.held = "waiting", True
            case e.ToolCallApproved():
                call.state = "pending"
                self._new_arguments(call, fact)
            case e.ToolCallStarted():
                call.state, call.started = "running", fact.time
                self._new_arguments(call, fact)
            case e.ToolCallAnswered():
                call.settle("done", outcome)
            case e.ToolCallCompleted(duration_ms=duration):
                _timed(call, fact, duration)
                call.settle("failed" if outcome is not None and outcome.is_error else "done", outcome)
            case e.ToolCallFailed(duration_ms=duration):
                _timed(call, fact, duration)
                _failed(call, event, outcome)
            case e.ResultSuperseded():
                call.settle("failed" if outcome is not None and outcome.is_error else "done", outcome)
        self._touch_call(event.call)

    def note_arguments(self, fact: Fact) -> None:
        """Keeps the arguments of a result's calls for the step that follows."""
        self._arguments = []
        if isinstance(fact.body, ResultBody):
            for call in fact.body.result.calls():
                self._arguments.append(call.arguments.text if isinstance(call.arguments, m.Json | m.BadJson) else "")

    def _step_opened(self, event: e.ToolStepOpened) -> None:
        turn = self.runs.get(event.run, self.turn)
        calls: list[Call] = []
        for binding in event.calls:
            arguments = self._arguments[binding.index] if binding.index < len(self._arguments) else ""
            call = Call(binding.call, binding.name, arguments)
            self.calls[binding.call] = call
            calls.append(call)
        reading = [call for call in calls if call.reading]
        shared = BatchItem(turn, reading) if len(reading) >= BATCH else None
        drafts, self._drafts = self._drafts, {}
        at = self._draft_start(drafts)
        for binding, call in zip(event.calls, calls, strict=True):
            draft = drafts.pop(binding.index, None)
            item: Item
            if shared is not None and call.reading:
                item = shared
                if draft is not None:
                    self.remove(draft)
            elif draft is not None:
                item = draft
                draft.call = call
                self.touch(draft)
            else:
                item = CallItem(turn, call)
            self.call_items[call.id] = item
            if item is draft:
                self.remove(draft)  # it may have stood before calls that come first
            if not (item is shared and call is not reading[0]):
                self.insert(min(at, len(self.items)), item)
                at += 1
        for draft in drafts.values():
            self.remove(draft)
        self._arguments = []

    def _draft_start(self, drafts: dict[int, CallItem]) -> int:
        """Where the first draft of a step stands; the end without any."""
        for at in range(max(0, len(self.items) - 200), len(self.items)):
            if any(self.items[at] is draft for draft in drafts.values()):
                return at
        return len(self.items)

    @staticmethod
    def _new_arguments(call: Call, fact: Fact) -> None:
        if isinstance(fact.body, TextBody) and fact.body.text:
            call.arguments = fact.body.text

    # ---------------------------------------------------------------- jobs

    def job_fact(self, fact: Fact, event: JobFact) -> None:
        """A background command or a child agent began or ended."""
        match event:
            case e.JobStarted(job=job, kind=kind, title=title, call=key):
                self._jobs[job] = event
                call = self.calls.get(key)
                if kind == "child" and call is not None:
                    again = next((child for child in call.children if child.agent == job), None)
                    if again is None:
                        call.children.append(Child(job, clean_line(title, 200)))
                    else:  # the call was continued, and goes on with it
                        again.state = "running"
                    self._touch_call(key)
            case e.JobEnded(job=job, status=status):
                state = {"completed": "done", "failed": "failed", "cancelled": "stopped"}[status]
                self._job_over(fact, job, state)
            case e.JobLost(job=job):
                self._job_over(fact, job, "lost")

    def _job_over(self, fact: Fact, job: str, state: str) -> None:
        started = self._jobs.pop(job, None)
        call = self.calls.get(started.call) if started is not None else None
        if started is None:
            self._orphans.append(fact)
            return
        if started.kind == "child" and not started.call:  # a command's: its card says it, or it says it itself
            return
        if started.kind == "child" and call is not None:
            for child in call.children:
                if child.agent == job:
                    child.state = "done" if state == "done" else "stopped" if state in ("stopped", "lost") else "failed"
            self._touch_call(started.call)
            if call.live:
                return
        outcome = fact.body if isinstance(fact.body, ToolOutcome) else None
        said = {
            "done": "ended", "failed": "failed", "stopped": "stopped",
            "lost": "outcome unknown: panto ended while it ran",
        }[state]  # fmt: skip
        end = f", {clean_line(outcome.fact, 60)}" if outcome is not None and outcome.fact else ""
        level = {"failed": "wrong", "lost": "attention", "stopped": "stopped"}.get(state, "info")
        text = "\n".join(part.text for part in outcome.parts if isinstance(part, m.Text)) if outcome is not None else ""
        what = "job" if started.kind == "command" else "agent"
        self.append(NoticeItem(self.turn, f"{what} {clean_line(started.title, 200)}: {said}{end}", level, detail=text))

    # ---------------------------------------------------------------- words for the rule

    def call_activity(self, now: float) -> str | None:
        """What the running calls do; what needs an answer comes first."""
        live = [call for call in list(self.calls.values())[-200:] if call.live]
        if any(call.state == "waiting" for call in live):
            return "waiting for you"
        running = [call for call in live if call.state == "running"]
        if self._drafts and not running:
            call = list(self._drafts.values())[-1].call
            return f"writing {call.verb} · {units.size(call.size)}" if call.size else f"writing {call.verb}"
        if not running:
            return None
        since = now - min(call.started or now for call in running)
        time = f" · {units.seconds(since, whole=True)}" if since >= 1 else ""
        if len(running) > 1:
            return f"{len(running)} calls{time}"
        call = running[0]
        words = call.title if call.verb == "run" else f"{call.verb} {call.title}"
        return clean_line(words, 120) + time


def _shell_end(outcome: ToolOutcome) -> Literal["done", "failed", "stopped"]:
    """How a person's own command ended: a card says it itself."""
    said = outcome.view.state if isinstance(outcome.view, CardView) else ""
    if outcome.is_error or said == "failed":
        return "failed"
    return "stopped" if said == "stopped" else "done"


def _doubt(call: Call) -> str:
    """That a stopped call may have done something; of a command everybody knows."""
    return "" if call.verb == "run" else "may have had effects"


def _timed(call: Call, fact: Fact, duration_ms: int) -> None:
    if duration_ms:
        call.ended = fact.time
        call.started = fact.time - duration_ms / 1000
    elif call.started is not None:
        call.ended = fact.time


def _failed(call: Call, event: e.ToolCallFailed, outcome: ToolOutcome | None) -> None:
    message = event.message
    if event.outcome == "unknown":
        if event.cause == "interrupted":
            call.settle("stopped", outcome, _doubt(call))
        else:
            words = {"crash": "panto ended while it ran", "exception": message or "the tool broke"}
            call.settle("unknown", outcome, words.get(event.cause, message))
        return
    if event.cls == "permission_denied":
        by_person = call.held and call.started is None and event.cause == "tool" and not event.unattended
        if event.unattended:
            said = "nobody was there to ask"
        elif by_person:
            reason = _reason(message)
            said = "you said no" + (f": {clean_line(reason, 200)}" if reason else "")
        else:
            said = clean_line(message, 200) or "not allowed"
        call.settle("refused", outcome, said)
    elif event.cls == "not_dispatched":
        call.settle("refused", outcome, "the answer was cut off")
    elif event.cls == "cancelled":
        if not event.effect:
            call.started = None
        call.settle("stopped", outcome, _doubt(call) if event.effects == "unknown" else "")
    elif event.cls == "response_rejected":
        call.settle("refused", outcome, "you did not answer")
    else:
        call.settle("failed", outcome, message)


def _reason(message: str) -> str:
    """The person's own words in a refusal, "" where there are none."""
    return message.strip().removeprefix("the person said no").lstrip(": ")
