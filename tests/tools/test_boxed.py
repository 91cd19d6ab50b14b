"""The exit code of a command in the sandbox: never lost, whichever of its two ends is heard of first."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from panto.tools.boxed import Ending
from panto.tools.builtins import ToolSettings
from panto.tools.processes import Child, Spawner
from panto.tools.sandbox import Sandbox
from tests.tools.lab import lab, run, text_of


class Late(Spawner):
    """Hands a child over only when it has long ended, as on a machine that has much else to do."""

    async def start(self, *words: Any, **more: Any) -> Child:
        child = await super().start(*words, **more)
        await child.gone.wait()
        return child


def test_an_exit_code_is_kept_though_the_sandbox_ends_before_anybody_listens(tmp_path: Path) -> None:
    async def check() -> None:
        settings = ToolSettings(sandbox=Sandbox("require"), spawner=Late())
        async with lab(tmp_path / "ws", settings=settings) as work:
            for code in (3, 0, 137):
                reply = await work.call("bash", command=f"echo out; exit {code}")
                text = "out\n" if code == 0 else f"out\n(exit {code} after "
                assert text_of(reply).startswith(text) and reply.outcome.is_error == (code != 0)

    run(check())


ENDS = [
    ("(sleep .5; echo 3 0 >&9) & exit 0", (3, 0)),  # the outer end is heard of first
    ("printf 1 >&9; sleep .3; echo 3 2 >&9; sleep 60", (13, 2)),  # in two pieces, and the outer end never
    ("(sleep .3; echo 7 0 >&9; exec 9>&-) & kill -9 $$", (7, 0)),
    ("exit 5", (5, 0)),  # nothing is told: the sandbox could not be made
    ("kill -9 $$", (-9, 0)),
    ("exit 0", (None, 0)),
    ("(sleep .3; echo nonsense >&9) & exit 0", (None, 1)),
    ("printf 12 >&9; exit 0", (None, 0)),
    ("trap '' PIPE; while :; do printf xxxxxxxx >&9 || break; done; exit 0", (None, 0)),
]


@pytest.mark.parametrize(("program", "end"), ENDS)
def test_what_the_inner_side_tells_counts_and_silence_is_never_success(
    program: str, end: tuple[int | None, int]
) -> None:
    async def check() -> None:
        spawner, ending = Spawner(), Ending(True)
        try:
            argv = ["bash", "-c", f"exec 9>&0 </dev/null; {program}"]
            child = await spawner.start(argv, env=dict(os.environ), cwd="/", stdin=ending.write_end)
            ending.begin(child)
            code, left = await asyncio.wait_for(ending.done, 30)
            assert code == end[0] and (left == end[1] or code is None)
        finally:
            spawner.close()

    run(check())


def test_a_sandbox_that_ends_well_without_a_word_is_an_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho out\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")

    async def check() -> None:
        async with lab(tmp_path / "ws", settings=ToolSettings(sandbox=Sandbox("require"))) as work:
            failure = await work.failure("bash", command="exit 3")
            assert (failure.cls, failure.effects, failure.lost) == ("internal", "unknown", True)
            assert failure.outcome is not None and "exit code was lost" in str(failure.outcome.parts)

    run(check())


def test_the_shell_around_a_command_says_nothing_of_its_own(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=ToolSettings(sandbox=Sandbox("require"))) as work:
            assert (await work.text("bash", command="echo out; kill -9 $$")).startswith("out\n(exit 137 after ")
            text = await work.text("bash", command="echo err >&2; ls /proc/self/fd; exit 1")
            assert text.startswith("err\n0\n1\n2\n3\n(")

    run(check())


def burst(folder: Path, runs: int) -> None:
    """Many commands at once, each with a code of its own, beside programs that take all the processor there is."""

    async def check() -> None:
        async with lab(folder, settings=ToolSettings(sandbox=Sandbox("require"))) as work:
            gate = asyncio.Semaphore(16)

            async def one(number: int) -> None:
                async with gate:
                    code = number % 5
                    reply = await work.call("bash", command=f"echo {number}; exit {code}")
                    text = f"{number}\n" + (f"(exit {code} after " if code else "")
                    assert text_of(reply).startswith(text) and reply.outcome.is_error == bool(code), text_of(reply)

            await asyncio.gather(*(one(number) for number in range(runs)))

    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(3)]
    try:
        run(check())
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_no_exit_code_is_lost_under_load(tmp_path: Path) -> None:
    burst(tmp_path / "ws", 100)


@pytest.mark.long(sample=0)
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("runs", [5_000])
def test_none_is_lost_in_thousands(tmp_path: Path, runs: int) -> None:
    burst(tmp_path / "ws", runs)
