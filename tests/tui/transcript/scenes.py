"""Scenes for snapshots: each fills a script with one thing to look at."""

from __future__ import annotations

from panto.schema import events as e
from panto.schema import signals as s
from panto.schema.bodies import TextBody, ToolOutcome
from panto.schema.messages import Text
from panto.schema.view import CardView, DiffView, Hunk, ListView, ProgressView, TableView, TextView
from tests.tui.transcript.script import AGENT, NOTHING, Script, batch_of_reads, main_screen, pytest_output

MARKDOWN = """\
# How totals are made

The price is added **once per item**, whatever the *count*. See [the manual](https://example.org/m) or \
https://example.org/deep/link for `Cart.add`.

## Steps

1. Read `shop.py`, which holds the class and a long line of text that has to wrap since it does not fit on one line
2. Change `total`
   - keep the name
   - keep the type
3. Run the tests

### Details

> A quote with **weight** that somebody once said, long enough to be wrapped around the edge of the body.

```python
class Cart:
    \"\"\"Items and counts.\"\"\"
    def total(self) -> Decimal:
        return sum(i.price * i.count for i in self.items)  # all of them
```

| file | lines | cost |
|------|------:|-----|
| shop.py | 34 | $0.10 |
| cart.py | 1200 | $12.00 |
| tests/test_cart.py | 88 | $3.40 |

---

Done: total multiplies by count.
"""

PYTEST = "python3 -m pytest -q tests"


def one(script: Script, name: str = "bash", command: str = PYTEST) -> str:
    script.prompt("Do it.")
    arguments: dict[str, object] = {"command": command} if name == "bash" else {"path": command}
    (call,) = script.answer("", [(name, arguments)])
    return call


def waiting(script: Script) -> None:
    script.fact(e.ToolCallHeld(script.run, one(script), "approval", NOTHING))


def running(script: Script) -> None:
    call = one(script)
    script.start(call)
    script.progress(call, "tests/test_cart.py ........................................\ntests/test_shop.py ..\n")
    script.wait(12)


def done(script: Script) -> None:
    call = one(script)
    script.start(call)
    script.complete(call, ToolOutcome((), False, PYTEST, "200 lines", TextView(pytest_output(), tail=True)), 3.1)


def failed(script: Script) -> None:
    call = one(script)
    script.start(call)
    text = "".join(f"line {n}\n" for n in range(36))
    text += "E   assert 3.5 == 7.0\nFAILED tests/test_cart.py::test_total - assert 3.5 == 7.0\n1 failed, 199 passed\n"
    script.complete(call, ToolOutcome((), True, PYTEST, "exit 1", TextView(text, tail=True)), 2.2)


def stopped(script: Script) -> None:
    call = one(script, command="make docs")
    script.start(call)
    script.progress(call, "compiling makers.md\n")
    script.fail(call, "cancelled", "cancelled by user", 4.3, effect="x", cause="interrupted", duration_ms=4300)
    script.stop()


def refused(script: Script) -> None:
    call = one(script, command="rm -rf build")
    script.fact(e.ToolCallHeld(script.run, call, "approval", NOTHING))
    script.fail(call, "permission_denied", "")


def unknown(script: Script) -> None:
    call = one(script, command="git push")
    script.start(call)
    script.fail(call, "internal", "", outcome="unknown", effect="x", cause="crash")


def tool_failed(script: Script) -> None:
    call = one(script, "read", "nosuch.py")
    script.start(call)
    script.fail(call, "not_found", "nosuch.py: no such file")


def drafted(script: Script) -> None:
    script.prompt("Write a file.")
    script.say(s.CallDrafted(AGENT, 1, 0, "write", 2100))


def batch_running(script: Script) -> None:
    script.prompt("Read all.")
    batch_of_reads(script, run=7)
    script.wait(1.5)


def batch_done(script: Script) -> None:
    script.prompt("Read all.")
    batch_of_reads(script)


def batch_failed(script: Script) -> None:
    script.prompt("Read all.")
    batch_of_reads(script, fail=7)


HUNKS = (
    Hunk(
        40,
        40,
        (
            (" ", "    def price(self) -> Decimal:"),
            ("-", "        return self.price * 2  # doubled"),
            ("+", "        return self.unit_price * 2  # doubled"),
            (" ", ""),
            (" ", "    def other(self):"),
        ),
    ),
    Hunk(58, 58, ((" ", "x = 1"), ("-", "y = item.price"), ("+", "y = item.unit_price"), (" ", "z = 3"))),
    Hunk(90, 90, (("+", "added = True"),)),
)


