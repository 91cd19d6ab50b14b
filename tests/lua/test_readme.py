"""The page for extension authors: its code runs as it stands there."""

import asyncio
import re
from pathlib import Path

from panto.lua import reference
from panto.schema import ops
from tests.lua.home import Home, home
from tests.lua.test_agents import ECHO
from tests.scheduler.house import scripted

README = (Path(__file__).parent.parent.parent / "extensions/README.md").read_text()
BLOCKS = re.findall(r"```lua\n(.*?)```", README, re.DOTALL)


def block(mark: str) -> str:
    (found,) = [code for code in BLOCKS if mark in code]
    return str(found)


def test_the_tool_of_the_page_counts_words(tmp_path: Path) -> None:
    calls = [{"name": "word_count", "arguments": {"path": path}} for path in ("some.txt", "none.txt")]

    async def work() -> None:
        async with home(tmp_path, scripted({"calls": calls}, {"text": "done"}), {"count": block("word_count")}) as at:
            (at.house.cwd / "some.txt").write_text("one two  three\n")
            await at.house.prompt("go")
            first, second = at.house.results_in_call_order()
            assert (first["status"], first["text"]) == ("ok", "3 words")
            assert second["status"] == "error" and "there is no file none.txt" in str(second["text"])

    asyncio.run(work())


def test_the_view_of_the_page_is_shown(tmp_path: Path) -> None:
    code = f"""local panto = require('panto')
      panto.ext.register_tool {{ name = 'view', description = 'x', handler = function(args, ctx)
        {block("set_component")} return 'shown' end }}"""

    async def work() -> None:
        tables = scripted({"calls": [{"name": "view", "arguments": {}}]}, {"text": "done"})
        async with home(tmp_path, tables, {"view": code}) as at:
            await at.house.prompt("go")
            assert at.house.results()[0]["text"] == "shown"

    asyncio.run(work())


def test_the_command_hook_and_observer_of_the_page_work(tmp_path: Path) -> None:
    code = "local panto = require('panto')\n" + block("register_command")

    async def work(at: Home) -> None:
        await at.house.client.submit(ops.RunCommand("/note one"))
        await at.house.client.submit(ops.RunCommand("/note two"))
        assert "2 notes" in at.notices()
        await at.house.prompt("go")
        assert "not here" in str(at.house.results()[0]["text"])

    async def main() -> None:
        tables = scripted({"calls": [{"name": "bash", "arguments": {"command": "rm -rf x"}}]}, {"text": "done"})
        async with home(tmp_path, tables, {"note": code}) as at:
            await work(at)

    asyncio.run(main())


def test_the_agent_of_the_page_answers(tmp_path: Path) -> None:
    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"}), {"echo": ECHO}) as at:
            code = block("panto.agent").replace("fake:small", "echo:m")
            assert "Summarise" in await at.value("local panto = require('panto')\n" + code)

    asyncio.run(work())


def test_the_page_names_only_what_there_is() -> None:
    names = {e.name for g in reference.groups(reference.ANNOTATIONS.read_text()) for e in g.entries}
    tables = {"panto.lua", "panto.ext", "panto.ext.wire", "panto.d.lua"}
    used = set(re.findall(r"\bpanto(?:\.\w+)+(?=[ (\[{`])", README)) - tables
    aliases = {f"panto.ext.{name.removeprefix('panto.')}" for name in names if name.count(".") == 1}
    unknown = {
        name
        for name in used
        if name not in names | aliases and not name.startswith(("panto.providers", "panto.ext.session"))
    }
    assert unknown == set()


NAMED = """local ext = require('panto').ext
ext.register_protocol { name = 'mine', open = function(request, handle)
  return ext.wire.stream(handle, function(put)
    put { type = 'finish', reason = 'tool_calls' }
    put(nil)
    put { type = 'text', text = ext.json.null }
    for _, text in ipairs { '{"a"', ':1}' } do
      put { type = 'tool_call', index = 0, id = 'x', name = 'read', text = text }
    end
    put { type = 'tool_call', index = 1, name = 'ls' }
    put { type = 'tool_call', index = 1, name = 'ls', text = '{}' }
  end)
end }"""


def test_a_call_begins_once_and_what_says_nothing_is_left_out(tmp_path: Path) -> None:
    from panto.schema.stream import FinishPart, ToolCallDelta, ToolCallStart
    from tests.lua.test_protocols import parts, provider

    async def work() -> None:
        async with home(tmp_path, scripted(), {"p": NAMED}) as at:
            assert await parts(provider(at, "mine")) == [
                ToolCallStart(0, "read", "x"), ToolCallDelta(0, '{"a"'), ToolCallDelta(0, ":1}"),
                ToolCallStart(1, "ls"), ToolCallDelta(1, "{}"), FinishPart("tool_calls"),
            ]  # fmt: skip

    asyncio.run(work())


def test_the_protocol_of_the_page_speaks_with_a_server(tmp_path: Path) -> None:
    from panto.providers.conformance import Answer, LocalServer
    from panto.schema.stream import FinishPart, TextDelta, UsagePart
    from tests.lua.test_protocols import parts, provider

    code = "local panto = require('panto')\n" + block("register_protocol")
    events = b'data: {"text":"Hello"}\n\ndata: {"done":true,"usage":{"tokens":{"prompt":3,"reply":1}}}\n\n'

    async def work() -> None:
        async with LocalServer(lambda seen: Answer([events])) as server, home(tmp_path, scripted(), {"p": code}) as at:
            got = await parts(provider(at, "mine", server.url))
            assert got == [TextDelta("Hello"), UsagePart(input=3, output=1), FinishPart("stop")]
            assert b'"messages":[{"calls":[],"content":[{"text":"hi"}],"role":"user"}]' in server.seen[-1].body

    asyncio.run(work())
