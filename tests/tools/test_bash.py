"""bash and background jobs, and what is left of them when they end, are stopped, or panto itself is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Literal

import pytest

from panto.schema.errors import ToolFailure
from panto.schema.view import TextView
from panto.tools.builtins import ToolSettings
from panto.tools.jobs import JobNotice
from panto.tools.sandbox import Sandbox
from tests.tools.lab import Lab, lab, processes, run, text_of, until

BOXES: list[Literal["off", "require"]] = ["off", "require"]


def box(setting: Literal["off", "require"]) -> ToolSettings:
    return ToolSettings(sandbox=Sandbox(setting))


def mark() -> str:
    return f"mark{uuid.uuid4().hex}"


@pytest.mark.parametrize("setting", BOXES)
def test_a_command_gives_output_exit_code_and_the_facts_of_a_card(
    tmp_path: Path, setting: Literal["off", "require"]
) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=box(setting)) as work:
            reply = await work.call("bash", command="seq 1 200")
            assert text_of(reply) == "".join(f"{n}\n" for n in range(1, 201))
            assert reply.outcome.fact.startswith("200 lines · ") and not reply.outcome.is_error
            view = reply.outcome.view
            assert isinstance(view, TextView) and view.tail and view.text.endswith("200\n")
            reply = await work.call("bash", command="echo no >&2; exit 3")
            assert text_of(reply).startswith("no\n(exit 3 after ") and reply.outcome.is_error
            assert reply.outcome.fact.startswith("exit 3 · ")
            assert text_of(await work.call("bash", command="true")) == "(no output)"
            killed = text_of(await work.call("bash", command="kill -9 $$"))
            assert "killed by signal 9" in killed or "exit 137" in killed

    run(check())


@pytest.mark.parametrize("setting", BOXES)
@pytest.mark.parametrize(
    "command",
    ["sleep 60 & echo done", "(while :; do echo x; sleep .1; done) & echo done", "setsid sleep 60 & echo done"],
)
def test_a_shell_that_leaves_something_running_returns_within_a_second(
    tmp_path: Path, command: str, setting: Literal["off", "require"]
) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=box(setting)) as work:
            await work.call("bash", command="true")
            start = time.monotonic()
            text = await work.text("bash", command=command)
            assert time.monotonic() - start < 20  # what was left goes on for a minute or for ever
            assert "done\n" in text and "still run" in text

    run(check())


@pytest.mark.parametrize("setting", BOXES)
def test_what_a_command_left_running_goes_on_and_is_ended_with_panto(
    tmp_path: Path, setting: Literal["off", "require"]
) -> None:
    async def check() -> None:
        word = mark()
        async with lab(tmp_path / "ws", settings=box(setting)) as work:
            await work.call("bash", command=f"{word}=1 setsid sleep 60 & ({word}=1 sleep 61 &) ; echo ok")
            await until(lambda: processes(word))
        await until(lambda: not processes(word))

    run(check())


def test_a_flood_on_both_streams_neither_blocks_nor_fills_memory_and_is_kept_in_a_file(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            command = "head -c 3000000 /dev/zero | tr '\\0' e >&2; seq 1 400000; echo the end"
            reply = await work.call("bash", command=command)
            text = text_of(reply)
            assert len(text) < 31_000 and text.startswith("eeee") and text.endswith("the end\n")
            assert "characters left out; all of it is in " in text
            whole = Path(reply.outcome.file).read_text()
            assert len(whole) == 3_000_000 + sum(len(f"{n}\n") for n in range(1, 400_001)) + 8
            assert Path(reply.outcome.file).stat().st_mode & 0o077 == 0
            assert reply.outcome.fact.startswith("400,001 lines")

    run(check())


def test_output_is_plain_text_and_what_is_no_utf8_is_kept_with_marks(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            command = r"printf '\e]52;c;QUJD\a\e]0;x\a\e[2J\e[?1049h\x9b31m\e[31mhi\e[0m\x00\x07 \xff\xfe\xe9\n'"
            reply = await work.call("bash", command=command)
            assert text_of(reply) == "\ufffd31mhi \ufffd\ufffd\ufffd\n"
            assert await work.text("bash", command=r"printf '10%%\r50%%\r100%%\ndone\n'") == "100%\ndone\n"

    run(check())


def test_output_is_told_while_it_comes(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            go = work.cwd / "go"
            call = asyncio.ensure_future(
                work.call("bash", command=f"echo first; while [ ! -e {go} ]; do sleep .05; done; echo second")
            )
            await until(lambda: "".join(work.said) == "first\n")
            assert not call.done()
            go.touch()
            await call
            assert "".join(work.said) == "first\nsecond\n"

    run(check())


def test_a_command_has_no_terminal_no_input_and_nobody_asks_it_anything(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            assert await work.text("bash", command="read x; echo $?; cat | wc -c") == "1\n0\n"
            assert "No such device" in await work.text("bash", command="echo hi > /dev/tty")
            command = "git init -q . && touch f && git add f && git commit"
            text = await work.text("bash", command=command)
            assert "no editor here" in text and "give answers as options" in text
            assert await work.text("bash", command="ps -o sid=,pgid=,tty= -p $$ | awk '{print ($1==$2) $3}'") == "1?\n"

    run(check())


def test_credentials_are_neither_in_the_environment_nor_shown_when_found(tmp_path: Path) -> None:
    async def check() -> None:
        os.environ["SOME_API_KEY"] = "quokka-one-123"
        os.environ["QUOKKA_KEY"] = "quokka-two-456"
        try:
            async with lab(tmp_path / "ws") as work:
                work.env_drop = frozenset(("SOME_API_KEY", "QUOKKA_KEY"))
                work.mask = ("quokka-one-123", "quokka-two-456")
                command = "env; cat /proc/$PPID/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"
                text = await work.text("bash", command=command)
                assert "quokka" not in text and "QUOKKA_KEY" not in text
                found = await work.text("bash", command="K=quokka-two-456 sleep 5 & cat /proc/$!/environ; kill $!")
                assert "quokka" not in found
                (work.cwd / "f").write_text("key = quokka-one-123\n")
                assert "quokka" not in await work.text("grep", pattern="key")
                slow = "printf quokka-; sleep .3; printf one-; sleep .3; echo 123; echo quokka-one-12"
                assert await work.text("bash", command=slow) == "[secret]\nquokka-one-12\n"
                work.env_pass = frozenset(("QUOKKA_KEY",))
                assert "[secret]" in await work.text("bash", command="echo $QUOKKA_KEY")
        finally:
            del os.environ["SOME_API_KEY"], os.environ["QUOKKA_KEY"]

    run(check())


def test_a_command_that_takes_too_long_is_ended_and_what_it_printed_kept(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            word = mark()
            command = f"echo early; export {word}=1; sleep 60 & sleep 60"
            failure = await work.failure("bash", command=command, timeout=3)
            assert (failure.cls, failure.effects) == ("timeout", "unknown")
            assert failure.outcome is not None and "early" in str(failure.outcome.parts)
            assert failure.outcome.fact.startswith("timed out · ")
            await until(lambda: not processes(word))

    run(check())


TREES = [
    "sleep 300 & sleep 300",
    "trap '' TERM; sleep 300 & sleep 300; sleep 300",
    "bash -c 'trap \"\" TERM; sleep 300 & sleep 300; sleep 300'",
    "setsid bash -c 'trap \"\" TERM; while :; do sleep 1; done' & sleep 300",
    "(setsid sleep 300 &) ; ((sleep 301 &) &) ; sleep 300",
    "python3 -c 'import os,time\nfor n in range(3):\n if os.fork()==0:\n  os.setsid()\n"
    "  if os.fork()==0: time.sleep(300)\n  os._exit(0)\ntime.sleep(300)'",
    "sh -c 'kill -STOP $$' & sleep 300",
    "trap 'while :; do sleep 1; done' TERM EXIT; sleep 300; sleep 300",
    "for i in 1 2 3 4 5 6 7 8; do (trap '' TERM HUP; sleep 300; sleep 300) & done; wait",
    "yes > /dev/null & yes | cat > /dev/null & exec sleep 300",
]


@pytest.mark.parametrize("setting", BOXES)
@pytest.mark.parametrize("tree", TREES)
def test_escape_leaves_nothing_of_a_tree_alive_before_its_deadline(
    tmp_path: Path, tree: str, setting: Literal["off", "require"]
) -> None:
    async def check() -> None:
        word = mark()
        async with lab(tmp_path / "ws", settings=box(setting)) as work:
            deadline: list[float | None] = [None]
            context = work.context(deadline=lambda: deadline[0])
            call = asyncio.ensure_future(
                work.call("bash", context, command=f"export {word}=1; echo out; touch up; {tree}")
            )
            await until((work.cwd / "up").exists)
            await until(lambda: processes(word))
            await asyncio.sleep(0.3)  # time to grow into a tree
            deadline[0] = time.monotonic() + 0.9
            context.cancelled.set()
            with pytest.raises(ToolFailure) as caught:
                await call
            assert (caught.value.cls, caught.value.effects) == ("cancelled", "unknown")
            assert caught.value.outcome is not None and "out" in str(caught.value.outcome.parts)
            await until(lambda: not processes(word))

    run(check())


PANTO = """
import asyncio, signal, sys
from pathlib import Path
from tests.tools.lab import lab

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may be run under nohup

