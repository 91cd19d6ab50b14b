"""Scripts, structured workers and workflow graphs, run by panto-subagents in a whole house."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.messages import Request
from tests.rocks.crew import ROCK, crew, inside, repository, said


def told(at: Any) -> list[str]:
    return [str(r["text"]) for r in at.house.records() if r.get("role") == "user"]


def answer_of(at: Any) -> dict[str, Any]:
    text = str([r for r in at.house.results() if "agent" not in r][0]["text"])
    value: dict[str, Any] = json.loads(text[text.index("{") :])
    return value


def called(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": f"subagents.{tool}", "arguments": arguments}]}


def run_script(root: Path, source: str, *, child: Any = None, args: Any = None, **options: Any) -> dict[str, Any]:
    async def work(at: Any) -> dict[str, Any]:
        await at.house.prompt("go")
        return answer_of(at)

    result: dict[str, Any] = inside(root, crew(called("lua", source=source, args=args), child=child), work, **options)
    return result


def test_a_script_runs_agents_at_once_and_puts_their_answers_together(tmp_path: Path) -> None:
    source = """
      local two = wf.all { function() return wf.run('explore', 'one') end, function() return wf.run(nil, 'two') end }
      local many = wf.map(args.list, function(item, i) return wf.run('explore', item .. i) end, { limit = 2 })
      wf.log('had', #many)
      return { two = two, many = many, kept = wf.step('s', function() return { n = 1 } end).n }"""
    result = run_script(tmp_path, source, args={"list": ["a", "b", "c"]})
    assert result["status"] == "completed"
    assert result["result"] == {
        "two": ["answer to one", "answer to two"], "many": ["answer to a1", "answer to b2", "answer to c3"], "kept": 1,
    }  # fmt: skip
    assert result["log"] == ["had 3"]
    assert len({row["id"] for row in result["agents"]}) == 5


def test_a_script_hears_events_and_goes_on_with_an_agent(tmp_path: Path) -> None:
    source = """
      local kinds = {}
      local function hear(e) kinds[e.type] = true end
      local text, id = wf.run(nil, 'first', { on_event = hear, budget = { tokens = 9999 } })
      local ok, e = pcall(wf.run, nil, 'x', { session_id = 'ffffffff' })
      return { text, (wf.run(nil, 'second', { session_id = id })), kinds.step_ended, kinds.turn_ended, e.kind }"""
    result = run_script(tmp_path, source)
    assert result["result"] == ["answer to first", "answer to second", True, True, "missing"]
    assert len({row["id"] for row in result["agents"]}) == 1


def test_an_agent_that_fails_is_an_error_with_its_id_that_a_script_may_catch(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        if said(request) == "bad":
            return {"error": {"kind": "invalid_request", "status": 400, "message": "no luck"}}
        return {"text": "good"}

    source = """local ok, e = pcall(wf.run, nil, 'bad')
      local done = 0
      local all = pcall(wf.map, { 'bad', 'x', 'y' }, function(p) wf.run(nil, p) done = done + 1 end)
      return { ok = ok, kind = e.kind, child = e.child, text = tostring(e), all = all, done = done }"""
    result = run_script(tmp_path, source, child=child)["result"]
    assert (result["ok"], result["kind"], result["all"], result["done"]) == (False, "invalid_request", False, 2)
    assert result["child"] in result["text"] and "no luck" in result["text"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("return 1 +", "is not Lua"),
        ("local x = nil\nreturn x.y", "script:2: attempt to index a nil value"),
        ("return wf.run('nobody', 'x')", "there is no profile nobody"),
        ("error({ a = 1 })", "failed"),
        ("wf.step('a', function() end) wf.step('a', function() end)", "a is there twice"),
        ("return wf.worker { prompt = 'x', schema = { pattern = 'x' } }", "the keyword pattern is not supported"),
    ],
)
def test_a_script_that_fails_is_told_without_a_traceback(tmp_path: Path, source: str, told: str) -> None:
    async def work(at: Any) -> str:
        await at.house.prompt("go")
        result = at.house.results()[0]
        assert result["status"] == "error"
        return str(result["text"])

    text = inside(tmp_path, crew(called("lua", source=source)), work)
    assert told in text and "traceback" not in text


def test_a_script_reaches_nothing_outside(tmp_path: Path) -> None:
    source = """local found = {}
      for _, name in ipairs { 'io', 'os', 'require', 'load', 'dofile', 'debug', 'coroutine', 'setmetatable',
        'getmetatable', 'rawset', 'rawget', '_G', 'package', 'collectgarbage', 'print' } do
        local ok, v = pcall(function() return ({ io = io, os = os, require = require, load = load, dofile = dofile,
          debug = debug, coroutine = coroutine, setmetatable = setmetatable, getmetatable = getmetatable,
          rawset = rawset, rawget = rawget, _G = _G, package = package, collectgarbage = collectgarbage,
          print = print })[name] end)
        if v ~= nil then found[#found + 1] = name end
      end
      string.rep = nil
      return { found = #found, dump = string.dump == nil, still = ('x'):rep(2) }"""
    assert run_script(tmp_path, source)["result"] == {"found": 0, "dump": True, "still": "xx"}


def test_scripts_are_asked_for_like_commands(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        assert at.house.results()[0]["status"] == "denied"

    inside(tmp_path, crew(called("lua", source="return 1")), work, mode="ask", attended=False)


# ---------------------------------------------------------------- structured workers

SCHEMA = "{ type = 'object', required = { 'n' }, properties = { n = { type = 'integer' } } }"


def test_a_worker_has_one_declaration_and_no_prompt_of_pantos(tmp_path: Path) -> None:
    requests: list[Request] = []

    def child(request: Request) -> Mapping[str, Any]:
        requests.append(request)
        return {"calls": [{"name": "answer", "arguments": {"n": 3}}]}

    result = run_script(tmp_path, f"return wf.worker {{ prompt = 'count', schema = {SCHEMA} }}", child=child)
    assert result["result"] == {"n": 3}
    (request,) = requests
    assert [tool.name for tool in request.tools] == ["answer"]
    assert (request.tool_choice.kind, request.tool_choice.name) == ("named", "answer")
    assert len(request.system) == 1


def test_a_workers_wrong_answers_are_named_to_it_at_most_twice(tmp_path: Path) -> None:
    prompts: list[str] = []
    replies: list[dict[str, Any]] = [
        {"text": "three"},
        {"calls": [{"name": "answer", "arguments": {"n": "3"}}]},
        {"text": '{"n": 3}'},
    ]

    def child(request: Request) -> Mapping[str, Any]:
        prompts.append(said(request))
        return replies[len(prompts) - 1]

    result = run_script(tmp_path, f"return wf.worker {{ prompt = 'count', schema = {SCHEMA} }}", child=child)
    assert result["result"] == {"n": 3}
    assert "was not called" in prompts[1] and 'integer expected, this is "3"' in prompts[2]

    (tmp_path / "never").mkdir()
    prompts.clear()
    replies[:] = [{"text": "no"}] * 3
    result = run_script(tmp_path / "never", f"return wf.worker {{ prompt = 'count', schema = {SCHEMA} }}", child=child)
    assert (result["status"], result["error"]["kind"], len(prompts)) == ("failed", "invalid_output", 3)


def test_a_worker_may_be_asked_for_what_is_no_object_and_may_send_nothing_for_an_empty_one(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        if said(request) == "empty":
            return {"calls": [{"name": "answer", "arguments": ""}]}
        return {"calls": [{"name": "answer", "arguments": {"value": ["a", "b"]}}]}

    source = """local list = wf.worker { prompt = 'list', schema = { type = 'array', items = { type = 'string' } } }
      local empty = wf.worker { prompt = 'empty', schema = { type = 'object' } }
      return { list = list, empty = next(empty) == nil }"""
    assert run_script(tmp_path, source, child=child)["result"] == {"list": ["a", "b"], "empty": True}


# ---------------------------------------------------------------- graphs

GRAPH = """
name = "demo"
description = "Shows how steps hang together."
output = "{{steps.last.text}} / {{steps.each.items.0.text}}"
[inputs.topic]
required = true
[inputs.extra]
default = ""
[[step]]
id = "last"
worker = true
needs = ["bad"]
prompt = "{{steps.first.text}} and {{steps.each.text}}"
schema = { type = "object", properties = { n = { type = "integer" } } }
[[step]]
id = "first"
profile = "explore"
prompt = "look at {{inputs.topic}}"
[[step]]
id = "list"
profile = "explore"
prompt = "list {{inputs.topic}}"
schema = '{"type": "array", "items": {"type": "string"}}'
[[step]]
id = "each"
profile = "worker"
for_each = "{{steps.list.data}}"
limit = 2
prompt = "{{index}}: {{item}}"
[[step]]
id = "bad"
profile = "explore"
when = "{{inputs.extra}} == yes"
retries = 1
prompt = "fail"
"""


def workflow(root: Path, text: str, name: str = "demo") -> Mapping[str, Any]:
    place = root / "config" / "workflows" / f"{name}.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return {"places": {"config_dir": str(root / "config")}}


def worker_or(request: Request) -> Mapping[str, Any]:
    text = said(request)
    if any(tool.name == "answer" for tool in request.tools):
        return {"calls": [{"name": "answer", "arguments": {"n": len(text)}}]}
    if text.startswith("list"):
        return {"text": 'Here:\n```json\n["x", "y", "z"]\n```'}
    if text == "fail":
        return {"error": {"kind": "invalid_request", "status": 400, "message": "no luck"}}
    return {"text": f"answer to {text}"}


def test_a_graph_runs_in_order_of_its_needs(tmp_path: Path) -> None:
    async def work(at: Any) -> dict[str, Any]:
        await at.house.prompt("go")
        return answer_of(at)

    script = crew(called("workflow", name="demo", inputs={"topic": "cats"}), child=worker_or)
    result = inside(tmp_path, script, work, settings=workflow(tmp_path, GRAPH))
    assert [(s["id"], s["status"]) for s in result["steps"]] == [
        ("last", "completed"), ("first", "completed"), ("list", "completed"), ("each", "completed"), ("bad", "skipped"),
    ]  # fmt: skip
    assert result["text"].endswith("/ answer to 1: x") and '{"n":' in result["text"]


def test_a_failed_step_skips_what_needs_it_and_both_are_named(tmp_path: Path) -> None:
    async def work(at: Any) -> dict[str, Any]:
        await at.house.prompt("go")
        assert at.house.results()[-1]["status"] == "error"
        return answer_of(at)

    script = crew(called("workflow", name="demo", inputs={"topic": "cats", "extra": "yes"}), child=worker_or)
    result = inside(tmp_path, script, work, settings=workflow(tmp_path, GRAPH))
    states = {s["id"]: s for s in result["steps"]}
    assert result["status"] == "failed"
    assert (states["bad"]["status"], states["bad"]["error"]) == ("failed", "no luck")
    assert (states["last"]["status"], states["last"]["because"]) == ("skipped", "it needs bad")
    assert states["first"]["status"] == "completed" and "answer to look at cats" in result["text"]


@pytest.mark.parametrize(
    ("change", "place", "told"),
    [
        (('id = "first"', 'id = "list"'), 20, "the step list is there twice"),
        (("{{steps.first.text}}", "{{steps.nobody.text}}"), 13, "there is no step nobody"),
        (("{{inputs.topic}}", "{{inputs.topik}}"), 18, "there is no input topik"),
        (('prompt = "fail"', 'prompt = "{{steps.last.text}}"'), 0, "need each other in a circle"),
        (('needs = ["bad"]', 'needs = ["worse"]'), 12, "needs worse, which is not there"),
        (('profile = "worker"', 'profil = "worker"'), 26, "unknown key profil"),
        (("worker = true", 'worker = true\nprofile = "x"'), 9, "either profile, worker = true or diff"),
        (('type = "integer"', 'pattern = "x"'), 14, "the keyword pattern is not supported"),
        (("limit = 2", "limit = "), 28, "a value expected"),
    ],
)
def test_a_wrong_graph_is_refused_with_file_and_line(
    tmp_path: Path, change: tuple[str, str], place: int, told: str
) -> None:
    async def work(at: Any) -> None:
        (text,) = [t for t in at.notices() if "demo.toml" in t]
        assert told in text
        assert not place or f"demo.toml:{place}: " in text, text
        assert at.house.client.commands.rows() and all(
            r.name != "workflow:demo" for r in at.house.client.commands.rows()
        )

    assert change[0] in GRAPH
    inside(tmp_path, crew(), work, settings=workflow(tmp_path, GRAPH.replace(*change, 1)))


def test_each_workflow_is_a_command_that_reports_to_the_agent(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        assert {"workflow:demo", "workflow:review", "workflow:map"} <= {r.name for r in at.house.client.commands.rows()}
        await at.house.client.submit(ops.RunCommand('/workflow:demo topic="two cats"'))
        await at.house.until(lambda: any("The workflow demo has finished" in text for text in told(at)))
        await at.house.rest()
        assert any("look at two cats" in str(r.get("text")) for r in at.house.records())

    inside(tmp_path, crew({"text": "thanks"}, child=worker_or), work, settings=workflow(tmp_path, GRAPH))


def review_crew(request: Request) -> Mapping[str, Any]:
    if any(tool.name == "answer" for tool in request.tools):
        properties = json.loads(request.tools[0].schema)["properties"]
        if "findings" in properties:
            finding = {"file": "shop.py", "line": 3, "severity": "high", "problem": "adds twice"}
            return {"calls": [{"name": "answer", "arguments": {"findings": [finding], "verdict": "not yet"}}]}
        return {"calls": [{"name": "answer", "arguments": {"answer": "all in all"}}]}
    if said(request).startswith("Find the files"):
        return {"text": '{"files": ["a.py", "b.py"]}'}
    return {"text": "nothing found"}


def test_the_shipped_workflows_do_what_they_say(tmp_path: Path) -> None:
    async def work(at: Any) -> list[dict[str, Any]]:
        await at.house.prompt("go")
        texts = [str(r["text"]) for r in at.house.results_in_call_order() if "agent" not in r]
        return [json.loads(text) for text in texts]

    repository(tmp_path / "work")
    calls = [("review", {}), ("map", {"question": "what is it?", "files": "*.py"})]
    turn = {"calls": [c for n, i in calls for c in called("workflow", name=n, inputs=i)["calls"]]}
    review, mapped = inside(tmp_path, crew(turn, child=review_crew), work)
    assert review["status"] == "completed" and "adds twice" in review["text"]
    assert mapped["status"] == "completed" and mapped["text"] == "all in all"
    assert sorted(p.stem for p in (ROCK / "workflows").iterdir()) == ["map", "review"]
