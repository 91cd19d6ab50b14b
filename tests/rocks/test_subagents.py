"""The rock panto-subagents in a whole house: scripted models, real sessions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.bodies import Question, ToolOutcome
from panto.schema.events import JobEnded, JobStarted, ToolCallHeld
from panto.schema.messages import Request
from panto.schema.signals import Fact
from panto.schema.view import CardView
from tests.rocks.crew import child_call, crew, inside, results_of, said


def profile(root: Path, name: str, text: str) -> Mapping[str, Any]:
    """A profile of the user; the settings that make the rock find it."""
    place = root / "config" / "agents" / f"{name}.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return {"places": {"config_dir": str(root / "config")}}


def told(at: Any) -> list[str]:
    """What users, or what speaks for them, have said."""
    return [str(r["text"]) for r in at.house.records() if r.get("role") == "user"]


def test_three_children_run_at_once_and_answer_in_order(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        rows = results_of(at)
        assert [(r["status"], r["text"]) for r in rows] == [("completed", f"answer to task {n}") for n in (1, 2, 3)]
        assert all(len(r["id"]) == 32 and r["resumable"] for r in rows)
        assert rows[0]["usage"]["cost"] > 0
        await at.house.until(lambda: len(at.house.events(JobEnded)) == 3)
        assert [e.job for e in at.house.events(JobStarted)] == [r["id"] for r in rows]
        call = next(r for r in at.house.records() if r["type"] == "tool_call")["id"]
        assert {(e.kind, e.call) for e in at.house.events(JobStarted)} == {("child", call)}

    inside(tmp_path, crew(child_call("task 1", "task 2", "task 3")), work)


def test_the_card_has_a_line_a_child(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        outcomes = [u.body for u in at.house.seen if isinstance(u, Fact) and isinstance(u.body, ToolOutcome)]
        card = outcomes[0].view
        assert isinstance(card, CardView) and card.title == "2 children" and card.state == "failed"
        first, second = (c for c in card.children if isinstance(c, CardView))
        assert (first.title.split("\t"), first.state) == (["explore", "m", "“answer to task 1”"], "done")
        assert second.title.startswith("agent\tm\tno luck") and second.state == "failed"
        assert first.fact.split("\t")[1].endswith(" s")

    def child(request: Request) -> Mapping[str, Any]:
        if said(request) == "bad":
            return {"error": {"kind": "invalid_request", "status": 400, "message": "no luck"}}
        return {"text": f"answer to {said(request)}"}

    inside(tmp_path, crew(child_call({"prompt": "task 1", "profile": "explore"}, "bad"), child=child), work)


def test_what_a_child_may_use_follows_from_its_profile(tmp_path: Path) -> None:
    seen: dict[str, list[str]] = {}

    def child(request: Request) -> Mapping[str, Any]:
        seen[said(request)] = [tool.name for tool in request.tools]
        return {"text": "ok"}

    text = (
        "---\nname: odd\ndescription: x\ntools: Read, Bash(git log:*), NoSuch\ndisallowedTools: bash\ncolor: red\n---\n"
        "Be odd."
    )
    settings = profile(tmp_path, "odd", text)
    call = child_call(*({"prompt": p, "profile": p} for p in ("explore", "odd", "worker", "reviewer")), "plain")

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        assert [r["status"] for r in results_of(at)] == ["completed"] * 5
        assert sorted(seen["explore"]) == ["glob", "grep", "ls", "read"]
        assert seen["odd"] == ["read"]
        everything = [t.name for t in at.house.agent.tools() if not t.name.startswith("subagents.")]
        assert seen["worker"] == seen["plain"] == everything
        assert "bash" in seen["reviewer"] and "edit" not in seen["reviewer"]

    inside(tmp_path, crew(call, child=child), work, settings=settings)


def test_a_broken_profile_is_told_and_its_text_still_used(tmp_path: Path) -> None:
    system: list[str] = []

    def child(request: Request) -> Mapping[str, Any]:
        system.append("\n".join(block.text for block in request.system))
        return {"text": "ok"}

    settings = profile(tmp_path, "broken", "---\nname: [x\n---\nBe broken.")

    async def work(at: Any) -> None:
        assert any("broken.md: line 2" in text for text in at.notices())
        await at.house.prompt("go")
        assert "Be broken." in system[0]

    inside(tmp_path, crew(child_call({"prompt": "x", "profile": "broken"}), child=child), work, settings=settings)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_projects_profiles_count_only_where_the_project_is_trusted(tmp_path: Path, trusted: bool) -> None:
    project = tmp_path / "work"
    for folder, name in ((".claude/agents", "one"), (".agents/agents", "two"), (".panto/agents", "three")):
        (project / folder).mkdir(parents=True)
        (project / folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: from {folder}\n---\nBe {name}.")
    (project / ".panto" / "agents" / "explore.md").write_text("---\nname: explore\ndescription: mine\n---\nMine.")
    settings = {"places": {"project": str(project)} if trusted else {}}

    async def work(at: Any) -> None:
        tool = next(t for t in at.house.agent.tools() if t.name == "subagents.run")
        offered = [line for line in tool.description.split("\n") if line.startswith("- ")]
        assert ("- one: from .claude/agents" in offered) is trusted
        assert ("- two: from .agents/agents" in offered) is trusted
        assert ("- three: from .panto/agents" in offered) is trusted
        assert ("- explore: mine" in offered) is trusted

    inside(tmp_path, crew(), work, settings=settings)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"prompt": "x", "profile": "nobody"}, "there is no profile nobody; there are: explore, reviewer, worker"),
        ({"prompt": " "}, "prompt is missing"),
        ({"prompt": "x", "session_id": "0" * 32}, "there is no agent with the id"),
        ({"prompt": "x", "model": "nobody:none"}, "nobody:none"),
        ({"prompt": "x", "model": "fake:m", "reasoning": "extreme"}, "no reasoning level"),
    ],
)
def test_a_task_that_cannot_run_fails_beside_others(tmp_path: Path, task: dict[str, Any], told: str) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        bad, good = results_of(at)
        assert (bad["status"], good["status"]) == ("failed", "completed")
        assert told in bad["error"]["message"] and "traceback" not in bad["error"]["message"]

    inside(tmp_path, crew(child_call(task, "fine")), work)


def test_a_child_is_continued_with_its_history_model_and_reasoning(tmp_path: Path) -> None:
    seen: list[Request] = []

    def child(request: Request) -> Mapping[str, Any]:
        seen.append(request)
        return {"text": f"answer to {said(request)}"}

    first = {"prompt": "first", "profile": "explore", "model": "fake:other", "reasoning": "high"}

    async def begin(at: Any) -> tuple[str, str]:
        await at.house.prompt("go")
        return at.house.client.primary, str(results_of(at)[0]["id"])

    primary, id = inside(tmp_path, crew(child_call(first), child=child), begin)

    async def go_on(at: Any) -> None:
        await at.house.prompt("again")
        (row,) = results_of(at)
        assert (row["id"], row["status"], row["text"]) == (id, "completed", "answer to second")
        request = seen[-1]
        assert (request.model, request.reasoning) == ("other", "high")
        assert [m.role for m in request.messages] == ["user", "assistant", "user"]
        assert sum("look around" in block.text for block in request.system) == 1
        agents = list(at.house.events(JobStarted))
        assert [(e.job, e.kind) for e in agents] == [(id, "child")]

    script = crew(child_call({"prompt": "second", "session_id": id[:10]}), child=child)
    inside(tmp_path, script, go_on, resume=primary)


def test_an_approval_names_the_child(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        if any(m.role == "tool" for m in request.messages):
            return {"text": "done"}
        return {"calls": [{"name": "bash", "arguments": {"command": "touch made"}}]}

    async def work(at: Any) -> None:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: at.house.events(ToolCallHeld))
        held = next(u for u in at.house.seen if isinstance(u, Fact) and isinstance(u.event, ToolCallHeld))
        assert isinstance(held.body, Question) and held.body.child == "worker"
        assert isinstance(held.event, ToolCallHeld)
        await at.house.client.submit(ops.Decide(held.event.call, "once"))
        await at.house.rest()
        assert (at.house.cwd / "made").exists()
        assert results_of(at)[0]["text"] == "done"

    inside(tmp_path, crew(child_call({"prompt": "x", "profile": "worker"}), child=child), work, mode="ask")


def test_without_a_person_what_needs_approval_is_refused_and_plan_mode_holds_for_children(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        results = [p for m in request.messages if m.role == "tool" for p in m.parts]
        if results:
            return {"text": str(results[0])}
        return {"calls": [{"name": "write", "arguments": {"path": "made", "content": "x"}}]}

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        assert not (at.house.cwd / "made").exists()
        assert results_of(at)[0]["status"] == "completed"

    for mode in ("ask", "plan"):
        (tmp_path / mode).mkdir()
        inside(tmp_path / mode, crew(child_call("x"), child=child), work, mode=mode, attended=False)


NESTING = "---\nname: deep\ndescription: x\ntools: [read, 'subagents.*']\n---\nGo deep."


def test_children_nest_three_deep_and_no_deeper_and_need_one_slot(tmp_path: Path) -> None:
    offered: list[bool] = []

    def child(request: Request) -> Mapping[str, Any]:
        offered.append(any(tool.name == "subagents.run" for tool in request.tools))
        results = [p for m in request.messages if m.role == "tool" for p in m.parts]
        if results or not offered[-1]:
            return {"text": f"depth {said(request)}"}
        deeper = int(said(request)) + 1
        return child_call({"prompt": str(deeper), "profile": "deep"}, {"prompt": str(deeper), "profile": "deep"})

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        assert results_of(at, -1)[0]["status"] == "completed"
        depths = [agent.session.depth for agent in at.house.scheduler.agents.values()]
        assert depths == [0]
        rows = await at.house.scheduler.shared.store.list(under=at.house.client.primary, all=True, limit=100)
        assert len(rows) == 1 + 2 + 4
        assert offered.count(False) == 4

    script = crew(child_call({"prompt": "1", "profile": "deep"}), child=child)
    inside(tmp_path, script, work, settings=profile(tmp_path, "deep", NESTING), config={"max_running": 1})


def test_a_child_over_its_budget_is_warned_and_then_stopped(tmp_path: Path) -> None:
    warned: list[str] = []

    def child(request: Request) -> Mapping[str, Any]:
        warned.extend(said(request) for m in request.messages[-1:] if "nine tenths" in said(request))
        path = str(len(request.messages))
        return {"calls": [{"name": "ls", "arguments": {"path": path}}], "text": "working", "delay_s": 0.6}

    text = "---\nname: small\ndescription: x\nmax_steps: 4\n---\nSmall."

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        (row,) = results_of(at)
        assert (row["status"], row["error"]["kind"], row["text"]) == ("failed", "limited", "working")
        assert len(warned) == 1 and "4 steps" in warned[0]

    script = crew(child_call({"prompt": "x", "profile": "small"}), child=child)
    inside(tmp_path, script, work, settings=profile(tmp_path, "small", text))


def test_the_budget_of_an_operation_stops_all_its_children(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        more = {"usage": {"input": 400, "output": 100}}
        if said(request) == "quick":
            return {"text": "quick", **more}
        return {"calls": [{"name": "ls", "arguments": {"path": str(len(request.messages))}}], "delay_s": 0.05, **more}

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        rows = results_of(at)
        assert [r["status"] for r in rows] == ["completed", "failed", "failed"]
        assert {r["error"]["kind"] for r in rows[1:]} == {"limited"}

    script = crew(child_call("quick", "a", "b"), child=child)
    inside(tmp_path, script, work, config={"operation": {"tokens": 5000}})


def test_models_are_listed(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        assert '"label":"fake:other"' in str(at.house.results()[0]["text"])

    call = {"calls": [{"name": "subagents.models", "arguments": {"query": "fake"}}]}
    inside(tmp_path, crew(call), work)


def test_a_background_child_reports_in_a_message_of_its_own(tmp_path: Path) -> None:
    def child(request: Request) -> Mapping[str, Any]:
        return {"text": "found it", "delay_s": 1}

    async def work(at: Any) -> None:
        await at.house.prompt("go")
        (row,) = results_of(at)
        assert (row["status"], row["text"]) == ("running", "")
        await at.house.until(lambda: any("found it" in text for text in told(at)))
        await at.house.rest()
        assert any("agent has finished" in text for text in at.notices())

    inside(tmp_path, crew(child_call({"prompt": "x", "background": True}), child=child), work)


def test_without_a_person_background_is_foreground(tmp_path: Path) -> None:
    async def work(at: Any) -> None:
        await at.house.prompt("go")
        assert results_of(at)[0]["status"] == "completed"

    inside(tmp_path, crew(child_call({"prompt": "x", "background": True})), work, attended=False)


def test_background_children_left_behind_are_named_and_resumed_on_demand(tmp_path: Path) -> None:
    def slow(request: Request) -> Mapping[str, Any]:
        return {"text": "slow", "delay_s": 60}

    async def begin(at: Any) -> tuple[str, str]:
        await at.house.prompt("go")
        id = str(results_of(at)[0]["id"])
        await at.house.until(lambda: id in at.house.scheduler.agents and at.house.scheduler.agents[id].in_turn)
        return at.house.client.primary, id

    call = child_call({"prompt": "x", "profile": "worker", "background": True})
    primary, id = inside(tmp_path, crew(call, child=slow), begin, quiet=False)

    async def later(at: Any) -> None:
        await at.house.until(lambda: any(f"stopped when panto ended: worker ({id[:8]})" in t for t in at.notices()))
        assert list(at.house.scheduler.agents) == [primary]
        await at.house.client.submit(ops.RunCommand(f"/agents.resume {id[:8]} go on please"))
        await at.house.until(lambda: any("answer to go on please" in str(r.get("text")) for r in at.house.records()
                                         if r.get("role") == "user"))  # fmt: skip
        await at.house.rest()

    inside(tmp_path, crew(), later, resume=primary)