def diffs(script: Script) -> None:
    """One file, several files, a new file."""
    script.prompt("Rename it everywhere.")
    a, b, c = script.answer("", [("edit", {"path": "shop.py"}), ("edit", {"path": ""}), ("write", {"path": "new.py"})])
    script.start(a)
    script.complete(a, ToolOutcome((), False, "shop.py", "+3 −2", DiffView("shop.py", HUNKS, 3, 2)))
    script.start(b)
    files = (
        DiffView("shop.py", HUNKS, 2, 4),
        DiffView("cart.py", HUNKS[:1], 11, 0),
        DiffView("tests/test_cart.py", HUNKS[1:], 9, 1),
    )
    script.complete(b, ToolOutcome((), False, "", "+22 −5", CardView("edit", "", children=files)))
    script.start(c)
    lines = tuple(("+", f"def f{n}(a, b='x'): return {n}") for n in range(30))
    script.complete(c, ToolOutcome((), False, "new.py", "+30", DiffView("new.py", (Hunk(0, 1, lines),), 30, 0)))


def children(script: Script) -> None:
    script.prompt("Ask five.")
    (call,) = script.answer("", [("subagents.run", {"tasks": []})])
    script.start(call)
    for name in ("reviewer", "tester", "docs", "history", "linter"):
        script.fact(e.JobStarted(f"job-{name}", "child", name, call))
    script.progress(call, view=five_children())


def five_children() -> CardView:
    return CardView(
        "5 children",
        "41k · $0.09 · 48 s",
        "running",
        (
            CardView("reviewer\tsonnet\tread src/cart.py", "12k\t48 s", "running"),
            CardView("tester\thaiku\trun pytest -q tests", "8k\t22 s", "running"),
            CardView("docs\thaiku\t“README has no example for Cart.add”", "6k\t40 s", "done"),
            CardView("history\thaiku\t“total() came with 3f2a9c”", "5k\t18 s", "done"),
            CardView("linter\thaiku\truff: command not found", "10k\t9 s", "failed"),
        ),
    )


def children_done(script: Script) -> None:
    children(script)
    view = five_children()
    rows = tuple(CardView(one.title, one.fact, "done" if one.state == "running" else one.state) for one in view.children
                 if isinstance(one, CardView))  # fmt: skip
    card = CardView("5 children", "58k · $0.13 · 1 m 04 s", "done", rows)
    script.complete("call1", ToolOutcome((), True, "", "", card), 64)


def views(script: Script) -> None:
    """What extensions may show."""
    script.prompt("Show views.")
    a, b = script.answer("", [("todo", {"items": []}), ("survey", {"name": "sizes"})])
    script.start(a)
    script.complete(a, ToolOutcome((), False, "3 items", "1 done", ListView(("write it", "test it", "ship it"))))
    script.start(b)
    rows = (("shop.py", "34"), ("cart.py", "1200"))
    script.complete(b, ToolOutcome((), False, "sizes", "", TableView(("file", "lines"), rows)))


def answer(script: Script) -> None:
    script.prompt("Explain, with a table and some code.")
    script.answer(MARKDOWN)
    script.wait(8)
    script.settle()


def reasoning(script: Script) -> None:
    script.prompt("Think first.")
    script.think("The person wants an answer.\nFirst I look at the file, ")
    script.wait(3)
    script.think("then at its tests, which say what is meant.")


def trouble(script: Script) -> None:
    """Notices, a retry that failed, an error."""
    script.say(s.Noticed(AGENT, "extension todo: error in init.lua:12: no such field", "wrong", "/extensions shows it"))
    script.say(s.Noticed(AGENT, "the model's window is 4k, not 128k", "attention"))
    script.say(s.Noticed(AGENT, "context compacted", "info"))
    script.prompt("And fail.")
    script.say(s.RetryWaiting(AGENT, "connection refused", 0, 3.0, 5, 6))
    script.wait(41)
    said = "no answer from api.example.com: connection refused"
    script.fact(e.RunEnded(script.run, "failed", failed="provider", error_kind="connection", message=said))
    script.fact(e.TurnAttemptFailed(script.turn, script.run))


def queued(script: Script) -> None:
    """Two commands at once: one runs, one has not begun."""
    script.prompt("Do both.")
    first, _ = script.answer("", [("bash", {"command": "make docs"}), ("edit", {"path": "shop.py"})])
    script.start(first)
    script.wait(4)


def parked(script: Script) -> None:
    call = one(script, command="make docs")
    script.start(call)
    script.progress(call, "compiling makers.md\n")
    script.say(s.StatusChanged(AGENT, "m:x", "", "ask", "", parked=True))


def answered(script: Script) -> None:
    script.prompt("Ask me.")
    (call,) = script.answer("", [("ask", {"question": "Which of these shall I use?"})])
    script.fact(e.ToolCallHeld(script.run, call, "external", NOTHING))
    script.fact(e.ToolCallAnswered(script.run, call, NOTHING), ToolOutcome((), False, "Which of these?", "Decimal"))


