"""A second rock on the same seam, for something else: one prompt to several models, the first answer wins."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from panto.schema import ops
from tests.lua.home import Home, home
from tests.scheduler.house import scripted

ROCK = Path(__file__).parent / "race"


def runner(text: str, delay_s: float, **more: Any) -> dict[str, Any]:
    reply = {"text": text, "delay_s": delay_s, **more}
    return {"protocol": "scripted", "models": {"m": {"id": "m", "context": 1000}}, "replies": [reply] * 8}


def race(root: Path, runners: dict[str, dict[str, Any]], work: Callable[[Home], Awaitable[Any]]) -> Any:
    models = [f"{name}:m" for name in runners]
    asked = {"name": "race", "arguments": {"prompt": "who?", "models": models}}

    async def main() -> Any:
        tables = scripted({"calls": [asked]}, {"text": "done"}) | runners
        async with home(root, tables, settings={"paths": (ROCK,)}) as at:
            assert [row.state for row in at.extensions.rows()] == ["active"], at.extensions.rows()
            result = await work(at)
            assert list(at.house.scheduler.agents) == [at.house.client.primary]
            assert not at.extensions.jobs.slots and not at.extensions.desk.handles
            assert at.driver.counts()["tasks"] == 0
            return result

    return asyncio.run(main())


async def told(at: Home) -> dict[str, object]:
    await at.house.prompt("go")
    return at.house.results()[0]


def test_the_first_answer_wins_and_the_others_are_cancelled(tmp_path: Path) -> None:
    begun = time.monotonic()
    result = race(tmp_path, {"slow": runner("slow", 60), "quick": runner("quick", 0.05), "idle": runner("", 60)}, told)
    assert (result["status"], result["text"]) == ("ok", "quick")
    assert time.monotonic() - begun < 20


def test_one_that_fails_does_not_win(tmp_path: Path) -> None:
    broken = runner("", 0, error={"kind": "auth", "status": 401, "message": "no key"})
    result = race(tmp_path, {"broken": broken, "good": runner("good", 0.1)}, told)
    assert (result["status"], result["text"]) == ("ok", "good")


def test_where_all_fail_the_model_is_told_why(tmp_path: Path) -> None:
    broken = runner("", 0, error={"kind": "auth", "status": 401, "message": "no key"})
    result = race(tmp_path, {"one": broken, "two": broken}, told)
    assert result["status"] == "error"
    assert "nobody answered: " in str(result["text"]) and str(result["text"]).count("no key") == 2


def test_escape_ends_the_race(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: any(r["type"] == "progress" for r in at.house.records()))
        begun = time.monotonic()
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        assert time.monotonic() - begun < 20
        assert at.house.results()[0]["status"] in ("cancelled", "error")
        await at.house.until(lambda: len(at.house.scheduler.agents) == 1)

    race(tmp_path, {"a": runner("a", 60), "b": runner("b", 60)}, work)
