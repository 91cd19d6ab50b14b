"""Tools, commands and hooks written in Lua, inside a whole house."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops, queries
from panto.schema.events import ExtensionAppended, ToolCallFailed
from panto.schema.signals import Asked, ContributionsChanged, ToolProgressed
from panto.schema.view import CardView, TextView
from tests.lua.home import home
from tests.scheduler.house import scripted


def tool(body: str, more: str = "") -> dict[str, str]:
    return {
        "ext": f"""local panto = require('panto')
local ext = panto.ext
ext.register_tool {{ name = 'try', description = 'A test.', {more}
  handler = function(args, ctx)
    {body}
  end }}"""
    }


def turn(**arguments: Any) -> dict[str, Any]:
    return scripted({"calls": [{"name": "try", "arguments": arguments}]}, {"text": "done"})


def run(root: Path, body: str, arguments: dict[str, Any] | None = None, more: str = "") -> dict[str, object]:
    async def work() -> dict[str, object]:
        async with home(root, turn(**(arguments or {})), tool(body, more)) as at:
            await at.house.prompt("go")
            counts = at.driver.counts()
            assert counts["tasks"] == counts["coroutines"] == 0
            return at.house.results()[0]

    return asyncio.run(work())


def test_a_handler_gets_its_arguments_and_surroundings(tmp_path: Path) -> None:
    body = """return table.concat({ args.text, #args.list, tostring(args.none == panto.json.null), ctx.raw_arguments,
        tostring(ctx.agent.id == ctx.session_id), #ctx.effect_id, ctx.cwd:match('[^/]*$') }, '|')"""
    result = run(tmp_path, body, {"text": "é\n", "list": [1, 2], "none": None})
    assert result["status"] == "ok"
    text = str(result["text"])
    assert text.startswith("é\n|2|true|{") and text.endswith("|true|32|work")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return 'plain'", "plain"),
        ("return { n = 1, list = panto.json.array{} }", '{"list":[],"n":1}'),
        ("return { content = 'told', details = { type = 'text', text = 'shown' } }", "told"),
        ("return { content = { { type = 'text', text = 'a' }, { type = 'text', text = 'b' } } }", "a\nb"),
        ("return nil", ""),
        ("return string.char(255, 65)", "\ufffdA"),
    ],
)
def test_what_a_handler_returns_is_what_the_model_reads(tmp_path: Path, body: str, text: str) -> None:
    assert run(tmp_path, body)["text"] == text


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("error('no such thing')", "error", "init.lua:5: no such thing"),
        ("error({ kind = 'not_found', message = 'no such thing' })", "error", "no such thing"),
        ("return { content = 'bad', is_error = true }", "error", "bad"),
        ("while true do end", "error", "ran too long without yielding"),
        ("return { content = 'half', cancelled = true }", "cancelled", "half"),
        ("local t = nil; return t.x", "error", "attempt to index a nil value"),
        ("ext.fs.read('')", "error", "not a path"),
    ],
)
def test_failures_are_text_for_the_model(tmp_path: Path, body: str, status: str, said: str) -> None:
    result = run(tmp_path, body)
    assert result["status"] == status
    assert said in str(result["text"])
    assert "stack traceback" not in str(result["text"])


def test_a_timeout_ends_a_tool(tmp_path: Path) -> None:
    result = run(tmp_path, "panto.sleep(60000)", more="timeout = 50,")
    assert (result["status"], result["text"]) == ("error", "try took longer than 0.05 s")


def test_progress_and_components_reach_the_card_tagged_by_call(tmp_path: Path) -> None:
    body = """ctx:progress('half way')
      local view = { type = 'card', title = 'Work', children = { { type = 'list', items = {} } } }
      local h = ctx:set_component(view)
      for i = 1, 3 do view.children[1].items[i] = 'line ' .. i h:invalidate() h:invalidate() ext.sleep(50) end
      kept = h
      return tostring(h:alive())"""

    async def work() -> None:
        async with home(tmp_path, turn(), tool(body)) as at:
            await at.house.prompt("go")
            assert at.house.results()[0]["text"] == "true"
            told = [u for u in at.house.seen if isinstance(u, ToolProgressed)]
            assert {u.call for u in told} == {at.house.results()[0]["id"]}
            assert told[0].text == "half way"
            views = [u.view for u in told if isinstance(u.view, CardView)]
            assert [len(v.children[0].items) for v in views] == [0, 1, 2, 3]  # type: ignore[union-attr]
            assert await at.value("return kept:alive()") is False

    asyncio.run(work())


