"""Rules of the run machine, its calls, cancelling, mid-turn input and checkpoints, on the pure machines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from panto.schema.bodies import TextBody
from panto.schema.errors import Refused
from panto.schema.events import (
    AnyEvent,
    InputAccepted,
    InputWithdrawn,
    ModelStepPrepared,
    RunEnded,
    ToolCallFailed,
    ToolCallStarted,
)
from panto.schema.messages import Finish, Json, Message, ModelResult, ToolCall
from panto.session import commands as c
from panto.session import stage
from panto.session.context import AssistantEntry, Context, InputEntry, KeptEntry, ResultEntry, SummaryEntry
from panto.session.evolve import evolve
from panto.session.fold import fold
from panto.session.ids import bind, call_id, effect_id
from panto.session.recovery import abandon, recovery
from panto.session.state import State
from panto.session.view import View
from tests.session.world import SESSION, Table, number, outcome, request, said


def reason(table: Table, *commands: c.Command) -> str:
    with pytest.raises(Refused) as refused:
        table.do(*commands)
    return refused.value.reason


def fold_again(log: list[tuple[int, int, AnyEvent]]) -> tuple[State, View]:
    state, view = State(SESSION), View(Context())
    for seq, index, event in log:
        state = evolve(state, event, (seq, index))
        fold(view, event, seq, 0.0)
    return state, view


def phase(table: Table) -> str:
    return table.run.phase


def opened() -> Table:
    return Table().open()


def prepared() -> Table:
    return Table().prepared()


def executing() -> Table:
    return Table().executing()


def due() -> Table:
    return Table().tools("a")


Make = Callable[[], Table]


def kinds(context: Context) -> list[str]:
    words = {InputEntry: "input", AssistantEntry: "assistant", ResultEntry: "result", KeptEntry: "kept"}
    return [words.get(type(entry), "summary") for entry in context]


def a_day() -> Table:
    """A table with a bit of everything."""
    table = Table().open(2).tools("read", "bash", "ask")
    table.do(table.start(0))
    table.do(table.hold(1))
    table.do(c.SubmitInput(input=number(300), body=said("by the way").digest))
    table.do(table.settle(0), c.DeliverInputs(run=number(2), inputs=(number(300),)))
    table.do(c.DeclineCall(run=number(2), call=table.call(2), cls="not_found", message="no such tool"))
    return table


# --- the run machine --------------------------------------------------------------------------------------------


def test_folding_the_facts_of_a_run_from_its_creation_gives_the_live_state() -> None:
    table = a_day()
    state, view = fold_again(table.log)
    assert (state, view) == (table.state, table.view)


def test_replay_uses_evolve_only_and_needs_nothing_but_the_facts() -> None:
    table = a_day()
    table.do(c.RequestInterrupt(run=number(2)))
    table.do(c.StopRun(run=number(2)))
    for length in range(len(table.log)):  # no prefix is refused
        fold_again(table.log[:length])


def test_a_plan_is_stale_once_a_fact_of_its_run_came_and_facts_of_others_do_not_matter() -> None:
    table = Table().open()
    plan = c.PrepareStep(run=number(2), position=table.run.position, request=request().digest, inputs=table.run.pending)
    table.do(c.SubmitInput(input=number(300), body=said("x").digest), c.ChangeTitle(title="t"))
    assert table.run.position == plan.position
    table.do(c.DeliverInputs(run=number(2), inputs=(number(300),)))
    assert reason(table, plan) == "stale"


def test_prepare_that_lists_other_inputs_than_all_pending_ones_in_order_is_refused() -> None:
    table = Table().open(3)
    names = table.run.pending
    for wrong in (names[:2], names[::-1], (*names, number(9)), ()):
        plan = c.PrepareStep(run=number(2), position=table.run.position, request=request().digest, inputs=wrong)
        assert reason(table, plan) == "inputs"


def test_a_result_with_calls_but_no_bindings_or_a_binding_for_a_call_not_made_is_refused() -> None:
    table = Table().executing()
    right = table.result("", "read", "bash")
    changed: list[dict[str, object]] = [
        {"calls": ()},
        {"calls": right.calls[:1]},
        {"calls": right.calls[::-1]},
        {"names": ("read",)},
        {"names": ("read", "write")},
        {"names": ()},
    ]
    for fields in changed:
        assert reason(table, replace(right, **fields)) == "bindings"
    assert table.run.phase == "executing"


def test_a_malformed_result_is_tried_again_under_a_new_effect_and_at_the_limit_the_run_fails() -> None:
    table, effects = Table().executing(), []
    for _ in range(3):
        effects.append(table.run.effect)
        table.do(c.RejectResult(run=number(2), effect=table.run.effect, problem="no JSON"))
        if table.state.run is not None:
            assert table.run.phase == "prepared"
            table.do(c.StartModel(run=number(2), effect=table.run.next_effect))
    assert len(set(effects)) == 3
    assert (table.state.run, table.state.turn and table.state.turn.status) == (None, "attempt_failed")


def test_a_crash_during_a_model_call_leaves_the_run_open_the_step_uncounted_and_later_input_in_the_next_request() -> (
    None
):
    table = Table().executing()
    first = table.run.effect
    table.do(*recovery(table.state))
    assert (table.run.run, table.run.phase, table.run.step, table.run.done) == (number(2), "open", 1, 0)
    table.do(c.SubmitInput(input=number(300), body=said("x").digest))
    table.do(c.DeliverInputs(run=number(2), inputs=(number(300),)))
    table.prepared()
    (prepared,) = [e for _, _, e in table.log[-1:] if isinstance(e, ModelStepPrepared)]
    assert prepared.inputs == (number(100), number(300))
    assert table.run.next_effect != first


def test_recovery_that_ran_gives_no_further_facts() -> None:
    def calls() -> Table:
        table = Table().tools("read", "bash", "ls")
        table.do(table.start(0), table.start(1, replay=True))
        return table

    def interrupted() -> Table:
        table = calls()
        table.do(c.RequestInterrupt(run=number(2)))
        return table

    def jobs() -> Table:
        table = Table()
        table.do(c.StartJob(job="j1", kind="command", title="make"))
        return table

    makers: tuple[Make, ...] = (Table, opened, prepared, executing, calls, interrupted, jobs)
    for make in makers:
        table = make()
        first = recovery(table.state)
        if first:
            table.do(*first)
        assert recovery(table.state) == ()


def test_the_run_end_is_the_last_fact_of_its_run_has_one_variant_and_a_reason() -> None:
    def end(table: Table, *commands: c.Command) -> RunEnded:
        events = [event for event in table.do(*commands) if event.machine == "run"]
        assert isinstance(events[-1], RunEnded)
        return events[-1]

    done = end(*(lambda t: (t, t.result("bye")))(Table().executing()))
    stopped = end(Table().tools(), c.StopRun(run=number(2), reason="steps"))
    failed = end(*(lambda t: (t, c.FailModel(run=number(2), effect=t.run.effect, message="")))(Table().executing()))
    assert [(e.status, e.stopped, e.failed) for e in (done, stopped, failed)] == [
        ("completed", None, None),
        ("stopped", "steps", None),
        ("failed", None, "provider"),
    ]


# --- tool calls -------------------------------------------------------------------------------------------------


def test_empty_or_repeated_provider_ids_get_distinct_call_ids_and_are_only_echoed() -> None:
    parts = tuple(ToolCall(name="read", arguments=Json(text="{}"), provider_id=i) for i in ("", "", "call_0", "call_0"))
    made = ModelResult(message=Message(role="assistant", parts=parts), finish=Finish(reason="tool_calls"))
    bound = bind(number(2), 1, made)
    assert len({b.call for b in bound}) == 4
    assert [b.provider_id for b in bound] == ["", "", "call_0", "call_0"]
    assert {b.call for b in bound}.isdisjoint({b.call for b in bind(number(2), 2, made)})
    assert bound[0].call == call_id(number(2), 1, 0)  # the same in any process


def test_a_declined_call_has_no_start_fact_and_its_siblings_go_on() -> None:
    table = Table().tools("nope", "read")
    table.do(c.DeclineCall(run=number(2), call=table.call(0), cls="not_found", message="there is no tool nope"))
    table.do(table.start(1))
    table.do(table.settle(1))
    started = [e.call for _, _, e in table.log if isinstance(e, ToolCallStarted)]
    results = [(e.name, e.status) for e in table.view.context if isinstance(e, ResultEntry)]
    assert results == [("nope", "error"), ("read", "ok")]
    assert len(started) == 1


def test_a_call_that_executes_or_is_terminal_is_never_started_again() -> None:
    table = Table().tools("read", "bash")
    start = table.start(0)
    table.do(start)
    assert reason(table, start) == "call_state"
    table.do(table.settle(0))
    assert reason(table, start) == "settled"
    table.do(c.DeclineCall(run=number(2), call=table.call(1), cls="cancelled", message=""))
    assert reason(table, start) == "settled"


def test_a_call_executing_at_a_crash_becomes_unknown_unless_it_is_replay_safe() -> None:
    table = Table().tools("bash", "read", "ls")
    table.do(table.start(0), table.start(1, replay=True))
    table.do(*recovery(table.state))
    states = [(call.name, call.state) for call in table.run.calls.values()]
    assert states == [("bash", "failed"), ("read", "executing"), ("ls", "pending")]
    results = {e.name: e for e in table.view.context if isinstance(e, ResultEntry)}
    assert (results["bash"].status, results["bash"].effects) == ("unknown", "unknown")
    assert "unknown" in results["bash"].message


def test_a_replay_safe_call_that_was_lost_settles_once_under_the_same_effect() -> None:
    table = Table().tools("read")
    table.do(table.start(0, replay=True))
    effect = table.run.calls[table.call()].effect
    table.do(*recovery(table.state)) if recovery(table.state) else None
    assert table.run.calls[table.call()].effect == effect
    settle = table.settle()
    table.do(settle)
    assert reason(table, settle) == "settled"


def test_scheduling_frozen_when_the_step_opened_stays_as_it_was() -> None:
    table = Table().executing()
    made = table.result("", "read", "bash")
    table.do(replace(made, parallel=3))
    state, _ = fold_again(table.log)
    assert state.run is not None and state.run.parallel == 3


def test_in_a_mixed_step_siblings_run_while_one_waits_and_it_closes_when_all_are_terminal() -> None:
    table = Table().tools("bash", "read")
    table.do(table.hold(0))
    table.do(table.start(1))
    table.do(table.settle(1))
    assert phase(table) == "tools"
    table.do(
        c.RejectCall(
            run=number(2), call=table.call(0), question=table.run.calls[table.call(0)].question or "", message="no"
        )
    )
    assert phase(table) == "open"


def test_refusing_an_approval_is_permission_denied_and_refusing_an_answer_is_response_rejected() -> None:
    table = Table().tools("bash", "ask")
    table.do(table.hold(0), table.hold(1, "external"))
    first, second = (table.run.calls[table.call(i)] for i in (0, 1))
    (denied,) = table.do(c.RejectCall(run=number(2), call=first.call, question=first.question or "", message="no"))
    (unanswered,) = table.do(
        c.RejectAnswer(run=number(2), call=second.call, question=second.question or "", message="no")
    )
    assert [e.cls for e in (denied, unanswered) if isinstance(e, ToolCallFailed)] == [
        "permission_denied",
        "response_rejected",
    ]


def test_an_unknown_result_verified_by_a_person_is_superseded_once_before_the_turn_settles() -> None:
    table = Table().tools("bash")
    table.do(table.start(0))
    call = table.call()
    table.do(*recovery(table.state))
    verified = c.SupersedeResult(run=number(2), call=call, outcome=outcome("it did").digest)
    table.do(verified)
    result = table.view.context.result(call)
    assert result is not None and (result.status, result.outcome, result.superseded) == (
        "ok",
        outcome("it did").digest,
        True,
    )
    assert [type(e).__name__ for _, _, e in table.log][-2:] == ["ToolCallFailed", "ResultSuperseded"]  # both stay
    assert reason(table, verified) == "verified"
    table.executing()
    table.do(table.result("bye"))
    assert reason(table, c.SupersedeResult(run=number(2), call=call, outcome=outcome("x").digest)) == "verified"


def test_an_outcome_for_a_settled_call_is_dropped_with_no_fact() -> None:
    table = Table().tools("bash", "read")
    table.do(table.start(0))
    late = table.settle(0, "late")
    table.do(table.settle(0, "first"))
    assert reason(table, late) == "settled"


# --- cancelling -------------------------------------------------------------------------------------------------


def test_stopping_makes_every_unfinished_call_terminal_in_the_commit_of_the_run_end() -> None:
    table = Table().tools("a", "b", "c", "d")
    table.do(table.start(0), table.start(1), table.hold(2))
    table.do(c.RequestInterrupt(run=number(2)))
    table.do(table.settle(0))
    calls = list(table.run.calls)
    events = table.do(c.StopRun(run=number(2)))
    failed = {e.call: (e.outcome, e.effects) for e in events if isinstance(e, ToolCallFailed)}
    assert failed == {calls[1]: ("unknown", "unknown"), calls[2]: ("known", "none"), calls[3]: ("known", "none")}
    assert [e.uncertain for e in events if isinstance(e, RunEnded)] == [(calls[1],)]
    assert table.state.turn is None


def test_what_was_finished_stays_finished_and_every_call_in_context_has_a_result() -> None:
    table = Table().tools("a", "b", "c")
    table.do(table.start(0), table.start(1))
    table.do(table.settle(0))
    table.do(c.RequestInterrupt(run=number(2)))
    table.do(c.StopRun(run=number(2)))
    assert [e.status for e in table.view.context if isinstance(e, ResultEntry)] == ["ok", "cancelled", "cancelled"]
    assert [e.message for e in table.view.context if isinstance(e, ResultEntry)][2] == "cancelled by user"
    table.do(c.SubmitInput(input=number(300), body=said("go on").digest))
    table.do(c.CreateTurn(turn=number(3), run=number(4), inputs=(number(300),)))
    assert kinds(table.view.context) == ["input", "assistant", "result", "result", "result", "input"]


def test_a_parked_turns_model_step_is_open_again_and_a_later_start_continues_it() -> None:
    table = Table().executing()
    table.do(c.RecoverModel(run=number(2), effect=table.run.effect))
    table.executing()
    table.do(table.result("bye"))
    assert table.view.turns[0].state == "completed"


def test_a_cancelled_call_that_reports_later_is_dropped_not_mixed_into_another_state() -> None:
    table = Table().tools("bash")
    table.do(table.start(0))
    late = table.settle(0)
    table.do(c.StopRun(run=number(2)))
    assert reason(table, late) == "terminal"
    table.do(c.SubmitInput(input=number(300), body=said("x").digest))
    table.do(c.CreateTurn(turn=number(3), run=number(4), inputs=(number(300),)))
    assert reason(table, late) == "terminal"


def test_text_streamed_before_escape_stays_as_plain_assistant_text_before_later_input() -> None:
    table = Table().executing()
    table.do(c.SubmitInput(input=number(300), body=said("also").digest))
    table.do(c.DeliverInputs(run=number(2), inputs=(number(300),)))
    kept = stage(TextBody(text="I was about to")).digest
    table.do(c.StopRun(run=number(2), text=kept))
    assert kinds(table.view.context) == ["input", "kept", "input"]
    assert [e.text for e in table.view.context if isinstance(e, KeptEntry)] == [kept]


def test_on_escape_all_submitted_inputs_are_withdrawn_in_the_settling_commit() -> None:
    table = Table().executing()
    table.do(c.SubmitInput(input=number(300), body=said("x").digest))
    table.do(c.SubmitInput(input=number(301), body=said("y").digest, when="turn"))
    events = table.do(c.StopRun(run=number(2)))
    assert [(e.input, e.returned) for e in events if isinstance(e, InputWithdrawn)] == [
        (number(300), True),
        (number(301), True),
    ]
    assert table.state.inputs == {}


def test_an_interrupt_found_at_opening_is_finished_in_one_commit() -> None:
    table = Table().tools("bash")
    table.do(table.start(0))
    table.do(c.RequestInterrupt(run=number(2)))
    events = table.do(*recovery(table.state))
    assert [type(e).__name__ for e in events] == ["ToolCallFailed", "RunEnded", "TurnStopped"]


def test_a_stored_outcome_settles_its_call_with_the_same_effect() -> None:
    table = Table().tools("bash", "read")
    table.do(table.start(0))
    kept = table.settle(0)
    table.do(*recovery(table.state, {kept.effect: kept}))
    assert [e.status for e in table.view.context if isinstance(e, ResultEntry)] == ["ok", "pending"]


# --- mid-turn input ---------------------------------------------------------------------------------------------


def steer(table: Table, n: int = 300, when: str = "step") -> c.DeliverInputs:
    table.do(c.SubmitInput(input=number(n), body=said(f"say {n}").digest, when=when))  # type: ignore[arg-type]
    return c.DeliverInputs(run=number(2), inputs=(number(n),))


def test_inputs_are_delivered_in_any_step_the_whole_batch_or_none() -> None:
    makers: tuple[Make, ...] = (opened, prepared, executing, due)
    for make in makers:
        table = make()
        steer(table, 300), steer(table, 301)
        wrong = c.DeliverInputs(run=number(2), inputs=(number(300), number(999)))
        assert reason(table, wrong) == "delivered"
        assert list(table.state.inputs) == [number(300), number(301)]
        table.do(c.DeliverInputs(run=number(2), inputs=(number(300), number(301))))
        assert table.run.pending[-2:] == (number(300), number(301))


def test_input_does_not_interrupt_a_running_model_or_tool_call() -> None:
    table = Table().executing()
    effect = table.run.effect
    table.do(steer(table))
    assert (table.run.phase, table.run.effect) == ("executing", effect)
    table = Table().tools()
    table.do(table.start())
    table.do(steer(table))
    assert table.run.calls[table.call()].state == "executing"


def test_a_prepared_request_is_withdrawn_and_the_next_one_contains_the_input() -> None:
    table = Table().prepared()
    table.do(steer(table), c.WithdrawStep(run=number(2), position=table.run.prepared_at))
    assert (table.run.phase, table.run.pending) == ("open", (number(100), number(300)))
    table.executing()
    table.do(table.result("bye"))
    assert kinds(table.view.context) == ["input", "input", "assistant"]


def test_a_final_result_with_input_pending_continues_the_run() -> None:
    table = Table().executing()
    table.do(steer(table), table.result("almost"))
    assert (table.run.phase, table.run.pending, table.run.done) == ("open", (number(300),), 1)
    assert kinds(table.view.context) == ["input", "assistant", "input"]


def test_delivery_after_the_last_settlement_fails_and_a_new_turn_takes_the_input() -> None:
    table = Table().executing()
    late = steer(table)
    table.do(table.result("bye"))
    assert reason(table, late) == "terminal"
    table.do(c.CreateTurn(turn=number(3), run=number(4), inputs=(number(300),)))
    assert table.run.pending == (number(300),)


def test_input_delivered_between_a_call_and_its_result_is_placed_after_that_result() -> None:
    table = Table().tools("a", "b")
    table.do(table.start(0), table.start(1))
    table.do(steer(table))
    table.do(table.settle(1))
    table.do(table.settle(0))
    assert kinds(table.view.context) == ["input", "assistant", "result", "result", "input"]
    table = Table().executing()
    table.do(steer(table))
    table.do(table.result("", "a"))
    assert kinds(table.view.context) == ["input", "assistant", "result", "input"]


def test_inputs_left_when_a_turn_settles_go_in_order_into_one_new_turn() -> None:
    table = Table().executing()
    for n in (302, 300, 301):
        steer(table, n, "turn")
    table.do(table.result("bye"))
    wrong = c.CreateTurn(turn=number(3), run=number(4), inputs=(number(300), number(302), number(301)))
    assert reason(table, wrong) == "order"
    table.do(c.CreateTurn(turn=number(3), run=number(4), inputs=tuple(table.state.inputs)))
    assert table.run.pending == (number(302), number(300), number(301))
    assert table.state.inputs == {}


def test_a_queued_input_does_not_join_the_running_turn() -> None:
    table = Table().executing()
    assert reason(table, steer(table, 300, "turn")) == "queued"


def test_a_retry_gives_the_same_turn_attempt_two_with_all_delivered_inputs_once_in_order() -> None:
    table = Table().open(2).tools("read")
    table.do(table.start(0))
    table.do(table.settle(0))
    table.do(steer(table))
    table.executing()
    table.do(c.FailModel(run=number(2), effect=table.run.effect, message="529"))
    events = table.do(c.RetryTurn(turn=number(1), run=number(7), attempt=2))
    assert [e.input for e in events if isinstance(e, InputAccepted)] == [number(100), number(101), number(300)]
    assert (table.run.attempt, table.run.pending) == (2, (number(100), number(101), number(300)))
    # Completed steps of the failed run stay; the inputs stand once, in their places.
    assert kinds(table.view.context) == ["input", "input", "assistant", "result", "input"]
    table.executing()
    table.do(table.result("bye"))
    assert kinds(table.view.context) == ["input", "input", "assistant", "result", "input", "assistant"]
    assert [(t.state, t.attempt) for t in table.view.turns] == [("completed", 2)]


def test_a_new_prompt_after_a_failed_attempt_settles_it_first() -> None:
    table = Table().executing()
    table.do(c.FailModel(run=number(2), effect=table.run.effect, message="529"))
    table.do(c.SubmitInput(input=number(300), body=said("x").digest))
    create = c.CreateTurn(turn=number(3), run=number(4), inputs=(number(300),))
    assert reason(table, create) == "turn"
    table.do(c.SettleTurn(turn=number(1), attempt=1), create)
    assert [t.state for t in table.view.turns] == ["failed", "active"]


def test_a_prompt_to_a_parked_turn_ends_its_calls_and_is_delivered_to_the_same_run() -> None:
    table = Table().tools("a", "b", "c")
    table.do(table.start(0, replay=True), table.hold(1))
    table.do(*recovery(table.state)) if recovery(table.state) else None
    said_more = c.SubmitInput(input=number(300), body=said("never mind").digest)
    table.do(said_more)
    table.do(*abandon(table.state, (number(300),)))
    assert [(e.status, e.effects) for e in table.view.context if isinstance(e, ResultEntry)] == [
        ("unknown", "unknown"), ("cancelled", "none"), ("cancelled", "none"),
    ]  # fmt: skip
    assert (table.run.run, table.run.phase, table.run.pending) == (number(2), "open", (number(300),))
    table = Table().prepared()
    table.do(said_more)
    table.do(*abandon(table.state, (number(300),)))
    assert (table.run.phase, table.run.pending) == ("open", (number(100), number(300)))


# --- checkpoints ------------------------------------------------------------------------------------------------

SUMMARY = said("so far: nothing").digest


def make(table: Table, *retained: str, automatic: bool = False) -> c.MakeCheckpoint:
    return c.MakeCheckpoint(base=table.view.context.digest(), summary=SUMMARY, retained=retained, automatic=automatic)


def three_turns() -> Table:
    table = Table()
    for n in range(3):
        table.do(c.SubmitInput(input=number(300 + n), body=said(f"say {n}").digest))
        table.do(c.CreateTurn(turn=number(10 + n), run=number(20 + n), inputs=(number(300 + n),)))
        table.tools("a", "b")
        table.do(table.start(0), table.start(1))
        table.do(table.settle(0), table.settle(1))
        table.executing()
        table.do(table.result(f"done {n}"))
    return table


def test_the_context_after_a_checkpoint_is_its_summary_exactly_the_retained_entries_and_what_came_later() -> None:
    table = three_turns()
    retained = tuple(entry.id for entry in list(table.view.context)[-5:])
    table.do(make(table, *retained))
    table.do(c.SubmitInput(input=number(400), body=said("next").digest))
    table.do(c.CreateTurn(turn=number(30), run=number(31), inputs=(number(400),)))
    entries = list(table.view.context)
    assert isinstance(entries[0], SummaryEntry)
    assert [entry.id for entry in entries[1:]] == [*retained, number(400)]
    assert fold_again(table.log) == (table.state, table.view)


def test_a_call_and_its_result_are_retained_together_or_not_at_all() -> None:
    table = three_turns()
    entries = list(table.view.context)
    whole = [entry.id for entry in entries]
    for place, entry in enumerate(entries):
        if isinstance(entry, ResultEntry):
            assert reason(table, make(table, entry.id)) == "retained"
        if isinstance(entry, AssistantEntry) and entry.calls:
            assert reason(table, make(table, entry.id)) == "retained"
            assert reason(table, make(table, *whole[place : place + 2])) == "retained"
    assert reason(table, make(table, *whole[::-1])) == "retained"
    assert reason(table, make(table, whole[0], whole[0])) == "retained"
    assert reason(table, make(table, number(999))) == "retained"


def test_every_cut_that_is_accepted_keeps_calls_and_results_together() -> None:
    accepted = 0
    for cut in range(16):
        table = three_turns()
        retained = tuple(entry.id for entry in list(table.view.context)[cut:])
        try:
            table.do(make(table, *retained))
        except Refused:
            continue
        accepted += 1
        calls = [b.call for e in table.view.context if isinstance(e, AssistantEntry) for b in e.calls]
        assert calls == [e.id for e in table.view.context if isinstance(e, ResultEntry)]
    assert accepted == 10  # before each input, assistant entry and the end: never inside a step


def test_a_step_whose_calls_have_no_results_yet_must_be_retained() -> None:
    table = Table().tools("a")
    entries = [entry.id for entry in table.view.context]
    assert reason(table, make(table)) == "retained"
    table.do(make(table, *entries[1:]))
    table.do(table.start(0))
    table.do(table.settle(0))
    assert kinds(table.view.context) == ["summary", "assistant", "result"]
    assert [e.status for e in table.view.context if isinstance(e, ResultEntry)] == ["ok"]


def test_a_checkpoint_during_a_prepared_or_executing_step_conflicts_and_open_or_quiet_steps_allow_it() -> None:
    def running() -> Table:
        table = Table().tools("a")
        table.do(table.start(0))
        return table

    busy_ones: tuple[Make, ...] = (prepared, executing, running)
    for busy in busy_ones:
        table = busy()
        assert reason(table, make(table, *(entry.id for entry in table.view.context))) == "busy"
    quiet_ones: tuple[Make, ...] = (opened, due, three_turns)
    for quiet in quiet_ones:
        table = quiet()
        table.do(make(table, *(entry.id for entry in table.view.context)))
    table = Table().tools("a")
    everything = tuple(entry.id for entry in table.view.context)
    assert reason(table, make(table, *everything, automatic=True)) == "busy"


def test_a_changed_base_refuses_the_checkpoint() -> None:
    table = three_turns()
    late = make(table)
    table.do(c.SubmitInput(input=number(400), body=said("next").digest))
    table.do(c.CreateTurn(turn=number(30), run=number(31), inputs=(number(400),)))
    assert reason(table, late) == "base"


def test_compaction_leaves_queued_input_and_input_not_yet_sent_alone() -> None:
    table = three_turns()
    table.do(c.SubmitInput(input=number(400), body=said("queued").digest, when="turn"))
    table.do(make(table))
    assert list(table.state.inputs) == [number(400)]
    table.do(c.CreateTurn(turn=number(30), run=number(31), inputs=(number(400),)))
    assert reason(table, make(table)) == "retained"
    table.executing()
    table.do(c.RecoverModel(run=number(31), effect=table.run.effect))  # it was not sent after all
    assert reason(table, make(table)) == "retained"
    table.do(make(table, number(400)))
    assert kinds(table.view.context) == ["summary", "input"]


def test_invalidating_the_newest_checkpoint_gives_the_former_context_and_the_tail_back() -> None:
    table = three_turns()
    before = [entry.id for entry in table.view.context]
    first = make(table)
    table.do(first)
    table.do(c.SubmitInput(input=number(400), body=said("next").digest))
    table.do(c.CreateTurn(turn=number(30), run=number(31), inputs=(number(400),)))
    table.executing()
    table.do(table.result("bye"))
    second = c.MakeCheckpoint(base=table.view.context.digest(), summary=said("shorter").digest)
    table.do(second)
    assert reason(table, c.InvalidateCheckpoint(checkpoint=first.checkpoint)) == "order"
    table.do(c.InvalidateCheckpoint(checkpoint=second.checkpoint))
    table.do(c.InvalidateCheckpoint(checkpoint=first.checkpoint))
    now = [entry.id for entry in table.view.context]
    assert now[: len(before)] == before
    assert kinds(table.view.context)[len(before) :] == ["input", "assistant"]
    assert table.state.checkpoints == ()


# --- rewind -----------------------------------------------------------------------------------------------------


def test_rewinding_supersedes_a_turn_and_all_later_ones_and_the_context_skips_them() -> None:
    table = three_turns()
    before = [e.id for e in table.view.context if e.turn == number(10)]
    events = table.do(c.Supersede(turn=number(11)))
    assert [e.entity for e in events] == [number(12), number(11)]
    assert [entry.id for entry in table.view.context] == before
    assert [turn.state for turn in table.view.turns] == ["completed", "superseded", "superseded"]
    assert reason(table, c.Supersede(turn=number(11))) == "superseded"
    assert fold_again(table.log) == (table.state, table.view)


def test_rewinding_invalidates_checkpoints_made_after_the_turn_started_and_no_others() -> None:
    table = three_turns()
    early = make(table)
    table.do(early)
    for n in range(2):
        table.do(c.SubmitInput(input=number(400 + n), body=said("next").digest))
        table.do(c.CreateTurn(turn=number(30 + n), run=number(40 + n), inputs=(number(400 + n),)))
        table.executing()
        table.do(table.result("bye"))
    table.do(c.MakeCheckpoint(base=table.view.context.digest(), summary=said("late").digest))
    table.do(c.Supersede(turn=number(31)))
    assert [k.checkpoint for k in table.state.checkpoints] == [early.checkpoint]
    assert kinds(table.view.context) == ["summary", "input", "assistant"]


def test_rewinding_waits_until_no_run_is_active_or_parked() -> None:
    table = three_turns()
    table.do(c.SubmitInput(input=number(400), body=said("next").digest))
    table.do(c.CreateTurn(turn=number(30), run=number(31), inputs=(number(400),)))
    assert reason(table, c.Supersede(turn=number(12))) == "active"
    table.executing()
    table.do(c.FailModel(run=number(31), effect=table.run.effect, message=""))
    table.do(c.Supersede(turn=number(30)))  # a failed attempt is not active
    assert table.state.turn is None
    assert reason(table, c.Supersede(turn=number(99))) == "unknown_turn"


# --- ids --------------------------------------------------------------------------------------------------------


def test_effect_ids_follow_from_run_step_call_and_sequence_and_the_command_ids_from_the_effect_alone() -> None:
    effect = effect_id(number(2), 1, "model", 0)
    assert effect == "013ec74a85e981b8c10f384b49ab6e79"  # in every process, for ever
    assert len({effect_id(number(2), s, k, n) for s in (1, 2) for k in ("model", "x") for n in (0, 1)}) == 8
    starts = {c.StartModel(run=run, effect=effect).id for run in (number(2), number(3))}
    settles = {
        c.FailModel(run=number(2), effect=effect, message="a").id,
        c.RejectResult(run=number(2), effect=effect, problem="b").id,
        c.SubmitResult(run=number(2), effect=effect, result=SUMMARY).id,
    }
    assert len(starts) == len(settles) == 1
    assert starts.isdisjoint(settles)
    assert c.RecoverModel(run=number(2), effect=effect).id not in starts | settles
