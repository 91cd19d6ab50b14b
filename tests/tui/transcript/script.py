"""Writes facts and signals as an engine would: one agent's session, by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from panto.schema import events as e
from panto.schema import signals as s
from panto.schema.bodies import Body, MessageBody, ResultBody, TextBody, ToolOutcome
from panto.schema.codec import Digest
from panto.schema.messages import Finish, Json, Message, ModelResult, Reasoning, Text, ToolCall, Usage
from panto.schema.queries import History
from panto.schema.view import DiffView, Hunk, TextView, View

NOW = 1_750_000_000.0
AGENT = "a" * 32
NOTHING = Digest("0" * 64)


class Script:
    """Each method appends what an engine would say; `updates` holds it all, `time` is the present moment."""

    def __init__(self, tell: Callable[[s.Update], None] | None = None) -> None:
        self.updates: list[s.Update] = []
        self.time = NOW
        self.tell = tell
        self._seq = 0
        self._turns = 0
        self._inputs = 0
        self._step = 0
        self._calls = 0
        self.run = ""
        self.turn = ""

    # ---------------------------------------------------------------- raw

    def fact(self, event: e.AnyEvent, body: Body | None = None) -> None:
        self._seq += 1
        self.say(s.Fact(AGENT, self._seq, 0, self.time, event, body))

    def say(self, update: s.Update) -> None:
        self.updates.append(update)
        if self.tell is not None:
            self.tell(update)

    def wait(self, seconds: float) -> None:
        self.time += seconds

    def history(self, start: tuple[int, int] | None = None) -> History:
        return History(tuple(update for update in self.updates if isinstance(update, s.Fact)), start)

    # ---------------------------------------------------------------- turns

    def submit(self, text: str, when: str = "step") -> str:
        self._inputs += 1
        key = f"input{self._inputs}"
        body = MessageBody(Message("user", (Text(text),)))
        self.fact(e.InputSubmitted(key, NOTHING, when), body)  # type: ignore[arg-type]
        return key

    def accept(self, key: str, text: str) -> None:
        self.fact(e.InputAccepted(self.run, key, NOTHING), MessageBody(Message("user", (Text(text),))))

    def prompt(self, text: str) -> None:
        """A person's prompt starts a turn."""
        self._turns += 1
        self.turn, self.run = f"turn{self._turns}", f"run{self._turns}"
        key = self.submit(text)
        self.fact(e.TurnStarted(self.turn, self.run))
        self.fact(e.RunCreated(self.run, self.turn))
        self.accept(key, text)
        self.begin_step()

    def begin_step(self) -> None:
        self._step += 1
        self.fact(e.ModelStepPrepared(self.run, self._step, NOTHING))
        self.fact(e.ModelStepStarted(self.run, self._step, "effect"))

    def stream(self, text: str, size: int = 7) -> None:
        for at in range(0, len(text), size):
            self.say(s.TextStreamed(AGENT, self._step, text[at : at + size]))

    def think(self, text: str) -> None:
        self.say(s.ReasoningStreamed(AGENT, self._step, text))

    def answer(
        self,
        text: str = "",
        calls: Sequence[tuple[str, dict[str, object]]] = (),
        reasoning: str = "",
        usage: Usage | None = None,
        cost: float = 0.01,
    ) -> list[str]:
        """The model's answer is complete; returns the ids of its calls."""
        parts: list[Text | Reasoning | ToolCall] = []
        if reasoning:
            parts.append(Reasoning(reasoning))
        if text:
            parts.append(Text(text))
        parts += [ToolCall(name, Json(json.dumps(arguments))) for name, arguments in calls]
        finish = Finish("tool_calls" if calls else "stop")
        usage = usage or Usage(input=4000, output=130)
        result = ModelResult(Message("assistant", tuple(parts)), finish, usage)
        self.fact(e.ModelStepCompleted(self.run, self._step, "effect", NOTHING, usage, cost), ResultBody(result))
        ids = []
        bindings = []
        for index, (name, _) in enumerate(calls):
            self._calls += 1
            ids.append(f"call{self._calls}")
            bindings.append(e.CallBinding(ids[-1], index, name))
        if calls:
            self.fact(e.ToolStepOpened(self.run, self._step, tuple(bindings)))
        return ids

    def settle(self) -> None:
        self.fact(e.RunEnded(self.run, "completed"))
        self.fact(e.TurnSettled(self.turn, "completed"))

    def stop(self) -> None:
        self.fact(e.InterruptRequested(self.run))
        self.fact(e.RunEnded(self.run, "stopped", stopped="cancelled"))
        self.fact(e.TurnStopped(self.turn, "cancelled"))

    # ---------------------------------------------------------------- calls

    def start(self, call: str, arguments: dict[str, object] | None = None) -> None:
        body = TextBody(json.dumps(arguments)) if arguments is not None else None
        self.fact(e.ToolCallStarted(self.run, call, "effect", NOTHING), body)

    def progress(self, call: str, text: str = "", view: View | None = None) -> None:
        self.say(s.ToolProgressed(AGENT, call, text, view))

    def complete(self, call: str, outcome: ToolOutcome, took: float = 0.1) -> None:
        self.wait(took)
        self.fact(e.ToolCallCompleted(self.run, call, "effect", NOTHING, round(took * 1000)), outcome)

    def fail(self, call: str, cls: str, message: str, took: float = 0.1, **more: object) -> None:
        self.wait(took)
        outcome = more.pop("outcome", "known")
        self.fact(e.ToolCallFailed(self.run, call, outcome, cls, message, **more))  # type: ignore[arg-type]


