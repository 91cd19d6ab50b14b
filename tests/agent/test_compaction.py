"""Compaction: what is summarised, what stays, and that everything sent on the way is sendable."""

from __future__ import annotations

import asyncio
from pathlib import Path

from panto.schema import ops, queries
from panto.schema.errors import PantoError
from panto.schema.events import CheckpointMade, ToolCallCompleted, TurnSettled
from panto.schema.messages import Request, ToolCall, ToolResult
from panto.schema.signals import Noticed
from tests.agent.test_turns import requests, told
from tests.scheduler.house import House, call, house, scripted

BIG = "seq 1 4000"


def paired(request: Request) -> bool:
    """Every call directly followed by its one result, no empty message, a person speaks first."""
    waiting: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            if [p.call_id for p in message.parts if isinstance(p, ToolResult)] != waiting:
                return False
            waiting = []
            continue
        if waiting or not message.parts:
            return False
        waiting = [p.call_id for p in message.parts if isinstance(p, ToolCall)]
    return not waiting and request.messages[0].role == "user"


def is_summary(request: Request) -> bool:
    return request.tool_choice.kind == "none" or not request.tools


def test_a_context_near_the_window_is_summarised_on_the_way_and_the_work_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        run = {"calls": [call("bash", command=BIG)]}
        tables = scripted(run, run, {"text": "SUMMARY"}, {"text": "Done."}, context=9_000)
        async with house(tmp_path, tables) as at:
            await at.prompt("count, please")
            assert at.events(CheckpointMade)
            assert at.records()[-1]["text"] == "Done."
            asked = requests(at)
            assert all(paired(request) for request in asked)
            assert [is_summary(r) for r in asked] == [False, False, True, False]
            assert "SUMMARY" in told(asked[-1].messages[0])
            assert any("count, please" in told(m) for m in asked[-1].messages)

    asyncio.run(main())


def test_compacting_by_hand_keeps_the_history_on_screen_whole_and_survives_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": "One."}, {"text": "Two."}, {"text": "Three."}, {"text": "SUM"}, context=2_000)
        async with house(tmp_path, tables, compact_at=0) as at:
            for text in ("a" * 90, "b" * 90, "c" * 90):
                await at.prompt(text)
            await at.client.submit(ops.RunCommand("/compact keep names"))
            assert "keep names" in told(requests(at)[3].messages[-1])
            history = await at.client.ask(queries.AskHistory())
            assert len([f for f in history.facts if isinstance(f.event, TurnSettled)]) == 3
            name = at.agent.id
        async with house(tmp_path, scripted({"text": "Four."}), resume=name, compact_at=0) as at:
            await at.prompt("go on")
            sent = requests(at)[0]
            assert "SUM" in told(sent.messages[0]) and told(sent.messages[-1]) == "go on"
            assert not any("aaa" in told(m) for m in sent.messages)

    asyncio.run(main())


def test_a_model_that_answers_the_summary_with_a_call_is_asked_again_without_tools(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(
            {"text": "One."}, {"text": "Two."}, {"calls": [call("ls")]}, {"text": "SUM"}, {"text": "Three."},
            context=2_000,
        )  # fmt: skip
        async with house(tmp_path, tables, compact_at=0) as at:
            for text in ("a" * 90, "b" * 90):
                await at.prompt(text)
            await at.client.submit(ops.Compact())
            assert at.events(CheckpointMade)
            assert requests(at)[2].tools and not requests(at)[3].tools
            await at.prompt("go on")
            assert "SUM" in told(requests(at)[4].messages[0])

    asyncio.run(main())


def test_an_overflow_makes_room_and_asks_again(tmp_path: Path) -> None:
    async def main() -> None:
        full = {"error": {"kind": "overflow", "status": 400, "message": "prompt is too long"}}
        tables = scripted(
            {"calls": [call("bash", command="seq 1 900")]}, full, {"text": "SUM"}, {"text": "Now it fits."},
            context=9_000,
        )  # fmt: skip
        async with house(tmp_path, tables) as at:
            await at.prompt("go")
            assert at.events(CheckpointMade) and at.events(ToolCallCompleted)
            assert at.records()[-1]["text"] == "Now it fits."

    asyncio.run(main())


def test_without_progress_the_person_is_told_what_fills_the_window(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": "One."}, {"text": "Two."}, *[{"text": "S"}] * 6, context=1_000)
        async with house(tmp_path, tables) as at:
            await at.prompt("go")
            assert at.records()[-1]["status"] == "completed"
            notices = [u.text for u in at.seen if isinstance(u, Noticed)]
            assert any("fixed parts" in text and "tools" in text for text in notices)

    asyncio.run(main())


def test_what_no_summary_can_make_fit_is_not_sent_and_says_why(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "?"}, context=10_000), attended=False) as at:
            await at.prompt("x" * 500_000)
            last = at.records()[-1]
            assert last["status"] == "failed"
            assert "one message alone has about 125k" in str(last["error"]) and "takes 10k" in str(last["error"])
            assert not [r for r in requests(at) if not is_summary(r)]

    asyncio.run(main())


