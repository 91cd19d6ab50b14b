"""Export and import, byte for byte; damaged files give all that proves; verify and repair."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from panto.schema.errors import Conflict, Corrupt, Missing, Owned, StorageFailed, UsageError
from panto.session import Store, stage
from panto.session import commands as c
from panto.session.context import AssistantEntry, ResultEntry
from panto.session.projection import load
from panto.session.read import lineage
from panto.session.recovery import recovery
from tests.session.processes import Other
from tests.session.test_ledger import tamper
from tests.session.world import begin, opened, play, reply, said, send, settle, start, turn


async def exported(store: Store, id: str) -> bytes:
    return b"".join([piece async for piece in store.export(id)])


async def rich(root: Path) -> tuple[str, bytes]:
    """A session with calls, large and odd bodies, a fork of another; its export."""
    async with opened(root) as store:
        first = await store.create(cwd="/w", model="fake:small", title="tïtle")
        await turn(first, "say 0", "answer é 漢 👩‍👧")
        session = await store.fork(first.id)
        await begin(session, "do it")
        await send(session)
        calls = await reply(session, "doing", "read", "bash")
        for call in calls:
            await start(session, call)
            await settle(session, call, f"output of {call}\r\n\x1b[31m" + "x" * 300_000)
        await send(session)
        await reply(session, "done")
        odd = [stage(b"\xff\xfe raw"), stage(b"plain text, not JSON"), stage(b'{"b":1, "a":2}'), stage(b"")]
        await session.commit(*(c.AppendFact(owner="x", kind="k", value=each.digest) for each in odd), bodies=tuple(odd))
        return session.id, await exported(store, session.id)


def test_export_and_import_are_byte_equal_in_content(tmp_path: Path) -> None:
    id, data = play(lambda: rich(tmp_path / "a"))
    for line in data.splitlines():
        json.loads(line)
    assert "answer é 漢" in data.decode()  # can be read and searched
    (tmp_path / "file.jsonl").write_bytes(data)

    async def script() -> bytes:
        async with opened(tmp_path / "b") as store:
            imported = await store.import_(tmp_path / "file.jsonl")
            assert (imported.session, imported.warnings, imported.aside) == (id, (), "")
            assert (await store.verify(id)).intact
            row = (await store.list())[0]
            assert (row.title, row.cwd, row.model, row.turns, row.last_prompt) == (
                "tïtle",
                "/w",
                "fake:small",
                2,
                "do it",
            )
            assert [hit.session for hit in await store.search("do it")] == [id]
            again = await store.import_(tmp_path / "file.jsonl")  # the very same is here already
            assert again.session == id
            session = await store.open_session(id)
            await turn(session, "and on")
            await session.close()
            with pytest.raises(Conflict):
                await store.import_(tmp_path / "file.jsonl")
            await store.delete([id])
            await store.collect()
            await store.import_(tmp_path / "file.jsonl")
            return await exported(store, id)

    assert play(script) == data


def test_an_imported_fork_joins_the_parent_that_is_here(tmp_path: Path) -> None:
    id, data = play(lambda: rich(tmp_path))
    (tmp_path / "file.jsonl").write_bytes(data)

    async def script() -> None:
        async with opened(tmp_path) as store:
            await store.delete([id])
            await store.import_(tmp_path / "file.jsonl")
            assert (await store.verify(id)).intact
            for row in await store.list():
                assert (await store.verify(row.id)).intact

    play(script)


def test_an_import_that_conflicts_halfway_leaves_nothing_behind(tmp_path: Path) -> None:
    id, data = play(lambda: rich(tmp_path))
    (tmp_path / "file.jsonl").write_bytes(data)

    def segments() -> list[str]:
        db = sqlite3.connect(tmp_path / "sessions.db")
        found = [name for (name,) in db.execute("SELECT id FROM segment")]
        db.close()
        return found

    async def script() -> None:
        async with opened(tmp_path) as store:
            await store.delete([id])
            before = segments()
            tamper(tmp_path, "UPDATE commits SET digest = zeroblob(32) WHERE seq = 2")
            with pytest.raises(Conflict):
                await store.import_(tmp_path / "file.jsonl")
            assert segments() == before and id not in before

    play(script)


async def six(root: Path) -> bytes:
    """The export of a session of six commits."""
    async with opened(root) as store:
        session = await store.create(cwd="/w")
        for n in range(5):
            body = said(f"say {n}")
            await session.commit(c.SubmitInput(input=f"{n:032x}", body=body.digest), bodies=(body,))
        return await exported(store, session.id)


def commit_lines(data: bytes) -> list[int]:
    return [n for n, line in enumerate(data.splitlines()) if line.startswith(b'{"type":"commit"')]


def test_a_file_cut_at_any_byte_of_its_last_record_loads_what_is_whole(tmp_path: Path) -> None:
    data = play(lambda: six(tmp_path / "a"))
    lines = data.splitlines(keepends=True)
    last = commit_lines(data)[-1]
    start_of_last = sum(map(len, lines[:last]))
    size = len(lines[last])

    async def script() -> None:
        async with opened(tmp_path / "b") as store:
            path = tmp_path / "cut.jsonl"
            for cut in [*range(0, size, 37), size - 2, size - 1, size]:
                path.write_bytes(data[: start_of_last + cut])
                imported = await store.import_(path)
                whole = cut >= size - 1
                session = await store.open_session(imported.session)
                assert len(session.state.inputs) == (5 if whole else 4)
                assert bool(imported.warnings) != whole
                await turn(session, "goes on")
                await session.close()
                assert (await store.verify(imported.session)).intact
                await store.delete([imported.session])

    play(script)


@pytest.mark.parametrize("broken", range(6))
@pytest.mark.parametrize("how", ["garbage", "changed", "gone", "twice"])
def test_a_broken_record_costs_itself_only_is_counted_and_its_bytes_are_kept_aside(
    tmp_path: Path, broken: int, how: str
) -> None:
    data = play(lambda: six(tmp_path / "a"))
    lines = data.splitlines(keepends=True)
    place = commit_lines(data)[broken]
    bad = {
        "garbage": b'{"type":"commit","seg\x00\xff\n',
        "changed": lines[place].replace(b'"time":1', b'"time":2'),
        "gone": b"",
        "twice": lines[place].replace(b'"seq":', b'"seq":0,"seq":'),
    }[how]
    lines[place] = bad
    (tmp_path / "bad.jsonl").write_bytes(b"".join(lines))

    async def script() -> None:
        async with opened(tmp_path / "b") as store:
            imported = await store.import_(tmp_path / "bad.jsonl")
            assert imported.commits == 5
            if how != "gone":
                assert imported.warnings[0].startswith(f"line {place + 1} cannot be used")
                assert Path(imported.aside).read_bytes() == bad
            session = await store.open_session(imported.session)
            kept = [n for n in range(5) if n + 1 != broken]
            assert list(session.state.inputs) == [f"{n:032x}" for n in kept]
            if broken:
                assert session.state.settings.cwd == "/w"
            await turn(session, "goes on")
            assert (await store.verify(imported.session)).intact

    play(script)


def test_a_damaged_header_or_body_line_loses_no_commit(tmp_path: Path) -> None:
    data = play(lambda: six(tmp_path / "a"))
    lines = data.splitlines(keepends=True)
    body = next(n for n, line in enumerate(lines) if line.startswith(b'{"type":"body"'))
    for place in (0, body):
        (tmp_path / "bad.jsonl").write_bytes(
            b"".join(line if n != place else b"nonsense\n" for n, line in enumerate(lines))
        )

        async def script() -> None:
            async with opened(tmp_path / f"b{place}") as store:  # noqa: B023
                imported = await store.import_(tmp_path / "bad.jsonl")
                session = await store.open_session(imported.session)
                assert len(session.state.inputs) == 5
                await session.close()
                findings = (await store.verify(imported.session)).findings
                assert len(findings) == (0 if place == 0 else 1)  # noqa: B023

        play(script)


def test_what_is_no_export_is_said_so(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            for name, data in {
                "empty": b"",
                "text": b"hello\n",
                "json": b"{}\n[]\n",
                "binary": bytes(range(256)),
            }.items():
                (tmp_path / name).write_bytes(data)
                with pytest.raises(UsageError, match="holds no session"):
                    await store.import_(tmp_path / name)
            with pytest.raises(UsageError, match="cannot read"):
                await store.import_(tmp_path / "nowhere")
            with pytest.raises(UsageError, match="newer"):
                (tmp_path / "newer").write_bytes(
                    b'{"type":"panto_session","id":"x","format":9,"head":0,"digest":"","segments":[]}\n'
                )
                await store.import_(tmp_path / "newer")
            with pytest.raises(Missing):
                await exported(store, "abcd")
            assert await store.list(all=True) == ()

    play(script)


# --- verify and repair ------------------------------------------------------------------------------------------


async def damaged_at(root: Path, seq: int) -> str:
    async with opened(root) as store:
        session = await store.create(cwd="/w", title="t")
        for n in range(3):
            await begin(session, f"say {n}")
            await send(session)
            (call,) = await reply(session, "", "read")
            await start(session, call)
            await settle(session, call)
            await send(session)
            await reply(session, "done")
        id = session.id
    tamper(root, f"UPDATE commits SET body = CAST(replace(body, '\"v\":1', '\"v\":2') AS BLOB) WHERE seq = {seq}")
    return id


@pytest.mark.parametrize("seq", range(19))
def test_repair_keeps_all_that_proves_in_a_new_session_and_says_what_was_lost(tmp_path: Path, seq: int) -> None:
    id = play(lambda: damaged_at(tmp_path, seq))

    async def script() -> None:
        async with opened(tmp_path) as store:
            report = await store.verify(id)
            assert (report.findings[0].segment, report.findings[0].seq) == (id, seq)
            repaired = await store.repair(id)
            assert (repaired.outcome, repaired.old, repaired.kept) == ("replaced", id, report.commits)
            assert [finding.seq for finding in repaired.lost] == [seq]
            assert '"readable":true' in Path(repaired.aside).read_text()
            new = repaired.session
            assert (await store.verify(new)).intact
            session = await store.open_session(new)
            calls = [b.call for e in session.view.context if isinstance(e, AssistantEntry) for b in e.calls]
            assert calls == [e.id for e in session.view.context if isinstance(e, ResultEntry)]
            rows = {row.id: row for row in await store.list()}
            assert new in rows[id].broken
            assert not rows[new].broken
            with pytest.raises(Corrupt):  # the old one is as it was
                line = await store.reader.run(lambda db: lineage(db, id), plain=True)
                await store.reader.run(lambda db: load(db, id, line, cached=False), plain=True)

    play(script)


def test_repair_of_an_intact_session_changes_nothing(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session)
            with pytest.raises(Owned):
                tamper(tmp_path, "DELETE FROM command")
                await store.repair(session.id)
            await session.close()
            repaired = await store.repair(session.id)  # the index of commands is made anew, in place
            assert (repaired.session, repaired.outcome, repaired.old) == (session.id, "mended", "")
            assert [f.text for f in repaired.lost] == ["the index of commands differs from the commits"]
            repaired = await store.repair(session.id)
            assert (repaired.session, repaired.outcome, repaired.lost) == (session.id, "intact", ())

    play(script)


def test_a_lost_or_stale_index_of_commands_is_rebuilt_and_answers_as_the_commits_do(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            title = c.ChangeTitle(title="once")
            first = await session.commit(title)
            await session.close()
            tamper(tmp_path, "DELETE FROM command WHERE seq = 1")
            assert not (await store.verify(session.id)).intact
            await store.repair(session.id)
            again = await store.open_session(session.id)
            assert await again.commit(title) == first
            assert (await store.verify(session.id)).intact

    play(script)


def test_commits_cut_from_the_end_are_noticed_and_what_is_there_is_kept(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            await turn(session, "one")
            await turn(session, "two")
            id, head = session.id, session.head[0]
            await session.close()
            tamper(tmp_path, f"DELETE FROM command WHERE seq = {head}", f"DELETE FROM commits WHERE seq = {head}")
            report = await store.verify(id)
            assert "gone from the end" in report.findings[0].text
            with pytest.raises(Corrupt):
                await store.open_session(id)
            repaired = await store.repair(id)
            again = await store.open_session(repaired.session)
            assert again.head[0] == head - 1
            assert (await store.verify(repaired.session)).intact

    play(script)


def page_of(path: Path, what: str) -> int:
    """The number of a page of the database: a table's root, the first, or the first that holds some text."""
    db = sqlite3.connect(path)
    found = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (what,)).fetchone()
    db.close()
    if found is not None:
        return int(found[0])
    return 1 if what == "first" else path.read_bytes().index(what.encode()) // 4096 + 1


