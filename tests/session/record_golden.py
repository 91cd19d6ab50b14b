"""Records the golden files of a ledger version: a store, its export, and what its folds gave. Run once per version.

    python -m tests.session.record_golden 1

Once recorded they stay for ever: later versions of panto must read them and give the same folds.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from panto.schema.bodies import AgentSetup, Question, ResultBody, TextBody, ToolOutcome
from panto.schema.events import FileChange
from panto.schema.messages import Finish, Json, Message, ModelResult, Opaque, Part, Reasoning, Text, ToolCall, Usage
from panto.session import Session, Store, stage
from panto.session import commands as c
from panto.session.reader import Reader
from panto.session.state import Run
from tests.session.world import (
    ARGUMENTS,
    ASK,
    QUESTION,
    begin,
    number,
    opened,
    outcome,
    reply,
    said,
    send,
    settle,
    start,
)

GOLDEN = Path(__file__).parent / "golden"


def folds(reader: Reader) -> object:
    """State and view as plain data."""
    return msgspec.to_builtins({"state": reader.state, "view": reader.view, "head": reader.head})


async def say(session: Session, name: str, text: str, when: str = "step") -> None:
    """Submit an input under a name."""
    body = said(text)
    await session.commit(c.SubmitInput(input=name, body=body.digest, when=when), bodies=(body,))  # type: ignore[arg-type]


def active(session: Session) -> Run:
    """The active run."""
    assert session.state.run is not None
    return session.state.run


def run_of(session: Session) -> str:
    """The active run's id."""
    return active(session).run


async def everything(store: Store) -> tuple[str, str]:
    """A session with every kind of fact, and a fork of it."""
    session = await store.create(cwd="/w", model="fake:small", reasoning="low", mode="ask", title="golden ✓ 漢")
    setup, value = stage(AgentSetup(steps=3)), stage(TextBody(text='{"n":1}'))
    await session.commit(
        c.ChangeSetup(setup=setup.digest), c.AppendFact(owner="todo", kind="item", value=value.digest),
        c.SetMetadata(message="1", metadata='{"colour":"red"}'), c.GrantApproval(grant="g1", rule="bash(ls *)"),
        c.GrantApproval(grant="g2", rule="read"), c.RevokeApproval(grant="g1"),
        c.StartJob(job="j1", kind="command", title="make"), c.StartJob(job="j2", kind="child", title="look"),
        bodies=(setup, value),
    )  # fmt: skip
    await session.commit(c.EndJob(job="j1", status="completed"), c.LoseJob(job="j2"))
    await say(session, number(1), "withdrawn")
    await say(session, number(2), "rejected")
    await session.commit(c.WithdrawInput(input=number(1)), c.RejectInput(input=number(2), reason="a rule"))
    await calls(session)
    await failures(session)
    await stopped(session)
    await compacted(session)
    fork = await store.fork(session.id, before_turn=session.view.turns[1].turn)
    await begin(session, "left open")
    await send(session)
    return session.id, fork.id


async def calls(session: Session) -> None:
    """A turn whose calls come to every end."""
    await begin(session, "do everything")
    await send(session)
    await session.commit(c.RejectResult(run=run_of(session), effect=effect(session), problem="no JSON"))
    await session.commit(c.StartModel(run=run_of(session), effect=active(session).next_effect))
    await session.commit(c.RecoverModel(run=run_of(session), effect=effect(session)))
    run = active(session)
    unsent = stage(TextBody(text="a request that was never sent"))
    await session.commit(
        c.PrepareStep(run=run.run, position=run.position, request=unsent.digest, inputs=run.pending), bodies=(unsent,)
    )
    await say(session, number(3), "and quickly")
    run = active(session)
    await session.commit(
        c.DeliverInputs(run=run.run, inputs=(number(3),)), c.WithdrawStep(run=run.run, position=run.prepared_at)
    )
    await send(session)
    made = await signed(session)
    one, two, three, four, five = made
    await start(session, one)
    changed = FileChange(path="/w/f", before=None, after="b" * 64)
    done = stage(ToolOutcome(parts=(Text(text="wrote"), Json(text="{}")), title="f", fact="+1 −0"))
    await session.commit(
        c.SubmitCallResult(
            run=run.run, call=one, effect=run_effect(session, one), outcome=done.digest, duration_ms=7, files=(changed,)
        ),
        bodies=(done,),
    )
    await session.commit(
        c.HoldCall(run=run.run, call=two, kind="approval", question=QUESTION.digest),
        c.HoldCall(run=run.run, call=three, kind="external", question=ASK.digest),
        bodies=(QUESTION, ASK),
    )
    edited, answered = stage(TextBody(text='{"command":"ls"}')), outcome("blue")
    await session.commit(
        c.ApproveCall(run=run.run, call=two, question=QUESTION.digest, arguments=edited.digest, changed_by="person"),
        c.AnswerCall(run=run.run, call=three, question=ASK.digest, outcome=answered.digest),
        bodies=(edited, answered),
    )
    await session.commit(
        c.StartCall(run=run.run, call=two, effect=run_call(session, two), arguments=edited.digest),
        c.StartCall(run=run.run, call=four, effect=run_call(session, four), arguments=ARGUMENTS.digest, replay=True),
        c.DeclineCall(run=run.run, call=five, cls="invalid_input", message="not JSON at position 4"),
        bodies=(ARGUMENTS,),
    )
    await session.commit(
        c.FailCall(
            run=run.run, call=two, effect=run_effect(session, two), cls="internal", message="lost", outcome="unknown",
            effects="unknown", cause="crash",
        )
    )  # fmt: skip
    verified = outcome("it did happen")
    await session.commit(c.SupersedeResult(run=run.run, call=two, outcome=verified.digest), bodies=(verified,))
    await settle(session, four)
    await send(session)
    await reply(session, "all done")


