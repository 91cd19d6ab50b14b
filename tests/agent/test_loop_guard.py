"""Going round in circles, and what only looks like it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panto.agent.loop_guard import Done, judge, repeated_tail, repeats

GREP = Done("grep", '{"pattern":"x"}')
TEST = Done("bash", '{"command":"pytest"}', mutates=True)
DATE = Done("bash", '{"command":"date"}', mutates=True)
INPUT = Done("")


def verdicts(*calls: Done, limit: int = 3) -> list[str]:
    out: list[str] = []
    past: list[Done] = []
    for call in calls:
        if call.name:
            out.append(judge(past, call.name, call.arguments, limit))
        past.append(call)
    return out


def edit(n: int) -> Done:
    return Done("edit", f'{{"n":{n}}}', changed=True, mutates=True)


def test_the_third_identical_call_warns_and_the_next_is_held() -> None:
    assert verdicts(GREP, GREP, GREP, GREP, GREP) == ["run", "run", "warn", "hold", "hold"]


def test_output_plays_no_part_so_a_timestamp_does_not_hide_a_circle() -> None:
    assert verdicts(DATE, DATE, DATE, DATE) == ["run", "run", "warn", "hold"]


def test_a_changed_file_or_a_new_input_between_starts_the_count_again() -> None:
    assert verdicts(TEST, edit(1), TEST, edit(2), TEST, edit(3), TEST, edit(4), TEST) == ["run"] * 9
    assert verdicts(GREP, GREP, INPUT, GREP, GREP) == ["run"] * 4


def test_other_reading_between_does_not_hide_a_circle() -> None:
    other = Done("read", '{"path":"a"}')
    assert verdicts(GREP, other, GREP, other, GREP, other, GREP)[4:] == ["warn", "warn", "hold"]


def test_commands_that_are_new_count_as_change_but_two_in_turn_are_a_circle() -> None:
    commands = [Done("bash", f'{{"command":"{n}"}}', mutates=True) for n in range(4)]
    assert verdicts(TEST, commands[0], TEST, commands[1], TEST, commands[2], TEST, commands[3], TEST) == ["run"] * 9
    assert verdicts(*[TEST, DATE] * 6)[-2:] == ["hold", "hold"]


def test_polling_a_job_is_exempt_and_the_guard_can_be_off() -> None:
    assert verdicts(*[Done("bash_output", '{"job":"job1"}')] * 20) == ["run"] * 20
    assert verdicts(*[GREP] * 9, limit=0) == ["run"] * 9


def test_an_edit_that_fails_the_same_way_again_and_again_is_a_circle() -> None:
    failed = Done("edit", '{"old":"x"}', changed=False, mutates=True)
    assert verdicts(failed, failed, failed, failed) == ["run", "run", "warn", "hold"]


@given(st.lists(st.sampled_from([GREP, TEST, DATE, INPUT, edit(1)]), max_size=12))
def test_the_count_is_at_least_one_and_never_more_than_the_calls_made(past: list[Done]) -> None:
    got = repeats(past, GREP.name, GREP.arguments)
    assert 1 <= got <= past.count(GREP) + 1


def test_a_repeated_end_is_found_and_two_copies_stay() -> None:
    phrase = "I will now try again. "
    text = "Here is my plan.\n" + phrase * 40
    cut = repeated_tail(text)
    assert cut is not None and text[:cut] == "Here is my plan.\n" + phrase * 2
    assert repeated_tail("x" * 1_000) is not None
    assert repeated_tail("a normal answer, with words words words and an end.") is None
    assert repeated_tail("\n".join(f"{n}. item" for n in range(200))) is None
    assert repeated_tail("-" * 100) is None
    assert repeated_tail(" \n" * 500) is None
    assert repeated_tail("") is None
