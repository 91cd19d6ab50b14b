"""Killed in the middle and continued by another process: nothing that was finished is run again."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from panto.session import Store
from tests.rocks.crew import repository

HERE = Path(__file__).parent.parent.parent


def start(root: Path, plan: dict[str, Any], resume: str = "") -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.rocks.killed", str(root), resume, str(root / "log"), json.dumps(plan)]
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.Popen(argv, cwd=HERE, env=env, stdout=subprocess.PIPE, text=True)


def asked(root: Path) -> Counter[str]:
    """What children were told, and how often."""
    try:
        return Counter((root / "log").read_text().splitlines())
    except FileNotFoundError:
        return Counter()


def ended(root: Path, primary: str) -> int:
    """How many children's turns are recorded as completed."""

    async def work() -> int:
        store = await Store.open(root / "sessions")
        try:
            rows = await store.list(under=primary, all=True)
            return list((await store.endings([row.id for row in rows])).values()).count("completed")
        finally:
            await store.close()

    return asyncio.run(work())


def killed_and_continued(root: Path, plan: dict[str, Any], first: int) -> tuple[list[str], Counter[str], Counter[str]]:
    """The results of the continued turn; what was asked before the kill, and after.

    It comes once so many children were asked, and all of them but one, which hangs, are recorded.
    """
    process = start(root, plan)
    assert process.stdout is not None
    try:
        primary = process.stdout.readline().strip()
        deadline = time.monotonic() + 60
        while len(asked(root)) < first or ended(root, primary) < first - 1:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    before = asked(root)
    (root / "log").unlink()
    done = start(root, {**plan, "hang": []}, primary)
    out, _ = done.communicate(timeout=90)
    assert done.returncode == 0, out
    results: list[str] = json.loads(out.splitlines()[-1])
    return results, before, asked(root)


def test_children_of_a_killed_parent_go_on_and_finished_ones_are_only_read(tmp_path: Path) -> None:
    tasks = [{"prompt": p} for p in ("one", "two", "slow three", "four")]
    plan = {
        "call": {"calls": [{"name": "subagents.run", "arguments": {"tasks": tasks}}]},
        "hang": ["slow"],
        "files": [],
    }
    results, before, after = killed_and_continued(tmp_path, plan, 4)
    assert before == {"one": 1, "two": 1, "slow three": 1, "four": 1}
    assert after == {"slow three": 1}
    rows = json.loads(results[0])["results"]
    assert [r["text"] for r in rows] == [f"answer to {t['prompt']}" for t in tasks]
    assert [r["status"] for r in rows] == ["completed"] * 4


@pytest.mark.parametrize(
    ("name", "inputs", "hang", "first"),
    [
        ("review", {}, "for its tests", 4),
        ("map", {"question": "what is it?", "files": "*.py"}, "c.py", 4),
    ],
)
def test_a_killed_workflow_does_not_run_its_finished_steps_again(
    tmp_path: Path, name: str, inputs: dict[str, str], hang: str, first: int
) -> None:
    call = {"calls": [{"name": "subagents.workflow", "arguments": {"name": name, "inputs": inputs}}]}
    plan = {"call": call, "hang": [hang], "files": ["a.py", "b.py", "c.py"]}
    repository(tmp_path / "work")
    results, before, after = killed_and_continued(tmp_path, plan, first)
    assert sum(before.values()) == first
    assert sum(after.values()) == 2, after  # the one that hung, and the last step
    assert sum(hang in line for line in after) == 1
    report = json.loads(results[0])
    assert report["status"] == "completed" and {s["status"] for s in report["steps"]} == {"completed"}


def test_a_killed_script_keeps_its_steps_and_its_finished_agents(tmp_path: Path) -> None:
    source = """
      local first = wf.step('first', function() return wf.run(nil, 'one') .. '!' end)
      local rest = wf.map({ 'two', 'slow three' }, function(p) return wf.run(nil, p) end)
      return { first, rest[1], rest[2] }"""
    call = {"calls": [{"name": "subagents.lua", "arguments": {"source": source}}]}
    plan = {"call": call, "hang": ["slow"], "files": []}
    results, before, after = killed_and_continued(tmp_path, plan, 3)
    assert before == {"one": 1, "two": 1, "slow three": 1}
    assert after == {"slow three": 1}
    assert json.loads(results[0])["result"] == ["answer to one!", "answer to two", "answer to slow three"]
