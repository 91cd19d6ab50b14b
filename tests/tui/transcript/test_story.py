"""From facts and signals to items."""

from __future__ import annotations

from panto.schema import events as e
from panto.schema import signals as s
from panto.schema.bodies import TextBody, ToolOutcome
from panto.schema.events import AnyEvent
from panto.schema.messages import Usage
from panto.schema.queries import History
from panto.schema.view import TextView
from panto.tui.items import ClosingItem, ErrorItem, NoticeItem, PromptItem, ProseItem, ReasoningItem
from panto.tui.items_calls import BatchItem, CallItem
from panto.tui.transcript import Story
from tests.tui.transcript.dump import Stage
from tests.tui.transcript.scenes import CARDS, SCREENS, trouble
from tests.tui.transcript.script import AGENT, NOTHING, Script, batch_of_reads, main_screen


def kinds(story: Story) -> list[str]:
    return [type(item).__name__.removesuffix("Item") for item in story.items]


def test_a_turn_becomes_prompt_prose_cards_and_a_closing_line() -> None:
    stage = Stage()
    main_screen(stage.script)
    assert kinds(stage.story) == [
        "Prompt", "Prose", "Closing", "Prompt", "Prose", "Call", "Call", "Call", "Call", "Batch", "Prose", "Call",
    ]  # fmt: skip
    assert [one.text for one in stage.story.queued] == ["also check the README"]


def test_a_resumed_session_looks_like_the_one_that_was_watched() -> None:
    for name, scene in {**SCREENS, **CARDS}.items():
        if name in ("drafted", "running", "children", "reasoning", "stopped", "trouble", "main", "notices", "component",
                    "parked", "children-stopped"):  # fmt: skip
            continue  # these show signals, which are gone after a restart
        live, again = Stage(), Stage()
        scene(live.script)
        again.script.time = live.script.time
        again.story.load(live.script.history())
        assert again.text() == live.text(), name


def test_facts_are_taken_once() -> None:
    stage = Stage()
    stage.script.prompt("hello")
    stage.script.answer("hi")
    before = stage.text()
    for update in list(stage.script.updates):
        stage.story.apply(update)
    assert stage.text() == before


def test_the_committed_answer_replaces_what_streamed() -> None:
    stage = Stage()
    stage.script.prompt("hello")
    stage.script.think("hm")
    stage.script.stream("half of the ans")
    stage.script.answer("the whole answer", reasoning="hm, yes")
    assert kinds(stage.story) == ["Prompt", "Reasoning", "Prose"]
    assert [item.source() for item in stage.story.items[1:]] == ["hm, yes", "the whole answer"]


def test_an_answer_in_another_order_than_it_streamed_is_put_right() -> None:
    stage = Stage()
    stage.script.prompt("hello")
    stage.script.stream("text first")
    stage.script.answer("text", reasoning="reasoning first")
    assert kinds(stage.story) == ["Prompt", "Reasoning", "Prose"]


def test_a_step_that_is_tried_again_drops_what_streamed() -> None:
    stage = Stage()
    stage.script.prompt("hello")
    stage.script.stream("half")
    stage.script.say(s.CallDrafted(AGENT, 1, 0, "write", 10))
    stage.script.say(s.StepReset(AGENT, 1, 2))
    assert kinds(stage.story) == ["Prompt"]
    stage.script.stream("whole")
    assert [item.source() for item in stage.story.items] == ["hello", "whole"]


def test_a_retry_that_helps_leaves_one_line() -> None:
    stage = Stage()
    stage.script.prompt("hello")
    stage.script.say(s.RetryWaiting(AGENT, "rate limited", 429, 3.0, 1, 6))
    assert stage.story.activity(stage.script.time) == "rate limited (429) · again in 3 s · try 1 of 6"
    stage.script.wait(3)
    stage.script.say(s.RetryResumed(AGENT))
    stage.script.stream("hi")
    stage.script.answer("hi")
    notices = [item for item in stage.story.items if isinstance(item, NoticeItem)]
    assert [notice.text for notice in notices] == ["rate limited (429) · sent again, answered on try 1 after 3 s"]


def test_a_failed_attempt_says_what_to_do_and_no_longer_once_it_is_done() -> None:
    stage = Stage()
    trouble(stage.script)
    error = next(item for item in stage.story.items if isinstance(item, ErrorItem))
    assert (error.text, error.fact) == ("no answer from api.example.com: connection refused", "5 tries in 41 s")
    assert error.hint.startswith("Nothing is lost")
    parked = s.StatusChanged(AGENT, "m", "", "ask", "/", parked=True)
    stage.script.say(parked)
    assert not any("stopped here" in row for row in stage.rows())
    stage.script.fact(e.TurnRetried(stage.script.turn, "run9", 2))
    assert error.hint == ""