def shop_diff() -> DiffView:
    """The diff of the wireframes."""
    lines = (
        (" ", ""),
        (" ", "    def total(self):"),
        ("-", "        t = 0"),
        ("-", "        for i in self.items:"),
        ("-", "            t = t + i.price"),
        ("-", "        return t"),
        ("+", '        """Sum over price times count."""'),
        ("+", "        return sum(i.price * i.count for i in self.items)"),
        (" ", ""),
    )
    return DiffView("shop.py", (Hunk(18, 18, lines),), 2, 4)


def pytest_output() -> str:
    """200 lines."""
    lines = [f"tests/test_cart.py::test_case_{n} PASSED" for n in range(1, 198)]
    lines += [
        "tests/test_cart.py .................................................................. [ 99%]",
        "tests/test_shop.py ..                                                                 [100%]",
        "200 passed in 2.94s",
    ]
    return "\n".join(lines) + "\n"


def main_screen(script: Script) -> None:
    """The main screen of the design: a turn with every common card, one command still running."""
    script.prompt("Where is the price read?")
    said = "Nothing else reads the price column, so the change stays in one place."
    script.answer(said, usage=Usage(12000, 400), cost=0.03)
    script.wait(8)
    script.settle()
    script.wait(60)
    script.prompt("Fix the total, then run the tests. Look at @shop.py first.")
    script.wait(2)
    (read,) = script.answer(
        "The price is added once per item, whatever the count. I will fix `total` and run the tests.",
        [("read", {"path": "shop.py"})],
    )
    script.start(read)
    script.complete(read, ToolOutcome((), False, "shop.py", "34 lines", TextView("1\timport x")), 0.01)
    script.begin_step()
    edit, run = script.answer("", [("edit", {"path": "shop.py"}), ("bash", {"command": "python3 -m pytest -q tests"})])
    script.start(edit)
    script.complete(edit, ToolOutcome((), False, "shop.py", "+2 −4", shop_diff()), 0.02)
    script.start(run)
    output = TextView(pytest_output(), tail=True)
    script.complete(run, ToolOutcome((), False, "python3 -m pytest -q tests", "200 lines", output), 3.1)
    script.begin_step()
    (ruff,) = script.answer("", [("bash", {"command": "ruff check ."})])
    script.start(ruff)
    script.complete(
        ruff, ToolOutcome((), True, "ruff check .", "exit 127", TextView("bash: ruff: command not found\n")), 0.1
    )
    script.begin_step()
    batch_of_reads(script)
    script.begin_step()
    (make,) = script.answer(
        "The tests pass. Ruff is not installed here, so I check the style by hand and build the manual.",
        [("bash", {"command": "make docs"})],
    )
    script.start(make)
    script.progress(make, "compiling manual.md\n")
    script.progress(make, "compiling makers.md\n")
    script.submit("also check the README")
    script.wait(12.4)


def batch_of_reads(script: Script, count: int = 10, fail: int = -1, run: int | None = None) -> list[str]:
    """Ten reads in one step; `fail`: that one is not there; `run`: only so many are done."""
    ids = script.answer("", [("read", {"path": f"part-{n}.txt"}) for n in range(count)])
    for call in ids:
        script.start(call)
    for n, call in enumerate(ids):
        if run is not None and n >= run:
            break
        if n == fail:
            script.fail(call, "not_found", f"part-{n}.txt: not found")
        else:
            script.complete(call, ToolOutcome((), False, f"part-{n}.txt", "8 lines", TextView("x\n" * 8)), 0.01)
    return ids
