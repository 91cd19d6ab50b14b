"""Disks that are full, read-only, damaged or far away: what is said, what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from panto.schema.bodies import TextBody
from panto.schema.errors import PantoError, StorageFailed
from panto.session import Store, connect, stage, tables
from panto.session import commands as c
from panto.session.bodies import Bodies
from panto.session.disk import Disk, explain
from tests.session.world import ARGUMENTS, begin, opened, outcome, play, reply, send, start, turn


class SmallDisk:
    """A place that can be filled up and freed: a small tmpfs, or where that cannot be mounted a file size limit."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
        self.mounted = subprocess.run(mount, capture_output=True).returncode == 0
        self._limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        self._handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill(self) -> None:
        """From now on nothing more fits."""
        if not self.mounted:
            size = (self.place / "store/sessions.db-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._limit[1]))
            return
        with contextlib.suppress(OSError), open(self.place / "filler", "wb", buffering=0) as file:
            while file.write(b"x" * 1024):
                pass

    def free(self) -> None:
        """There is room again."""
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limit)
        (self.place / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,rw", str(self.place)], check=True)
        self.free()
        signal.signal(signal.SIGXFSZ, self._handled)
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.place)], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "small")
    try:
        yield disk
    finally:
        disk.close()


def test_a_full_disk_is_told_at_once_nothing_half_written_counts_and_work_goes_on_after_space_is_freed(
    small: SmallDisk,
) -> None:
    async def script() -> None:
        async with opened(small.place / "store") as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            (call,) = await reply(session, "", "bash")
            effect = await start(session, call)
            run = session.state.run
            assert run is not None
            small.fill()
            done = stage(TextBody(text="output " * 30_000)), outcome("ok")
            settle = c.SubmitCallResult(run=run.run, call=call, effect=effect, outcome=done[1].digest)
            with pytest.raises(StorageFailed) as failed:
                for _ in range(20):
                    await session.commit(settle, bodies=done)
            assert "disk is full" in failed.value.message or "I/O" in failed.value.message
            assert failed.value.hint
            assert session.state.run is not None and session.state.run.calls[call].state == "executing"
            with pytest.raises(StorageFailed):
                await session.commit(c.ChangeTitle(title="nothing new starts"))
            with pytest.raises(PantoError):
                await session.reopen()
                await session.commit(settle, bodies=done)
            small.free()
            await session.reopen()
            await session.commit(settle, bodies=done)  # held in memory, now committed under its id
            assert session.state.run.run == run.run and session.state.run.phase == "open"
            await send(session)
            await reply(session, "done")
            assert (await store.verify(session.id)).intact

    play(script)


def test_a_large_body_that_finds_no_room_leaves_no_half_file(small: SmallDisk) -> None:
    async def script() -> None:
        async with opened(small.place / "store") as store:
            session = await store.create(cwd="/w")
            small.fill()
            large = stage(b"z" * 2_000_000)
            with pytest.raises(StorageFailed):
                await session.commit(c.AppendFact(owner="x", kind="k", value=large.digest), bodies=(large,))
            small.free()
            if session.poisoned:
                await session.reopen()
            await session.commit(c.AppendFact(owner="x", kind="k", value=large.digest), bodies=(large,))
            assert await session.raw(large.digest) == large.data
            await store.collect()
            assert [p.name for p in (store.root / "blobs").glob("*/*")] == [large.digest]

    play(script)