@pytest.mark.parametrize(
    "what", ["commits", "session", "command", "words_content", "body", "first", "say 7 ", '"mark 4"']
)
def test_a_damaged_page_of_the_database_costs_what_lies_on_it_and_no_more(tmp_path: Path, what: str) -> None:
    async def script() -> list[str]:
        ids = []
        async with opened(tmp_path) as store:
            for n in range(5):
                session = await store.create(cwd="/w", title=f"mark {n}")
                for k in range(12):
                    await turn(session, f"say {k} " + "words " * 200)
                ids.append(session.id)
                await session.close()
            await store.writer.run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)") and None, plain=True)
        return ids

    ids = play(script)
    path = tmp_path / "sessions.db"
    page = page_of(path, what)
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)

    async def look() -> list[bool]:
        async with opened(tmp_path) as store:
            if what == "first":
                assert "damaged" in store.notice and "repair" in store.notice
            done = []
            repaired = await store.repair(ids[0])
            assert list(tmp_path.glob("sessions.db.damaged-*"))
            for id in ids:
                repaired = await store.repair(id)
                session = await store.open_session(repaired.session)
                await session.commit(*recovery(session.state), c.ChangeTitle(title="mended"))
                if session.state.run is not None:
                    await session.commit(c.StopRun(run=session.state.run.run))
                if session.state.turn is not None:
                    await session.commit(c.SettleTurn(turn=session.state.turn.turn, attempt=session.state.turn.attempt))
                await turn(session, "goes on")
                done.append(repaired.outcome != "replaced")
                assert repaired.kept >= 12
                report = await store.verify(repaired.session)
                assert all(finding.body for finding in report.findings)
            return done

    untouched = play(look)
    assert untouched.count(True) >= {"commits": 0}.get(what, 4)  # that page holds a commit of many sessions