def test_escape_lets_a_handler_return_within_the_window(tmp_path: Path) -> None:
    body = """local kinds = {}
      local ok, e = pcall(ext.sleep, 60000) kinds[1] = e.kind
      kinds[2] = tostring(ctx:cancelled())
      ok, e = pcall(coroutine.yield) kinds[3] = e.kind
      ext.session.append('note', { saved = true })
      return 'kept ' .. table.concat(kinds, ' ')"""

    async def work() -> None:
        async with home(tmp_path, turn(), tool(body)) as at:
            await at.house.client.submit(ops.Prompt("go"))
            await at.house.until(lambda: at.driver.counts()["tasks"] == 1)
            begun = time.monotonic()
            await at.house.client.submit(ops.Interrupt())
            await at.house.rest()
            assert time.monotonic() - begun < 20
            assert at.house.results()[0]["text"] == "kept cancelled true cancelled"
            assert at.house.records()[-1]["status"] == "interrupted"
            assert len(at.house.events(ExtensionAppended)) == 1

    asyncio.run(work())


@pytest.mark.parametrize(
    "body", ["while true do pcall(ext.sleep, 1000) end", "pcall(ext.sleep, 60000) ext.sleep(60000)"]
)
def test_escape_ends_a_handler_that_does_not_stop(tmp_path: Path, body: str) -> None:
    async def work() -> None:
        async with home(tmp_path, turn(), tool(body)) as at:
            await at.house.client.submit(ops.Prompt("go"))
            await at.house.until(lambda: at.driver.counts()["tasks"] == 1)
            begun = time.monotonic()
            await at.house.client.submit(ops.Interrupt())
            await at.house.rest()
            assert time.monotonic() - begun < 20
            failed = at.house.events(ToolCallFailed)[0]
            assert isinstance(failed, ToolCallFailed)
            assert (failed.cls, failed.effects) == ("cancelled", "unknown")
            assert at.driver.counts()["tasks"] == 0

    asyncio.run(work())


def test_two_calls_of_one_step_run_at_once_and_keep_their_results(tmp_path: Path) -> None:
    calls = [{"name": "try", "arguments": {"n": n}} for n in range(10)]

    async def work() -> None:
        body = "for i = 1, 5 do ext.sleep(2) end return 'n=' .. args.n"
        async with home(tmp_path, scripted({"calls": calls}, {"text": "done"}), tool(body)) as at:
            await at.house.prompt("go")
            assert sorted(str(r["text"]) for r in at.house.results()) == [f"n={n}" for n in range(10)]
            assert len(at.extensions.batches) == 0

    asyncio.run(work())


def test_an_external_tool_waits_for_an_answer(tmp_path: Path) -> None:
    code = {"ext": "require('panto').ext.register_tool { name = 'try', description = 'x', external = true }"}

    async def work() -> None:
        async with home(tmp_path, turn(), code) as at:
            await at.house.client.submit(ops.Prompt("go"))
            await at.house.until(lambda: any(r["type"] == "question" for r in at.house.records()))
            name = str(next(r for r in at.house.records() if r["type"] == "question")["id"])
            await at.house.client.submit(ops.Answer(name, text="forty-two"))
            await at.house.rest()
            assert "forty-two" in str(at.house.results()[0]["text"])

    asyncio.run(work())


# ---------------------------------------------------------------- hooks


HOOKS: list[tuple[str, str, str, str]] = [
    ("tool_call", "return { block = true, reason = 'not today' }", "denied", "not today"),
    ("tool_call", "error('broken')", "denied", "the permission hook of ext failed"),
    ("tool_call", "while true do end", "denied", "the permission hook of ext failed"),
    ("tool_call", "e.arguments.text = 'changed' return { arguments = e.arguments }", "ok", "got changed"),
    ("tool_call", "panto.sleep(10) return nil", "ok", "got given"),
    ("tool_result", "return { content = e.content .. '!' }", "ok", "got given!"),
    ("tool_result", "error('broken')", "ok", "got given"),
    ("tool_result", "while true do end", "ok", "got given"),
    ("tool_result", "return { is_error = true }", "error", "got given"),
]


