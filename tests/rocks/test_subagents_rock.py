"""The rock as a package: its specs on plain Lua and inside panto, its rockspec, what it costs to load."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from panto.lua import rock_files
from panto.lua.rockspec import read
from tests.lua.home import home
from tests.rocks.crew import NAME, ROCK, child_call, crew, inside, results_of
from tests.scheduler.house import scripted


@pytest.mark.skipif(shutil.which("lua5.4") is None, reason="lua5.4 is not installed")
def test_the_specs_pass_on_plain_lua() -> None:
    done = subprocess.run(["lua5.4", "spec/run.lua"], cwd=ROCK, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert ", 0 failed" in done.stdout


def test_the_specs_pass_inside_panto(tmp_path: Path) -> None:
    code = """
      local panto, root = require('panto'), ...
      local file = io.open(root .. '/spec/run.lua')
      local specs = load(file:read('a'), '@' .. root .. '/spec/run.lua')()
      file:close()
      local count, failures = specs.run(root, panto.json, function() panto.sleep(0) end)
      return { count, table.concat(failures, '\\n\\n') }"""

    async def work() -> None:
        async with home(tmp_path, scripted()) as at:
            count, failures = await at.value(code, str(ROCK))
            assert failures == "" and count > 80

    asyncio.run(work())


def test_the_rockspec_names_every_file(tmp_path: Path) -> None:
    spec = read(next(ROCK.glob("*.rockspec")))
    files = {str(p.relative_to(ROCK)) for d in ("src", "agents", "workflows") for p in (ROCK / d).iterdir()}
    assert set(spec.modules.values()) == files
    assert spec.other == ""


def test_an_installed_copy_works_like_the_shipped_one(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    rock_files.install(ROCK, tree, set())

    async def work(at: Any) -> None:
        assert {"workflow:map", "workflow:review"} <= {row.name for row in at.house.client.commands.rows()}
        await at.house.prompt("go")
        assert results_of(at)[0]["text"] == "answer to x"

    settings = {"rocks": ((NAME, ""),), "trees": (tree,), "shipped_rocks": {}}
    inside(tmp_path, crew(child_call({"prompt": "x", "profile": "explore"})), work, settings=settings)


def test_a_reload_reads_profiles_and_workflows_again(tmp_path: Path) -> None:
    config = tmp_path / "config"
    (config / "agents").mkdir(parents=True)

    async def work(at: Any) -> None:
        (config / "agents" / "new.md").write_text("---\nname: new\ndescription: just made\n---\nNew.")
        await at.extensions.reload()
        tool = next(t for t in at.house.agent.tools() if t.name == "subagents.run")
        assert "- new: just made" in tool.description

    inside(tmp_path, crew(), work, settings={"places": {"config_dir": str(config)}})


def test_the_tools_are_described_on_less_than_a_page(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        tools = [t for t in at.house.agent.tools() if t.name.startswith("subagents.")]
        assert len(tools) == 4
        size = sum(len((t.name + t.description + t.schema).encode()) for t in tools)
        assert size <= 1640, "every request carries it"

    inside(tmp_path, crew(), work)


def test_no_python_of_panto_knows_the_rock() -> None:
    package = ROCK.parent.parent / "panto"
    rooms = ("schema", "session", "providers", "tools", "agent", "scheduler", "lua", "remote")
    for path in (p for room in rooms for p in (package / room).rglob("*") if p.suffix in (".py", ".lua")):
        assert "subagents" not in path.read_text(encoding="utf-8"), path