def test_exporting_many_sessions_at_once_holds_up_nothing(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            sessions = [await store.create(cwd="/w") for _ in range(3)]
            for session in sessions:
                await turn(session)
            exports = asyncio.gather(*(exported(store, session.id) for session in sessions))
            await turn(sessions[0], "meanwhile")
            assert len(await exports) == 3

    play(script)


@pytest.mark.parametrize(
    "what", ["commits", "session", "command", "words_content", "words_data", "body", "segment", "lease", "first", "all"]
)
def test_a_damaged_file_is_put_aside_and_work_goes_on_in_a_new_one_until_all_is_brought_back(
    tmp_path: Path, what: str
) -> None:
    async def script() -> str:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w", title="yesterday")
            for k in range(5):
                await turn(session, f"say {k} " + "words " * 200)
            id = session.id
            await session.close()
            await store.writer.run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)") and None, plain=True)
        return id

    id = play(script)
    path = tmp_path / "sessions.db"
    with open(path, "r+b") as file:
        if what == "all":
            file.write(b"no database " * 1000)
        else:
            file.seek((page_of(path, what) - 1) * 4096)
            file.write(b"\xa5" * 4096)

    async def today() -> str:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w", title="today")
            assert not store.memory
            if list(tmp_path.glob("sessions.db.aside-*")):  # else what is damaged is not needed for a new one
                assert "damaged" in store.notice and "panto session repair store" in store.notice
                assert not list(tmp_path.glob("sessions.db-*.aside"))
            try:
                await turn(session, "work of today")
            except StorageFailed:
                assert what in ("words_data", "words_content", "command", "body", "commits")
            return session.id

    new = play(today)

    async def after() -> None:
        async with opened(tmp_path) as store:
            done = await store.repair("store")
            assert (done.session, done.outcome) == ("store", "mended")
            assert any("old one is" in loss.text for loss in done.lost)
            if what in ("all", "segment"):  # of its beginning nothing is left that could prove it
                assert any("nothing of it can be read" in loss.text for loss in done.lost)
                assert (await store.verify(new)).intact
                return
            assert not list(tmp_path.glob("sessions.db.aside-*")) and list(tmp_path.glob("sessions.db.damaged-*"))
            mended = await store.repair(id)
            session = await store.open_session(mended.session)
            await session.commit(*recovery(session.state), c.ChangeTitle(title="mended"))
            await session.close()
            again = await store.repair(new)
            for each in (again.session, mended.session):
                assert all(finding.body for finding in (await store.verify(each)).findings)
            assert (await store.repair("store")).outcome == "intact"
            fresh = await store.create(cwd="/w")
            await turn(fresh, "and on it goes")

    play(after)


