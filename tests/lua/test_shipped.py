"""The extensions that come with panto, each used as a person would."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.bodies import ToolOutcome
from panto.schema.signals import Asked, Fact
from panto.schema.view import ListView
from tests.lua.home import Home, home
from tests.scheduler.house import scripted

SHIPPED = Path(__file__).parent.parent.parent / "extensions"
NAMES = sorted(p.name for p in SHIPPED.iterdir() if p.is_dir())


def inside(
    root: Path, tables: dict[str, Any], names: list[str], work: Callable[[Home], Awaitable[Any]], **more: Any
) -> Any:
    async def main() -> Any:
        quick = {"tour": {"piece_ms": 1}}
        settings = {"shipped": SHIPPED, "active": tuple(names), "tables": quick, **more.pop("settings", {})}
        async with home(root, tables, settings=settings, **more) as at:
            return await work(at)

    return asyncio.run(main())


def test_all_of_them_load_together_and_quickly_leave_nothing(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        rows = at.extensions.rows()
        assert [(row.name, row.state, row.problem) for row in rows] == [(name, "active", "") for name in NAMES]
        await at.extensions.reload()
        await at.house.until(lambda: at.driver.counts()["tasks"] == 0)

    inside(tmp_path, scripted({"text": "a"}), NAMES, work)


def test_hello_greets(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.prompt("go")
        assert at.house.results()[0]["text"] == "Hello, Ann!"

    calls = scripted({"calls": [{"name": "hello", "arguments": {"name": "Ann"}}]}, {"text": "done"})
    inside(tmp_path, calls, ["hello"], work, mode="plan")


def test_hello_is_as_short_as_it_says() -> None:
    code = (SHIPPED / "hello" / "init.lua").read_text().splitlines()
    assert len([line for line in code if line.strip() and not line.startswith("--")]) <= 10


def test_a_whole_protocol_is_fifty_lines() -> None:
    code = (SHIPPED / "chat-protocol" / "init.lua").read_text().splitlines()
    assert len([line for line in code if line.strip() and not line.startswith("--")]) <= 50


def test_todo_keeps_the_list_over_a_restart(tmp_path: Path) -> None:
    items = [{"text": "look", "state": "done"}, {"text": "change", "state": "doing"}]
    tables = scripted({"calls": [{"name": "todo", "arguments": {"items": items}}]}, {"text": "done"})

    async def first(at: Home) -> str:
        await at.house.prompt("go")
        assert at.house.results()[0]["text"] == "2 items, 1 done"
        outcome = next(u.body for u in at.house.seen if isinstance(u, Fact) and isinstance(u.body, ToolOutcome))
        assert outcome.view == ListView(("[x] look", "[>] change"))
        assert [s.text for s in at.house.client.contributions.statuses] == ["1/2"]
        return at.house.client.primary

    async def second(at: Home) -> None:
        await at.house.until(lambda: at.house.client.contributions.statuses)
        await at.house.client.submit(ops.RunCommand("/todo"))
        assert at.notices()[-1] == "- [x] look\n- [>] change"

    name = inside(tmp_path, tables, ["todo"], first)
    inside(tmp_path, tables, ["todo"], second, resume=name)


@pytest.mark.parametrize(
    ("command", "answer", "status"),
    [
        ("git push origin", "yes", "ok"),
        ("git   push", "no", "denied"),
        ("git push", None, "denied"),
        ("true", None, "ok"),
    ],
)
def test_the_gate_asks_and_obeys(tmp_path: Path, command: str, answer: str | None, status: str) -> None:
    tables = scripted({"calls": [{"name": "bash", "arguments": {"command": command}}]}, {"text": "done"})

    async def work(at: Home) -> None:
        asked: list[Asked] = []

        async def answering() -> None:
            async for update in at.house.client.subscribe():
                if isinstance(update, Asked) and not update.over:
                    asked.append(update)
                    await at.house.client.submit(ops.Answer(update.id, choices=(answer or "no",)))

        reader = asyncio.create_task(answering())
        await at.house.prompt("go")
        reader.cancel()
        got = at.house.results()[0]["status"]
        assert got == status or (status, got) == ("ok", "error")  # git has nothing to push to here
        assert len(asked) == (0 if command == "true" or answer is None else 1)

    inside(tmp_path, tables, ["permission-gate"], work, attended=answer is not None)


def test_the_tour_runs_its_stops_with_the_real_tools(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "README.md").write_text("# Here\n")

    async def work(at: Home) -> None:
        await at.house.client.submit(ops.SetModel("tour:guide"))
        await at.house.prompt("Show me around.")
        names = [r["name"] for r in at.house.records() if r["type"] == "tool_call"]
        assert names == ["ls", "read", "write", "edit", "bash"]
        assert [r["status"] for r in at.house.results()] == ["ok"] * 5
        assert "# Here" in str(at.house.results()[1]["text"])
        assert at.house.records()[-1]["status"] == "completed"
        await at.house.client.submit(ops.Prompt("yes"))
        await at.house.until(lambda: len([r for r in at.house.records() if r["type"] == "tool_call"]) == 6)
        await asyncio.sleep(0.1)
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        assert at.house.records()[-1]["status"] == "interrupted"

    inside(tmp_path, scripted({"text": "a"}), ["tour"], work)


def said(at: Home) -> list[str]:
    return [str(r["text"]) for r in at.house.records() if r["type"] == "message" and r["role"] == "assistant"]


def test_the_tour_goes_on_where_it_is_refused_and_in_an_empty_folder(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.client.submit(ops.SetModel("tour:guide"))
        await at.house.prompt("Show me around.")
        assert [r["status"] for r in at.house.results()] == ["ok", "error", "denied"]
        assert "There is none here" in said(at)[1]
        assert said(at)[-1].startswith("Nothing was written then")
        await at.house.prompt("yes")
        assert said(at)[-1].startswith("Escape ends anything")
        await at.house.prompt("and now?")
        await at.house.prompt("and now?")
        assert said(at)[-2] == said(at)[-1] and said(at)[-1].startswith("The tour is over")

    inside(tmp_path, scripted({"text": "a"}), ["tour"], work, mode="plan")


def test_the_tour_ends_early_where_nobody_can_be_asked(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.client.submit(ops.SetModel("tour:guide"))
        await at.house.prompt("Show me around.")
        assert "without a screen nobody can be asked" in said(at)[-1]

    inside(tmp_path, scripted({"text": "a"}), ["tour"], work, mode="ask", attended=False)


def test_a_tour_that_was_stopped_begins_its_stop_again(tmp_path: Path) -> None:
    async def work(at: Home) -> None:
        await at.house.client.submit(ops.SetModel("tour:guide"))
        await at.house.client.submit(ops.Prompt("Show me around."))
        await at.house.until(lambda: any(r["type"] == "text_delta" for r in at.house.records()))
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()
        await at.house.prompt("again")
        assert [r["name"] for r in at.house.records() if r["type"] == "tool_call"][0] == "ls"

    inside(tmp_path, scripted({"text": "a"}), ["tour"], work, mode="plan")


@pytest.mark.parametrize("file", sorted(SHIPPED.rglob("*.lua")), ids=lambda p: str(p.relative_to(SHIPPED)))
def test_every_file_is_plain_lua_of_readable_width(file: Path) -> None:
    from shutil import which

    interpreter = which("lua5.4") or which("lua")
    assert interpreter
    check = subprocess.run([interpreter, "-e", f"assert(loadfile({str(file)!r}))"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr
    assert max(len(line) for line in file.read_text().splitlines()) <= 125
    assert sys.version_info >= (3, 11)