def test_a_large_body_on_its_way_when_writing_fails_is_not_decided_on_what_may_be_behind(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            large = stage(b"z" * 2_000_000)
            slow = asyncio.ensure_future(
                session.commit(c.AppendFact(owner="x", kind="k", value=large.digest), bodies=(large,))
            )
            await asyncio.sleep(0)
            session._poison = StorageFailed("it failed midway", "")
            with pytest.raises(StorageFailed, match="midway"):
                await slow
            await session.reopen()
            assert session.head == (0, 1)

    play(script)


def test_closing_waits_for_a_large_body_on_its_way(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            large = stage(b"z" * 2_000_000)
            fact = c.AppendFact(owner="x", kind="k", value=large.digest)
            slow = asyncio.ensure_future(session.commit(fact, bodies=(large,)))
            await asyncio.sleep(0)
            await session.close()
            assert len(await slow) == 1

    play(script)


def test_a_store_that_fills_up_before_it_begins_lives_in_memory(small: SmallDisk) -> None:
    if not small.mounted:
        (small.place / "store").write_text("in the way")
    small.fill() if small.mounted else None

    async def script() -> None:
        async with opened(small.place / "store") as store:
            assert "memory" in store.notice
            await turn(await store.create(cwd="/w"))

    play(script)


@pytest.mark.parametrize("how", ["a file in its place", "no right to write", "a broken file"])
def test_where_nothing_can_be_written_the_session_lives_in_memory_with_one_clear_notice(
    tmp_path: Path, how: str
) -> None:
    root = tmp_path / "store"
    match how:
        case "a file in its place":
            root.write_text("in the way")
        case "no right to write":
            root = Path("/proc/nowhere")
        case "a broken file":
            root.mkdir()
            (root / "sessions.db").write_bytes(b"not a database, but long enough to be looked at " * 100)

    async def script() -> None:
        async with opened(root) as store:
            assert "lives in memory" in store.notice and str(root) in store.notice
            assert store.notice.count("\n") == 0
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            large = stage(TextBody(text="x" * 400_000))
            await session.commit(c.AppendFact(owner="x", kind="k", value=large.digest), bodies=(large, ARGUMENTS))
            await reply(session, "done")
            assert await session.body(large.digest) == large.value
            assert len((await session.history()).facts) > 8
            fork = await store.fork(session.id)
            await turn(fork)
            viewer = await store.view(session.id)
            await viewer.close()
            assert (await store.verify(session.id)).intact
            assert len(await store.list()) == 2
            id = session.id
            await session.close()
            assert (await store.open_session(id)).view.turns

    play(script)


def test_a_store_that_became_read_only_is_read_and_goes_on_in_memory(small: SmallDisk) -> None:
    async def made() -> str:
        async with opened(small.place / "store") as store:
            session = await store.create(cwd="/w", title="kept")
            large = stage(TextBody(text="x" * 300_000))
            await session.commit(c.AppendFact(owner="x", kind="k", value=large.digest), bodies=(large,))
            await turn(session)
            return session.id

    id = play(made)
    if small.mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(small.place)], check=True)
    else:
        os.chmod(small.place / "store", 0o500)
        os.chmod(small.place / "store/sessions.db", 0o400)

    async def script() -> None:
        async with opened(small.place / "store") as store:
            if os.getuid() == 0 and not small.mounted:
                return  # root may write anywhere
            assert "read-only" in store.notice and "memory" in store.notice
            assert [row.title for row in await store.list()] == ["kept"]
            session = await store.open_session(id)
            bodies = [fact.body for fact in (await session.history()).facts if isinstance(fact.body, TextBody)]
            assert [len(body.text) for body in bodies] == [300_000]
            await turn(session, "in memory only")
            assert len(session.view.turns) == 2

    play(script)


def test_where_a_write_ahead_log_cannot_work_a_plain_journal_serves_and_that_is_said_once(tmp_path: Path) -> None:
    found = connect.Found()

    def without_shared_memory() -> sqlite3.Connection:
        uri = f"{(tmp_path / connect.FILE).as_uri()}?vfs=unix-dotfile"  # SQLite's own way for such file systems
        db = sqlite3.connect(uri, uri=True, isolation_level=None)
        connect.configure(db, tmp_path, found)
        return db

    async def script() -> None:
        writer = Disk(without_shared_memory, str(tmp_path / connect.FILE), writes=True)
        await writer.run(lambda db: None)
        assert "write-ahead log" in found.notice
        store = Store(tmp_path, writer, Bodies(tmp_path / "blobs"), found.notice)
        mode = await store.writer.run(lambda db: db.execute("PRAGMA journal_mode").fetchone()[0], plain=True)
        assert mode == "truncate"
        session = await store.create(cwd="/w")
        await turn(session)
        viewer = await store.view(session.id)
        await turn(session)
        await viewer.look()
        assert viewer.head == session.head
        await viewer.close()
        assert (await store.verify(session.id)).intact
        await store.close()

    play(script)


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/local\\040disk tmpfs rw 0 0
//nas/share /mnt/nas cifs rw 0 0
host:/x /mnt/ssh fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "far"),
    [
        ("/var/lib", False), ("/home", True), ("/home/me/sessions", True), ("/home/me/local disk/sessions", False),
        ("/homer", False), ("/mnt/nas/a", True), ("/mnt/ssh", True), ("/", False),
    ],
)  # fmt: skip
def test_network_file_systems_are_known_by_their_mounts(path: str, far: bool) -> None:
    assert connect.network(path, MOUNTS) == far
    assert not connect.network(path, "")