@pytest.mark.parametrize(("event", "body", "status", "text"), HOOKS)
def test_hooks_block_rewrite_and_patch(tmp_path: Path, event: str, body: str, status: str, text: str) -> None:
    code = tool("return 'got ' .. args.text")["ext"] + f"\next.on('{event}', function(e) {body} end)"

    async def work() -> None:
        async with home(tmp_path, turn(text="given"), {"ext": code}) as at:
            await at.house.prompt("go")
            result = at.house.results()[0]
            assert result["status"] == status
            assert text in str(result["text"])
            assert at.driver.counts()["tasks"] == 0

    asyncio.run(work())


def test_input_and_context_hooks_change_what_is_sent(tmp_path: Path) -> None:
    code = """local ext = require('panto').ext
      ext.on('input', function(e) if e.text == 'no' then return { block = true, reason = 'refused' } end
        return { text = e.text .. ' please' } end)
      ext.on('context', function() return 'remember this' end)"""

    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"}, {"text": "b"}), {"ext": code}) as at:
            await at.house.prompt("go")
            said = [r["text"] for r in at.house.records() if r["type"] == "message" and r["role"] == "user"]
            assert "go please" in said and "remember this" in said
            await at.house.client.submit(ops.Prompt("no"))
            assert "refused" in at.notices()

    asyncio.run(work())


def test_a_hook_may_ask_the_person_and_its_time_does_not_count(tmp_path: Path) -> None:
    code = (
        tool("return 'ran'")["ext"]
        + "\next.on('tool_call', function(e) if not ext.ui.confirm('Run ' .. e.name .. '?') then"
        + " return { block = true, reason = 'the person said no' } end end)"
    )

    async def work(answer: str) -> dict[str, object]:
        async with home(tmp_path / answer, turn(), {"ext": code}) as at:
            asked: list[Asked] = []

            async def answering() -> None:
                async for update in at.house.client.subscribe():
                    if isinstance(update, Asked) and not update.over:
                        asked.append(update)
                        await at.house.client.submit(ops.Answer(update.id, choices=(answer,)))

            reader = asyncio.create_task(answering())
            await at.house.prompt("go")
            reader.cancel()
            assert asked[0].question.title == "Run try?"
            return at.house.results()[0]

    for answer in ("yes", "no"):
        (tmp_path / answer).mkdir()
    assert asyncio.run(work("yes"))["text"] == "ran"
    assert "the person said no" in str(asyncio.run(work("no"))["text"])


# ---------------------------------------------------------------- observers, commands, the screen


def test_observers_hear_the_turn_in_order_and_one_that_fails_stops_nobody(tmp_path: Path) -> None:
    code = """local ext = require('panto').ext
      heard = {}
      for _, name in ipairs { 'session_start', 'turn_start', 'step_start', 'step_end', 'turn_end', 'mine' } do
        ext.on(name, function(e) error('first') end)
        ext.on(name, function(e) heard[#heard + 1] = name .. (e.reason or e.x or '') end)
      end
      ext.on('turn_end', function() ext.emit('mine', { x = 1 }) end)"""

    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"}), {"ext": code}) as at:
            await at.house.prompt("go")
            async with asyncio.timeout(30):  # what is emitted is told in a later turn of the loop
                while await at.value("return #heard") < 6:
                    await asyncio.sleep(0.01)
            assert await at.value("return heard") == [
                "session_start", "turn_start", "step_start", "step_end", "turn_endcompleted", "mine1",
            ]  # fmt: skip

    asyncio.run(work())


def test_a_command_runs_completes_and_reports(tmp_path: Path) -> None:
    code = """local ext = require('panto').ext
      ext.register_command { name = 'greet', description = 'Greets.', args = 'name',
        handler = function(args, ctx) ext.sleep(1) return 'Hello ' .. args .. ' ' .. #ctx.effect_id end,
        complete = function(text) return { 'Ann', 'Bob' } end }
      ext.register_command { name = 'broken', description = 'x', handler = function() error('no') end }
      ext.register_command { name = 'ask', description = 'x',
        handler = function(args, ctx) ctx.agent:submit { prompt = 'please ' .. args, when = 'follow_up' } end }"""

    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"}), {"ext": code}) as at:
            client = at.house.client
            await client.submit(ops.RunCommand("/greet Ann"))
            assert "Hello Ann 32" in at.notices()
            from panto.schema.queries import AskCompletions

            assert await client.ask(AskCompletions("/greet", "")) == ("Ann", "Bob")
            with pytest.raises(Exception, match="/broken: .*init.lua:5: no"):
                await client.submit(ops.RunCommand("/broken"))
            await client.submit(ops.RunCommand("/ask this"))
            await at.house.rest()
            assert any(r.get("text") == "please this" for r in at.house.records())

    asyncio.run(work())


