"""The window on the transcript: it follows the end, or stays where its reader put it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panto.schema import signals as s
from panto.schema.queries import History
from panto.tui.search import Search
from panto.tui.selection import Selection
from panto.tui.widgets.paint import RowState
from tests.tui.transcript.dump import Stage
from tests.tui.transcript.scenes import MARKDOWN
from tests.tui.transcript.script import AGENT, Script, batch_of_reads, main_screen


def long_session(script: Script, turns: int = 30) -> None:
    for n in range(turns):
        script.prompt(f"prompt number {n}")
        script.answer(f"Answer number {n}.\n\n" + "\n\n".join(f"Paragraph {n}.{k}." for k in range(12)))
        script.settle()


def test_new_rows_at_the_end_scroll_into_view() -> None:
    stage = Stage(80, 10)
    long_session(stage.script, 3)
    stage.sync()
    stage.script.prompt("the last one")
    assert stage.rows()[-2] == "› the last one" and stage.view.follow


def test_a_reader_who_scrolled_up_is_not_moved_and_told_how_much_is_new() -> None:
    stage = Stage(80, 10)
    long_session(stage.script, 5)
    stage.sync()
    stage.view.scroll(-30)
    before = stage.rows()
    stage.script.prompt("something new")
    stage.script.stream("one\n\ntwo\n\nthree")
    assert stage.rows() == before
    assert stage.view.unseen == 8  # blank, prompt, blank, and five rows of text
    stage.view.scroll(+3)
    assert stage.view.unseen == 8
    stage.view.place(stage.view.max_top)
    assert stage.view.unseen == 0 and stage.view.follow


def test_folding_above_does_not_move_what_is_read() -> None:
    stage = Stage(80, 12)
    main_screen(stage.script)
    long_session(stage.script, 3)
    stage.sync()
    stage.view.scroll(-20)
    before = stage.rows()
    for item in stage.story.items[:8]:
        if item.toggle():
            stage.story.note(item)
    after = stage.rows()
    assert after[1:] == before[1:]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("scroll"), st.integers(-40, 40)),
            st.tuples(st.just("grow"), st.integers(1, 5)),
            st.tuples(st.just("resize"), st.integers(30, 130)),
            st.tuples(st.just("toggle"), st.integers(0, 60)),
            st.tuples(st.just("lower"), st.integers(4, 40)),
        ),
        max_size=12,
    )
)
def test_whatever_one_does_the_rows_are_those_of_the_whole_column(moves: list[tuple[str, int]]) -> None:
    stage = Stage(80, 12)
    main_screen(stage.script)
    long_session(stage.script, 4)
    for move, amount in moves:
        if move == "scroll":
            stage.view.scroll(amount) if stage.view.look else None
        elif move == "grow":
            stage.script.stream(f"more {amount}\n\n" * amount)
        elif move == "resize":
            stage.width = amount
        elif move == "lower":
            stage.height = amount
        else:
            item = stage.story.items[amount % len(stage.story.items)]
            if item.toggle():
                stage.story.note(item)
        rows = stage.rows()
        assert len(rows) == stage.height
        assert 0 <= stage.view.top <= stage.view.max_top
        assert stage.view.follow == (stage.view.top == stage.view.max_top) or not stage.view.follow
        top, shown = stage.view.top, rows[: stage.view.rows]
        column = [*stage.text(), *[""] * 50]
        stage.sync()
        if stage.view.top == top and stage.rows() == rows:  # measuring the rest moved nothing
            start = 1 if stage.view.pinned() is not None else 0
            assert shown[start:] == column[top + start : top + len(shown)]


def test_scrolling_up_into_what_was_only_guessed_goes_row_by_row() -> None:
    stage = Stage(80, 12)
    script = stage.script
    for n in range(40):
        script.prompt(f"prompt {n}")
        script.answer(MARKDOWN)
    again = Stage(80, 12)
    again.story.load(script.history())
    again.sync()
    seen = again.rows()
    for _ in range(300):
        again.view.scroll(-3)
        now = again.rows()
        assert now[4:] == seen[1 : len(seen) - 3][: len(now) - 4] or now[4:-1] == seen[1:-4]
        seen = now
    while not again.view.top == 0:
        again.view.scroll(-50)
    assert again.rows()[0] == "› prompt 0"


def test_the_prompt_that_owns_the_first_row_is_pinned_when_it_is_out_of_view() -> None:
    stage = Stage(80, 8)
    long_session(stage.script, 3)
    rows = stage.rows()
    assert rows[0] == "› prompt number 2"
    assert stage.view.jump_prompt(-1)
    assert stage.rows()[0] == "› prompt number 2" and stage.view.pinned() is None
    assert stage.view.jump_prompt(-1)
    assert stage.rows()[0] == "› prompt number 1"
    assert stage.view.jump_prompt(1)
    assert stage.rows()[0] == "› prompt number 2"
    assert not stage.view.jump_prompt(1) and stage.view.follow


def test_queued_inputs_stand_above_the_rule_and_take_no_reader_away() -> None:
    stage = Stage(100, 10)
    long_session(stage.script, 2)
    stage.sync()
    stage.view.scroll(-10)
    before = stage.rows()
    for n in range(5):
        stage.script.submit(f"queued {n}", "turn" if n == 4 else "step")
    rows = stage.rows()
    assert rows[:6] == before[:6]
    assert [row.split("  ")[0] for row in rows[6:]] == ["» queued 2", "» queued 3", "» queued 4", ""]
    assert rows[6].endswith("2 more above · next step")
    assert rows[8].endswith("after this turn · Alt+Up takes it back")


def test_a_resize_and_back_looks_like_a_fresh_draw() -> None:
    stage = Stage(120, 33)
    main_screen(stage.script)
    fresh = stage.rows()
    for width, height in ((60, 17), (200, 50), (80, 21), (120, 33)):
        stage.width, stage.height = width, height
        rows = stage.rows()
    assert rows == fresh


def test_the_page_under_the_eyes_stays_when_the_width_changes() -> None:
    stage = Stage(100, 20)
    long_session(stage.script, 20)
    stage.sync()
    stage.view.scroll(-120)
    seen = stage.rows()[1:4]
    stage.width = 70
    assert set(seen) & set(stage.rows()[:8])


def test_an_older_page_moves_nothing() -> None:
    script = Script()
    long_session(script, 20)
    facts = script.history().facts
    half = next(n for n, fact in enumerate(facts) if fact.seq > facts[-1].seq // 2 and fact.event.machine == "input")
    stage = Stage(80, 12)
    stage.story.load(History(facts[half:], (facts[half].seq, 0)))
    stage.sync()
    stage.view.place(0)
    before = stage.rows()
    stage.story.prepend(History(facts[:half], None))
    rows = stage.rows()
    assert rows[2:] == before[2:]
    assert stage.view.top > 0


# ---------------------------------------------------------------- selection and search


def test_selected_text_is_copied_without_gutters_and_with_wrapped_lines_joined() -> None:
    stage = Stage(60, 30)
    stage.script.prompt("copy this")
    paragraph = "A paragraph that is long enough to be wrapped twice at a width of sixty cells, and more."
    stage.script.answer(paragraph + "\n\n- a\n- b")
    stage.sync()
    first, last = stage.view.nearest(2, 2), stage.view.nearest(50, 6)
    assert first is not None and last is not None
    stage.view.selection = Selection(last, first)
    assert stage.view.selected_text() == paragraph + "\n\n• a\n• b"


def test_a_selection_stays_with_its_text_while_more_comes() -> None:
    stage = Stage(60, 12)
    long_session(stage.script, 2)
    stage.sync()
    a, b = stage.view.nearest(2, 3), stage.view.nearest(30, 5)
    assert a is not None and b is not None
    stage.view.selection = Selection(a, b)
    text = stage.view.selected_text()
    stage.script.prompt("more")
    stage.script.stream("and more\n\n" * 20)
    stage.sync()
    assert text and stage.view.selected_text() == text


def test_a_selection_in_wide_characters_takes_whole_characters() -> None:
    stage = Stage(60, 12)
    stage.script.prompt("x")
    stage.script.answer("漢字仮名交じり文")
    stage.sync()
    a, b = stage.view.nearest(4, 2), stage.view.nearest(8, 2)
    assert a is not None and b is not None
    stage.view.selection = Selection(a, b)
    assert stage.view.selected_text() == "字仮"


def test_code_is_copied_as_it_was_written() -> None:
    stage = Stage(60, 20)
    stage.script.prompt("x")
    stage.script.answer("```python\ndef f(x):\n    return x\n```")
    stage.sync()
    a, b = stage.view.nearest(0, 2), stage.view.nearest(59, 3)
    assert a is not None and b is not None
    stage.view.selection = Selection(a, b)
    assert stage.view.selected_text() == "def f(x):\n    return x"


def test_search_finds_items_by_their_source_and_marks_rows() -> None:
    stage = Stage(80, 12)
    long_session(stage.script, 6)
    stage.sync()
    stage.view.search = Search("NUMBER 3")
    assert stage.view.search.matches(stage.story.items) == [9, 10]
    stage.view.show_item(10, centre=True)
    assert any(isinstance(row, RowState) and row.spans for row in stage.view.states())


def test_the_screen_of_a_long_session_keeps_few_rows_in_memory() -> None:
    stage = Stage(80, 30)
    for _ in range(100):
        stage.script.prompt("again")
        stage.script.answer(MARKDOWN * 3)
    stage.sync()
    while stage.view.top > 0:
        stage.view.scroll(-200)
        stage.sync()
    assert stage.view.layout._kept <= 4200
    assert sum(item._document is not None for item in stage.story.items if hasattr(item, "_document")) < 60


def test_a_page_of_ten_thousand_facts_measures_only_what_is_seen() -> None:
    script = Script()
    while len(script.updates) < 10_000:
        script.prompt("again")
        batch_of_reads(script)
        script.answer("done")
        script.settle()
    stage = Stage(80, 30)
    stage.story.load(script.history())
    stage.sync()
    layout = stage.view.layout
    assert sum(layout.measured(index) for index in range(len(layout.items))) < 60


def test_nothing_moves_while_nothing_runs() -> None:
    stage = Stage(80, 12)
    long_session(stage.script, 1)
    stage.script.say(s.Noticed(AGENT, "done"))
    assert not any(item.moves for item in stage.story.items)
