"""Standard output that never holds up the loop."""

import asyncio
import os
from pathlib import Path

from panto.remote.stdio import FULL, Output


def _pipe() -> tuple[int, int]:
    return os.pipe()


def test_a_slow_reader_gets_every_byte_in_order_while_the_loop_goes_on() -> None:
    async def run() -> tuple[bytes, int]:
        read, write = _pipe()
        out = Output(write)
        lines = [b"%d\n" % n * 50 for n in range(5000)]
        for line in lines:
            out.put(line)
        assert out.full == (sum(map(len, lines)) > FULL + 65536)
        got = b""
        turns = 0
        done = asyncio.ensure_future(out.drained())
        while not done.done():
            got += await asyncio.to_thread(os.read, read, 65536)
            turns += 1
        os.close(write)
        while piece := os.read(read, 65536):
            got += piece
        os.close(read)
        assert got == b"".join(lines)
        return got, turns

    assert asyncio.run(run())[1] > 1


def test_a_reader_that_goes_away_is_told_once_and_no_error() -> None:
    async def run() -> None:
        read, write = _pipe()
        told: list[int] = []
        out = Output(write, lambda: told.append(1))
        out.put(b"x" * 200_000)
        os.close(read)
        await out.drained()
        out.put(b"more")
        assert out.closed
        assert not out.failed
        assert told == [1]
        os.close(write)

    asyncio.run(run())


def test_a_file_and_a_full_disk_are_written_and_said(tmp_path: Path) -> None:
    async def run() -> None:
        with (tmp_path / "out").open("wb") as file:
            out = Output(file.fileno())
            out.put(b"y" * 300_000)
            await out.drained()
        assert (tmp_path / "out").stat().st_size == 300_000
        with open("/dev/full", "wb", buffering=0) as full:
            out = Output(full.fileno())
            out.put(b"z")
            await out.drained()
            assert out.closed
            assert "No space" in out.failed

    asyncio.run(run())


def test_a_reader_that_takes_nothing_is_given_up_once_the_program_was_told_to_end() -> None:
    async def run() -> None:
        read, write = _pipe()
        told: list[int] = []
        out = Output(write, lambda: told.append(1))
        out.put(b"x" * 200_000)
        out.hurry()
        out.hurry()
        await asyncio.wait_for(out.drained(), 30)
        assert out.closed
        assert not out.failed
        assert told == []
        os.close(read)
        os.close(write)

    asyncio.run(run())
