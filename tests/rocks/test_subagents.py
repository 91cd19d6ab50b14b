"""The rock panto-subagents in a whole house: scripted models, real sessions."""

import asyncio
from pathlib import Path
from typing import Any

from tests.rocks.crew import child_call, crew, inside, results_of


def test_three_children_run_at_once_and_answer_in_order(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        rows = results_of(at)
        assert [(r["status"], r["text"]) for r in rows] == [("completed", f"answer to task {n}") for n in (1, 2, 3)]
        assert all(len(r["id"]) == 32 and r["resumable"] for r in rows)

    inside(tmp_path, crew(child_call("task 1", "task 2", "task 3")), work)
