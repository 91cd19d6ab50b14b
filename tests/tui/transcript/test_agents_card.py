"""The card of an extension's slash command that runs agents, and of a call whose agents go on with it."""

from __future__ import annotations

from panto.schema import events as e
from panto.schema import signals as s
from panto.schema.bodies import ToolOutcome
from panto.schema.view import CardView
from tests.tui.transcript.dump import Stage
from tests.tui.transcript.script import AGENT


def crew(*states: str) -> CardView:
    rows = tuple(CardView(f"agent {n}\tm\tlooks", "1k\t2 s", state) for n, state in enumerate(states))  # type: ignore[arg-type]
    over = "running" if "running" in states else "stopped" if "stopped" in states else "done"
    return CardView(f"{len(rows)} children", "2k · 3 s", over, rows)  # type: ignore[arg-type]


def run(stage: Stage, outcome: ToolOutcome | None = None) -> None:
    stage.script.say(s.ShellRun(AGENT, "command-1", "/workflow:review HEAD~1", outcome, slash=True))


def test_a_workflow_shows_a_row_for_each_agent_and_folds_when_it_ends() -> None:
    stage = Stage()
    run(stage)
    stage.script.progress("command-1", view=crew("done", "running"))
    rows = stage.rows()
    assert rows[0].startswith("⠹ /workflow:review 2 children") and "1 running · 1 done" in rows[0]
    assert "agent 0" in rows[1] and "agent 1" in rows[2]
    assert "/workflow:review HEAD~1" in (stage.story.activity(stage.script.time) or "")
    run(stage, ToolOutcome((), view=crew("done", "done")))
    assert [row[:2] for row in stage.rows() if row] == ["✓ "] and "2 done" in stage.rows()[0]


def test_one_that_was_stopped_or_broke_says_so() -> None:
    stage = Stage()
    run(stage)
    stage.script.progress("command-1", view=crew("done", "running"))
    run(stage, ToolOutcome((), view=crew("done", "stopped")))
    assert stage.rows()[0].startswith("– /workflow:review") and "1 stopped by you" in stage.rows()[0]
    broken = Stage()
    run(broken)
    broken.script.progress("command-1", view=crew("running"))
    run(broken, ToolOutcome((), is_error=True, view=crew("running")))
    assert broken.rows()[0].startswith("✗ /workflow:review")


def test_a_commands_agents_need_no_line_of_their_own_when_they_end() -> None:
    stage = Stage()
    stage.script.fact(e.JobStarted("a1", "child", "safety"))
    stage.script.fact(e.JobEnded("a1", "cancelled"))
    assert not stage.story.items


def test_an_agent_that_goes_on_with_its_call_stands_there_once() -> None:
    stage = Stage()
    stage.script.prompt("ask")
    (call,) = stage.script.answer("", [("subagents.run", {"tasks": [{"prompt": "x"}]})])
    stage.script.start(call)
    for _ in range(2):
        stage.script.fact(e.JobStarted("a1", "child", "reviewer", call))
    assert "agents 1 child   1 running" in stage.rows()[2]
    assert "1 child" in (stage.story.activity(stage.script.time) or "")


def test_an_agent_in_the_background_is_shown_as_it_is_by_now() -> None:
    stage = Stage()
    stage.script.prompt("ask")
    (call,) = stage.script.answer("", [("subagents.run", {"tasks": []})])
    stage.script.start(call)
    stage.script.fact(e.JobStarted("a1", "child", "agent 1", call))
    stage.script.complete(call, ToolOutcome((), view=crew("done", "running")))
    assert "1 running" in stage.rows()[2]
    stage.script.fact(e.JobEnded("a1", "failed"))
    assert "1 done · 1 failed: agent 1" in stage.rows()[2]
