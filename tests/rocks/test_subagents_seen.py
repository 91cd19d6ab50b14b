"""What a client sees of children: how each stands, its history once it is closed, what all of them cost."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panto.schema import ops
from panto.schema.events import ModelStepCompleted
from panto.schema.messages import Request
from panto.schema.queries import AskAgents, AskHistory, AskStatus
from panto.schema.signals import StatusChanged
from tests.rocks.crew import child_call, crew, inside, results_of, said


def child(request: Request) -> Mapping[str, Any]:
    more = {"usage": {"input": 1000, "output": 100}}
    if said(request) == "fails":
        return {"error": {"kind": "invalid_request", "status": 400, "message": "no luck"}}
    if said(request).startswith("slow"):
        return {"text": ["half ", "of it"], "stall_s": 600}
    return {"text": "fine", **more}


def test_closed_children_are_shown_as_they_ended_and_their_history_stays(tmp_path: Path) -> None:
    async def work(at: Any) -> str:
        client = at.house.client
        await client.submit(ops.Prompt("go"))
        await at.house.until(lambda: sum(r["type"] == "turn_ended" for r in at.house.records()) == 2)
        await at.house.until(lambda: any(r["type"] == "text_delta" for r in at.house.records()))
        running = {row.state for row in await client.ask(AskAgents())}
        assert "running" in running
        await client.submit(ops.Interrupt())
        await at.house.rest()
        await at.house.until(lambda: len(at.house.scheduler.agents) == 1)
        rows = await client.ask(AskAgents())
        assert sorted(row.state for row in rows) == ["cancelled", "completed", "failed"]
        done = next(row for row in rows if row.state == "completed")
        assert done.tokens == 1100
        history = await client.ask(AskHistory(agent=done.id))
        assert any(isinstance(fact.event, ModelStepCompleted) for fact in history.facts)
        return str(client.primary)

    primary = inside(tmp_path, crew(child_call("fine", "fails", "slow"), child=child), work)

    async def later(at: Any) -> None:
        rows = await at.house.client.ask(AskAgents())
        assert sorted(row.state for row in rows) == ["cancelled", "completed", "failed"]

    inside(tmp_path, crew(), later, resume=primary)


def test_a_child_that_was_left_in_the_middle_is_parked(tmp_path: Path) -> None:
    async def begin(at: Any) -> str:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: any(r["type"] == "text_delta" for r in at.house.records()))
        await at.house.client.submit(ops.Shutdown())
        return str(at.house.client.primary)

    primary = inside(tmp_path, crew(child_call("slow"), child=child), begin, quiet=False)

    async def later(at: Any) -> None:
        assert [row.state for row in await at.house.client.ask(AskAgents())] == ["parked"]

    inside(tmp_path, crew(), later, resume=primary)


def test_what_children_use_is_counted_to_the_session_also_when_it_is_opened_again(tmp_path: Path) -> None:
    async def work(at: Any) -> tuple[str, float, float]:
        await at.house.prompt("go")
        own = at.house.agent.session.view.cost
        status = await at.house.client.ask(AskStatus())
        assert status.agent_tokens == 2200
        assert status.cost is not None and status.cost > own
        told = [u for u in at.house.seen if isinstance(u, StatusChanged) and u.agent == at.house.client.primary]
        assert any(0 < u.agent_tokens < 2200 for u in told), "it is told while they run"
        shown: list[str] = []
        at.house.client.show = lambda text, **more: shown.append(text)
        await at.house.client.submit(ops.RunCommand("/cost"))
        assert "2 agents: 2200 tokens" in shown[0] and f"${status.cost:.4f}" in shown[0]
        return str(at.house.client.primary), status.cost, own

    primary, cost, own = inside(tmp_path, crew(child_call("one", "two"), child=child), work)
    assert cost - own > 0

    async def later(at: Any) -> None:
        status = await at.house.client.ask(AskStatus())
        assert (status.agent_tokens, status.cost) == (2200, cost)

    inside(tmp_path, crew(), later, resume=primary)


def test_children_of_a_call_that_was_left_in_the_middle_go_on_with_it(tmp_path: Path) -> None:
    async def begin(at: Any) -> str:
        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: sum(r["type"] == "turn_ended" for r in at.house.records()) == 1)
        await at.house.until(lambda: any(r["type"] == "text_delta" for r in at.house.records()))
        await at.house.client.submit(ops.Shutdown())
        return str(at.house.client.primary)

    primary = inside(tmp_path, crew(child_call("fine", "slow"), child=child), begin, quiet=False)
    asked: list[str] = []

    def quick(request: Request) -> Mapping[str, Any]:
        asked.append(said(request))
        return {"text": "at last"}

    async def later(at: Any) -> None:
        await at.house.client.submit(ops.Continue())
        await at.house.until(lambda: [r for r in at.house.results() if "agent" not in r])
        assert [(r["status"], r["text"]) for r in results_of(at)] == [("completed", "fine"), ("completed", "at last")]
        assert asked == ["slow"]
        await at.house.rest()

    inside(tmp_path, crew(child=quick), later, resume=primary)


def test_a_child_whose_question_was_answered_is_not_shown_to_ask_any_more(tmp_path: Path) -> None:
    def two_calls(request: Request) -> Mapping[str, Any]:
        calls = [{"name": "bash", "arguments": {"command": f"sleep {n}"}} for n in (60, 61)]
        return {"calls": calls, "delay_s": 0.5}

    async def work(at: Any) -> None:
        def cards() -> list[str]:
            return ["", *(repr(record["view"]) for record in at.house.records() if record["type"] == "progress")]

        def card() -> str:
            return cards()[-1]

        await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(lambda: any("what is to be done" in each for each in cards()))

        def asked() -> list[Any]:
            return [record for record in at.house.records() if record["type"] == "question"]

        await at.house.until(lambda: len(asked()) == 2 and "asks: bash sleep" in card())
        first, second = asked()
        await at.house.client.submit(ops.Decide(first["id"], "once", agent=first["agent"]))
        await at.house.until(lambda: "asks: bash sleep 61" in card())
        await at.house.client.submit(ops.Decide(second["id"], "once", agent=second["agent"]))
        await at.house.until(lambda: "asks:" not in card() and "bash sleep 61" in card())
        await at.house.client.submit(ops.Interrupt())
        await at.house.rest()

    inside(tmp_path, crew(child_call("what is to be done"), child=two_calls), work, mode="ask")