def test_an_error_offers_nothing_more_once_its_turn_is_settled() -> None:
    stage = Stage()
    trouble(stage.script)
    stage.script.fact(e.TurnSettled(stage.script.turn, "failed"))
    stage.script.prompt("something else")
    assert not any("Enter tries again" in row for row in stage.rows())


def test_a_stopped_turn_keeps_what_was_said() -> None:
    stage = Stage()
    script = stage.script
    script.prompt("hello")
    script.stream("half of the")
    script.fact(e.InterruptRequested(script.run))
    script.fact(e.RunEnded(script.run, "stopped", stopped="cancelled", text=NOTHING), TextBody("half of the"))
    script.fact(e.TurnStopped(script.turn, "cancelled"))
    assert kinds(stage.story) == ["Prompt", "Prose", "Closing"]
    again = Stage()
    again.story.load(script.history())
    assert again.text()[:3] == stage.text()[:3]


def test_three_reading_calls_are_one_row_and_two_are_not() -> None:
    for count, wanted in ((2, ["Prompt", "Call", "Call"]), (3, ["Prompt", "Batch"])):
        stage = Stage()
        stage.script.prompt("read")
        batch_of_reads(stage.script, count)
        assert kinds(stage.story) == wanted


def test_commands_and_edits_are_never_grouped() -> None:
    stage = Stage()
    stage.script.prompt("mixed")
    reads: list[tuple[str, dict[str, object]]] = [("read", {"path": f"{n}.txt"}) for n in range(3)]
    stage.script.answer("", [reads[0], ("bash", {"command": "ls"}), reads[1], ("edit", {"path": "a"}), reads[2]])
    assert kinds(stage.story) == ["Prompt", "Batch", "Call", "Call"]
    assert [call.title for call in stage.story.items[1].calls] == ["0.txt", "1.txt", "2.txt"]  # type: ignore[attr-defined]


def test_a_draft_becomes_the_card_of_its_call_and_others_go() -> None:
    stage = Stage()
    stage.script.prompt("write")
    stage.script.say(s.CallDrafted(AGENT, 1, 0, "write", 10))
    stage.script.say(s.CallDrafted(AGENT, 1, 1, "edit", 20))
    draft = stage.story.items[1]
    stage.script.answer("", [("write", {"path": "a.txt"})])
    assert stage.story.items[1:] == [draft] and isinstance(draft, CallItem)
    assert draft.call.title == "a.txt" and draft.call.state == "pending"


def test_cards_of_a_step_stand_in_call_order_though_one_was_drafted_first() -> None:
    stage = Stage()
    stage.script.prompt("mixed")
    stage.script.say(s.CallDrafted(AGENT, 1, 1, "bash", 10))
    wanted: list[tuple[str, dict[str, object]]] = [("read", {"path": "a"}), ("bash", {"command": "ls"})]
    stage.script.answer("", [*wanted, ("grep", {"pattern": "x"})])
    assert [item.call.name for item in stage.story.items if isinstance(item, CallItem)] == ["read", "bash", "grep"]


def test_only_the_last_thing_that_opens_names_the_key_for_it() -> None:
    stage = Stage()
    stage.script.prompt("go")
    notices = [NoticeItem("", "first", detail="a"), NoticeItem("", "second", detail="b")]
    for notice in notices:
        stage.story.append(notice)
    assert "Ctrl+O opens" not in notices[0].lines(stage.look)[0].text
    assert "Ctrl+O opens" in notices[1].lines(stage.look)[0].text


def test_edited_arguments_are_what_the_card_shows() -> None:
    stage = Stage()
    stage.script.prompt("run")
    (call,) = stage.script.answer("", [("bash", {"command": "rm -rf build"})])
    stage.script.fact(e.ToolCallApproved(stage.script.run, call, NOTHING, "person"), TextBody('{"command": "ls"}'))
    assert stage.story.calls[call].title == "ls"


