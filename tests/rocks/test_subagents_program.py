"""Both shipped workflows through the real program on a real repository, killed half way and continued."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from panto.session import Store
from tests.e2e.killed import environment, panto, records, session_id, started, until
from tests.e2e.terminal import Terminal
from tests.fake_model import Reply, Request
from tests.rocks.reviewing import Crew, configure, functions, real_repository

INPUTS: Mapping[str, dict[str, str]] = {
    "review": {"focus": "the lines that are new"},
    "map": {"question": "how many functions has it?", "files": "remote/*.py"},
}
LAST = "Four reviewers looked", "One question was asked"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def finished(home: Path, primary: str) -> set[str]:
    """How the prompts begin of agents whose turn is recorded as completed."""

    async def work() -> set[str]:
        store = await Store.open(home / "sessions")
        try:
            rows = await store.list(under=primary, all=True)
            ends = await store.endings([row.id for row in rows])
            return {row.last_prompt.split("\n")[0][:80] for row in rows if ends[row.id] == "completed"}
        finally:
            await store.close()

    return asyncio.run(work())


def report_of(output: str) -> dict[str, Any]:
    """What subagents.workflow gave its caller."""
    results = [r for r in records(output) if r["type"] == "tool_result" and "agent" not in r]
    text = str(results[-1]["text"])
    report: dict[str, Any] = json.loads(text[text.index("{") :])
    return report


def is_right(workflow: str, text: str, place: Path, faults: Mapping[str, str]) -> None:
    """The report names every fault where it is, or counts every file's functions."""
    if workflow == "map":
        assert text == functions(place)
        return
    found = {f"{f['file']}:{f['line']}": f["problem"] for f in json.loads(text)["findings"]}
    assert found == {where: f"a fault of {angle}" for angle, where in faults.items()}


def kill_after(process: subprocess.Popen[bytes], crew: Crew, requests: int, pause_s: float, number: int) -> None:
    """Send it a signal a moment after so many requests have come in all, if it has not ended by itself."""
    until(lambda: len(crew.told) >= requests or process.poll() is not None)
    time.sleep(pause_s)
    process.send_signal(number)
    process.communicate()


def killed_and_continued(
    home: Path, place: Path, workflow: str, kills: Sequence[tuple[int, int]], pause_s: float
) -> None:
    """Run it as the model's call; each time so many more requests have come, a signal; go on with it to the end."""
    faults = real_repository(place)
    with Crew(workflow, dict(INPUTS[workflow]), delay_s=0.05) as crew:
        configure(home, crew.url)
        arguments, done, before, primary = ["-p", "go"], set[str](), 0, ""
        for more, number in kills:
            with started(home, place, *arguments) as process:
                kill_after(process, crew, before + more, pause_s, number)
            assert not {first for first, _ in crew.told[before:]} & done, "what was finished is not run again"
            primary = session_id(home, place)
            done, before = finished(home, primary), len(crew.told)
            arguments = ["-p", "--resume", primary]
        resumed = panto(home, place, *arguments, "--output", "stream-json")
        assert not {first for first, _ in crew.told[before:]} & done, "what was finished is not run again"
        assert not crew.refusals
        assert panto(home, place, "session", "verify", primary).returncode == 0
        ended = any(first.startswith(LAST) for first in done)  # then only the caller's own reply was left, or nothing
        assert resumed.returncode == 0 or (ended and resumed.returncode == 2), resumed.stderr
        if not ended:
            report = report_of(resumed.stdout)
            assert report["status"] == "completed", report
            is_right(workflow, report["text"], place, faults)


KILL, TERM = signal.SIGKILL, signal.SIGTERM


@pytest.mark.parametrize(
    ("workflow", "requests", "number"), [("review", 6, KILL), ("map", 7, KILL), ("review", 5, TERM)]
)
def test_a_workflow_that_is_killed_half_way_goes_on_where_it_was(
    home: Path, place: Path, workflow: str, requests: int, number: int
) -> None:
    killed_and_continued(home, place, workflow, [(requests, number)], 0.05)


@pytest.mark.long(sample=1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(60))
def test_a_workflow_that_is_killed_again_and_again_goes_on(home: Path, place: Path, seed: int) -> None:
    dice = random.Random(seed)
    kills = [(dice.randrange(1, 7), dice.choice((KILL, KILL, TERM))) for _ in range(dice.randrange(1, 5))]
    killed_and_continued(home, place, dice.choice(["review", "map"]), kills, dice.random() * 0.15)


def enter(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.see(f"› {text}")
    terminal.calm(0.1)
    terminal.send("\r")


def test_a_persons_review_is_killed_named_and_continued_on_the_screen(home: Path, place: Path) -> None:
    faults = real_repository(place)
    with Crew("review", {}) as crew:
        configure(home, crew.url)
        crew.answers = 6
        argv, env = [sys.executable, "-m", "panto"], environment(home)
        with Terminal(argv, env=env, cwd=place) as terminal:
            terminal.see("Ask for something")
            enter(terminal, "/workflow:review")
            terminal.see("4 children")
            terminal.until(lambda: len(crew.told) == 8, "reviewers")
            terminal.see("2 running · 2 done")
            terminal.signal(KILL)
            terminal.wait_end()
        primary = session_id(home, place)
        done, before = finished(home, primary), len(crew.told)
        assert len(done) == 2
        crew.answers = 1 << 30
        with Terminal([*argv, "--resume", primary], env=env, cwd=place) as terminal:
            terminal.see("stopped when panto ended: workflow review")
            terminal.calm()
            assert len(crew.told) == before, "nothing goes on unasked"
            enter(terminal, "/workflows.resume")
            terminal.see("I have read it.")
            asked = {first for first, _ in crew.told[before:]}
            assert not asked & done
        shown = panto(home, place, "session", "export", primary).stdout
        for where in faults.values():
            file, line = where.split(":")
            assert f'"file":"{file}","line":{line}' in shown.replace(" ", "").replace("\\", ""), where
        assert not crew.refusals


class Asking(Crew):
    """Its one child wants to run a command."""

    def _choose(self, request: Request) -> Reply:
        messages = request.body["messages"]
        names = [tool["function"]["name"] for tool in request.body["tools"]]
        run = next((name for name in names if name.endswith("subagents_run")), "")
        if any(m["role"] == "tool" for m in messages):
            return Reply("done")
        if run:
            return Reply(calls=[(run, {"tasks": [{"prompt": "make it", "profile": "worker"}]})])
        return Reply(calls=[("bash", {"command": "touch made"})])


def test_a_program_answers_what_a_child_asks(home: Path, place: Path) -> None:
    with Asking("", {}) as crew:
        configure(home, crew.url)
        argv = [sys.executable, "-m", "panto", "-p", "--input", "stream-json", "--output", "stream-json"]
        process = subprocess.Popen(
            argv, cwd=place, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"type": "prompt", "text": "go"}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                record = json.loads(line)
                if record["type"] == "question":
                    assert record["agent"] and record["tool"] == "bash"
                    answer = {"type": "answer", "id": record["id"], "decision": "once"}
                    process.stdin.write(json.dumps(answer) + "\n")
                    process.stdin.flush()
                if record["type"] == "turn_ended":
                    break
            process.stdin.close()
            process.stdout.read()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close() if process.stdout else None
        assert (place / "made").exists()
        assert not crew.refusals
