"""A model server whose agents do what their prompts ask, on a real repository: part of panto, changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fake_model import FakeModel, Reply, Request
from tests.fake_wire import text_of

SOURCE = Path(__file__).parent.parent.parent / "panto" / "remote"
ANGLES = {
    "correctness": "wrong results",
    "safety": "trusted too early",
    "tests": "that no test",
    "simplicity": "layers",
}
FAULTS = {"correctness": "jsonl.py", "safety": "requests.py", "tests": "words.py", "simplicity": "stdio.py"}

CONFIG = """
model = "fake:m"
mode = "ask"
[providers.fake]
protocol = "openai_chat"
base_url = "{url}"
[providers.fake.models.m]
id = "m"
context = 200000
max_output = 4096
price = {{ input = 1, output = 1 }}
"""


def configure(home: Path, url: str) -> None:
    """A home whose only model is this server, which asks before it runs anything."""
    (home / "config").mkdir(exist_ok=True)
    (home / "config" / "config.toml").write_text(CONFIG.format(url=url))


def real_repository(folder: Path) -> dict[str, str]:
    """A git repository of real source with a fault of each kind in its uncommitted change: angle -> path:line."""
    shutil.copytree(SOURCE, folder / "remote", ignore=shutil.ignore_patterns("__pycache__"))
    for words in ("init -q", "add .", "commit -q -m first"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True, capture_output=True)
    places = {}
    for at, (angle, name) in enumerate(FAULTS.items()):
        path = folder / "remote" / name
        lines = path.read_text().split("\n")
        line = len(lines) // 2 + at
        lines.insert(line - 1, f"# a fault of {angle}")
        path.write_text("\n".join(lines))
        places[angle] = f"remote/{name}:{line}"
    return places


class Crew(FakeModel):
    """`delay_s` before each answer. `told`: how each request's first prompt begins, and its messages."""

    def __init__(self, workflow: str, inputs: dict[str, str], delay_s: float = 0.0) -> None:
        super().__init__()
        self.workflow, self.inputs, self.delay_s = workflow, inputs, delay_s
        self.answers = 1 << 30
        """So many requests are answered; the others wait for ever."""
        self.told: list[tuple[str, int]] = []

    def _choose(self, request: Request) -> Reply:
        messages = [m for m in request.body["messages"] if m["role"] not in ("system", "developer")]
        first = text_of(messages[0].get("content"))
        self.told.append((first.split("\n")[0][:80], len(messages)))
        results = [text_of(m.get("content")) for m in messages if m["role"] == "tool"]
        results = [text for text in results if not text.startswith("Error: Not finished")]  # asked for again
        names = [tool["function"]["name"] for tool in request.body.get("tools") or ()]
        text, calls = self._act(first, results, names)
        return Reply(text, calls=calls, delay_s=self.delay_s if len(self.told) <= self.answers else 3600)

    def _act(self, first: str, results: Sequence[str], names: Sequence[str]) -> tuple[str, list[tuple[str, Any]]]:
        if names == ["answer"]:
            return "", [("answer", _merged(first))]
        for angle, words in ANGLES.items():
            if first.startswith("Review the change below") and words in first:
                assert f"+# a fault of {angle}" in first, "the change is in the prompt"
                if not results:
                    return "I look where it stands.", [("grep", {"pattern": f"a fault of {angle}$", "path": "remote"})]
                place = re.search(r"(remote/\w+\.py)\D+(\d+)", results[0])
                assert place is not None, results[0]
                return f"{place[1]}:{place[2]}, high: a fault of {angle}", []
        if first.startswith("Find the files"):
            if not results:
                return "", [("glob", {"pattern": "remote/*.py"})]
            return json.dumps({"files": sorted(set(re.findall(r"remote/\w+\.py", results[0])))}), []
        if found := re.match(r"Answer this question about the file (\S+) alone", first):
            if not results:
                return "", [("grep", {"pattern": "^ *(async )?def ", "path": found[1]})]
            return f"{found[1]} has {results[0].count('def ')} functions", []
        if not results and not first.startswith("The workflow"):
            name = next(name for name in names if name.endswith("workflow"))
            return "", [(name, {"name": self.workflow, "inputs": self.inputs})]
        return "I have read it.", []


def _merged(prompt: str) -> dict[str, object]:
    """The answer of the last step, made of what the steps before it said."""
    if "Four reviewers" in prompt:
        found = re.findall(r"^(remote/\w+\.py):(\d+), high: (.*)$", prompt, re.MULTILINE)
        findings = [{"file": f, "line": int(n), "severity": "high", "problem": p} for f, n, p in found]
        return {"findings": findings, "verdict": "not yet"}
    return {"answer": "; ".join(re.findall(r"remote/\w+\.py has \d+ functions", prompt))}


def functions(folder: Path) -> str:
    """What the map workflow should come to."""
    out = []
    for path in sorted((folder / "remote").glob("*.py")):
        count = len(re.findall(r"^ *(?:async )?def ", path.read_text(), re.MULTILINE))
        out.append(f"remote/{path.name} has {count} functions")
    return "; ".join(out)
