"""Workflows that a person runs as a slash command: their card, Escape, and going on afterwards."""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.errors import ExtensionError
from panto.schema.messages import Request
from panto.schema.signals import ShellRun, ToolProgressed
from panto.schema.view import CardView
from tests.lua.home import home
from tests.rocks.crew import NAME, crew, inside, repository, said
from tests.scheduler.house import scripted

ANGLES = ("correctness", "safety", "its tests", "simplicity")


class Reviewers:
    """Children that review; those whose angle is in `slow` never finish. `asked` has what each was told."""

    def __init__(self, *slow: str) -> None:
        self.slow, self.asked, self.diffs = set(slow), list[str](), 0

    def __call__(self, request: Request) -> Mapping[str, Any]:
        if any(tool.name == "answer" for tool in request.tools):
            self.asked.append("merge")
            finding = {"file": "shop.py", "line": 1, "severity": "high", "problem": "adds twice"}
            return {"calls": [{"name": "answer", "arguments": {"findings": [finding], "verdict": "not yet"}}]}
        text = said(request)
        first = next(m for m in request.messages if m.role == "user")
        angle = next(a for a in ANGLES if a in str(first.parts[0]))
        self.asked.append(f"{angle} again" if text.startswith("You were stopped") else angle)
        self.diffs += "+total = 1 + 1" in str(first.parts[0])
        if angle in self.slow:
            return {"text": ["looking ", "at it"], "stall_s": 600}
        return {"text": f"{angle}: line 1 adds twice"}


def told(at: Any) -> list[str]:
    """What the primary was told."""
    return [str(r["text"]) for r in at.house.records() if r.get("role") == "user" and "agent" not in r]


async def facts(at: Any, kind: str) -> list[dict[str, Any]]:
    """What the rock has recorded."""
    code = f"return require('panto').ext.session.entries('{kind}')"
    return list((await at.run(code, owner=NAME)).values[0] or [])


async def begun(at: Any, reviewers: Any, finished: int) -> asyncio.Future[None]:
    """A review in which all reviewers have begun and so many steps are recorded as finished."""
    running: asyncio.Future[None] = asyncio.ensure_future(at.house.client.submit(ops.RunCommand("/workflow:review")))
    await at.house.until(lambda: len(reviewers.asked) == 4)
    async with asyncio.timeout(30):
        while len(await facts(at, "step")) < finished:
            await asyncio.sleep(0.01)
    return running


def cards(at: Any) -> list[CardView]:
    return [u.view for u in at.house.seen_by_screen if isinstance(u, ToolProgressed) and isinstance(u.view, CardView)]


def shown(at: Any) -> list[ShellRun]:
    return [u for u in at.house.seen_by_screen if isinstance(u, ShellRun)]


def watch(at: Any) -> None:
    """Hear what a screen hears: signals of the client's own are in no other list."""
    at.house.seen_by_screen, hear = [], at.house.client._hear

    def both(update: Any) -> None:
        at.house.seen_by_screen.append(update)
        hear(update)

    at.house.client._hear = both


def test_a_workflow_command_has_a_card_with_a_line_for_each_agent(tmp_path: Path) -> None:
    repository(tmp_path / "work")
    reviewers = Reviewers()

    async def work(at: Any) -> None:
        watch(at)
        await at.house.client.submit(ops.RunCommand("/workflow:review"))
        first, ended = shown(at)
        assert (first.slash, first.command, first.outcome) == (True, "/workflow:review", None)
        assert ended.outcome is not None and isinstance(ended.outcome.view, CardView)
        assert ended.outcome.view.state == "done" and ended.outcome.view.title == "5 children"
        names = [c.title.split("\t")[0] for c in ended.outcome.view.children if isinstance(c, CardView)]
        assert sorted(names) == ["correctness", "merge", "safety", "simplicity", "tests"]
        assert len(cards(at)) > 1
        await at.house.until(lambda: any("adds twice" in text for text in told(at)))
        await at.house.rest()
        assert reviewers.diffs == 4, "every reviewer was given the change itself"
        assert at.house.agent.session.state.settings.title == "/workflow:review"

    inside(tmp_path, crew({"text": "thanks"}, child=reviewers), work, mode="ask")


