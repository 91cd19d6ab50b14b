"""What is said, in every state an agent can be in: order, steering at the last moment, taking back, continuing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panto.agent.hooks import Block, NoHooks
from panto.schema import ops
from panto.schema.bodies import MessageBody
from panto.schema.errors import UsageError
from panto.schema.events import (
    InputAccepted,
    InputSubmitted,
    InputWithdrawn,
    ModelStepCompleted,
    ModelStepPrepared,
    ModelStepRecovered,
    ModelStepStarted,
    ToolCallFailed,
    ToolCallHeld,
    TurnRetried,
    TurnSettled,
    TurnStarted,
    TurnSuperseded,
)
from panto.schema.messages import Message, Text
from panto.schema.queries import AskHistory
from panto.schema.signals import Fact, InputReturned, StatusChanged, TextStreamed
from panto.session.commands import ChangeModel
from panto.tools.tool import ToolContext
from tests.agent.test_compaction import paired
from tests.agent.test_turns import requests, roles, told
from tests.scheduler.house import Hand, House, call, house, scripted

SLOW = {"text": ["word "] * 2_000, "each_s": 0.05}
BROKEN = {"error": {"kind": "auth", "status": 401, "message": "bad key"}}


def said(at: House, request: int = -1) -> list[str]:
    """What people said in a request, in order."""
    return [told(m) for m in requests(at)[request].messages if m.role == "user"]


async def streaming(at: House) -> None:
    await at.until(lambda: any(isinstance(u, TextStreamed) for u in at.seen))


def test_two_hundred_queued_messages_go_in_order_into_one_turn(tmp_path: Path) -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await gate.wait()
            return "ok"

        tool = Hand("gate", run)
        tables = scripted({"calls": [call("gate")]}, {"text": "One."}, {"text": "All."})
        async with house(tmp_path, tables, tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            await asyncio.gather(*(at.client.submit(ops.Prompt(str(n), when="turn")) for n in range(200)))
            gate.set()
            await at.rest()
            assert said(at) == ["go", *map(str, range(200))]
            assert len(at.events(TurnStarted)) == 2 and len(requests(at)) == 3

    asyncio.run(main())


def test_steers_join_in_the_order_they_were_said_and_before_what_is_queued(tmp_path: Path) -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await gate.wait()
            return "ok"

        tool = Hand("gate", run)
        tables = scripted({"calls": [call("gate")]}, {"text": "One."}, {"text": "Two."})
        async with house(tmp_path, tables, tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            for number in range(6):
                await at.client.submit(ops.Prompt(str(number), when="turn" if number % 2 else "step"))
            gate.set()
            await at.rest()
            assert said(at, 1) == ["go", "0", "2", "4"]
            assert said(at, 2) == ["go", "0", "2", "4", "1", "3", "5"]

    asyncio.run(main())


def test_a_slow_input_hook_does_not_change_the_order(tmp_path: Path) -> None:
    async def main() -> None:
        class Hooks(NoHooks):
            def watches(self, event: str) -> bool:
                return event == "input"

            async def input(self, agent: str, message: Message) -> Message | Block | None:
                first = told(message) == "1"
                await asyncio.sleep(0.2 if first else 0)
                return Message("user", (Text(f"<{told(message)}>"),))

        async with house(tmp_path, scripted(SLOW, {"text": "."}), hooks=Hooks()) as at:
            await asyncio.gather(*(at.client.submit(ops.Prompt(str(n))) for n in (1, 2, 3)))
            assert [at.agent._texts[e.input] for e in at.events(InputSubmitted)
                    if isinstance(e, InputSubmitted) and e.input in at.agent._texts] == ["<2>", "<3>"]  # fmt: skip
            await at.client.submit(ops.Interrupt())

    asyncio.run(main())


@pytest.mark.long(sample=5)
@pytest.mark.parametrize("late", range(40))
def test_a_steer_at_the_very_end_joins_the_turn_or_begins_the_next_and_is_never_lost(tmp_path: Path, late: int) -> None:
    async def main() -> None:
        tables = scripted({"text": ["a"] * 3, "each_s": 0.01}, {"text": "b"}, {"text": "c"})
        async with house(tmp_path, tables) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: len([u for u in at.seen if isinstance(u, TextStreamed)]) == 3)
            await asyncio.sleep(late * 0.0007)
            await at.client.submit(ops.Prompt("late"))
            await at.until(lambda: len(requests(at)) == 2)
            await at.rest()
            assert said(at) == ["go", "late"]
            assert len([e for e in at.events(InputAccepted) if isinstance(e, InputAccepted)]) == 2
            assert at.agent.session.state.turn is None and not at.agent.session.state.inputs

    asyncio.run(main())


@pytest.mark.parametrize("rounds", range(0, 16, 2))
def test_a_message_taken_back_as_the_last_reply_comes_costs_no_second_one(tmp_path: Path, rounds: int) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "a"}, {"text": "b"}, {"text": "c"})) as at:
            box = at.agent.mailbox
            whole = box.ports

            async def ask(*args: Any, **kwargs: Any) -> Any:
                result = await whole.complete(*args, **kwargs)
                if not taking:
                    await at.client.submit(ops.Prompt("oh"))
                    taking.append(asyncio.ensure_future(at.client.submit(ops.Withdraw())))
                    for _ in range(rounds):  # it is on its way to the disk while the reply settles
                        await asyncio.sleep(0)
                return result

            taking: list[asyncio.Future[None]] = []
            box.ports = replace(whole, complete=ask)
            await at.prompt("go")
            (refused,) = await asyncio.gather(*taking, return_exceptions=True)
            steps = (len(at.events(ModelStepStarted)), len(at.events(ModelStepCompleted)), len(requests(at)))
            assert steps == ((1, 1, 1) if refused is None else (2, 2, 2))
            assert len(at.events(InputWithdrawn)) == (refused is None)

    asyncio.run(main())


def test_a_known_id_is_said_once_whatever_has_become_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        name = "ab" * 16
        async with house(tmp_path, scripted(SLOW, {"text": "Two."})) as at:
            await at.client.submit(ops.Prompt("go", id=name))
            await streaming(at)
            await at.client.submit(ops.Prompt("go", id=name))
            await at.client.submit(ops.Interrupt())
            await at.prompt("go", id=name)
            assert len(requests(at)) == 1
            await at.prompt("more")
            assert said(at) == ["go", "more"]

    asyncio.run(main())


def test_what_waits_when_an_attempt_fails_is_sent_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        slow = {"text": ["a"] * 5, "each_s": 0.5} | {"error": {**BROKEN["error"], "after": 5}}
        async with house(tmp_path, scripted(slow, {"text": "Fine."})) as at:
            await at.client.submit(ops.Prompt("go"))
            await streaming(at)
            await at.client.submit(ops.Prompt("and then", when="turn"))
            await at.rest()
            assert [e.status for e in at.events(TurnSettled) if isinstance(e, TurnSettled)] == ["failed", "completed"]
            assert said(at) == ["go", "and then"]

    asyncio.run(main())


def test_a_failed_attempt_can_be_retried_as_often_as_wanted_and_keeps_what_was_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("ls")]}, BROKEN, BROKEN, {"text": "At last."})) as at:
            await at.prompt("go")
            for _ in range(2):
                await at.client.submit(ops.Continue())
                await at.rest()
            attempts = [e.attempt for e in at.events(TurnRetried) if isinstance(e, TurnRetried)]
            assert attempts == [2, 3] and at.records()[-1]["text"] == "At last."
            assert roles(requests(at)[3]) == ["user", "assistant", "tool"]
            assert len(at.results()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("when", ["step", "turn"])
def test_a_parked_turn_takes_a_prompt_in_also_with_messages_queued_before(tmp_path: Path, when: Any) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW)) as at:
            await at.client.submit(ops.Prompt("go"))
            await streaming(at)
            await at.client.submit(ops.Prompt("queued", when="turn"))
            await at.client.submit(ops.Prompt("steer"))
            name = at.agent.id
        async with house(tmp_path, scripted({"text": "One."}, {"text": "Two."}), resume=name) as at:
            await at.prompt("here I am", when=when)
            assert said(at, 0) == ["go", "steer", "here I am"]
            assert said(at, 1) == ["go", "steer", "here I am", "queued"]
            assert len(at.events(TurnSettled)) == 2

    asyncio.run(main())


def test_a_prompt_while_a_question_of_a_parked_turn_waits_ends_the_question(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"calls": [call("bash", command="ls")]}), mode="ask") as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: at.events(ToolCallHeld))
            name = at.agent.id
            (held,) = at.events(ToolCallHeld)
            assert isinstance(held, ToolCallHeld)
        async with house(tmp_path, scripted({"text": "Fine."}), mode="ask", resume=name) as at:
            await at.prompt("never mind")
            assert [e.cls for e in at.events(ToolCallFailed) if isinstance(e, ToolCallFailed)] == ["cancelled"]
            with pytest.raises(UsageError, match="answered already"):
                await at.client.submit(ops.Decide(held.call, "once"))
            assert paired(requests(at)[0])

    asyncio.run(main())


def test_messages_that_waited_over_a_restart_come_back_with_escape(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW)) as at:
            await at.client.submit(ops.Prompt("go"))
            await streaming(at)
            await at.client.submit(ops.Prompt("queued", when="turn"))
            name = at.agent.id
        async with house(tmp_path, scripted(SLOW), resume=name) as at:
            await at.client.submit(ops.Interrupt())
            await at.until(lambda: any(isinstance(u, InputReturned) for u in at.seen))
            assert [u.text for u in at.seen if isinstance(u, InputReturned)] == ["queued"]
            assert at.agent.session.state.turn is None and not requests(at)

    asyncio.run(main())


def test_a_fork_before_a_turn_gives_its_text_back_and_shares_what_came_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "1"}, {"text": "2"}, {"text": "3"})) as at:
            await at.prompt("one")
            await at.prompt("two")
            first = at.agent.id
            await at.client.submit(ops.Fork(at.agent.session.view.turns[1].turn))
            assert at.agent.id != first
            await at.until(lambda: any(isinstance(u, InputReturned) for u in at.seen))
            assert [u.text for u in at.seen if isinstance(u, InputReturned)] == ["two"]
            await at.prompt("another two")
            assert said(at) == ["one", "another two"]

    asyncio.run(main())


def test_a_fork_can_send_again_what_its_turn_began_with(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "1"}, {"text": "2"}, {"text": "3"})) as at:
            await at.prompt("one")
            await at.prompt("two")
            fork = await at.scheduler.fork(at.agent.id, at.agent.session.view.turns[1].turn)
            await fork.mailbox.resume()
            await at.until(lambda: not fork.in_turn)
            assert said(at) == ["one", "two"] and len(fork.session.view.turns) == 2

    asyncio.run(main())


def test_rewinding_needs_rest_and_then_the_context_goes_on_from_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "1"}, {"text": "2"}, SLOW, {"text": "4"})) as at:
            for text in ("one", "two"):
                await at.prompt(text)
            await at.client.submit(ops.Prompt("three"))
            await streaming(at)
            turn = at.agent.session.view.turns[1].turn
            with pytest.raises(UsageError, match="turn is running"):
                await at.client.submit(ops.Rewind(turn))
            await at.client.submit(ops.Interrupt())
            await at.client.submit(ops.Rewind(turn))
            assert len(at.events(TurnSuperseded)) == 2
            await at.prompt("four")
            assert said(at) == ["one", "four"]

    asyncio.run(main())


def test_leaving_a_session_in_the_middle_parks_it_and_the_other_one_works(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted(SLOW, {"text": "Here."}, {"text": "Back."})) as at:
            await at.client.submit(ops.Prompt("go"))
            await streaming(at)
            first = at.agent.id
            await at.client.submit(ops.NewSession())
            await at.prompt("hello")
            assert at.records()[-1]["text"] == "Here."
            await at.client.submit(ops.OpenSession(first))
            assert at.agent.mailbox.parked
            await at.client.submit(ops.Continue())
            await at.rest()
            assert [told(m) for m in requests(at)[-1].messages] == ["go"]

    asyncio.run(main())


# --- models -----------------------------------------------------------------------------------------------------


def two_models() -> dict[str, Any]:
    both = {"m": {"id": "m", "context": 100_000}, "n": {"id": "n", "context": 100_000}}
    run = {"calls": [call("gate")]}
    return {"fake": {"protocol": "scripted", "models": both, "replies": [run, {"text": "Other."}, {"text": "Third."}]}}


@pytest.mark.parametrize("label", ["fake:n", "gone:x"])
def test_a_model_that_is_changed_or_gone_in_the_middle_counts_from_the_next_step_on(tmp_path: Path, label: str) -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await gate.wait()
            return "ok"

        tool = Hand("gate", run)
        async with house(tmp_path, two_models(), tools=[tool]) as at:
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: tool.ran)
            await at.agent.session.commit(ChangeModel(model=label))
            gate.set()
            await at.rest()
            assert [r["status"] for r in at.results()] == ["ok"]  # what ran has ended as what it is
            if label == "gone:x":
                assert at.agent.mailbox.parked and len(requests(at)) == 1
                await at.agent.session.commit(ChangeModel(model="fake:n"))
                await at.client.submit(ops.Continue())
                await at.rest()
            assert [r.model for r in requests(at)] == ["m", "n"]
            assert at.records()[-1]["text"] == "Other." and len(tool.ran) == 1

    asyncio.run(main())


def test_a_request_frozen_for_one_model_is_never_sent_to_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, two_models()) as at:
            shared = at.scheduler.shared

            def change(update: object) -> None:  # between the request's record and its leaving
                if isinstance(update, Fact) and isinstance(update.event, ModelStepPrepared):
                    shared.settings = replace(shared.settings, default_model="fake:n")

            at.scheduler.readers.append(change)
            await at.client.submit(ops.Prompt("go"))
            await at.until(lambda: requests(at))
            await at.client.submit(ops.Interrupt())
            assert {r.model for r in requests(at)} == {"n"}
            steps = [type(e) for e in at.events(ModelStepPrepared, ModelStepRecovered)]
            assert steps[:3] == [ModelStepPrepared, ModelStepRecovered, ModelStepPrepared]

    asyncio.run(main())


# --- big things -------------------------------------------------------------------------------------------------


def test_a_prompt_of_ten_megabytes_is_kept_and_the_session_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        big = "word " * 2_000_000
        async with house(tmp_path, scripted({"text": "Long!"}, {"text": "Fine."}), compact_at=0) as at:
            at.scheduler.shared.settings = type(at.scheduler.shared.settings)(compact_at=0, default_model="fake:m")
            await at.prompt(big)
            history = await at.client.ask(AskHistory())
            (first,) = [f for f in history.facts if isinstance(f.event, InputSubmitted)]
            assert isinstance(first.body, MessageBody) and told(first.body.message) == big
            await at.client.submit(ops.Rewind(at.agent.session.view.turns[0].turn))
            await at.prompt("short")
            assert said(at) == ["short"]

    asyncio.run(main())


def test_an_agent_forgets_what_only_a_past_turn_needed(tmp_path: Path) -> None:
    async def main() -> None:
        reply = {"calls": [call("ls", path=".")]}
        replies: list[Mapping[str, Any]] = [reply, {"text": "."}]
        tables = scripted(*replies * 30)
        async with house(tmp_path, tables) as at:
            for number in range(30):
                await at.prompt(str(number))
            box = at.agent.mailbox
            assert box.control is None and not box._launched and not box._held
            assert not at.agent._texts and not at.scheduler._tasks
            assert len(at.scheduler._doors) == 0
            built = box.ports.context._built
            assert len(built) <= 2 * 30 * 3 + 64
            assert not any(one.staged for one in list(built.values())[:-1])

    asyncio.run(main())


def test_every_status_told_while_a_turn_runs_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        bad = {"error": {"kind": "invalid_request", "status": 400, "message": "no"}}
        async with house(tmp_path, scripted({"text": "One."}, bad, {"text": "Two."}, {"text": "Three."})) as at:

            def said() -> list[tuple[bool, bool]]:
                return [(u.busy, u.parked) for u in at.seen if isinstance(u, StatusChanged)]

            async def told() -> list[tuple[bool, bool]]:
                await at.until(lambda: said() and not said()[-1][0])
                found = said()
                at.seen.clear()
                return found

            await at.client.submit(ops.Rename("named"))  # else the prompt names it, whenever that is told
            await told()
            await at.prompt("first")
            *during, after = await told()
            assert during and set(during) == {(True, False)} and after == (False, False)
            await at.prompt("fails")
            *during, after = await told()
            assert set(during) <= {(True, False)} and after == (False, True)
            await at.client.submit(ops.Continue())
            *during, after = await told()
            assert during and set(during) == {(True, False)} and after == (False, False)

    asyncio.run(main())