async def signed(session: Session) -> tuple[str, ...]:
    """A result with every kind of part; its five calls."""
    run = active(session)
    tools = ("write", "bash", "ask", "read", "edit")
    parts: tuple[Part, ...] = (
        Reasoning(text="hm", metadata={"anthropic": {"signature": "sig=="}}), Text(text="working é 👩‍👧"),
        *(ToolCall(name=name, arguments=Json(text="{}"), provider_id=f"call_{n % 2}") for n, name in enumerate(tools)),
        Opaque(value='{"x":1}'),
    )  # fmt: skip
    made = ModelResult(
        message=Message(role="assistant", parts=parts), finish=Finish(reason="tool_calls", raw="tool_use"),
        usage=Usage(input=100, output=20, cache_read=50, cache_write=10, reasoning=5), cost=0.0125, notes=("a note",),
    )  # fmt: skip
    body = stage(ResultBody(result=made))
    command = c.SubmitResult.of(run.run, run.step, run.effect, made, body.digest, parallel=4)
    await session.commit(command, bodies=(body,))
    return tuple(bound.call for bound in command.calls)


def effect(session: Session) -> str:
    return active(session).effect


def run_effect(session: Session, call: str) -> str:
    return active(session).calls[call].effect


def run_call(session: Session, call: str) -> str:
    return active(session).call_effect(call)


async def failures(session: Session) -> None:
    """A turn that fails, is retried, fails and is given up; then a rewound one."""
    await begin(session, "fail")
    await send(session)
    await session.commit(
        c.FailModel(run=run_of(session), effect=effect(session), message="529", error_kind="overloaded")
    )
    turn = session.state.turn
    assert turn is not None
    await session.commit(c.RetryTurn(turn=turn.turn, run=number(50), attempt=2))
    await session.commit(c.FailRun(run=number(50), reason="context", message="too long"))
    await session.commit(c.SettleTurn(turn=turn.turn, attempt=2))
    gone = await begin(session, "to be rewound")
    await send(session)
    await reply(session, "soon gone")
    await session.commit(c.Supersede(turn=gone))


async def stopped(session: Session) -> None:
    """A turn that is interrupted while a call runs, another waits and an input is queued."""
    await begin(session, "stop me")
    await send(session)
    one, two = await reply(session, "", "bash", "bash")
    await start(session, one)
    question = stage(Question(kind="approval", tool="bash", title="rm"))
    await session.commit(
        c.HoldCall(run=run_of(session), call=two, kind="approval", question=question.digest), bodies=(question,)
    )
    await say(session, number(60), "queued", "turn")
    kept = stage(TextBody(text="I was about to"))
    await session.commit(c.RequestInterrupt(run=run_of(session)))
    await session.commit(c.StopRun(run=run_of(session), text=kept.digest), bodies=(kept,))


async def compacted(session: Session) -> None:
    """Two checkpoints, of which the newer is taken back."""
    context = session.view.context
    first, second = said("summary one"), said("summary two")
    keep = tuple(entry.id for entry in context.last(4))
    await session.commit(
        c.MakeCheckpoint(base=context.digest(), summary=first.digest, retained=keep, usage=Usage(input=9), cost=0.5),
        bodies=(first,),
    )
    newer = c.MakeCheckpoint(base=session.view.context.digest(), summary=second.digest)
    await session.commit(newer, bodies=(second,))
    await session.commit(c.InvalidateCheckpoint(checkpoint=newer.checkpoint))
    await session.commit(
        c.ChangeModel(model="fake:large"), c.ChangeReasoning(reasoning="high"), c.ChangeMode(mode="auto"),
        c.ChangeCwd(cwd="/elsewhere"), c.ChangeTitle(title="golden, renamed"),
    )  # fmt: skip


async def record(version: int) -> None:
    """Write the files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with opened(root) as store:
            ids = await everything(store)
            given = {}
            for id in ids:
                viewer = await store.view(id)
                given[id] = folds(viewer)
                await viewer.close()
                data = b"".join([piece async for piece in store.export(id)])
                (GOLDEN / f"v{version}-{'fork' if id == ids[1] else 'session'}.jsonl").write_bytes(data)
            await store.writer.run(lambda db: db.execute("DELETE FROM projection") and None)
            await store.writer.run(lambda db: db.execute("UPDATE lease SET host = '', pid = 0, until = 0") and None)
        shutil.copyfile(root / "sessions.db", GOLDEN / f"v{version}.db")
        text = json.dumps(given, indent=1, sort_keys=True, ensure_ascii=False)
        (GOLDEN / f"v{version}-folds.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record(int(sys.argv[1])))
