"""The run machine's table, row by row: when a command is accepted, what it records, what it leads to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from panto.schema.bodies import TextBody
from panto.schema.errors import Refused
from panto.session import commands as c
from panto.session import stage
from panto.session.state import REJECT_LIMIT
from tests.session.world import ARGUMENTS, ASK, QUESTION, Table, number, outcome, request, said

Case = tuple[Callable[[], Table], Callable[[Table], c.Command], list[str], str]
TEXT = stage(TextBody(text="so far")).digest


def phase(table: Table) -> str:
    """Where the run is, in the words of the table."""
    run = table.state.run
    if run is None:
        return "between" if table.state.turn is None else str(table.state.turn.status)
    states = ",".join(call.state for call in run.calls.values())
    return f"{run.phase}{':' + states if states else ''}{' interrupting' if run.interrupting else ''}"


def opened() -> Table:
    return Table().open()


def prepared() -> Table:
    return opened().prepared()


def executing() -> Table:
    return opened().executing()


def steered(table: Callable[[], Table]) -> Callable[[], Table]:
    def make() -> Table:
        made = table()
        made.do(c.SubmitInput(input=number(200), body=said("also").digest))
        made.do(c.DeliverInputs(run=number(2), inputs=(number(200),)))
        return made

    return make


def tools() -> Table:
    return opened().tools()


def running() -> Table:
    table = tools()
    table.do(table.start())
    return table


def held(kind: str = "approval") -> Callable[[], Table]:
    def make() -> Table:
        table = tools()
        table.do(table.hold(kind=kind))
        return table

    return make


def interrupted(table: Callable[[], Table]) -> Callable[[], Table]:
    def make() -> Table:
        made = table()
        made.do(c.RequestInterrupt(run=number(2)))
        return made

    return make


def rejected(times: int) -> Callable[[], Table]:
    def make() -> Table:
        table = executing()
        for _ in range(times):
            table.do(c.RejectResult(run=number(2), effect=table.run.effect, problem="no JSON"))
            table.do(c.StartModel(run=number(2), effect=table.run.next_effect))
        return table

    return make


def waits(kind: str = "approval", unattended: bool = False) -> Callable[[Table], c.Command]:
    def make(t: Table) -> c.Command:
        if kind == "approval":
            return c.RejectCall(
                run=number(2), call=t.call(), question=QUESTION.digest, message="no", unattended=unattended
            )
        return c.RejectAnswer(run=number(2), call=t.call(), question=ASK.digest, message="no", unattended=unattended)

    return make


def answers(t: Table) -> c.Command:
    return c.AnswerCall(run=number(2), call=t.call(), question=ASK.digest, outcome=outcome("blue").digest)


def approves(t: Table) -> c.Command:
    return c.ApproveCall(run=number(2), call=t.call(), question=QUESTION.digest)


def declines(cls: str) -> Callable[[Table], c.Command]:
    return lambda t: c.DeclineCall(run=number(2), call=t.call(), cls=cls, message="no")  # type: ignore[arg-type]


def fails(outcome: str = "known", effects: str = "none") -> Callable[[Table], c.Command]:
    return lambda t: c.FailCall(
        run=number(2), call=t.call(), effect=t.run.calls[t.call()].effect, cls="timeout", message="slow",
        outcome=outcome, effects=effects,  # type: ignore[arg-type]
    )  # fmt: skip


def plans(t: Table) -> c.Command:
    return c.PrepareStep(run=number(2), position=t.run.position, request=request().digest, inputs=t.run.pending)


def submitted(t: Table) -> Table:
    t.do(c.SubmitInput(input=number(201), body=said("more").digest))
    return t


def delivers(t: Table) -> c.Command:
    submitted(t)
    return c.DeliverInputs(run=number(2), inputs=(number(201),))


ACCEPTED: list[Case] = [
    (opened, delivers, ["input_accepted"], "open"),
    (prepared, delivers, ["input_accepted"], "prepared"),
    (executing, delivers, ["input_accepted"], "executing"),
    (running, delivers, ["input_accepted"], "tools:executing,pending"),
    (opened, plans, ["model_step_prepared"], "prepared"),
    (
        steered(prepared),
        lambda t: c.WithdrawStep(run=number(2), position=t.run.prepared_at),
        ["model_step_withdrawn"],
        "open",
    ),
    (prepared, lambda t: c.StartModel(run=number(2), effect=t.run.next_effect), ["model_step_started"], "executing"),
    (executing, lambda t: c.RecoverModel(run=number(2), effect=t.run.effect), ["model_step_recovered"], "open"),
    (executing, lambda t: t.result("", "read"), ["model_step_completed", "tool_step_opened"], "tools:pending"),
    (executing, lambda t: t.result("bye"), ["model_step_completed", "run_ended", "turn_settled"], "between"),
    (steered(executing), lambda t: t.result("bye"), ["model_step_completed"], "open"),
    (
        executing,
        lambda t: t.result("", "read", "bash", dispatch=False),
        [
            "model_step_completed",
            "tool_step_opened",
            "tool_call_failed",
            "tool_call_failed",
            "run_ended",
            "turn_settled",
        ],
        "between",
    ),
    (
        steered(executing),
        lambda t: t.result("", dispatch=False),
        ["model_step_completed", "run_ended", "turn_settled"],
        "between",
    ),
    (
        executing,
        lambda t: c.FailModel(run=number(2), effect=t.run.effect, message="529"),
        ["run_ended", "turn_attempt_failed"],
        "attempt_failed",
    ),
    (
        executing,
        lambda t: c.RejectResult(run=number(2), effect=t.run.effect, problem="no JSON"),
        ["model_step_rejected"],
        "prepared",
    ),
    (
        rejected(REJECT_LIMIT - 1),
        lambda t: c.RejectResult(run=number(2), effect=t.run.effect, problem="no JSON"),
        ["model_step_rejected", "run_ended", "turn_attempt_failed"],
        "attempt_failed",
    ),
    (
        opened,
        lambda t: c.FailRun(run=number(2), reason="context", message="too long"),
        ["run_ended", "turn_attempt_failed"],
        "attempt_failed",
    ),
    (
        running,
        lambda t: c.FailRun(run=number(2), reason="internal", message="no shell"),
        ["tool_call_failed", "tool_call_failed", "run_ended", "turn_attempt_failed"],
        "attempt_failed",
    ),
    (tools, lambda t: t.start(), ["tool_call_started"], "tools:executing,pending"),
    *(
        (tools, declines(cls), ["tool_call_failed"], "tools:failed,pending")
        for cls in ("not_found", "invalid_input", "permission_denied", "not_dispatched", "cancelled")
    ),
    (running, lambda t: t.settle(), ["tool_call_completed"], "tools:completed,pending"),
    (running, fails(), ["tool_call_failed"], "tools:failed,pending"),
    (running, fails("unknown", "unknown"), ["tool_call_failed"], "tools:failed,pending"),
    (held(), approves, ["tool_call_approved"], "tools:pending,pending"),
    (held(), waits(), ["tool_call_failed"], "tools:failed,pending"),
    (held("external"), answers, ["tool_call_answered"], "tools:completed,pending"),
    (held("external"), waits("external"), ["tool_call_failed"], "tools:failed,pending"),
    (held(), declines("cancelled"), ["tool_call_failed"], "tools:failed,pending"),
    (tools, lambda t: t.hold(), ["tool_call_held"], "tools:waiting,pending"),
    (tools, lambda t: t.hold(kind="external"), ["tool_call_held"], "tools:waiting,pending"),
    *(
        (at, lambda t: c.RequestInterrupt(run=number(2)), ["interrupt_requested"], f"{where} interrupting")
        for at, where in (
            (opened, "open"),
            (prepared, "prepared"),
            (executing, "executing"),
            (running, "tools:executing,pending"),
        )
    ),
    *(
        (at, lambda t: c.StopRun(run=number(2)), ["run_ended", "turn_stopped"], "between")
        for at in (opened, prepared, executing, interrupted(executing))
    ),
    (
        interrupted(running),
        lambda t: c.StopRun(run=number(2), text=TEXT),
        ["tool_call_failed", "tool_call_failed", "run_ended", "turn_stopped"],
        "between",
    ),
    (
        running,
        lambda t: c.StopRun(run=submitted(t).run.run, reason="loop_guard"),
        ["tool_call_failed", "tool_call_failed", "run_ended", "turn_stopped", "input_withdrawn"],
        "between",
    ),
    (interrupted(running), lambda t: t.settle(), ["tool_call_completed"], "tools:completed,pending interrupting"),
    (interrupted(running), fails(), ["tool_call_failed"], "tools:failed,pending interrupting"),
]


@pytest.mark.parametrize(("at", "make", "events", "then"), ACCEPTED)
def test_a_command_is_accepted_records_its_events_and_leads_on(
    at: Callable[[], Table], make: Callable[[Table], c.Command], events: list[str], then: str
) -> None:
    table = at()
    command = make(table)
    recorded = table.do(command)
    assert [event.__struct_config__.tag for event in recorded] == events
    assert phase(table) == then


EXECUTED = "e" * 32


def refuses(at: Callable[[], Table], make: Callable[[Table], c.Command], reason: str) -> object:
    return pytest.param(at, make, reason)


OTHER = "f" * 32
REFUSED = [
    refuses(opened, lambda t: c.DeliverInputs(run=number(2), inputs=()), "empty"),
    refuses(opened, lambda t: c.DeliverInputs(run=number(2), inputs=(OTHER,)), "delivered"),
    refuses(
        lambda: submitted(opened()),
        lambda t: c.DeliverInputs(run=number(2), inputs=(number(201), number(201))),
        "repeated",
    ),
    refuses(prepared, plans, "phase"),
    refuses(executing, plans, "phase"),
    refuses(tools, plans, "phase"),
    refuses(opened, lambda t: c.PrepareStep(run=number(2), position=(0, 0), request=TEXT), "stale"),
    refuses(opened, lambda t: c.PrepareStep(run=number(2), position=t.run.position, request=TEXT), "inputs"),
    refuses(
        opened,
        lambda t: c.PrepareStep(run=number(2), position=t.run.position, request=TEXT, inputs=(OTHER,)),
        "inputs",
    ),
    refuses(prepared, lambda t: c.WithdrawStep(run=number(2), position=t.run.prepared_at), "inputs"),
    refuses(steered(prepared), lambda t: c.WithdrawStep(run=number(2), position=(0, 0)), "stale"),
    refuses(opened, lambda t: c.WithdrawStep(run=number(2), position=(0, 0)), "phase"),
    refuses(opened, lambda t: c.StartModel(run=number(2), effect=t.run.next_effect), "phase"),
    refuses(steered(prepared), lambda t: c.StartModel(run=number(2), effect=t.run.next_effect), "inputs"),
    refuses(prepared, lambda t: c.StartModel(run=number(2), effect=OTHER), "effect"),
    refuses(executing, lambda t: c.StartModel(run=number(2), effect=t.run.effect), "phase"),
    refuses(prepared, lambda t: c.RecoverModel(run=number(2), effect=OTHER), "phase"),
    refuses(executing, lambda t: c.RecoverModel(run=number(2), effect=OTHER), "effect"),
    refuses(prepared, lambda t: c.FailModel(run=number(2), effect=OTHER, message=""), "phase"),
    refuses(executing, lambda t: c.FailModel(run=number(2), effect=OTHER, message=""), "effect"),
    refuses(executing, lambda t: c.RejectResult(run=number(2), effect=OTHER, problem=""), "effect"),
    refuses(executing, lambda t: c.FailModel(run=OTHER, effect=t.run.effect, message=""), "terminal"),
    refuses(
        executing, lambda t: c.SubmitResult(run=number(2), effect=t.run.effect, result=TEXT, names=("a",)), "bindings"
    ),
    refuses(running, lambda t: t.start(), "call_state"),
    refuses(tools, lambda t: c.StartCall(run=number(2), call=OTHER, effect=OTHER, arguments=TEXT), "settled"),
    refuses(tools, lambda t: c.StartCall(run=number(2), call=t.call(), effect=OTHER, arguments=TEXT), "effect"),
    refuses(held(), lambda t: t.start(), "call_state"),
    refuses(running, declines("cancelled"), "call_state"),
    refuses(held(), declines("not_found"), "call_state"),
    refuses(tools, declines("timeout"), "class"),
    refuses(tools, lambda t: t.settle(), "call_state"),
    refuses(tools, approves, "call_state"),
    refuses(held("external"), approves, "call_state"),
    refuses(held(), answers, "call_state"),
    refuses(held(), lambda t: c.ApproveCall(run=number(2), call=t.call(), question=ASK.digest), "question"),
    refuses(running, lambda t: t.hold(), "call_state"),
    *(
        refuses(interrupted(at), make, "interrupting")
        for at, make in (
            (opened, plans),
            (lambda: submitted(opened()), lambda t: c.DeliverInputs(run=number(2), inputs=(number(201),))),
            (prepared, lambda t: c.StartModel(run=number(2), effect=t.run.next_effect)),
            (executing, lambda t: t.result("bye")),
            (executing, lambda t: c.RecoverModel(run=number(2), effect=t.run.effect)),
            (executing, lambda t: c.FailModel(run=number(2), effect=t.run.effect, message="")),
            (tools, lambda t: t.start()),
            (tools, lambda t: t.hold()),
            (tools, declines("not_found")),
            (held(), approves),
            (held(), waits()),
            (held("external"), answers),
            (opened, lambda t: c.RequestInterrupt(run=number(2))),
        )
    ),
    refuses(Table, lambda t: c.StopRun(run=number(2)), "terminal"),
    refuses(Table, lambda t: c.RequestInterrupt(run=number(2)), "terminal"),
]


@pytest.mark.parametrize(("at", "make", "reason"), REFUSED)
def test_a_command_out_of_place_is_refused_and_changes_nothing(
    at: Callable[[], Table], make: Callable[[Table], c.Command], reason: str
) -> None:
    table = at()
    command = make(table)
    state, log, context = table.state, list(table.log), list(table.view.context)
    with pytest.raises(Refused) as refused:
        table.do(command)
    assert refused.value.reason == reason
    assert (table.state, table.log, list(table.view.context)) == (state, log, context)


def test_what_was_approved_is_what_runs_unless_somebody_says_who_changed_it() -> None:
    table = held()()
    table.do(
        c.ApproveCall(run=number(2), call=table.call(), question=QUESTION.digest, arguments=TEXT, changed_by="person")
    )
    with pytest.raises(Refused) as refused:
        table.do(table.start())
    assert refused.value.reason == "arguments"
    start = table.start()
    (event,) = table.do(c.StartCall(run=start.run, call=start.call, effect=start.effect, arguments=TEXT))
    assert (event.arguments, event.changed_by) == (TEXT, "person")  # type: ignore[union-attr]


def test_the_tool_step_closes_when_its_last_call_is_terminal() -> None:
    table = running()
    table.do(table.settle())
    assert phase(table) == "tools:completed,pending"
    table.do(c.DeclineCall(run=number(2), call=table.call(1), cls="not_found", message="no such tool"))
    assert phase(table) == "open"
    assert (table.run.done, table.run.step) == (1, 2)


def test_a_refusal_for_want_of_a_person_settles_the_turn_as_refused() -> None:
    table = opened().tools("bash")
    table.do(table.hold())
    table.do(waits(unattended=True)(table))
    table.executing()
    events = table.do(table.result("I could not"))
    assert [getattr(event, "status", "") for event in events[1:]] == ["completed", "refused"]


def test_arguments_are_named_before_they_run() -> None:
    table = tools()
    (event,) = table.do(table.start(replay=True))
    assert (event.arguments, event.replay) == (ARGUMENTS.digest, True)  # type: ignore[union-attr]
