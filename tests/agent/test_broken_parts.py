"""Tools, providers, readers and observers may raise what they like: the run goes on, or says why it does not."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panto.schema import ops
from panto.schema.errors import ToolFailure
from panto.schema.events import ToolCallFailed, ToolCallHeld, TurnAttemptFailed, TurnSettled
from panto.tools.tool import ToolContext
from tests.agent.test_turns import requests, told
from tests.scheduler.house import Hand, call, house, scripted


class Odd(BaseException):
    """Nobody expects it."""


@pytest.mark.parametrize("kind", [ValueError, Odd, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("mutates", [True, False])
def test_whatever_a_tool_raises_its_siblings_finish_and_the_run_goes_on(
    tmp_path: Path, kind: type[BaseException], mutates: bool
) -> None:
    async def main() -> None:
        async def raises(arguments: Mapping[str, Any], context: ToolContext) -> str:
            raise kind("oops \ud800")

        async def works(arguments: Mapping[str, Any], context: ToolContext) -> str:
            await asyncio.sleep(0.05)
            return "fine"

        tools = [Hand("raises", raises, mutates=mutates), Hand("works", works)]
        tables = scripted({"calls": [call("raises"), call("works")]}, {"text": "I see."})
        async with house(tmp_path, tables, tools=tools) as at:
            await at.prompt("go")
            (failed,) = at.events(ToolCallFailed)
            assert isinstance(failed, ToolCallFailed) and failed.cls == "internal"
            assert failed.outcome == ("unknown" if mutates else "known")
            assert kind.__name__ in failed.message and "test_broken_parts.py" in failed.message
            assert at.records()[-1]["text"] == "I see." and len(tools[0].ran) == 1

    asyncio.run(main())


def test_a_call_that_cannot_even_be_looked_at_is_declined_and_its_siblings_run(tmp_path: Path) -> None:
    async def main() -> None:
        class Broken(Hand):
            def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
                raise ValueError("embedded null byte")

        async def works(arguments: Mapping[str, Any], context: ToolContext) -> str:
            return "fine"

        tools = [Broken("broken", works), Hand("works", works)]
        calls = [call("broken"), call("read", path="a\0b"), call("write", path="a\0b", content="x"), call("works")]
        async with house(tmp_path, scripted({"calls": calls}, {"text": "I see."}), tools=tools) as at:
            await at.prompt("go")
            assert sorted(str(r["status"]) for r in at.results()) == ["error", "error", "error", "ok"]
            assert "embedded null byte" in told(requests(at)[1].messages[-1])
            assert not tools[0].ran and at.records()[-1]["text"] == "I see."

    asyncio.run(main())


def test_a_path_that_could_mean_two_files_is_told_to_the_model(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("read", path="Shot 1.png")]}, {"text": "I see."})
        async with house(tmp_path, tables, mode="ask") as at:
            for space in ("\u202f", "\u00a0"):
                (at.cwd / f"Shot{space}1.png").write_text("x")
            await at.prompt("go")
            assert "several" in told(requests(at)[1].messages[-1])
            assert at.records()[-1]["status"] == "completed"

    asyncio.run(main())


@pytest.mark.parametrize("cls", ["conflict", "unavailable", "timeout", "invalid_input"])
def test_a_question_that_cannot_be_prepared_declines_the_call_whatever_the_reason(tmp_path: Path, cls: Any) -> None:
    async def main() -> None:
        async def look() -> None:
            raise ToolFailure("the file has changed since it was read", cls)

        async def works(arguments: Mapping[str, Any], context: ToolContext) -> str:
            return "fine"

        tool = Hand("edits", works, approval="edit", look=look)
        async with house(tmp_path, scripted({"calls": [call("edits")]}, {"text": "."}), tools=[tool], mode="ask") as at:
            await at.prompt("go")
            assert not at.events(ToolCallHeld) and not tool.ran
            assert [str(r["text"]) for r in at.results()] == ["the file has changed since it was read"]
            assert at.records()[-1]["status"] == "completed"

    asyncio.run(main())


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError])
@pytest.mark.parametrize("attended", [True, False])
def test_a_provider_that_breaks_fails_the_attempt_and_nobody_waits_for_ever(
    tmp_path: Path, kind: type[BaseException], attended: bool
) -> None:
    async def main() -> None:
        async def broken(*args: Any, **kwargs: Any) -> Any:
            raise kind("oops")

        async with house(tmp_path, scripted({"text": "Fine."}), attended=attended) as at:
            box = at.agent.mailbox
            whole, box.ports = box.ports, dataclasses.replace(box.ports, complete=broken)
            await at.prompt("go")
            assert at.events(TurnAttemptFailed)
            assert [e.status for e in at.events(TurnSettled) if isinstance(e, TurnSettled)] == (
                [] if attended else ["failed"]
            )
            box.ports = whole
            await (at.client.submit(ops.Continue()) if attended else at.client.submit(ops.Prompt("again")))
            await at.rest()
            assert at.records()[-1]["text"] == "Fine."

    asyncio.run(main())


def test_readers_and_observers_that_raise_disturb_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        class Observer:
            def observe(self, name: str, event: dict[str, object]) -> None:
                heard.append(name)
                raise ValueError("an observer's own")

        def reader(update: object) -> None:
            raise ValueError("a reader's own")

        heard: list[str] = []
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(str(context.get("exception"))))
        tables = scripted({"calls": [call("ls")]}, {"text": ["a"] * 5})
        async with house(tmp_path, tables, observer=Observer()) as at:
            at.scheduler.readers.insert(0, reader)
            result = await at.scheduler.run(at.agent, "go").wait()
            assert (result.status, result.text) == ("completed", "aaaaa")
            assert at.records()[-1]["status"] == "completed"
        turn = ["turn_start", "step_start", "step_end", "step_start", "step_end", "turn_end"]
        assert heard == ["session_start", *turn]
        assert {"an observer's own", "a reader's own"} <= set(reported)

    asyncio.run(main())