async def main():
    async with lab(Path(sys.argv[1])) as work:
        await work.call("bash", command="{ " + sys.argv[2] + "; } & echo")
        await work.call("bash", command=sys.argv[2], background=True)
        Path(sys.argv[1], "up").touch()
        await work.call("bash", command=sys.argv[2])

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("tree", TREES[1:6])
def test_nothing_outlives_a_killed_panto(tmp_path: Path, tree: str, number: int) -> None:
    word = mark()
    command = f"export {word}=1; {tree}"
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    panto = subprocess.Popen([sys.executable, "-c", PANTO, str(tmp_path), command], env=env, cwd=root)
    try:
        run(until((tmp_path / "up").exists))
        run(until(lambda: processes(word)))
        time.sleep(0.3)  # time to grow into trees
        panto.send_signal(number)
        panto.wait(30)
        run(until(lambda: not [pid for pid in processes(word) if pid != panto.pid]))
    finally:
        panto.kill()
        panto.wait()


def test_a_background_job_is_read_as_it_goes_and_ended(tmp_path: Path) -> None:
    async def check() -> None:
        heard: list[JobNotice] = []
        async with lab(tmp_path / "ws") as work:
            work.settings.jobs.listen = heard.append
            word = mark()
            wait = "while [ ! -e go ]; do sleep .05; done"
            command = f"export {word}=1; echo one; {wait}; echo two; sleep 60 & sleep 60"
            assert "job-e" in await work.text("bash", command=command, background=True)
            job = work.settings.jobs.get("job-e")
            await until(lambda: job.output.characters == 4)
            assert (await work.text("bash_output", job="job-e")).startswith("one\n(job-e: running")
            (work.cwd / "go").touch()
            await until(lambda: job.output.characters == 8)
            assert (await work.text("bash_output", job="job-e")).startswith("two\n(job-e: running")
            assert (await work.text("bash_output", job="job-e", since=0)).startswith("one\ntwo\n")
            assert "killed by signal 15" in await work.text("bash_kill", job="job-e")
            assert not processes(word)
            await until(lambda: len(heard) == 2)
            assert [(n.job, n.status) for n in heard] == [("job-e", ""), ("job-e", "cancelled")]
            assert "there are: job-e" in (await work.failure("bash_output", job="jobX")).message
            await work.call("bash", command="exit 4", background=True)
            await until(lambda: len(heard) == 4)
            assert heard[-1].status == "failed" and heard[-1].outcome is not None
            assert heard[-1].outcome.fact.startswith("exit 4 · ")

    run(check())


