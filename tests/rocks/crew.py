"""A house with panto-subagents in it, and a scripted crew: one model that answers by what it was told."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from panto.providers.scripted import Scripted
from panto.schema.messages import Request, Text
from tests.lua.home import Home, home

ROCK = Path(__file__).parent.parent.parent / "rocks" / "panto-subagents"
NAME = "panto-subagents"


def said(request: Request) -> str:
    """The last thing a user said."""
    for message in reversed(request.messages):
        if message.role == "user":
            return "".join(part.text for part in message.parts if isinstance(part, Text))
    return ""


def child_call(*prompts: Any, name: str = "subagents.run", **more: Any) -> dict[str, Any]:
    """A reply that calls subagents.run with these tasks: prompts, or whole tasks."""
    tasks = [p if isinstance(p, dict) else {"prompt": p} for p in prompts]
    return {"calls": [{"name": name, "arguments": {"tasks": tasks, **more}}]}


Script = Callable[[Request], Mapping[str, Any]]


def crew(*primary: Mapping[str, Any], child: Script | None = None) -> dict[str, Any]:
    """A script: `fake:m` plays the primary (its replies in order) and the children (`child`, by what was said)."""

    def answer(request: Request) -> Mapping[str, Any]:
        return {"text": f"answer to {said(request)}"}

    return {"primary": list(primary), "child": child or answer}


def scripted(script: Mapping[str, Any]) -> tuple[dict[str, Any], Scripted]:
    primary: Any = script["primary"]
    turns = iter(() if callable(primary) else primary)

    def reply(request: Request) -> Mapping[str, Any]:
        if any(block.name.startswith("system:") for block in request.system):  # only children have them
            return dict(script["child"](request))
        return dict(primary(request) if callable(primary) else next(turns, {"text": "done"}))

    model = {"id": "m", "context": 100_000, "reasoning": ["low", "high"], "price": {"input": 1, "output": 1}}
    provider = Scripted([], name="fake", reply=reply)
    return {"fake": {"protocol": "crew", "models": {"m": model, "other": dict(model, id="other")}}}, provider


def inside(
    root: Path,
    script: Mapping[str, Any],
    work: Callable[[Home], Awaitable[Any]],
    *,
    config: Mapping[str, Any] | None = None,
    quiet: bool = True,
    **options: Any,
) -> Any:
    """Run `work` in a house with the rock; afterwards nothing may be left of it."""

    async def main() -> Any:
        tables, provider = scripted(script)
        settings = {
            "rocks": ((NAME, ""),), "shipped_rocks": {NAME: ROCK / "src"}, "tables": {NAME: config or {}},
            **options.pop("settings", {}),
        }  # fmt: skip
        async with home(root, tables, settings=settings, **options) as at:
            at.house.scheduler.shared.catalog.protocols.register("crew", lambda settings, http: provider)
            assert [(r.name, r.state, r.problem) for r in at.extensions.rows()] == [(NAME, "active", "")]
            result = await work(at)
            if quiet:
                await nothing_left(at)
            return result

    return asyncio.run(main())


def repository(folder: Path, *, before: str = "total = 1\n", after: str = "total = 1 + 1\n") -> Path:
    """A git repository with one commit of shop.py and a change to it that is not committed."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "shop.py"
    file.write_text(before)
    for words in ("init -q", "add shop.py", "commit -q -m first"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True, capture_output=True)
    file.write_text(after)
    return folder


async def nothing_left(at: Home) -> None:
    """Counters are back at the start."""
    await at.house.until(lambda: list(at.house.scheduler.agents) == [at.house.client.primary])
    await at.house.until(lambda: not at.extensions.jobs.slots and not at.extensions.desk.handles)
    await at.house.until(lambda: at.driver.counts()["tasks"] == at.driver.counts()["coroutines"] == 0)


def results_of(at: Home, index: int = 0) -> list[dict[str, Any]]:
    """The rows that a call of subagents.run gave."""
    text = str([r for r in at.house.results() if "agent" not in r][index]["text"])
    rows: list[dict[str, Any]] = json.loads(text[text.index("{") :])["results"]
    return rows
