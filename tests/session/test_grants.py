"""Approvals of a session that comes from a file."""

from pathlib import Path

from panto.session import commands as c
from tests.session.test_transfer import exported
from tests.session.world import begin, opened, play, reply, send, start, turn


def test_an_imported_session_brings_no_approvals_and_its_own_copy_here_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"

    async def script() -> None:
        async with opened(tmp_path / "a") as store:
            session = await store.create(cwd="/w")
            await session.commit(c.GrantApproval(grant="a" * 32, rule="bash"))
            await turn(session, "go")
            await session.close()
            file.write_bytes(await exported(store, session.id))
            await store.disown(await store.import_(file))
            again = await store.open_session(session.id)
            assert list(again.state.grants.values()) == ["bash"]
            await again.close()
        async with opened(tmp_path / "b") as store:
            await store.disown(await store.import_(file))
            assert (await store.verify(session.id)).intact
            here = await store.open_session(session.id)
            assert here.state.grants == {}
            await here.close()
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([*lines[:-1], lines[-1][:-9]]))
        async with opened(tmp_path / "c") as store:
            part = await store.import_(file)
            assert part.warnings
            await store.disown(part)
            here = await store.open_session(part.session)
            assert here.state.grants == {}
            await here.close()

    play(script)


def test_calls_of_an_imported_session_that_would_run_again_by_themselves_have_ended(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"

    async def script() -> None:
        async with opened(tmp_path / "a") as store:
            session = await store.create(cwd="/w")
            await begin(session)
            await send(session)
            first, _ = await reply(session, "", "bash", "bash")
            await start(session, first, replay=True)
            await session.close()
            file.write_bytes(await exported(store, session.id))
        async with opened(tmp_path / "b") as store:
            await store.disown(await store.import_(file))
            assert (await store.verify(session.id)).intact
            here = await store.open_session(session.id)
            assert here.state.run is not None and not here.state.run.unfinished
            await here.close()

    play(script)


def test_a_fork_from_before_an_approval_was_taken_back_does_not_bring_it_back(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            session = await store.create(cwd="/w")
            for name, rule in (("a", "bash"), ("b", "ls")):
                await session.commit(c.GrantApproval(grant=name * 32, rule=rule))
            await turn(session, "one")
            second = await turn(session, "two")
            await session.commit(c.RevokeApproval(grant="a" * 32))
            fork = await store.fork(session.id, second)
            assert list(fork.state.grants.values()) == ["ls"]
            await fork.close()

    play(script)
