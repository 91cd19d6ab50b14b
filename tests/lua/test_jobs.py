"""The buffer between a job and Lua: every delta once, in order, whenever it is read, at a cost that grows with it."""

import asyncio
import fcntl
import os
import resource
import time

from hypothesis import given
from hypothesis import strategies as st

from panto.lua.api.jobs import Slot
from panto.scheduler.job import Job
from panto.schema.signals import ReasoningStreamed, TextStreamed

STEPS = st.lists(st.sampled_from(["text", "reasoning", "read one", "read all"]), max_size=60)


async def _never(deadline: float | None) -> None:
    """Nobody stops these jobs."""


def filled() -> tuple[Job, Slot]:
    """A job, and a slot that follows it as the table of jobs does."""
    job, slot = Job("j", "a", _never, None), Slot(1, None)

    def heard(settled: bool) -> None:
        slot.take(job)

    job.on_ready(heard)
    return job, slot


def test_a_reader_is_woken_by_a_descriptor_of_any_number() -> None:
    async def fill(high: int) -> None:
        job, slot = Job("j", "a", _never, None), Slot(1, high)
        job.put(TextStreamed("a", 1, "hello"))
        slot.take(job)
        slot.release()

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2048 if hard == resource.RLIM_INFINITY else min(hard, 2048)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    read, write = os.pipe()
    try:
        asyncio.run(fill(fcntl.fcntl(write, fcntl.F_DUPFD, most - 48)))
        assert os.read(read, 10) == b"."
    finally:
        os.close(read)
        os.close(write)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def joined(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours of one kind as one."""
    out: list[tuple[str, str]] = []
    for kind, text in pieces:
        if out and out[-1][0] == kind:
            out[-1] = (kind, out[-1][1] + text)
        else:
            out.append((kind, text))
    return out


@given(STEPS)
def test_every_delta_is_read_once_and_in_order(steps: list[str]) -> None:
    async def work() -> None:
        job, slot = filled()
        put: list[tuple[str, str]] = []
        got: list[tuple[str, str]] = []

        def read() -> bool:
            slot.take(job)
            record = slot.pop()
            if record is not None:
                got.append((str(record["type"]), str(record["text"])))
            return record is not None

        for number, step in enumerate(steps):
            if step == "text":
                job.put(TextStreamed("a", 1, f"{number} "))
                put.append(("text_delta", f"{number} "))
            elif step == "reasoning":
                job.put(ReasoningStreamed("a", 1, f"{number} "))
                put.append(("reasoning_delta", f"{number} "))
            elif step == "read one":
                read()
            else:
                while read():
                    pass
        while read():
            pass
        assert joined(got) == joined(put)

    asyncio.run(work())


def test_what_nobody_reads_is_joined_once() -> None:
    def cost(count: int) -> float:
        best = 1e9
        for _ in range(5):
            job, slot = filled()
            begun = time.process_time()
            for _ in range(count):
                job.put(TextStreamed("a", 1, "x" * 1000))
                slot.take(job)
            record = slot.pop()
            best = min(best, time.process_time() - begun)
            assert record is not None and len(str(record["text"])) == 1000 * count
        return best

    async def work() -> None:
        assert cost(8000) < 32 * cost(1000)  # eight times as much, not sixty-four times

    asyncio.run(work())