def test_escape_does_not_end_a_background_job(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            context = work.context()
            await work.call("bash", context, command="sleep 60", background=True)
            context.cancelled.set()
            await asyncio.sleep(0.2)
            assert [job.id for job in work.settings.jobs.running()] == ["job-e"]

    run(check())


def test_a_command_that_cannot_start_fails_in_words(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            assert "not a directory" in (await work.failure("bash", command="true", cwd="nowhere")).message
            assert "NUL" in (await work.failure("bash", command="echo \0")).message
            long = await work.failure("bash", command="echo " + "x" * 3_000_000)
            assert "rgument list too long" in long.message

    run(check())


def test_two_hundred_commands_leave_no_descriptor_thread_or_process_behind(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            await burst(work)
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(10):
                await burst(work)
            await until(lambda: len(os.listdir("/proc/self/fd")) <= before)

    async def burst(work: Lab) -> None:
        await asyncio.gather(*(work.call("bash", command=f"echo {n}") for n in range(20)))

    run(check())


def test_the_keeper_is_started_anew_if_it_is_killed(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            await work.call("bash", command="true")
            keeper = work.settings.spawner.keeper
            assert keeper is not None
            os.kill(keeper, signal.SIGKILL)
            await until(lambda: keeper not in processes("keeper.py"))
            assert await work.text("bash", command="echo again") == "again\n"

    run(check())
