"""A session driven at random, as agent and scheduler would: one step at a time, everything decided from its state.

Every tool call that starts writes a line to a file before it settles: what was done can be counted.
"""

from __future__ import annotations

import random
from pathlib import Path

from panto.schema.bodies import ResultBody, TextBody
from panto.schema.codec import derive_id
from panto.schema.errors import Refused
from panto.session import Session, stage
from panto.session import commands as c
from panto.session.context import AssistantEntry, ResultEntry
from panto.session.recovery import abandon
from panto.session.state import Call, Run
from tests.session.world import ARGUMENTS, QUESTION, answer, outcome, request, said


class Driver:
    """One step is one commit. `done`: where effects are recorded; `said`: where accepted inputs are."""

    def __init__(self, session: Session, chance: random.Random, done: Path, said: Path) -> None:
        self.session = session
        self.chance = chance
        self.done = done
        self.said = said
        self.told = 0

    async def step(self) -> str:
        """Do one thing that the state allows; what it was."""
        state, chance = self.session.state, self.chance
        if chance.random() < 0.2:
            return await self.say()
        if state.run is None:
            return await self.between()
        run = state.run
        if run.interrupting or chance.random() < 0.03:
            return await self.escape(run)
        if state.inputs and chance.random() < 0.4:
            return await self.steer(run)
        match run.phase:
            case "open":
                return await self.plan(run)
            case "prepared":
                await self.session.commit(c.StartModel(run=run.run, effect=run.next_effect))
                return "start model"
            case "executing":
                return await self.answered(run)
            case _:
                return await self.call(run, chance.choice(run.unfinished))

    async def say(self) -> str:
        self.told += 1
        body = said(f"say {self.session.head} {self.told}")
        name = derive_id(self.session.id, self.session.head, self.told)
        when = self.chance.choice(["step", "step", "turn"])
        await self.session.commit(c.SubmitInput(input=name, body=body.digest, when=when), bodies=(body,))  # type: ignore[arg-type]
        with self.said.open("a") as file:
            file.write(name + "\n")
        return "say"

    async def between(self) -> str:
        state, session, chance = self.session.state, self.session, self.chance
        turn = state.turn
        if turn is not None:
            if chance.random() < 0.5:
                run = derive_id(session.id, session.head, "retry")
                await session.commit(c.RetryTurn(turn=turn.turn, run=run, attempt=turn.attempt + 1))
                return "retry"
            await session.commit(c.SettleTurn(turn=turn.turn, attempt=turn.attempt))
            return "settle"
        if len(session.view.context) > 12 and chance.random() < 0.3:
            return await self.compact()
        if session.view.turns and chance.random() < 0.05:
            alive = [t.turn for t in session.view.turns if t.state != "superseded"]
            if alive:
                await session.commit(c.Supersede(turn=alive[-1]))
                return "rewind"
        if not state.inputs:
            return await self.say()
        turn_id, run = (derive_id(session.id, session.head, k) for k in ("turn", "run"))
        await session.commit(c.CreateTurn(turn=turn_id, run=run, inputs=tuple(state.inputs)))
        return "turn"

    async def escape(self, run: Run) -> str:
        if not run.interrupting:
            await self.session.commit(c.RequestInterrupt(run=run.run))
            return "interrupt"
        text = stage(TextBody(text="I was about to")) if run.phase == "executing" else None
        bodies = (text,) if text else ()
        await self.session.commit(c.StopRun(run=run.run, text=text.digest if text else None), bodies=bodies)
        return "stop"

    async def steer(self, run: Run) -> str:
        names = tuple(n for n, waiting in self.session.state.inputs.items() if waiting.when == "step")
        if not names:
            return await self.say()
        commands: list[c.Command] = [c.DeliverInputs(run=run.run, inputs=names)]
        if run.phase == "prepared":
            commands.append(c.WithdrawStep(run=run.run, position=run.prepared_at))
        await self.session.commit(*commands)
        return "steer"

    async def plan(self, run: Run) -> str:
        if len(self.session.view.context) > 20 and self.chance.random() < 0.3:
            return await self.compact(automatic=True)
        names = tuple(entry.id for entry in self.session.view.context)
        made = request(note=derive_id(*names))
        prepare = c.PrepareStep(run=run.run, position=run.position, request=made.digest, inputs=run.pending)
        start = (c.StartModel(run=run.run, effect=run.next_effect),) if self.chance.random() < 0.7 else ()
        await self.session.commit(prepare, *start, bodies=(made,))
        return "plan"

    async def answered(self, run: Run) -> str:
        kind = self.chance.choices(["calls", "end", "fail", "malformed"], [6, 3, 1, 1])[0]
        if kind == "fail":
            await self.session.commit(c.FailModel(run=run.run, effect=run.effect, message="529"))
            return kind
        if kind == "malformed":
            await self.session.commit(c.RejectResult(run=run.run, effect=run.effect, problem="no JSON"))
            return kind
        tools = [self.chance.choice(["read", "bash", "ask"]) for _ in range(self.chance.randint(1, 4))]
        made = answer(f"step {run.step}", *(tools if kind == "calls" else ()))
        body = stage(ResultBody(result=made))
        dispatch = self.chance.random() > 0.03
        submit = c.SubmitResult.of(run.run, run.step, run.effect, made, body.digest, dispatch=dispatch)
        await self.session.commit(submit, bodies=(body,))
        return kind

    async def call(self, run: Run, call: Call) -> str:
        if call.state == "waiting":
            return await self.respond(run, call)
        if call.state == "executing":
            return await self.settled(run, call)
        if not call.approved and call.name == "bash" and self.chance.random() < 0.6:
            hold = c.HoldCall(run=run.run, call=call.call, kind="approval", question=QUESTION.digest)
            await self.session.commit(hold, bodies=(QUESTION,))
            return "hold"
        if self.chance.random() < 0.1:
            await self.session.commit(c.DeclineCall(run=run.run, call=call.call, cls="invalid_input", message="no"))
            return "decline"
        effect = run.call_effect(call.call)
        start = c.StartCall(
            run=run.run, call=call.call, effect=effect, arguments=ARGUMENTS.digest, replay=call.name == "read"
        )
        await self.session.commit(start, bodies=(ARGUMENTS,))
        with self.done.open("a") as file:  # the side effect, after its start fact is durable
            file.write(f"{effect} {call.name}\n")
        return "start call"

    async def respond(self, run: Run, call: Call) -> str:
        question = call.question or ""
        if self.chance.random() < 0.7:
            await self.session.commit(c.ApproveCall(run=run.run, call=call.call, question=question))
            return "approve"
        await self.session.commit(c.RejectCall(run=run.run, call=call.call, question=question, message="no"))
        return "reject"

    async def settled(self, run: Run, call: Call) -> str:
        if self.chance.random() < 0.15:
            fail = c.FailCall(
                run=run.run, call=call.call, effect=call.effect, cls="timeout", message="slow", effects="unknown"
            )
            await self.session.commit(fail)
            return "fail call"
        made = outcome(f"output of {call.call}" + "." * self.chance.choice([0, 0, 0, 300_000]))
        settle = c.SubmitCallResult(run=run.run, call=call.call, effect=call.effect, outcome=made.digest)
        await self.session.commit(settle, bodies=(made,))
        return "settle call"

    async def compact(self, automatic: bool = False) -> str:
        context = self.session.view.context
        entries = list(context)
        cut = self.chance.randint(0, len(entries))
        summary = said(f"summary of {cut} at {self.session.head}")
        make = c.MakeCheckpoint(
            base=context.digest(),
            summary=summary.digest,
            retained=tuple(e.id for e in entries[cut:]),
            automatic=automatic,
        )
        try:
            await self.session.commit(make, bodies=(summary,))
        except Refused as refused:
            assert refused.reason == "retained"
            return "no compaction"
        return "compact"

    async def prompt_parked(self) -> None:
        """A prompt to a parked turn."""
        await self.say()
        names = tuple(n for n, waiting in self.session.state.inputs.items() if waiting.when == "step")
        if self.session.state.run is not None:
            commands = abandon(self.session.state, names)
            if commands:
                await self.session.commit(*commands)


def sendable(session: Session) -> None:
    """What every context must be: calls and results paired, in order, adjacent."""
    entries = list(session.view.context)
    place = 0
    while place < len(entries):
        entry = entries[place]
        place += 1
        assert not isinstance(entry, ResultEntry), "a result without its call before it"
        if isinstance(entry, AssistantEntry):
            for bound in entry.calls:
                result = entries[place]
                assert isinstance(result, ResultEntry) and result.id == bound.call
                if session.state.run is None or bound.call not in session.state.run.calls:
                    assert result.finished
                place += 1