def test_contributions_to_the_screen_come_and_go(tmp_path: Path) -> None:
    code = """local ext = require('panto').ext
      ext.register_theme { name = 'night', dark = true, colors = { text = '#ffffff' } }
      ext.register_shortcut { key = 'f5', description = 'x', command = '/cost' }
      ext.register_shortcut { key = 'ctrl+g', description = 'y', handler = function() pressed = true end }
      set = ext.register_status { key = 'n', text = 'one', priority = 3 }"""

    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"}), {"ext": code}) as at:
            now = at.house.client.contributions
            assert [t.name for t in now.themes] == ["night"]
            assert [(s.key, s.command) for s in now.shortcuts] == [("f5", "/cost"), ("ctrl+g", "/ext:ctrl-g")]
            await at.run("set('two')", owner="ext")
            assert [(s.text, s.priority) for s in at.house.client.contributions.statuses] == [("two", 3)]
            await at.house.client.submit(ops.RunCommand("/ext:ctrl-g"))
            assert await at.value("return pressed") is True
            await at.extensions.switch("ext", False)
            assert at.house.client.contributions.themes == ()
            assert at.extensions.rows()[0].state == "off"

    asyncio.run(work())


def test_readers_are_told_to_look_again_when_a_command_comes_or_goes(tmp_path: Path) -> None:
    code = "require('panto').ext.register_command { name = 'note', description = 'x', handler = function() end }"

    async def work() -> None:
        async with home(tmp_path, scripted({"text": "a"})) as at:
            client = at.house.client
            updates = client.subscribe()

            async def told() -> None:
                async with asyncio.timeout(30):
                    async for update in updates:
                        if isinstance(update, ContributionsChanged):
                            return

            at.write("notes", code)
            await client.submit(ops.RunCommand("/extensions reload"))
            assert "note" in [row.name for row in await client.ask(queries.AskCommands())]
            await told()
            await client.submit(ops.RunCommand("/extensions off notes"))
            assert "note" not in [row.name for row in await client.ask(queries.AskCommands())]
            await told()

    asyncio.run(work())


def test_durable_facts_survive_and_belong_to_their_owner(tmp_path: Path) -> None:
    code = """local ext = require('panto').ext
      ext.register_command { name = 'add', description = 'x',
        handler = function(args) ext.session.append('item', { t = args }) end }
      ext.register_command { name = 'all', description = 'x', handler = function()
        local out = {}
        for i, e in ipairs(ext.session.entries('item')) do out[i] = e.t end
        return table.concat(out, ',') end }"""

    async def work(first: bool, resume: str) -> str:
        async with home(tmp_path, scripted({"text": "a"}), {"ext": code}, resume=resume) as at:
            if first:
                await at.house.client.submit(ops.RunCommand("/add one"))
                await at.house.client.submit(ops.RunCommand("/add two"))
            await at.house.client.submit(ops.RunCommand("/all"))
            assert at.notices()[-1] == "one,two"
            assert await at.value("return #require('panto').ext.session.entries('item')") == 0
            return at.house.client.primary

    name = asyncio.run(work(True, ""))
    asyncio.run(work(False, name))


def test_the_details_of_a_result_are_its_view(tmp_path: Path) -> None:
    async def work() -> None:
        body = "return { content = 'x', details = { type = 'text', text = 'shown' }, fact = 3, title = 'T' }"
        async with home(tmp_path, turn(), tool(body)) as at:
            await at.house.prompt("go")
            from panto.schema.bodies import ToolOutcome
            from panto.schema.signals import Fact

            outcome = next(u.body for u in at.house.seen if isinstance(u, Fact) and isinstance(u.body, ToolOutcome))
            assert (outcome.view, outcome.fact, outcome.title) == (TextView("shown"), "3", "T")

    asyncio.run(work())
