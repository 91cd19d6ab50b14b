"""Going round in circles, and what only looks like it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from panto.agent.loop_guard import Circles, repeated_tail


@dataclass(frozen=True)
class Done:
    """One thing that happened in a turn: a call that was run, or (name "") an input. `changed`: files differ after."""

    name: str
    arguments: str = ""
    changed: bool = False
    mutates: bool = False


GREP = Done("grep", '{"pattern":"x"}')
TEST = Done("bash", '{"command":"pytest"}', mutates=True)
DATE = Done("bash", '{"command":"date"}', mutates=True)
INPUT = Done("")


def verdicts(*calls: Done, limit: int = 3, together: int = 1) -> list[str]:
    """What is said of each call in turn, `together` of them in one reply."""
    out: list[str] = []
    circles = Circles()
    for number, call in enumerate(calls):
        if not call.name:
            circles.heard()
            continue
        said = circles.start(str(number), call.name, call.arguments, call.mutates, limit, number // together)
        out.append(said)
        if said == "hold":
            circles.count(str(number), call.name, call.arguments, call.mutates)
        if call.changed:
            circles.changed(str(number))
    return out


def repeats(past: Iterable[Done], name: str, arguments: str) -> int:
    """The count, said plainly: all that was done is looked through from the start."""
    wanted = (name, arguments)
    count = 0
    seen: set[tuple[str, str]] = set()
    for done in past:
        key = (done.name, done.arguments)
        fresh = done.mutates and key not in seen
        if not done.name or done.changed or (fresh and key != wanted):
            count = 0
        seen.add(key)
        count += key == wanted and bool(done.name)
    return count + 1


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


@given(st.lists(st.sampled_from([GREP, TEST, DATE, INPUT, edit(1)]), max_size=12), st.data())
def test_the_count_is_that_of_looking_through_everything_also_where_changes_are_known_late(
    past: list[Done], data: st.DataObject
) -> None:
    circles, late = Circles(), []
    for number, done in enumerate(past):
        if not done.name:
            circles.heard()
            continue
        circles.count(str(number), done.name, done.arguments, done.mutates)
        if done.changed:
            late.append(number)
    known = {number for number in late if data.draw(st.booleans())}
    for number in data.draw(st.permutations(sorted(known))):
        circles.changed(str(number))
    told = [replace(done, changed=number in known) for number, done in enumerate(past)]
    for call in (GREP, TEST, DATE, edit(1)):
        assert circles.repeats(call.name, call.arguments) == repeats(told, call.name, call.arguments)


def test_calls_of_one_reply_are_warned_before_any_is_held() -> None:
    assert verdicts(*[GREP] * 8, together=5) == ["run", "run", "warn", "warn", "warn", "hold", "hold", "hold"]
    assert verdicts(GREP, GREP, *[GREP] * 4, together=2) == ["run", "run", "warn", "warn", "hold", "hold"]
    again = [*[GREP] * 4, *[INPUT] * 4, *[GREP] * 4]
    assert verdicts(*again, together=4) == ["run", "run", "warn", "warn"] * 2  # the warning before the input is old


def test_a_call_costs_the_same_however_long_the_turn_is() -> None:
    circles = Circles()
    for number in range(20_000):  # looked through each time, this would take minutes
        assert circles.start(str(number), "read", f'{{"n":{number}}}', False, 3, number) == "run"


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
