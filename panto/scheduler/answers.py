"""What people answer: decisions about held calls, answers to questions. Each is recorded; the drive looks again."""

from __future__ import annotations

from panto.schema.bodies import Question, TextBody, ToolOutcome
from panto.schema.errors import UsageError
from panto.schema.messages import Text
from panto.schema.ops import Answer, Decide
from panto.session import Session, stage
from panto.session.commands import AnswerCall, ApproveCall, RejectAnswer, RejectCall
from panto.session.state import Call, Run


def held(session: Session, name: str, kind: str) -> tuple[Run, Call, str]:
    """The waiting call with this id and its question's digest. Raises UsageError where it does not wait (any more)."""
    run = session.state.run
    call = run.calls.get(name) if run else None
    if run is None or call is None or call.state != "waiting" or call.kind != kind or not call.question:
        raise UsageError("this question has been answered already")
    return run, call, call.question


async def decide(session: Session, op: Decide) -> Question:
    """Record a person's decision about a call; the question it answers. Raises UsageError."""
    run, call, name = held(session, op.call, "approval")
    question = await session.body(name)
    assert isinstance(question, Question)
    if op.decision == "no":
        reason = f"the person said no: {op.reason}" if op.reason else "the person said no"
        await session.commit(RejectCall(run=run.run, call=call.call, question=name, message=reason))
        return question
    edited = stage(TextBody(op.arguments)) if op.arguments and op.arguments != question.arguments else None
    approve = ApproveCall(
        run=run.run, call=call.call, question=name, arguments=edited.digest if edited else None,
        changed_by="person" if edited else "",
    )  # fmt: skip
    await session.commit(approve, bodies=(edited,) if edited else ())
    return question


async def answer(session: Session, op: Answer) -> None:
    """Record the answer to an `ask` question or an external call. Raises UsageError."""
    run, call, name = held(session, op.call, "external")
    if op.refused:
        refusal = "the person did not answer"
        await session.commit(RejectAnswer(run=run.run, call=call.call, question=name, message=refusal))
        return
    said = "\n".join((*op.choices, *((op.text,) if op.text else ()))) or "(nothing)"
    question = await session.body(name)
    asked = question.title if isinstance(question, Question) else ""
    outcome = stage(ToolOutcome((Text(said),), title=asked, fact="answered"))
    answered = AnswerCall(run=run.run, call=call.call, question=name, outcome=outcome.digest)
    await session.commit(answered, bodies=(outcome,))


async def refuse(session: Session, run: Run) -> None:
    """Nobody is here to answer what a parked turn had asked."""
    message = "refused: nobody is here to ask"
    for call in run.unfinished:
        if call.state == "waiting" and call.question:
            no = RejectCall if call.kind == "approval" else RejectAnswer
            await session.commit(
                no(run=run.run, call=call.call, question=call.question, message=message, unattended=True)
            )
