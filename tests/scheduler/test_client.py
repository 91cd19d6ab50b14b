"""What a person does around turns: forks, titles, modes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from panto.scheduler.commands import Command, CommandContext
from panto.schema import ops, queries
from panto.schema.errors import UsageError
from panto.schema.events import ModeChanged
from panto.schema.signals import InputReturned, Noticed, StatusChanged, Update
from tests.scheduler.house import call, house, scripted


def test_a_fork_from_before_a_turn_gives_its_words_back_to_be_edited(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "One."}, {"text": "Two."}, {"text": "Three."})) as at:
            await at.prompt("first")
            await at.prompt("second")
            turns = await at.client.ask(queries.AskTurns())
            before = at.client.primary
            await at.client.submit(ops.Fork(turns[1].turn))
            assert at.client.primary != before
            await at.until(lambda: any(isinstance(u, InputReturned) for u in at.seen))
            assert [u.text for u in at.seen if isinstance(u, InputReturned)] == ["second"]
            assert not at.agent.session.state.inputs
            await at.prompt("another second")
            assert [t.text for t in await at.client.ask(queries.AskTurns())] == ["first", "another second"]

    asyncio.run(main())


def test_a_mode_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted()) as at:
            with pytest.raises(UsageError, match="say which mode"):
                await at.client.submit(ops.RunCommand("/mode"))
            with pytest.raises(UsageError, match="no command /nosuch"):
                await at.client.submit(ops.RunCommand("/nosuch"))

    asyncio.run(main())


def test_a_persons_own_command_goes_along_with_the_next_prompt_unless_hidden(tmp_path: Path) -> None:
    async def main() -> None:
        from tests.agent.test_turns import requests, told

        async with house(tmp_path, scripted({"text": "I saw it."})) as at:
            await at.client.submit(ops.RunShell("echo seen"))
            await at.client.submit(ops.RunShell("echo secret", hidden=True))
            assert not at.agent.in_turn and not requests(at)
            await at.prompt("what did it print?")
            sent = "\n".join(told(m) for m in requests(at)[0].messages)
            assert "seen" in sent and "secret" not in sent
            (turn,) = await at.client.ask(queries.AskTurns())
            assert turn.text == "what did it print?"

    asyncio.run(main())


def test_a_rewind_puts_files_back_only_when_asked(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"calls": [call("write", path="f", content="new\n")]}, {"text": "Done."})
        async with house(tmp_path, tables) as at:
            await at.prompt("write it")
            (turn,) = await at.client.ask(queries.AskTurns())
            assert turn.files
            await at.client.submit(ops.Rewind(turn.turn, files=True))
            assert not (at.cwd / "f").exists()

    asyncio.run(main())


def test_a_rewind_with_files_says_what_commands_did_that_it_cannot_take_back(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(
            {"calls": [call("write", path="f", content="new\n")]},
            {"calls": [call("bash", command="echo x > made; echo y >> f")]}, {"text": "Done."},
        )  # fmt: skip
        async with house(tmp_path, tables, mode="yolo") as at:
            (at.cwd / "old").write_text("before")
            os.utime(at.cwd / "old", (1, 1))
            await at.prompt("write it")
            (turn,) = await at.client.ask(queries.AskTurns())
            updates = at.client.subscribe()
            await at.client.submit(ops.Rewind(turn.turn, files=True))
            said = [u.text async for u in _until(updates, Noticed)][-1].splitlines()
            assert said == [
                "left alone  f: was changed since, by a command or by you",
                "cannot be taken back  $ echo x > made; echo y >> f",
                "changed since then, by a command or by you  made",
            ]

    asyncio.run(main())


def test_rewind_counts_from_the_last_turn_and_takes_no_word_for_a_number(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted(*({"text": f"answer {number}"} for number in range(4)))
        async with house(tmp_path, tables) as at:
            with pytest.raises(UsageError, match="no turn to take back"):
                await at.client.submit(ops.RunCommand("/rewind"))
            for text in ("one", "two", "three", "four"):
                await at.prompt(text)

            async def left() -> list[str]:
                return [row.text for row in await at.client.ask(queries.AskTurns()) if row.state != "superseded"]

            await at.client.submit(ops.RunCommand("/rewind 1"))
            assert await left() == ["one", "two", "three"]
            for wrong in ("0", "4", "all", "1 2", "file"):
                with pytest.raises(UsageError, match="how many of the 3 turns"):
                    await at.client.submit(ops.RunCommand(f"/rewind {wrong}"))
            await at.client.submit(ops.RunCommand("/rewind files 2"))
            assert await left() == ["one"]

    asyncio.run(main())


async def _until(updates: AsyncIterator[Update], kind: type[Noticed]) -> AsyncIterator[Noticed]:
    """What comes of a kind, up to the first one."""
    async with asyncio.timeout(30):
        async for update in updates:
            if isinstance(update, kind):
                yield update
                return


def test_help_keeps_a_long_usage_and_its_meaning_apart(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "a"})) as at:
            usage = "[files=…] [most=…] question=…"

            async def nothing(arguments: str, context: CommandContext) -> None:
                pass

            at.client.commands.register(Command("map", "asks many files", nothing, usage))
            updates = at.client.subscribe()
            await at.client.submit(ops.RunCommand("/help"))
            (said,) = [u.text async for u in _until(updates, Noticed)]
            lines = said.splitlines()
            assert lines[lines.index(f"/map {usage}") + 1] == " " * 34 + "asks many files"
            assert "/fork".ljust(34) + "a session of its own from here" in lines

    asyncio.run(main())


def test_an_effort_that_the_model_does_not_have_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        tables: dict[str, Any] = scripted({"text": "a"})
        tables["fake"]["models"] |= {"n": {"id": "n", "context": 9_000, "reasoning": ["low", "high"]}}
        async with house(tmp_path, tables) as at:
            with pytest.raises(UsageError, match="'high' is no effort of fake:m") as none:
                await at.client.submit(ops.RunCommand("/reasoning high"))
            assert none.value.hint == "it has none to choose from"
            await at.client.submit(ops.SetModel("fake:n"))
            with pytest.raises(UsageError) as other:
                await at.client.submit(ops.RunCommand("/reasoning hihg"))
            assert other.value.hint == "low, high"
            await at.client.submit(ops.RunCommand("/reasoning high"))
            assert at.agent.reasoning == "high"

    asyncio.run(main())


def test_an_image_that_the_model_cannot_see_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        import io

        from PIL import Image as Picture

        from panto.schema.messages import Image

        made = io.BytesIO()
        Picture.new("RGB", (4, 4)).save(made, "PNG")
        image = Image("image/png", made.getvalue(), "dot.png")
        for sees in (False, True):
            root = tmp_path / str(sees)
            root.mkdir()
            tables: dict[str, Any] = scripted({"text": "A dot."})
            tables["fake"]["models"]["m"]["images"] = sees
            async with house(root, tables) as at:
                updates = at.client.subscribe()
                await at.prompt("what is this?", images=(image,))
                at.client.show("end")
                (first,) = [u.text async for u in _until(updates, Noticed)]
                assert first == ("end" if sees else "fake:m takes no images: it is told that one is left out")

    asyncio.run(main())


def test_a_pasted_image_is_made_small_enough_before_it_enters_history(tmp_path: Path) -> None:
    async def main() -> None:
        import io

        from PIL import Image as Picture

        from panto.schema.messages import Image
        from tests.agent.test_turns import requests

        made = io.BytesIO()
        Picture.effect_noise((3000, 2500), 90).save(made, "PNG")
        async with house(tmp_path, scripted({"text": "Noise."})) as at:
            await at.prompt("what is this?", images=(Image("image/png", made.getvalue(), "noise.png"),))
            (sent,) = [p for m in requests(at)[0].messages for p in m.parts if isinstance(p, Image)]
            assert len(sent.data) < 3_600_000 < len(made.getvalue())
            with pytest.raises(UsageError, match=r"x\.png cannot be read"):
                await at.client.submit(ops.Prompt("and this?", images=(Image("image/png", b"no image", "x.png"),)))

    asyncio.run(main())


def test_a_fork_from_before_what_followed_a_failed_attempt_stands_on_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        bad = {"error": {"kind": "invalid_request", "status": 400, "message": "no"}}
        async with house(tmp_path, scripted({"text": "One."}, bad, {"text": "Three."}, {"text": "Anew."})) as at:
            for text in ("first", "second", "third"):
                await at.prompt(text)
            states = [t.state for t in await at.client.ask(queries.AskTurns())]
            assert states == ["completed", "failed", "completed"]
            await at.client.submit(ops.Fork((await at.client.ask(queries.AskTurns()))[2].turn))
            assert not at.agent.status().parked and at.agent.session.state.turn is None
            rows = await at.client.ask(queries.AskTurns())
            assert [(t.text, t.state) for t in rows] == [("first", "completed"), ("second", "failed")]
            await at.prompt("third, but otherwise")
            assert (await at.client.ask(queries.AskTurns()))[-1].state == "completed"

    asyncio.run(main())


def test_a_person_ends_a_background_job_and_the_model_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        from tests.agent.test_turns import requests, told

        tables = scripted(
            {"calls": [call("bash", command="echo begun; exec sleep 300", background=True)]}, {"text": "Started."},
            {"text": "I see."},
        )  # fmt: skip
        async with house(tmp_path, tables, mode="yolo") as at:
            await at.prompt("start it")
            (job,) = at.agent.session.state.jobs
            with pytest.raises(UsageError, match="there is no job 'job-none'"):
                await at.client.submit(ops.StopJob("job-none"))
            await at.client.submit(ops.StopJob(job))
            await at.until(lambda: not at.agent.session.state.jobs)
            await at.prompt("and now?")
            assert job in "\n".join(told(m) for m in requests(at)[-1].messages)

    asyncio.run(main())


def test_how_full_the_context_is_stands_there_as_soon_as_a_session_is_opened_again(tmp_path: Path) -> None:
    long = "word " * 2000
    usage = {"input": 4000, "output": 500}
    replies = [{"text": long, "usage": usage} for _ in range(4)]

    async def main() -> None:
        async with house(tmp_path, scripted(*replies, {"text": "In short."})) as at:
            assert at.agent.status().context_used == 0
            await at.prompt("first")
            used = at.agent.status().context_used
            assert used == 4500
            id = at.client.primary
        async with house(tmp_path, scripted(*replies, {"text": "In short."}), resume=id) as at:
            assert at.agent.status().context_used == used
            for text in ("second", "third", "fourth"):
                await at.prompt(text)
            await at.client.submit(ops.Compact())
            after = at.agent.status().context_used
            assert 0 < after < used + 3 * 2500
        async with house(tmp_path, scripted(), resume=id) as at:
            assert at.agent.status().context_used == after
            await at.client.submit(ops.Rewind((await at.client.ask(queries.AskTurns()))[-1].turn))
            assert 0 < at.agent.status().context_used != after

    asyncio.run(main())


def test_a_mode_of_the_run_is_not_recorded_and_ends_with_it_or_when_a_person_chooses_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "One."}), mode="ask", run_mode="yolo") as at:
            await at.prompt("hello")
            id = at.client.primary
            assert at.agent.status().mode == "yolo" and not at.events(ModeChanged)
            await at.client.submit(ops.NewSession())
            assert at.agent.mode == "yolo"
        async with house(tmp_path, scripted(), mode="ask", resume=id) as at:
            assert at.agent.mode == "ask"
            await at.client.submit(ops.SetMode("auto"))
        async with house(tmp_path, scripted(), mode="ask", resume=id, run_mode="plan") as at:
            assert at.agent.mode == "plan"
            at.seen.clear()
            await at.client.submit(ops.SetMode("yolo"))
            await at.until(lambda: any(isinstance(u, StatusChanged) for u in at.seen))
            assert [u.mode for u in at.seen if isinstance(u, StatusChanged)] == ["yolo"]
        async with house(tmp_path, scripted(), mode="ask", resume=id) as at:
            assert at.agent.mode == "yolo"  # chosen in the session, it belongs to it

    asyncio.run(main())