def test_a_store_of_version_one_becomes_a_newer_one_and_its_facts_stay(tmp_path: Path) -> None:
    async def made() -> str:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session)
            return session.id

    id = play(made)
    db = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    before = db.execute("SELECT * FROM commits").fetchall()
    newer = {**tables.MIGRATIONS, 1: "ALTER TABLE session ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue';\n"}
    tables.prepare(db, newer)
    tables.prepare(db, newer)  # once is enough
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert db.execute("SELECT colour FROM session").fetchall() == [("blue",)]
    assert db.execute("SELECT * FROM commits").fetchall() == before
    broken = {**newer, 2: "CREATE TABLE more(x);\nCREATE TABLE more(x);\n"}
    with pytest.raises(sqlite3.OperationalError):
        tables.prepare(db, broken)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)  # all of a migration or nothing
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
    db.execute("PRAGMA user_version = 1")
    db.execute("ALTER TABLE session DROP COLUMN colour")
    db.close()

    async def look() -> None:
        async with opened(tmp_path) as store:
            assert (await store.verify(id)).intact

    play(look)


def test_a_writer_that_another_process_locks_out_fails_that_commit_and_works_afterwards(tmp_path: Path) -> None:
    async def script() -> None:
        store = await Store.open(tmp_path)
        session = await store.create(cwd="/w")
        await store.writer.run(lambda db: db.execute("PRAGMA busy_timeout = 50") and None, plain=True)
        other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        title = c.ChangeTitle(title="t")
        with pytest.raises(StorageFailed, match="locked"):
            await session.commit(title)
        assert not session.poisoned  # nothing had begun
        other.execute("ROLLBACK")
        other.close()
        await session.commit(title)
        assert session.state.settings.title == "t"
        await store.close()

    play(script)


def test_the_folder_of_sessions_is_for_its_owner_only(tmp_path: Path) -> None:
    async def script() -> int:
        async with opened(tmp_path / "made"):
            return (tmp_path / "made").stat().st_mode & 0o777

    assert play(script) == 0o700


@pytest.mark.parametrize(
    ("error", "meaning", "hint"),
    [
        ("database or disk is full", "the disk is full", "free some space"),
        ("[Errno 28] No space left on device", "the disk is full", "free some space"),
        ("[Errno 122] Disk quota exceeded", "the disk is full", "free some space"),
        ("attempt to write a readonly database", "read-only", "make it writable"),
        ("database is locked", "another process", "try again"),
        ("database disk image is malformed", "damaged", "panto session repair"),
        ("file is not a database", "damaged", "panto session repair"),
        ("no such table: session", "another panto", "update panto"),
        ("table session has 17 columns but 16 values were supplied", "another panto", "update panto"),
        ("disk I/O error", "the disk failed", "look after the disk"),
        ("unable to open database file", "cannot be opened", "its folder"),
        ("something new", "something new", "the log"),
    ],
)
def test_each_kind_of_fault_names_its_own_way_out(error: str, meaning: str, hint: str) -> None:
    said, way = explain(error, True)
    assert meaning in said and hint in way
    assert ("free some space" in way) == ("full" in said)


def test_a_file_in_a_folder_that_nobody_may_write_is_called_read_only() -> None:
    for error in ("unable to open database file", "something new"):
        assert explain(error, False)[0] == "it is read-only"


def test_tables_of_another_panto_do_not_ask_for_space(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            await store.writer.run(lambda db: db.execute("DROP TABLE projection") and None)
            session = await store.create(cwd="/w", title="t")
            with pytest.raises(StorageFailed, match="another panto") as failed:
                await store.writer.run(lambda db: db.execute("SELECT * FROM projection") and None)
            assert "update" in failed.value.hint and "space" not in failed.value.hint
            await session.close()

    play(script)
