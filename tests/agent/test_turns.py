"""One turn from prompt to settlement: what is recorded, what runs, what the model is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from panto.agent.approval import Rule
from panto.agent.ports import Limits
from panto.providers.scripted import Scripted
from panto.schema import ops
from panto.schema.events import (
    InputAccepted,
    ModelStepPrepared,
    ModelStepRejected,
    RunEnded,
    ToolCallFailed,
    ToolCallHeld,
    ToolCallStarted,
    TurnAttemptFailed,
    TurnRetried,
    TurnSettled,
    TurnStopped,
)
from panto.schema.messages import Message, Request, Text, ToolResult
from panto.schema.signals import InputReturned, Noticed
from tests.scheduler.house import House, call, house, scripted


def requests(at: House) -> list[Request]:
    provider = at.scheduler.shared.catalog.resolve("fake:m").provider
    assert isinstance(provider, Scripted)
    return provider.requests


def told(message: Message) -> str:
    out = []
    for part in message.parts:
        if isinstance(part, Text):
            out.append(part.text)
        if isinstance(part, ToolResult):
            out.extend(p.text for p in part.parts if isinstance(p, Text))
    return "\n".join(out)


def roles(request: Request) -> list[str]:
    return [m.role for m in request.messages]


def test_a_turn_reads_edits_and_runs_and_ends_completed(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(
            {"text": "I look.", "calls": [call("read", path="a.txt"), call("ls")]},
            {"calls": [call("edit", path="a.txt", edits=[{"old": "two", "new": "TWO"}])]},
            {"calls": [call("bash", command="cat a.txt")]},
            {"text": "Done."},
        )
        async with house(tmp_path, tables) as at:
            (at.cwd / "a.txt").write_bytes(b"one\r\ntwo\r\n")
            await at.prompt("make it loud")
            assert (at.cwd / "a.txt").read_bytes() == b"one\r\nTWO\r\n"
            assert [r["status"] for r in at.results()] == ["ok"] * 4
            assert at.records()[-1] | {"usage": 0, "session": 0} == {
                "type": "turn_ended", "status": "completed", "text": "Done.", "usage": 0, "cost": None, "error": None,
                "session": 0,
            }  # fmt: skip
            assert roles(requests(at)[-1]) == ["user", "assistant", "tool", "assistant", "tool", "assistant", "tool"]

    asyncio.run(main())


def test_a_tool_round_costs_at_most_three_commits(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("read", path="a.txt")]}, {"text": "Done."})
        async with house(tmp_path, tables) as at:
            (at.cwd / "a.txt").write_text("x")
            await at.prompt("go")
            # submit and turn; prepare and start; result and starts; settlement, prepare and start; the end; the title
            assert at.agent.session.head[0] <= 7

    asyncio.run(main())


def test_two_edits_of_one_file_in_one_reply_are_both_made(tmp_path: Path) -> None:
    async def main() -> None:
        edits = [
            call("edit", path="n", edits=[{"old": "\n50\n", "new": "\nFIFTY\n"}]),
            call("edit", path="./n", edits=[{"old": "\n75\n", "new": "\nSEVENTYFIVE\n"}]),
        ]
        tables = scripted({"calls": [call("read", path="n")]}, {"calls": edits}, {"text": "."})
        async with house(tmp_path, tables) as at:
            (at.cwd / "n").write_text("".join(f"{n}\n" for n in range(1, 101)))
            await at.prompt("go")
            text = (at.cwd / "n").read_text()
            assert "\nFIFTY\n" in text and "\nSEVENTYFIVE\n" in text
            assert [r["status"] for r in at.results()] == ["ok"] * 3

    asyncio.run(main())


def test_ten_calls_run_at_the_same_time(tmp_path: Path) -> None:
    async def main() -> None:
        meet = "touch here.$$; while [ $(ls here.* | wc -l) -lt 10 ]; do sleep 0.05; done"
        tables = scripted({"calls": [call("bash", command=f"{meet} # {n}") for n in range(10)]}, {"text": "."})
        async with house(tmp_path, tables) as at:
            await at.prompt("go")
            assert [r["status"] for r in at.results()] == ["ok"] * 10

    asyncio.run(main())


def test_a_steer_joins_the_running_turn_after_the_results_and_a_queued_message_waits(tmp_path: Path) -> None:
    async def main() -> None:
        wait = "while [ ! -e go ]; do sleep 0.02; done"
        tables = scripted({"calls": [call("bash", command=wait)]}, {"text": "First."}, {"text": "Second."})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("start"))
            await at.until(lambda: at.events(ToolCallStarted))
            await at.client.submit(ops.Prompt("and this", when="step"))
            await at.client.submit(ops.Prompt("later", when="turn"))
            (at.cwd / "go").touch()
            await at.rest()
            assert roles(requests(at)[1]) == ["user", "assistant", "tool", "user"]
            assert told(requests(at)[1].messages[-1]) == "and this"
            assert told(requests(at)[2].messages[-1]) == "later"
            assert len(at.events(TurnSettled)) == 2

    asyncio.run(main())


def test_input_at_the_last_reply_makes_the_run_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": ["a"] * 5, "each_s": 0.5}, {"text": "And that."})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("start"))
            await at.until(lambda: at.events(ModelStepPrepared))
            await at.client.submit(ops.Prompt("one more thing"))
            await at.rest()
            assert len(at.events(TurnSettled)) == 1
            assert [told(m) for m in requests(at)[1].messages][-1] == "one more thing"

    asyncio.run(main())


def test_a_queued_message_can_be_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": ["a"] * 5, "each_s": 0.5}, {"text": "?"})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("start"))
            await at.until(lambda: at.events(ModelStepPrepared))
            await at.client.submit(ops.Prompt("oh no", when="turn"))
            await at.client.submit(ops.Withdraw())
            await at.rest()
            assert [u.text for u in at.seen if isinstance(u, InputReturned)] == ["oh no"]
            assert len(requests(at)) == 1

    asyncio.run(main())


def test_arguments_that_are_not_json_are_reported_and_never_run(tmp_path: Path) -> None:
    async def main() -> None:
        bad: list[Any] = ['{"command": "ls", description": 1}', "[1]", "null", '"x"', '{"a":"\\u00"}']
        tables = scripted({"calls": [{"name": "bash", "arguments": a} for a in bad]}, {"text": "Sorry."})
        async with house(tmp_path, tables) as at:
            await at.prompt("go")
            assert not at.events(ToolCallStarted)
            assert [e.cls for e in at.events(ToolCallFailed) if isinstance(e, ToolCallFailed)] == ["invalid_input"] * 5
            sent = requests(at)[1].messages[1]
            assert all(p.arguments.text.startswith('{"') for p in sent.parts if hasattr(p, "arguments"))

    asyncio.run(main())


def test_no_call_of_a_reply_that_was_cut_off_is_run(tmp_path: Path) -> None:
    async def main() -> None:
        cut = {"calls": [call("write", path="f", content="hal")], "finish": "length"}
        async with house(tmp_path, scripted(cut, {"text": "I send less."})) as at:
            await at.prompt("go")
            assert not (at.cwd / "f").exists()
            assert "cut off" in told(requests(at)[1].messages[-1])

    asyncio.run(main())


def test_an_unknown_tool_is_declined_and_its_siblings_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("fly"), call("ls")]}, {"text": "."})) as at:
            await at.prompt("go")
            assert [r["status"] for r in at.results()] == ["error", "ok"]
            assert len(at.events(ToolCallStarted)) == 1

    asyncio.run(main())


def test_an_empty_reply_is_asked_for_again_and_fails_at_the_limit(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(*[{"text": ""}] * 3)) as at:
            await at.prompt("go")
            assert len(at.events(ModelStepRejected)) == 3
            (ended,) = at.events(RunEnded)
            assert isinstance(ended, RunEnded) and ended.failed == "malformed"

    asyncio.run(main())


def test_a_failed_attempt_is_retried_by_hand_with_its_inputs_once(tmp_path: Path) -> None:
    async def main() -> None:
        broken = {"error": {"kind": "auth", "status": 401, "message": "bad key"}}
        async with house(tmp_path, scripted(broken, {"text": "Now."})) as at:
            await at.prompt("go")
            assert at.events(TurnAttemptFailed) and not at.events(TurnSettled)
            await at.client.submit(ops.Continue())
            await at.rest()
            assert at.events(TurnRetried) and at.events(TurnSettled)
            assert [told(m) for m in requests(at)[1].messages] == ["go"]

    asyncio.run(main())


def test_a_new_prompt_after_a_failed_attempt_settles_it_first(tmp_path: Path) -> None:
    async def main() -> None:
        broken = {"error": {"kind": "server", "status": 400, "message": "no"}}
        async with house(tmp_path, scripted(broken, {"text": "Yes."})) as at:
            await at.prompt("go")
            await at.prompt("again")
            states = [e.status for e in at.events(TurnSettled) if isinstance(e, TurnSettled)]
            assert states[-1] == "completed"
            assert len(at.events(InputAccepted)) >= 2

    asyncio.run(main())


def test_unattended_a_failed_turn_settles_as_failed(tmp_path: Path) -> None:
    async def main() -> None:
        broken = {"error": {"kind": "auth", "status": 401, "message": "bad key"}}
        async with house(tmp_path, scripted(broken), attended=False) as at:
            await at.prompt("go")
            last = at.records()[-1]
            assert (last["status"], last["error"]) == ("failed", {"kind": "auth", "message": "bad key"})

    asyncio.run(main())


def test_the_limit_of_steps_ends_the_turn_as_limited(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(*[{"calls": [call("ls", path=".")]}] * 9)
        async with house(tmp_path, tables, limits=Limits(steps=3)) as at:
            await at.prompt("go")
            assert at.records()[-1]["status"] == "limited"
            assert len(requests(at)) == 3

    asyncio.run(main())


def test_without_a_model_the_prompt_is_kept_and_sent_when_there_is_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "Hello."})) as at:
            at.scheduler.shared.settings = type(at.scheduler.shared.settings)(default_model="")
            await at.prompt("anybody?")
            assert [u.text for u in at.seen if isinstance(u, Noticed)] == ["no model is chosen"]
            await at.client.submit(ops.SetModel("fake:m"))
            await at.rest()
            assert at.records()[-1]["text"] == "Hello."

    asyncio.run(main())


# --- questions --------------------------------------------------------------------------------------------------


def test_a_held_call_runs_once_allowed_and_with_the_persons_arguments(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("bash", command="echo no"), call("ls")]}, {"text": "."})
        async with house(tmp_path, tables, mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            (held,) = at.events(ToolCallHeld)
            assert isinstance(held, ToolCallHeld)
            await at.client.submit(ops.Decide(held.call, "once", arguments='{"command":"echo yes"}'))
            await at.rest()
            results = {str(r["text"]).strip() for r in at.results()}
            assert any("yes" in r and "changed by the person" in r for r in results)
            assert at.records()[-1]["status"] == "completed"

    asyncio.run(main())


def test_a_refusal_with_a_reason_is_told_and_the_turn_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("bash", command="echo no")]}, {"text": "I see."})
        async with house(tmp_path, tables, mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            (held,) = at.events(ToolCallHeld)
            assert isinstance(held, ToolCallHeld)
            await at.client.submit(ops.Decide(held.call, "no", reason="use make"))
            await at.rest()
            assert "use make" in told(requests(at)[1].messages[-1])
            assert [r["status"] for r in at.results()] == ["denied"]
            assert at.records()[-1]["status"] == "completed"

    asyncio.run(main())


def test_a_grant_for_the_session_spares_the_next_question(tmp_path: Path) -> None:
    async def main() -> None:
        run = {"calls": [call("bash", command="git status")]}
        async with house(tmp_path, scripted(run, run, {"text": "."}), mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            (held,) = at.events(ToolCallHeld)
            assert isinstance(held, ToolCallHeld)
            await at.client.submit(ops.Decide(held.call, "session"))
            await at.rest()
            assert len(at.events(ToolCallHeld)) == 1

    asyncio.run(main())


def test_with_nobody_to_ask_the_call_is_refused_and_the_turn_ends_refused(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("bash", command="echo no")]}, {"text": "I could not."})
        async with house(tmp_path, tables, mode="ask", attended=False) as at:
            await at.prompt("go")
            assert at.records()[-1]["status"] == "refused"
            assert at.records()[-1]["text"] == "I could not."

    asyncio.run(main())


def test_a_deny_rule_is_told_and_does_not_change_how_the_turn_ends(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("bash", command="rm -rf x")]}, {"text": "."})
        rules = [Rule.parse("bash(rm *)", "deny")]
        async with house(tmp_path, tables, rules=rules, attended=False) as at:
            await at.prompt("go")
            assert [r["status"] for r in at.results()] == ["denied"]
            assert at.records()[-1]["status"] == "completed"

    asyncio.run(main())


def test_a_stop_by_a_limit_is_no_interrupt(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(*[{"calls": [call("ls")]}] * 3), limits=Limits(steps=1)) as at:
            await at.prompt("go")
            (stopped,) = at.events(TurnStopped)
            assert isinstance(stopped, TurnStopped) and stopped.reason == "steps"

    asyncio.run(main())


# --- going round in circles -------------------------------------------------------------------------------------


def test_the_third_identical_call_warns_the_model_and_the_next_one_asks_a_person(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(*[{"calls": [call("ls", path=".")]}] * 4, {"text": "Enough."})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            assert [("same call" in str(r["text"])) for r in at.results()] == [False, False, True]
            (held,) = at.events(ToolCallHeld)
            assert isinstance(held, ToolCallHeld)
            await at.client.submit(ops.Decide(held.call, "no"))
            await at.rest()
            assert at.records()[-1]["status"] == "completed"

    asyncio.run(main())


def test_identical_calls_of_one_reply_run_and_the_model_reads_the_warning_before_the_turn_ends(tmp_path: Path) -> None:
    async def main() -> None:
        five = {"calls": [call("bash", command="date +%N")] * 5}
        async with house(tmp_path, scripted(five, {"text": "I see."}), attended=False) as at:
            await at.prompt("go")
            assert at.records()[-1]["status"] == "completed"
            assert [("same call" in str(r["text"])) for r in at.results()].count(True) == 3
            assert "same call" in told(requests(at)[1].messages[-1])
        (tmp_path / "again").mkdir()
        async with house(tmp_path / "again", scripted(five, five), attended=False) as at:
            await at.prompt("go")
            assert at.records()[-1]["status"] == "limited" and len(at.events(ToolCallStarted)) == 5

    asyncio.run(main())


def test_unattended_the_circle_ends_the_turn_as_limited(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(*[{"calls": [call("bash", command="date +%N")]}] * 9)
        async with house(tmp_path, tables, attended=False) as at:
            await at.prompt("go")
            last = at.records()[-1]
            assert last["status"] == "limited" and last["error"] and "circles" in str(last["error"])
            assert len(at.events(ToolCallStarted)) == 3

    asyncio.run(main())
