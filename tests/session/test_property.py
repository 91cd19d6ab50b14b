"""Random commands, right and wrong, replays and crashes on a real store, against a plain model of the machines."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from panto.schema.bodies import ResultBody
from panto.schema.errors import Conflict, Refused
from panto.schema.signals import Fact
from panto.session import Session, Staged, Store, stage
from panto.session import commands as c
from panto.session.ids import new_id
from panto.session.projection import load
from panto.session.read import lineage
from panto.session.recovery import recovery
from tests.session.drive import sendable
from tests.session.model import Model
from tests.session.world import ARGUMENTS, ASK, QUESTION, answer, number, outcome, request, said

PLACE = st.integers(0, 3)
PHASES = {"approval": "waiting", "external": "waiting", "replayable": "executing", "over": "finished"}


FITTING = {
    "none": ["submit", "create"],
    "failed": ["retry", "settle_turn"],
    "open": ["prepare", "submit", "deliver"],
    "prepared": ["start_model", "start_model", "withdraw_step", "submit", "deliver"],
    "executing": ["result", "result", "submit", "deliver", "malformed"],
    "tools": ["start_call", "hold", "respond", "answer", "settle_call", "settle_call", "decline"],
}
ANYTHING = [
    "submit", "withdraw", "create", "retry", "settle_turn", "deliver", "prepare", "withdraw_step", "start_model",
    "recover", "result", "malformed", "fail", "fail_run", "start_call", "decline", "hold", "respond", "answer",
    "settle_call", "interrupt", "stop",
]  # fmt: skip


class Machines(RuleBasedStateMachine):
    """`session` is real, `model` says what it must do."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.stores: list[Store] = []
        self.model = Model()
        self.accepted: list[tuple[tuple[c.Command, ...], tuple[Fact, ...]]] = []
        self.session: Session

    @initialize()
    def begin(self) -> None:
        self.session = self.runner.run(self._create())

    async def _create(self) -> Session:
        self.stores.append(await Store.open(Path(self.folder.name)))
        return await self.stores[-1].create(cwd="/w")

    def teardown(self) -> None:
        async def close() -> None:
            for store in self.stores:
                await store.close()

        self.runner.run(close())
        self.runner.close()
        self.folder.cleanup()

    def commit(self, expected: bool, *commands: c.Command, bodies: tuple[Staged, ...] = ()) -> None:
        """Commit, and be accepted exactly when the model says so."""
        before = self.session.head, self.session.state
        known = {command.id for done, _ in self.accepted for command in done}
        try:
            facts = self.runner.run(self.session.commit(*commands, bodies=bodies))
        except Refused as refused:
            assert not expected, f"refused: {refused.reason}: {refused}"
            assert (self.session.head, self.session.state) == before
        except Conflict:
            assert not expected and commands[0].id in known
            assert (self.session.head, self.session.state) == before
        else:
            if (self.session.head, self.session.state) == before:  # what was committed before is answered again
                assert not expected and commands[0].id in known
            else:
                assert expected, f"accepted: {commands}"
                self.accepted.append((commands, facts))

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        """Do one thing: mostly one that fits the phase, sometimes any."""
        fitting = FITTING[self.model.phase or self.model.turn]
        getattr(self, data.draw(st.sampled_from([*fitting * 6, *ANYTHING])))(data)

    # --- inputs and turns ---

    def submit(self, data: st.DataObject) -> None:
        when: Any = data.draw(st.sampled_from(["step", "turn"]))
        name, body = new_id(), said("x")
        self.commit(
            self.model.submit(name, when), c.SubmitInput(input=name, body=body.digest, when=when), bodies=(body,)
        )

    def withdraw(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        names = [*self.model.submitted, number(999)]
        name = names[place % len(names)]
        self.commit(self.model.withdraw(name), c.WithdrawInput(input=name))

    def create(self, data: st.DataObject) -> None:
        names = list(self.model.submitted)
        chosen = data.draw(st.one_of(st.just(names), st.permutations(names), st.just(names[1:])))
        self.commit(self.model.create(list(chosen)), c.CreateTurn(turn=new_id(), run=new_id(), inputs=tuple(chosen)))

    def retry(self, data: st.DataObject) -> None:
        turn = self.session.state.turn
        name, attempt = (turn.turn, turn.attempt + 1) if turn else (number(1), 2)
        self.commit(self.model.retry(), c.RetryTurn(turn=name, run=new_id(), attempt=attempt))

    def settle_turn(self, data: st.DataObject) -> None:
        turn = self.session.state.turn
        name, attempt = (turn.turn, turn.attempt) if turn else (number(1), 1)
        self.commit(self.model.settle_turn(), c.SettleTurn(turn=name, attempt=attempt))

    # --- model steps ---

    @property
    def run_id(self) -> str:
        return self.session.state.run.run if self.session.state.run else number(7)

    def deliver(self, data: st.DataObject) -> None:
        names = [n for n, when in self.model.submitted.items() if when == "step"]
        chosen = data.draw(st.one_of(st.just(names), st.just(list(self.model.submitted)), st.just([*names, *names])))
        self.commit(self.model.deliver(chosen), c.DeliverInputs(run=self.run_id, inputs=tuple(chosen)))

    def prepare(self, data: st.DataObject) -> None:
        fresh = data.draw(st.sampled_from([True, True, True, False]))
        all = data.draw(st.sampled_from([True, True, False]))
        run = self.session.state.run
        position = run.position if run and fresh else (0, 5)
        names = list(self.model.pending) if all else self.model.pending[1:]
        made = request(note=new_id())
        command = c.PrepareStep(run=self.run_id, position=position, request=made.digest, inputs=tuple(names))
        self.commit(self.model.prepare(names, fresh), command, bodies=(made,))

    def withdraw_step(self, data: st.DataObject) -> None:
        run = self.session.state.run
        position = run.prepared_at if run else (0, 0)
        self.commit(self.model.withdraw_step(), c.WithdrawStep(run=self.run_id, position=position))

    def start_model(self, data: st.DataObject) -> None:
        right = data.draw(st.sampled_from([True, True, False]))
        run = self.session.state.run
        effect = run.next_effect if run and right else number(8)
        self.commit(self.model.start_model(right), c.StartModel(run=self.run_id, effect=effect))

    @property
    def effect(self) -> str:
        return (self.session.state.run.effect if self.session.state.run else "") or number(8)

    def recover(self, data: st.DataObject) -> None:
        self.commit(self.model.recover(), c.RecoverModel(run=self.run_id, effect=self.effect))

    def result(self, data: st.DataObject) -> None:
        calls = data.draw(st.integers(0, 3))
        dispatch = data.draw(st.sampled_from([True, True, True, False]))
        run = self.session.state.run
        made = answer("text", *(["bash"] * calls))
        body = stage(ResultBody(result=made))
        command = c.SubmitResult.of(
            self.run_id, run.step if run else 1, self.effect, made, body.digest, dispatch=dispatch
        )
        self.commit(self.model.result(calls, dispatch), command, bodies=(body,))

    def malformed(self, data: st.DataObject) -> None:
        self.commit(self.model.malformed(), c.RejectResult(run=self.run_id, effect=self.effect, problem="no JSON"))

    def fail(self, data: st.DataObject) -> None:
        self.commit(self.model.fail(), c.FailModel(run=self.run_id, effect=self.effect, message="529"))

    def fail_run(self, data: st.DataObject) -> None:
        self.commit(self.model.fail_run(), c.FailRun(run=self.run_id, reason="internal", message="broken"))

    # --- calls ---

    def at(self, place: int) -> tuple[str, int]:
        """A call of the step and its place; any id where there is none."""
        run = self.session.state.run
        if run is None or not run.calls:
            return number(9), 0
        place %= len(run.calls)
        return list(run.calls)[place], place

    def call_effect(self, call: str) -> str:
        run = self.session.state.run
        return (run.calls[call].effect if run and call in run.calls else "") or number(8)

    def start_call(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        replay = data.draw(st.booleans())
        call, place = self.at(place)
        run = self.session.state.run
        effect = run.call_effect(call) if run else number(8)
        command = c.StartCall(run=self.run_id, call=call, effect=effect, arguments=ARGUMENTS.digest, replay=replay)
        then = "replayable" if replay else "executing"
        self.commit(self.model.call(place, ("pending",), then), command, bodies=(ARGUMENTS,))

    def decline(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        call, place = self.at(place)
        command = c.DeclineCall(run=self.run_id, call=call, cls="not_found", message="no")
        self.commit(self.model.call(place, ("pending",), "over"), command)

    def hold(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        kind: Any = data.draw(st.sampled_from(["approval", "external"]))
        call, place = self.at(place)
        question = QUESTION if kind == "approval" else ASK
        known = {command.id for commands, _ in self.accepted for command in commands}
        command = c.HoldCall(run=self.run_id, call=call, kind=kind, question=question.digest)
        if command.id not in known:  # the same question twice is a replay
            self.commit(self.model.call(place, ("pending",), kind), command, bodies=(question,))

    def respond(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        approve = data.draw(st.booleans())
        call, place = self.at(place)
        fields: dict[str, Any] = {"run": self.run_id, "call": call, "question": QUESTION.digest}
        command = c.ApproveCall(**fields) if approve else c.RejectCall(**fields, message="no")
        known = {known.id for commands, _ in self.accepted for known in commands}
        if command.id not in known:
            self.commit(self.model.call(place, ("approval",), "pending" if approve else "over"), command)

    def answer(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        refuse = data.draw(st.booleans())
        call, place = self.at(place)
        fields: dict[str, Any] = {"run": self.run_id, "call": call, "question": ASK.digest}
        made = outcome("blue")
        command = c.RejectAnswer(**fields, message="no") if refuse else c.AnswerCall(**fields, outcome=made.digest)
        known = {known.id for commands, _ in self.accepted for known in commands}
        if command.id not in known:
            self.commit(self.model.call(place, ("external",), "over"), command, bodies=(made,))

    def settle_call(self, data: st.DataObject) -> None:
        place = data.draw(PLACE)
        fails = data.draw(st.booleans())
        call, place = self.at(place)
        made = outcome("done")
        fields: dict[str, Any] = {"run": self.run_id, "call": call, "effect": self.call_effect(call)}
        command = (
            c.FailCall(**fields, cls="timeout", message="slow", outcome="unknown", effects="unknown")
            if fails
            else c.SubmitCallResult(**fields, outcome=made.digest)
        )
        expected = self.model.call(place, ("executing", "replayable"), "over", settles=True)
        self.commit(expected, command, bodies=(made,))

    # --- the end, replays, crashes ---

    def interrupt(self, data: st.DataObject) -> None:
        self.commit(self.model.interrupt(), c.RequestInterrupt(run=self.run_id))

    def stop(self, data: st.DataObject) -> None:
        self.commit(self.model.stop(), c.StopRun(run=self.run_id))

    @rule(place=st.integers(0, 10_000))
    def replay(self, place: int) -> None:
        if self.accepted:
            commands, facts = self.accepted[place % len(self.accepted)]
            head = self.session.head
            assert self.runner.run(self.session.commit(*commands)) == facts
            assert self.session.head == head

    @rule(place=st.integers(0, 10_000))
    def conflict(self, place: int) -> None:
        known = [command for commands, _ in self.accepted for command in commands if hasattr(command, "message")]
        if known:
            command = known[place % len(known)]
            head = self.session.head
            try:
                self.runner.run(self.session.commit(replace(command, message="something else")))
                raise AssertionError("a known command was accepted with another meaning")
            except Conflict:
                assert self.session.head == head

    @rule()
    def crash(self) -> None:
        async def reopen() -> None:
            self.stores.append(await Store.open(Path(self.folder.name)))
            again = await self.stores[-1].open_session(self.session.id, take_over=True)
            assert (again.head, again.state, again.view) == (
                self.session.head, self.session.state, self.session.view,
            )  # fmt: skip
            assert again.parked == (again.state.run is not None)
            self.session = again
            commands = recovery(again.state)
            if commands:
                self.accepted.append((commands, await again.commit(*commands)))
            assert recovery(again.state) == ()

        self.runner.run(reopen())
        self.model.crash()

    # --- what always holds ---

    @invariant()
    def the_state_is_the_models(self) -> None:
        state = self.session.state
        run = state.run
        assert list(state.inputs) == list(self.model.submitted)
        assert (run.phase if run else "") == self.model.phase
        assert (state.turn.status if state.turn else "none") == {"failed": "attempt_failed"}.get(
            self.model.turn, self.model.turn
        )
        if run is not None:
            assert list(run.pending) == self.model.pending
            assert run.interrupting == self.model.stopping
            states = ["finished" if call.finished else call.state for call in run.calls.values()]
            assert states == [PHASES.get(call, call) for call in self.model.calls]

    @invariant()
    def the_context_can_be_sent(self) -> None:
        sendable(self.session)

    @invariant()
    def the_disk_gives_the_same(self) -> None:
        store, id = self.stores[-1], self.session.id

        async def fold() -> None:
            live = await store.reader.run(lambda db: load(db, id, lineage(db, id), cached=False), plain=True)
            assert (live.state, live.view) == (self.session.state, self.session.view)

        if self.session.head[0] % 7 == 0:
            self.runner.run(fold())


TestMachines = Machines.TestCase
TestMachines.settings = settings(max_examples=settings().max_examples // 8 or 1, stateful_step_count=60)
TestMachines.pytestmark = [pytest.mark.timeout(1800)]  # type: ignore[attr-defined]
