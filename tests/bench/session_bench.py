"""Sessions alone: python -m tests.bench.session_bench [ROW...]

Prints what commits, folds, lists, openings and pages cost, and how the figures grow with twice the length. Cold rows
run in a process of their own each time. `large` builds a store of 5,000 sessions, one with 200,000 events (a minute).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from panto.schema.events import AnyEvent
from panto.session import Session, Store
from panto.session import commands as c
from panto.session.append import index_words
from panto.session.catalog import refresh
from panto.session.context import Context
from panto.session.evolve import evolve
from panto.session.fold import fold
from panto.session.ids import new_id
from panto.session.ledger import freeze, groups_of, seal
from panto.session.ownership import Birth, create, let_go
from panto.session.state import State
from panto.session.view import View
from tests.session.world import ARGUMENTS, SESSION, Table, begin, outcome, reply, said, send, settle, start, turn


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def main() -> None:
    rows: dict[str, Callable[[Path], None]] = {
        "start": begin_cold, "commit": commits, "fold": folds, "memory": memory, "growth": growth, "large": large,
    }  # fmt: skip
    if sys.argv[1:2] == ["--cold"]:
        asyncio.run(COLD[sys.argv[2]](Path(sys.argv[3]), *sys.argv[4:]))
        return
    for name in sys.argv[1:] or rows:
        with tempfile.TemporaryDirectory() as folder:
            rows[name](Path(folder))


def cold(what: str, root: Path, *more: str) -> dict[str, float]:
    """Run a row in a fresh process; its figures, medians of five."""
    found: dict[str, list[float]] = {}
    for _ in range(5):
        command = [sys.executable, "-m", "tests.bench.session_bench", "--cold", what, str(root), *more]
        for key, value in json.loads(subprocess.run(command, capture_output=True, check=True).stdout).items():
            found.setdefault(key, []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


# --- start and commits ------------------------------------------------------------------------------------------


async def cold_start(root: Path) -> None:
    began = time.perf_counter()
    store = await Store.open(root / new_id())
    opened = time.perf_counter()
    session = await store.create(cwd="/w", model="fake:small", mode="ask")
    created = time.perf_counter()
    await begin(session)
    first = time.perf_counter()
    await store.close()
    closed = time.perf_counter()
    figures = {"open": opened - began, "create": created - opened, "first": first - created, "close": closed - first}
    print(json.dumps(figures))


def begin_cold(root: Path) -> None:
    figures = cold("start", root)
    print("start, new store   ", "  ".join(f"{key} {ms(value)}" for key, value in figures.items()))


def commits(root: Path) -> None:
    async def script() -> None:
        store = await Store.open(root)
        session = await store.create(cwd="/w")
        single, rounds, parallel = [], [], []
        for n in range(200):
            began = time.perf_counter()
            await session.commit(c.ChangeTitle(title=str(n)))
            single.append(time.perf_counter() - began)
        await begin(session)
        await send(session)
        for _ in range(60):
            began = time.perf_counter()
            (call,) = await reply(session, "doing", "read")
            await start(session, call)
            await settle(session, call)
            await send(session)
            rounds.append(time.perf_counter() - began)
        for _ in range(20):
            calls = await reply(session, "", *["read"] * 10)
            began = time.perf_counter()
            await asyncio.gather(*(start(session, call) for call in calls))
            await asyncio.gather(*(settle(session, call) for call in calls))
            parallel.append(time.perf_counter() - began)
            await send(session)
        await store.close()
        measured = {"one commit": single, "a tool round, 4 commits": rounds, "10 calls at once": parallel}
        for name, found in measured.items():
            found.sort()
            print(f"{name:24} median {ms(statistics.median(found))}  p95 {ms(found[int(len(found) * 0.95)])}")
        raw = root / "raw"
        with open(raw, "wb") as file:
            fsyncs = []
            for _ in range(100):
                began = time.perf_counter()
                file.write(b"x" * 8192)
                file.flush()
                os.fsync(file.fileno())
                fsyncs.append(time.perf_counter() - began)
        print(f"{'(8 KB and one fsync)':24} median {ms(statistics.median(fsyncs))}")

    asyncio.run(script())


# --- folds and memory -------------------------------------------------------------------------------------------


def chat(events: int) -> list[tuple[int, AnyEvent]]:
    """Turns of two steps with two calls each, about this many events with their seqs."""
    table = Table()
    n = 0
    while len(table.log) < events:
        n += 1
        table.do(c.SubmitInput(input=new_id(), body="0" * 64))
        table.do(c.CreateTurn(turn=new_id(), run=new_id(), inputs=tuple(table.state.inputs)))
        table.tools("a", "b")
        table.do(table.start(0), table.start(1))
        table.do(table.settle(0), table.settle(1))
        table.executing()
        table.do(table.result("done"))
    return [(seq, event) for seq, _, event in table.log[:events]]


def folds(root: Path) -> None:
    for name, both in (("context and views", False), ("with the machines", True)):
        took = []
        for events in (3200, 6400, 12800):
            log = chat(events)
            best = 1e9
            for _ in range(7):
                gc.collect()
                began = time.process_time()
                state, view = State(SESSION), View(Context())
                for seq, event in log:
                    if both:
                        state = evolve(state, event, (seq, 0))
                    fold(view, event, seq, 0.0)
                best = min(best, time.process_time() - began)
            took.append(best)
        once, twice = (took[n + 1] / took[n] for n in range(2))
        print(f"fold of 3,200 events, {name:18} {ms(took[0])}  twice the events: {once:.2f}x, again {twice:.2f}x")


def memory(root: Path) -> None:
    async def retained(count: int) -> int:
        store = await Store.open(root / str(count))
        session = await store.create(cwd="/w", title="kept")
        id = session.id
        await session.close()
        session = await store.open_session(id)
        await asyncio.gather(*(session.commit(c.ChangeMode(mode="ask")) for _ in range(200)))
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count // 50):
            await asyncio.gather(*(session.commit(c.ChangeMode(mode="ask")) for _ in range(50)))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        await store.close()
        return grown

    for count in (1600, 12800):
        print(f"memory retained by the writer after {count:6,} commits: {asyncio.run(retained(count)) / 1e6:.3f} MB")


def growth(root: Path) -> None:
    async def size(steps: int) -> int:
        store = await Store.open(root / str(steps))
        session = await store.create(cwd="/w")
        await begin(session)
        bodies: list[str] = []
        for n in range(steps):
            await send_all(session, bodies)
            (call,) = await reply(session, f"doing {n}", "read")
            await start(session, call)
            await settle(session, call, f"output {n}")
            bodies += [outcome(f"message {n} {k}").digest for k in range(2)]
        await store.writer.run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)") and None, plain=True)
        await store.close()
        return (root / str(steps) / "sessions.db").stat().st_size

    sizes = {steps: asyncio.run(size(steps)) for steps in (100, 200, 400, 800)}
    print("size of a turn of n steps:", "  ".join(f"{n}: {s / 1e6:.2f} MB" for n, s in sizes.items()))


async def send_all(session: Session, bodies: list[str]) -> None:
    """A request that names every message so far."""
    from tests.session.world import request

    run = session.state.run
    assert run is not None
    made = request(*bodies)
    await session.commit(
        c.PrepareStep(run=run.run, position=run.position, request=made.digest, inputs=run.pending),
        c.StartModel(run=run.run, effect=run.next_effect),
        bodies=(made,),
    )


# --- a large store ----------------------------------------------------------------------------------------------


def large(root: Path) -> None:
    """5,000 sessions, one of 200,000 events and one of 10,000, listed, searched and opened from cold."""
    began = time.perf_counter()
    ids = asyncio.run(build(root))
    size = (root / "sessions.db").stat().st_size / 1e6
    print(f"(5,000 sessions, one of 200,000 events: {size:.0f} MB, built in {time.perf_counter() - began:.0f} s)")
    for title, row, more in (
        ("first 200 rows", "list", ("200",)),
        ("all 5,000 rows", "list", ("10000",)),
        ("search", "search", ("zebra",)),
        ("10,000 events, without a cache", "open", (ids[0],)),
        ("200,000 events, without a cache", "open", (ids[1],)),
    ):
        figures = cold(row, root, *more)
        print(f"{title:32}", "  ".join(f"{key} {ms(value)}" for key, value in figures.items()), flush=True)
    asyncio.run(close_clean(root, ids))
    for title, id in (("10,000 events, closed cleanly", ids[0]), ("200,000 events, closed cleanly", ids[1])):
        figures = cold("open", root, id)
        print(f"{title:32}", "  ".join(f"{key} {ms(value)}" for key, value in figures.items()), flush=True)


async def close_clean(root: Path, ids: tuple[str, ...]) -> None:
    store = await Store.open(root)
    for id in ids:
        await (await store.open_session(id)).close()
    await store.close()


async def cold_list(root: Path, limit: str) -> None:
    began = time.perf_counter()
    store = await Store.open(root)
    rows = await store.list(limit=int(limit))
    took = time.perf_counter() - began
    assert rows
    os.write(1, json.dumps({"listed": took}).encode())
    await store.close()


async def cold_search(root: Path, words: str) -> None:
    began = time.perf_counter()
    store = await Store.open(root)
    rows = await store.list(words=words)
    took = time.perf_counter() - began
    assert rows
    os.write(1, json.dumps({"found": took}).encode())
    await store.close()


async def cold_open(root: Path, id: str) -> None:
    """The last page, by itself, and then the whole session for writing (which is let go without a cache)."""
    began = time.perf_counter()
    store = await Store.open(root)
    page = await store.history(id, limit=100)
    paged = time.perf_counter()
    assert page.facts
    session = await store.open_session(id)
    opened = time.perf_counter()
    os.write(1, json.dumps({"last page": paged - began, "open": opened - paged}).encode())
    handle = session.handle
    await store.writer.run(lambda db: let_go(db, handle))
    os._exit(0)


async def build(root: Path) -> tuple[str, str]:
    store = await Store.open(root)
    chance = random.Random(1)
    for n in range(4998):
        session = await store.create(cwd=f"/project/{n % 50}", model="fake:small", title=f"session {n}")
        if n % 100 == 0:
            await turn(session, f"what about the zebra {n}?", "it has stripes " * chance.randint(1, 40))
        await store.let_go(session, session.handle, None)
    ids = (await long_session(store, 10_000), await long_session(store, 200_000))
    await store.close()
    return ids


async def long_session(store: Store, events: int) -> str:
    """A session of this many events, written straight into the ledger."""
    id = new_id()
    holder = store.holder()
    log = chat(events)
    text, done = said("a prompt"), outcome("some output " * 20)

    def job(db: object) -> None:
        import sqlite3

        assert isinstance(db, sqlite3.Connection)
        create(db, Birth(id), holder)
        for body in (text, done, ARGUMENTS):
            store.bodies.put(db, body, holder.id)
        prev = db.execute("SELECT digest FROM session WHERE id = ?", (id,)).fetchone()[0].hex()
        commit: list[AnyEvent] = []
        seq, last = -1, 0
        for at, event in [*log, (10**9, log[-1][1])]:
            if at != last and commit:
                seq += 1
                named = [msgspec.structs.replace(e, body=text.digest) if hasattr(e, "body") else e for e in commit]
                data = freeze(groups_of([(new_id(), "0" * 64, tuple(named))]))
                digest = seal(id, seq, 1, 1000 + seq, prev, data)
                row = (id, seq, 1, 1000 + seq, bytes.fromhex(prev), bytes.fromhex(digest), data)
                db.execute("INSERT INTO commits VALUES(?, ?, ?, ?, ?, ?, ?)", row)
                if seq % 20 == 0:
                    index_words(db, store.bodies, id, seq, named)
                prev, commit = digest, []
            commit.append(event)
            last = at
        refresh(db, id)
        db.execute("UPDATE session SET lease = NULL WHERE id = ?", (id,))

    await store.writer.run(job)
    return id


COLD: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "start": cold_start,
    "list": cold_list,
    "search": cold_search,
    "open": cold_open,
}

if __name__ == "__main__":
    main()