def test_a_damaged_file_that_another_process_uses_is_left_alone(tmp_path: Path) -> None:
    other = Other(tmp_path, 'session = await store.create(cwd="/w", title="t")\nsay(session.id)\nawait hear()')
    other.hear()
    path = tmp_path / "sessions.db"

    async def script() -> None:
        async with opened(tmp_path) as store:
            await store.writer.run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)") and None, plain=True)
        with open(path, "r+b") as file:
            file.seek((page_of(path, "commits") - 1) * 4096)
            file.write(b"\xa5" * 4096)
        async with opened(tmp_path) as store:
            await turn(await store.create(cwd="/w"))
            assert store.memory and "damaged" in store.notice and "is gone when panto ends" in store.notice
            assert str(other.process.pid) in store.notice
        assert path.exists() and not list(tmp_path.glob("*aside*"))

    play(script)
    other.kill()


@pytest.mark.parametrize("left", [90, 70, 50, 30, 10])
def test_of_a_file_that_was_cut_short_all_that_is_left_comes_back_and_nothing_gone_is_called_intact(
    tmp_path: Path, left: int
) -> None:
    async def script() -> dict[str, int]:
        heads = {}
        async with opened(tmp_path) as store:
            for n in range(6):
                session = await store.create(cwd="/w", title=f"mark {n}")
                for k in range(6):
                    await turn(session, f"say {k} " + "words " * 200)
                heads[session.id] = session.head[0]
                await session.close()
            fork = await store.fork(next(iter(heads)))
            heads[fork.id] = fork.head[0]
            await fork.close()
            await store.writer.run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)") and None, plain=True)
        return heads

    heads = play(script)
    path = tmp_path / "sessions.db"
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size * left // 100)

    async def look() -> tuple[int, set[str], dict[str, bool]]:
        async with opened(tmp_path) as store:
            repaired = await store.repair("store")
            listed = {row.id: await store.verify(row.id) for row in await store.list(all=True)}
            for id, report in listed.items():
                whole = report.commits == heads[id] + 1 or left == 10  # there, how long it was is gone, too
                assert report.commits and (whole or not report.intact)
            shown = {row.id: row.broken for row in await store.list(all=True)}
            assert {id for id, broken in shown.items() if broken} == listed.keys() - {
                id for id, report in listed.items() if report.intact
            }
            named = {finding.segment for finding in repaired.lost if finding.segment}
            assert named == heads.keys() - {id for id, report in listed.items() if report.intact} or left == 10
            return repaired.kept, named, {id: report.intact for id, report in listed.items()}

    kept, _, listed = play(look)
    assert kept >= {90: 60, 70: 30, 50: 10}.get(left, 0)
    assert left < 90 or any(listed.values())
