"""Whatever comes, in whatever order, and whatever its reader does: the view holds."""

from __future__ import annotations

import random

import pytest

from panto.schema import events as e
from panto.schema import signals as s
from panto.schema.bodies import TextBody, ToolOutcome
from panto.schema.queries import History
from panto.schema.view import CardView, DiffView, Hunk, ProgressView, TextView
from panto.tui.search import Search
from panto.tui.selection import Selection
from tests.tui.transcript.dump import Stage
from tests.tui.transcript.scenes import HUNKS, MARKDOWN
from tests.tui.transcript.script import AGENT, NOTHING, Script
from tests.tui.transcript.test_text import NASTY

TOOLS = ["read", "grep", "ls", "bash", "edit", "write", "subagents.run", "odd.tool", NASTY]
WORDS = ["word ", "漢字", "\n", "\n\n", "`code` ", "# ", "- ", "| a |", "```\n", NASTY, "🇨🇭", "x" * 300, "\t", "\r"]


class Chaos:
    """A script that says anything at all."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stage = Stage(self.random.choice((20, 60, 80, 120, 170)), self.random.choice((3, 10, 21, 40)))
        self.script: Script = self.stage.script
        self.calls: list[str] = ["nosuch"]
        self.inputs: list[str] = ["nosuch"]
        self.script.prompt("begin")

    def text(self) -> str:
        return "".join(self.random.choices(WORDS, k=self.random.randint(0, 12)))

    def said(self) -> None:
        """One update, sensible or not."""
        script, pick = self.script, self.random.choice
        call = pick(self.calls)
        script.wait(self.random.random() * 3)
        match self.random.randint(0, 25):
            case 0:
                script.prompt(self.text())
            case 1 | 2 | 3:
                script.stream(self.text())
            case 4:
                script.think(self.text())
            case 5:
                self.calls += script.answer(self.text(), [(pick(TOOLS), {"path": self.text()}) for _ in range(3)])
            case 6:
                script.answer(pick((MARKDOWN, self.text())), reasoning=self.text())
            case 7 | 8:
                script.start(call)
            case 9:
                script.progress(call, self.text())
            case 10:
                script.progress(call, view=CardView(self.text(), "", "running", (CardView("a\tb", "c", "failed"),)))
            case 11 | 12:
                script.complete(call, ToolOutcome((), pick((True, False)), self.text(), "", self.view()))
            case 13:
                cls = pick(["permission_denied", "cancelled", "not_found", "not_dispatched", "response_rejected"])
                script.fail(call, cls, self.text(), outcome=pick(["known", "unknown"]), cause=pick(["tool", "crash"]))
            case 14:
                script.settle()
            case 15:
                script.stop()
            case 16:
                script.say(s.StepReset(AGENT, 1, 2))
            case 17:
                script.say(s.CallDrafted(AGENT, 1, self.random.randint(0, 3), pick(TOOLS), 100))
            case 18:
                script.say(s.Noticed(AGENT, self.text(), pick(["info", "attention", "wrong"]), self.text(), pick("ab")))
            case 19:
                self.inputs.append(script.submit(self.text()))
            case 20:
                script.fact(e.InputWithdrawn(pick(self.inputs)))
            case 21:
                script.fact(e.JobStarted(f"job{len(self.calls)}", pick(["child", "command"]), self.text(), call))
            case 22:
                script.fact(e.JobEnded(f"job{self.random.randint(0, len(self.calls))}", pick(["completed", "failed"])))
            case 23:
                script.fact(e.RunEnded(script.run, "failed", failed="provider", message=self.text()), TextBody("x"))
            case 24:
                script.fact(e.TurnSuperseded(f"turn{self.random.randint(0, 5)}"))
            case 25:
                script.say(s.StatusChanged(AGENT, "m", "", "ask", "/", parked=pick([True, False])))

    def view(self) -> TextView | DiffView | ProgressView | None:
        return self.random.choice((
            None, TextView(self.text() * 5, tail=True), DiffView("a.py", HUNKS, 3, 2), ProgressView("x", 0.5),
            DiffView(self.text(), (Hunk(1, 1, (("+", self.text()), ("-", self.text()))),), 1, 1),
        ))  # fmt: skip

    def done(self) -> None:
        """One thing a reader may do."""
        view, number = self.stage.view, self.random.randint
        match number(0, 9):
            case 0 | 1:
                view.scroll(number(-60, 60))
            case 2:
                self.stage.width, self.stage.height = number(10, 200), number(2, 60)
            case 3:
                item = self.random.choice(self.stage.story.items)
                if item.toggle():
                    self.stage.story.note(item)
            case 4:
                view.jump_prompt(self.random.choice((-1, 1)))
            case 5:
                a, b = view.nearest(number(0, 90), number(0, 30)), view.nearest(number(0, 90), number(0, 30))
                view.selection = Selection(a, b) if a is not None and b is not None else None
                view.selected_text()
            case 6:
                view.search = Search(self.random.choice(("word", "漢", "x")))
            case 7:
                view.place(number(0, 500))
            case 8:
                view.place_at(number(0, 90), number(0, 30))
            case 9:
                if self.stage.story.items:
                    view.current = self.random.choice(self.stage.story.items).serial


def steps(seed: int, count: int) -> None:
    chaos = Chaos(seed)
    stage = chaos.stage
    stage.sync()
    for _ in range(count):
        for _ in range(chaos.random.randint(0, 4)):
            chaos.said()
        chaos.done()
        rows = stage.rows()
        assert len(rows) == stage.height
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for row in rows for char in row)
        stage.runs()
        assert 0 <= stage.view.top <= stage.view.max_top
        assert stage.view.unseen >= 0
        stage.story.activity(chaos.script.time)
    facts = chaos.script.history().facts
    half = chaos.random.randint(0, len(facts))
    again = Stage(stage.width, stage.height)
    again.story.load(History(facts[half:], (facts[half].seq, 0) if half < len(facts) else None))
    again.sync()
    again.story.prepend(History(facts[:half], None))
    assert len(again.rows()) == again.height


@pytest.mark.parametrize("seed", range(8))
def test_disorder_breaks_nothing(seed: int) -> None:
    steps(seed, 40)


@pytest.mark.long(sample=0)
@pytest.mark.parametrize("seed", range(100, 400))
def test_much_disorder_breaks_nothing(seed: int) -> None:
    steps(seed, 150)


def test_unknown_digests_and_missing_bodies_leave_gaps_not_errors() -> None:
    stage = Stage()
    script = stage.script
    script.fact(e.InputSubmitted("i", NOTHING))
    script.fact(e.InputAccepted("nosuchrun", "i", NOTHING))
    script.fact(e.ModelStepCompleted("nosuchrun", 1, "x", NOTHING))
    script.fact(e.ToolStepOpened("nosuchrun", 1, (e.CallBinding("c", 0, "bash"),)))
    script.fact(e.ToolCallStarted("nosuchrun", "c", "x", NOTHING))
    script.fact(e.ToolCallCompleted("nosuchrun", "c", "x", NOTHING))
    assert stage.rows()[0] == "›"
    assert any(row.startswith("✓ run") for row in stage.rows())
