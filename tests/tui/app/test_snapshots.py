"""Every screen at three sizes, light and dark, as text with its colours by meaning.

UPDATE_SNAPSHOTS=1 writes the files anew instead of comparing.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rich.style import Style

from panto.schema.bodies import Question
from panto.schema.queries import (
    AgentRow,
    AskAgents,
    AskContext,
    AskModels,
    AskPreview,
    AskSessions,
    AskSettings,
    AskTurns,
    History,
    ModelRow,
    PromptPart,
    SessionRow,
    SettingRow,
    TurnRow,
)
from panto.schema.view import DiffView, Hunk
from tests.tui.app.stage import SETTINGS, Stage, stage
from tests.tui.stub_client import StubClient
from tests.tui.transcript.dump import described

HERE = Path(__file__).parent / "snapshots"
SIZES = ((120, 36), (80, 24), (60, 20))
GREETING = (
    "panto 0.1   ~/shop  main",
    "Ask for something, or:  /help  keys and commands   /resume  earlier sessions   Ctrl+J  new line",
)
REMOVE = Question("approval", "bash", "rm -rf build && python3 -m pytest -q tests", "rm -r deletes files",
                  '{"command": "rm -rf build"}', dangerous=True)  # fmt: skip
INSTALL = Question("approval", "bash", "npm install", "no rule allows npm install", '{"command": "npm install"}',
                   rule="bash(npm install *)")  # fmt: skip
EDIT = Question("approval", "edit", "shop.py", "mode ask", "{}", view=DiffView("shop.py", (Hunk(20, 20, (
    ("-", "        t = 0"), ("-", "        return t"), ("+", "        return sum(i.price for i in self.items)"),
)),), 1, 2))  # fmt: skip
PICK = Question("ask", "ask", "Which of these shall I use?", choices=("Decimal", "float", "int"), multiple=True)


def client() -> StubClient:
    made = StubClient()
    now = time.time()
    made.answers |= {
        AskModels: (
            ModelRow("anthropic:sonnet-5.5", "s", "anthropic", 200_000, 3.0, 15.0, ("low", "medium", "high"), True),
            ModelRow("anthropic:haiku", "h", "anthropic", 200_000, 0.8, 4.0),
            ModelRow("ollama:qwen", "q", "ollama", 32_768, 0.0, 0.0),
        ),
        AskSessions: (
            SessionRow("a", "aaaa", "Fix the total, then run the tests", "/tmp/shop", now, "m", 3, 9, 0.12, "also it"),
            SessionRow("b", "bbbb", "Add a discount", "/tmp/shop", now - 90_000, "m", 3, 9, 0.84, owner="pid 4"),
            SessionRow("c", "cccc", "Add a discount", "/tmp/shop", now - 270_000, "m", 3, 9, 0.1, forked_from="b"),
        ),
        AskPreview: History((), None),
        AskTurns: (TurnRow("t1", "Fix the total", "completed", 0, ("shop.py",)),
                   TurnRow("t2", "and the README", "superseded", 0), TurnRow("t3", "go on", "stopped", 0)),
        AskAgents: (AgentRow("x", "docs", "completed", "m:haiku"), AgentRow("y", "linter", "failed", "m:haiku")),
        AskSettings: (SettingRow("model", "fake:big", "config.toml:1"), SettingRow("mode", "ask", "default")),
        AskContext: (PromptPart("base", 100, "panto"), PromptPart("rules", 900, "AGENTS.md")),
    }  # fmt: skip
    return made


async def fresh(on: Stage) -> None:
    await on.see("ask before running")


async def commands(on: Stage) -> None:
    await on.typed("/co")
    await on.press("down")


async def files(on: Stage) -> None:
    await on.typed("look at @ma")
    await on.see("makers.md")


async def draft(on: Stage) -> None:
    await on.typed("several lines\nof a draft 漢字\nthat grows")


def asks(question: Question) -> Callable[[Stage], Awaitable[None]]:
    async def scene(on: Stage) -> None:
        on.client.begin("Fix the total")
        on.client.hold(question)
        await on.alive()
        await on.until(lambda: on.app.question.alive)

    return scene


def opens(name: str, seen: str) -> Callable[[Stage], Awaitable[None]]:
    async def scene(on: Stage) -> None:
        getattr(on.app, f"action_{name}")()
        await on.see(seen)

    return scene


SCENES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "fresh": fresh, "commands": commands, "files": files, "draft": draft, "dangerous": asks(REMOVE),
    "ordinary": asks(INSTALL), "edit": asks(EDIT), "pick": asks(PICK), "help": opens("help", "keys"),
    "models": opens("model", "haiku"), "sessions": opens("sessions", "discount"), "turns": opens("tree", "go on"),
    "agents": opens("agents", "linter"), "settings": opens("settings", "config.toml:1"),
    "themes": opens("theme", "high"), "context": opens("context", "rules"),
}  # fmt: skip


def dump(on: Stage) -> str:
    out = []
    for strip in on.app.screen._compositor.render_strips():
        out.append("".join(segment.text for segment in strip).rstrip())
        note = described([(segment.text, segment.style or Style()) for segment in strip], on.app.palette)
        if note:
            out.append(f"    ~ {note}")
    return "\n".join(out) + "\n"


def compare(path: Path, now: str) -> None:
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(now, encoding="utf-8")
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(stored.splitlines(), now.splitlines(), "stored", "now", lineterm="", n=1)
    assert stored == now, f"{path.stem} looks different (UPDATE_SNAPSHOTS=1 accepts it):\n" + "\n".join(lines)


@pytest.mark.parametrize("name", SCENES)
def test_a_screen_looks_as_it_did(name: str) -> None:
    async def run() -> None:
        for theme in ("dark", "light"):
            for size in SIZES if theme == "dark" else SIZES[1:2]:
                settings = SETTINGS._replace(greeting=GREETING, theme=theme)
                async with stage(client(), size, settings) as on:
                    await SCENES[name](on)
                    await on.pilot.pause(0.05)
                    compare(HERE / f"{name}-{size[0]}x{size[1]}-{theme}.txt", dump(on))

    asyncio.run(run())