def test_who_said_no_is_told_apart() -> None:
    said = {}
    for name, held, more in (
        ("person", True, {}),
        ("rule", False, {}),
        ("nobody", False, {"unattended": True}),
        ("tool", True, {}),
    ):
        stage = Stage()
        stage.script.prompt("run")
        (call,) = stage.script.answer("", [("bash", {"command": "rm -rf build"})])
        if held:
            stage.script.fact(e.ToolCallHeld(stage.script.run, call, "approval", NOTHING))
        if name == "tool":  # what was allowed by the person
            stage.script.fact(e.ToolCallApproved(stage.script.run, call, NOTHING, "person"))
            stage.script.start(call)
        why = {"rule": "denied by a rule", "tool": "10.0.0.1 is private"}.get(name, "")
        stage.script.fail(call, "permission_denied", why, **more)
        said[name] = stage.rows()[2].rpartition("   ")[2].strip()
    assert said == {
        "person": "not run: you said no",
        "rule": "not run: denied by a rule",
        "nobody": "not run: nobody was there to ask",
        "tool": "not run: 10.0.0.1 is private",
    }


def test_a_superseded_turn_is_dim_and_stays() -> None:
    stage = Stage()
    stage.script.prompt("old")
    stage.script.answer("old answer")
    stage.script.settle()
    stage.script.fact(e.TurnSuperseded("turn1"))
    stage.script.prompt("new")
    assert [item.dim for item in stage.story.items] == [True, True, True, False]
    assert "old answer" in "".join(stage.text())


def test_an_older_page_comes_before_and_settles_what_was_open() -> None:
    whole, paged = Stage(), Stage()
    main_screen(whole.script)
    batch = whole.script.history().facts
    paged.script.time = whole.script.time
    cut = next(n for n, fact in enumerate(batch) if isinstance(fact.event, e.ToolCallCompleted)) + 6
    paged.story.load(History(batch[cut:], (batch[cut].seq, 0)))
    assert paged.story.older == (batch[cut].seq, 0)
    paged.story.prepend(History(batch[:cut], None))
    wanted, got = whole.text(), paged.text()
    assert got[:8] == wanted[:8]
    assert [row for row in got if row.startswith("✗ run")] == [row for row in wanted if row.startswith("✗ run")]


def test_queued_inputs_come_and_go() -> None:
    stage = Stage()
    script = stage.script
    script.prompt("first")
    one = script.submit("steer")
    two = script.submit("later", "turn")
    assert [queued.text for queued in stage.story.queued] == ["steer", "later"]
    script.accept(one, "steer")
    script.fact(e.InputWithdrawn(two))
    assert stage.story.queued == []
    assert [item.source() for item in stage.story.items if isinstance(item, PromptItem)] == ["first", "steer"]


def test_a_notice_with_a_key_is_replaced_where_it_stands() -> None:
    stage = Stage()
    for n in range(3):
        stage.script.say(s.Noticed(AGENT, f"downloading {n}", key="download"))
    assert [item.source() for item in stage.story.items] == ["downloading 2"]


def test_a_parked_turn_says_so_and_nothing_moves() -> None:
    stage = Stage()
    stage.script.prompt("run")
    (call,) = stage.script.answer("", [("bash", {"command": "sleep 9"})])
    stage.script.start(call)
    status = s.StatusChanged(AGENT, "m", "", "ask", "/", parked=True)
    stage.script.say(status)
    assert not any(item.moves for item in stage.story.items)
    assert stage.story.activity(stage.script.time) is None
    assert any("Enter continues" in row for row in stage.rows())
    stage.script.say(s.StatusChanged(AGENT, "m", "", "ask", "/", parked=False))
    assert not any("Enter continues" in row for row in stage.rows())
    assert any(item.moves for item in stage.story.items)


def test_children_are_known_by_their_jobs_even_without_a_view() -> None:
    stage = Stage()
    stage.script.prompt("ask")
    (call,) = stage.script.answer("", [("subagents.run", {})])
    stage.script.start(call)
    stage.script.fact(e.JobStarted("a1", "child", "reviewer", call))
    stage.script.fact(e.JobStarted("a2", "child", "tester", call))
    stage.script.fact(e.JobEnded("a1", "completed"))
    rows = stage.rows()
    assert rows[2].startswith("⠹ agents 2 children   1 running · 1 done")
    assert [row[2:].strip() for row in rows[3:5]] == ["✓ reviewer", "⠹ tester"]


def test_a_background_command_that_ends_leaves_a_line_that_opens() -> None:
    stage = Stage()
    stage.script.fact(e.JobStarted("j", "command", "make docs"))
    stage.script.fact(e.JobEnded("j", "failed", NOTHING), ToolOutcome((), True, "make docs", "exit 2"))
    assert stage.rows()[0].startswith("✗ job make docs: failed, exit 2")


