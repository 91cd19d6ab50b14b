"""Where cards stand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panto.schema import events as e
from panto.schema import signals as s
from panto.tui.items_calls import BatchItem, CallItem
from tests.tui.transcript.dump import Stage
from tests.tui.transcript.script import AGENT, NOTHING

NAMES = st.lists(st.sampled_from(["read", "bash", "edit"]), min_size=5, max_size=5)


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)), NAMES, st.integers(0, 4))
def test_cards_of_a_step_stand_in_the_order_of_its_calls(
    order: list[int], drafted: set[int], names: list[str], held: int
) -> None:
    stage = Stage()
    stage.script.prompt("Do it.")
    stage.script.stream("I will.")
    for index in order:
        if index in drafted:
            stage.script.say(s.CallDrafted(AGENT, 1, index, names[index], 10))
    ids = stage.script.answer("I will.", [(name, {"path": f"{n}", "command": f"{n}"}) for n, name in enumerate(names)])
    stage.script.fact(e.ToolCallHeld(stage.script.run, ids[held], "approval", NOTHING))
    for call in ids:
        if call != ids[held]:
            stage.script.start(call)
    shown: list[str] = []
    for item in stage.story.items:
        shown += [item.call.id] if isinstance(item, CallItem) else []
        shown += [call.id for call in item.calls] if isinstance(item, BatchItem) else []
    reads = [call for call, name in zip(ids, names, strict=True) if name == "read"]
    if len(reads) >= 3:  # one row, where the first of them stands
        first = ids.index(reads[0])
        ids = [*ids[:first], *reads, *(call for call in ids[first:] if call not in reads)]
    assert shown == ids