def test_escape_stops_a_workflow_command_and_it_goes_on_where_it_was(tmp_path: Path) -> None:
    repository(tmp_path / "work")
    reviewers = Reviewers("safety", "simplicity")

    async def work(at: Any) -> None:
        watch(at)
        running = await begun(at, reviewers, 3)
        assert at.house.agent.mailbox.busy
        since = time.monotonic()
        await at.house.client.submit(ops.Interrupt())
        await running
        assert time.monotonic() - since < 30  # the window itself is measured in the benchmark
        assert any("workflow review stopped: 3 of 6 steps finished" in text for text in at.notices()), at.notices()
        ended = shown(at)[-1]
        assert ended.outcome is not None and isinstance(ended.outcome.view, CardView)
        assert ended.outcome.view.state == "stopped"
        assert not told(at) and not at.house.agent.in_turn, "Escape starts nothing"
        reviewers.slow.clear()
        reviewers.asked.clear()
        await at.house.client.submit(ops.RunCommand("/workflows.resume"))
        assert sorted(reviewers.asked) == ["merge", "safety again", "simplicity again"]
        await at.house.until(lambda: any("The workflow review has finished." in text for text in told(at)))
        await at.house.rest()

    inside(tmp_path, crew({"text": "thanks"}, child=reviewers), work)


def test_a_workflow_command_left_behind_is_named_and_goes_on_in_another_process(tmp_path: Path) -> None:
    repository(tmp_path / "work")
    reviewers = Reviewers("safety")

    async def begin(at: Any) -> str:
        running = await begun(at, reviewers, 4)
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        return str(at.house.client.primary)

    primary = inside(tmp_path, crew(child=reviewers), begin, quiet=False)
    reviewers.slow.clear()
    reviewers.asked.clear()

    async def later(at: Any) -> None:
        await at.house.until(lambda: any("stopped when panto ended: workflow review" in t for t in at.notices()))
        assert not reviewers.asked, "nothing goes on unasked"
        await at.house.client.submit(ops.RunCommand("/workflows.resume review"))
        assert len(reviewers.asked) == 2 and "merge" in reviewers.asked
        await at.house.until(lambda: any("adds twice" in text for text in told(at)))
        await at.house.rest()

    inside(tmp_path, crew({"text": "thanks"}, child=reviewers), later, resume=primary)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--output=made", "revisions, --staged, and paths after -- expected"),
        ("HEAD -- ../other", "a path within the working directory expected"),
        ("nowhere", "git: "),
        ("HEAD..HEAD", "there is no change"),
    ],
)
def test_a_change_that_cannot_be_read_fails_the_review_in_words(tmp_path: Path, words: str, told: str) -> None:
    repository(tmp_path / "work")
    reviewers = Reviewers()
    call = {"calls": [{"name": "subagents.workflow", "arguments": {"name": "review", "inputs": {"diff": words}}}]}

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        text = str(at.house.results()[0]["text"])
        report = json.loads(text[text.index("{") :])
        assert told in report["steps"][0]["error"] and report["status"] == "failed"
        assert {s["status"] for s in report["steps"][1:]} == {"skipped"} and not reviewers.asked
        assert not (tmp_path / "work" / "made").exists()

    inside(tmp_path, crew(call, child=reviewers), work)


def test_a_command_that_is_stopped_is_no_error(tmp_path: Path) -> None:
    code = """
      local ext = require('panto').ext
      ext.register_command { name = 'forever', description = 'x', handler = function() ext.sleep(600000) end }
      ext.register_command { name = 'broken', description = 'x', handler = function() error('no luck', 0) end }"""

    async def main() -> None:
        async with home(tmp_path, scripted(), {"more": code}) as at:
            running = asyncio.ensure_future(at.house.client.submit(ops.RunCommand("/forever")))
            await at.house.until(lambda: at.house.agent.mailbox.busy)
            await at.house.client.submit(ops.Interrupt())
            await running
            assert "/forever: stopped" in at.notices()
            with pytest.raises(ExtensionError, match="no luck"):
                await at.house.client.submit(ops.RunCommand("/broken"))

    asyncio.run(main())