def test_what_goes_on_is_said_in_a_few_words() -> None:
    stage = Stage()
    script, story = stage.script, stage.story
    assert story.activity(script.time) is None
    script.prompt("go")
    script.wait(3)
    assert story.activity(script.time) == "waiting for the model · 3 s"
    script.think("hm")
    assert story.activity(script.time) == "thinking"
    script.stream("text")
    script.wait(2)
    assert story.activity(script.time) == "writing · 2 s"
    (call,) = script.answer("text", [("bash", {"command": "make docs"})])
    script.start(call)
    script.wait(12)
    assert story.activity(script.time) == "make docs · 12 s"
    script.fact(e.ToolCallHeld(script.run, call, "approval", NOTHING))
    assert story.activity(script.time) == "waiting for you"
    script.complete(call, ToolOutcome())
    script.settle()
    assert story.activity(script.time) is None


def test_a_turn_counts_the_tokens_and_cost_of_all_its_steps() -> None:
    stage = Stage()
    script = stage.script
    script.prompt("go")
    (call,) = script.answer("", [("ls", {})], usage=Usage(input=1000, output=100), cost=0.02)
    script.start(call)
    script.complete(call, ToolOutcome((), False, ".", "3 entries", TextView("a")), 2)
    script.begin_step()
    script.answer("done", usage=Usage(input=2000, output=100), cost=0.03)
    script.settle()
    closing = stage.story.items[-1]
    assert isinstance(closing, ClosingItem)
    assert closing.source() == "2 s · 3k in · 0.2k out · $0.05"


def test_every_event_and_signal_is_known_to_the_match() -> None:
    script = Script()
    story = Story(lambda: script.time)
    made: list[AnyEvent] = [
        e.ReasoningChanged("s", "high"), e.ModeChanged("s", "auto"), e.TitleChanged("s", "t"), e.CwdChanged("s", "/"),
        e.MetadataSet("m", "{}"), e.ApprovalGranted("g", "bash ls"), e.ApprovalRevoked("g"), e.ModelChanged("s", "x"),
        e.SetupChanged("s", NOTHING), e.ExtensionAppended("o", "k", NOTHING), e.CheckpointMade("c", NOTHING, NOTHING),
        e.CheckpointInvalidated("c"), e.JobLost("nosuch"), e.ModelStepWithdrawn("r", 1), e.TurnAttemptFailed("t", "r"),
        e.ModelStepRecovered("r", 1, "x"), e.ModelStepRejected("r", 1, "x", "no JSON"), e.InputRejected("i", "hook"),
        e.ResultSuperseded("r", "nosuch", NOTHING), e.ToolCallAnswered("r", "nosuch", NOTHING),
    ]  # fmt: skip
    script.tell = story.apply
    for event in made:
        script.fact(event)
    for signal in (s.InputReturned(AGENT, "x"), s.SessionOpened(AGENT), s.Left(AGENT), s.RetryResumed(AGENT)):
        story.apply(signal)
    assert {type(item) for item in story.items} == {NoticeItem}


def test_leading_blank_text_makes_no_item() -> None:
    stage = Stage()
    stage.script.prompt("go")
    stage.script.stream("\n\n")
    assert kinds(stage.story) == ["Prompt"]


def test_hostile_names_titles_facts_and_output_stay_text() -> None:
    nasty = "\x1b]52;c;QUJD\x07\x1b[2J\x9b31m\u202ehi"
    stage = Stage()
    script = stage.script
    script.prompt(nasty)
    script.think(nasty)
    (call, other) = script.answer(nasty, [(nasty, {"path": nasty}), ("bash", {"command": nasty})], reasoning=nasty)
    script.start(call)
    script.progress(call, nasty)
    script.complete(call, ToolOutcome((), True, nasty, nasty, TextView(nasty)))
    script.start(other)
    script.progress(other, nasty)
    script.say(s.Noticed(AGENT, nasty, "wrong", nasty))
    script.fact(e.JobStarted("j", "child", nasty, other))
    script.submit(nasty)
    for item in stage.story.items:
        item.toggle()
    stage.sync()
    text = "".join(stage.text() + stage.rows()) + str(stage.story.activity(script.time))
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char == "\u202e" for char in text)
    assert all("\x1b" not in item.pager() for item in stage.story.items)


def test_items_of_every_kind_were_seen_here() -> None:
    assert {PromptItem, ProseItem, ReasoningItem, CallItem, BatchItem, NoticeItem, ErrorItem, ClosingItem}