def test_before_a_message_that_fits_nowhere_nothing_is_summarised(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(*({"text": f"answer {number}"} for number in range(4)), context=10_000)
        async with house(tmp_path, tables, attended=False) as at:
            for text in ("one", "two", "x" * 500_000):
                await at.prompt(text)
            assert at.records()[-1]["status"] == "failed" and "one message alone" in str(at.records()[-1]["error"])
            assert len(requests(at)) == 2 and not at.events(CheckpointMade)
            assert not [u.text for u in at.seen if isinstance(u, Noticed) and "fixed parts" in u.text]

    asyncio.run(main())


def test_a_summary_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        broken = {"error": {"kind": "auth", "status": 401, "message": "bad key"}}
        async with house(tmp_path, scripted({"text": "1"}, {"text": "2"}, broken, {"text": "3"}), compact_at=0) as at:
            await at.prompt("a" * 200_000)
            await at.prompt("b" * 200_000)
            await at.client.submit(ops.Compact())
            assert not at.events(CheckpointMade)
            await at.prompt("c")
            assert at.records()[-1]["text"] == "3"

    asyncio.run(main())


def test_every_cut_of_a_history_with_parallel_calls_stays_paired(tmp_path: Path) -> None:
    async def main() -> None:
        from panto.agent.compaction import keep, pieces, slim

        steps = [{"calls": [call("ls", depth=n), call("ls", path=".", depth=n)]} for n in range(1, 5)]
        async with house(tmp_path, scripted(*steps, {"text": "Done."})) as at:
            await at.prompt("go")
            entries = list(at.agent.session.view.context)
            context = at.agent.mailbox.ports.context
            for room in range(0, 2000, 25):
                kept = await keep(at.agent.mailbox.ports, entries, room)
                for part in ([e for e in entries if e.id in kept], [e for e in entries if e.id not in kept]):
                    messages = await context.messages(part)
                    waiting: list[str] = []
                    for message in messages:
                        if message.role == "tool":
                            assert [p.call_id for p in message.parts if isinstance(p, ToolResult)] == waiting
                            waiting = []
                        else:
                            assert not waiting
                            waiting = [p.call_id for p in message.parts if isinstance(p, ToolCall)]
                    assert not waiting
            slimmed = [slim(m) for m in await context.messages(entries)]
            for room in range(1, 400, 7):
                assert all(piece[0].role != "tool" for piece in pieces(slimmed, room))

    asyncio.run(main())


def test_a_turn_that_runs_cannot_be_compacted_by_hand(tmp_path: Path) -> None:
    async def main(at: House) -> None:
        await at.client.submit(ops.Prompt("go"))
        try:
            await at.client.submit(ops.Compact())
        except PantoError as error:
            assert "turn is running" in error.message
        else:
            raise AssertionError("it was accepted")

    async def opened() -> None:
        async with house(tmp_path, scripted({"text": ["a"] * 2_000, "each_s": 0.02})) as at:
            await main(at)

    asyncio.run(opened())