def denied(script: Script) -> None:
    """Refused with a reason, by a rule, and with nobody there."""
    script.prompt("Push it.")
    a, b, c = script.answer("", [("bash", {"command": "git push"})] * 3)
    script.fact(e.ToolCallHeld(script.run, a, "approval", NOTHING))
    script.fail(a, "permission_denied", "the person said no: I push by hand, after the review", cause="tool")
    script.fail(b, "permission_denied", "a rule says no: git push")
    script.fail(c, "permission_denied", "", unattended=True)


def children_stopped(script: Script) -> None:
    children(script)
    view = five_children()
    rows = tuple(CardView(one.title, one.fact, "stopped" if one.state == "running" else one.state)
                 for one in view.children if isinstance(one, CardView))  # fmt: skip
    script.progress("call1", view=CardView("5 children", "44k · $0.10 · 51 s", "stopped", rows))
    script.fail("call1", "cancelled", "cancelled by user", 51, effect="x", cause="interrupted", duration_ms=51_000)


def component(script: Script) -> None:
    """What an extension shows while its tool runs."""
    script.prompt("Survey it.")
    (call,) = script.answer("", [("survey", {"name": "the whole tree"})])
    script.start(call)
    parts = (ProgressView("files read", 0.4), TextView("src/cart.py holds most of it", "attention"),
             ListView(("one cycle", "two unused names")))  # fmt: skip
    script.progress(call, view=CardView("survey", "12 of 30", "running", parts))
    script.wait(3)


def thought(script: Script) -> None:
    script.prompt("Think first.")
    script.think("First I look at the file, then at its tests.")
    script.wait(4)
    script.answer("It is the count.", reasoning="First I look at the file, then at its tests.")


def long_words(script: Script) -> None:
    """Titles and facts that do not fit."""
    script.prompt("Go on with a very long prompt that does not fit on one row of any of these three terminals, which "
                  "is why it has to be wrapped, and that at a word.\n\nIts second paragraph is short.")  # fmt: skip
    a, b = script.answer("", [
        ("bash", {"command": "for name in $(git ls-files 'src/**/*.py'); do python3 -m compileall -q $name; done"}),
        ("read", {"path": "packages/application/source/components/navigation/breadcrumbs/__tests__/render.test.tsx"}),
    ])  # fmt: skip
    script.start(a)
    script.complete(a, ToolOutcome((), True, "", "exit 1", TextView("x" * 200 + "\n漢字" * 3 + "\n")), 75)
    script.start(b)
    script.complete(b, ToolOutcome((), False, "", "lines 200–400 of 1200", TextView("1\tx")), 0.1)


def notices(script: Script) -> None:
    """Lines between turns: retries, the summary, jobs, settings."""
    script.fact(e.ModelChanged(AGENT, "m:sonnet"))
    script.prompt("Go.")
    script.say(s.RetryWaiting(AGENT, "rate limited", 429, 3.0, 2, 6))
    script.wait(3)
    script.stream("Here ")
    (call,) = script.answer("Here it is.", [("bash", {"command": "npm run serve", "background": True})])
    script.start(call)
    script.fact(e.JobStarted("job1", "command", "npm run serve", call))
    script.complete(call, ToolOutcome((), False, "npm run serve", "runs in the background"))
    script.fact(e.CheckpointMade("c1", NOTHING, NOTHING, automatic=True),
                TextBody("The person wants the total fixed.\nNext: tests."))
    script.fact(e.JobEnded("job1", "failed"), ToolOutcome((Text("address in use"),), True, "", "exit 1"))
    script.settle()
    script.fact(e.ModelChanged(AGENT, "m:haiku"))
    script.say(s.ShellRun(AGENT, "sh1", "git status --short"))
    outcome = ToolOutcome((), False, "", "exit 0", TextView(" M shop.py\n"))
    script.say(s.ShellRun(AGENT, "sh1", "git status --short", outcome))


CARDS = {
    "waiting": waiting, "running": running, "done": done, "failed": failed, "stopped": stopped, "refused": refused,
    "unknown": unknown, "tool-failed": tool_failed, "drafted": drafted, "batch-running": batch_running,
    "batch-done": batch_done, "batch-failed": batch_failed, "children": children, "children-done": children_done,
    "views": views, "reasoning": reasoning, "queued": queued, "parked": parked, "answered": answered, "denied": denied,
    "children-stopped": children_stopped, "component": component, "thought": thought, "long": long_words,
}  # fmt: skip
SCREENS = {"main": main_screen, "answer": answer, "diffs": diffs, "trouble": trouble, "notices": notices}
