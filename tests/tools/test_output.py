"""What a finished program printed is all there, also where reading it takes its time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

from panto.tools.output import Output
from tests.tools.lab import run


class Slow(Output):
    """Takes half a second for each piece, as on a machine that has much else to do."""

    def _take(self, text: str, last: bool) -> None:
        time.sleep(0.5)
        super()._take(text, last)


def test_what_is_in_the_pipe_is_waited_for_though_something_holds_it(tmp_path: Path) -> None:
    async def check() -> None:
        output = Slow(str(tmp_path), ())
        held = os.dup(output.write_end)
        try:
            os.write(held, b"one\n")
            output.begin()
            await asyncio.sleep(0.2)  # the first piece is on its way
            os.write(held, b"two\n")
            await output.settle(0.05)
            assert output.text() == "one\ntwo\n" and not output.ended.is_set()
            await output.settle(0.05)
        finally:
            os.close(held)
        await output.settle(10)
        assert output.ended.is_set()
        await output.settle(0)

    run(check())


def test_what_comes_after_is_not_waited_for(tmp_path: Path) -> None:
    async def check() -> None:
        output = Output(str(tmp_path), ())
        held = os.dup(output.write_end)
        stop = threading.Event()

        def flood() -> None:
            while not stop.is_set():
                os.write(held, b"x" * 1000)
            os.close(held)

        output.begin()
        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            await asyncio.wait_for(output.settle(0.1, 1_000), 30)
            assert output.characters > 0 and not output.ended.is_set()
        finally:
            stop.set()
            flooding.join()
        await output.settle(10)

    run(check())
