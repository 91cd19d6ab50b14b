"""Ledgers as version 1 wrote them are read for ever, and their folds stay what they were."""

from __future__ import annotations

import json
import shutil
import typing
from pathlib import Path

import pytest

from panto.schema.events import AnyEvent
from panto.session.ledger import freeze, thaw
from panto.session.read import commits, lineage
from panto.session.reader import Reader
from panto.session.recovery import recovery
from tests.session.record_golden import GOLDEN, folds
from tests.session.world import opened, play, turn

FOLDS = json.loads((GOLDEN / "v1-folds.json").read_text(encoding="utf-8"))
FILES = ("session", "fork")


def same(reader: Reader, id: str) -> None:
    """The folds are those that version 1 gave; new fields may have come since."""

    def within(old: object, new: object, path: str) -> None:
        if isinstance(old, dict):
            assert isinstance(new, dict), path
            for key, value in old.items():
                within(value, new[key], f"{path}.{key}")
        elif isinstance(old, list):
            assert isinstance(new, list) and len(new) == len(old), path
            for n, (a, b) in enumerate(zip(old, new, strict=True)):
                within(a, b, f"{path}[{n}]")
        else:
            assert old == new, path

    within(FOLDS[id], json.loads(json.dumps(folds(reader))), id[:8])


@pytest.mark.parametrize("name", FILES)
def test_an_export_of_version_one_is_imported_whole_with_its_folds(tmp_path: Path, name: str) -> None:
    file = GOLDEN / f"v1-{name}.jsonl"
    id = next(id for id in FOLDS if id == json.loads(file.read_text(encoding="utf-8").splitlines()[0])["id"])

    async def script() -> None:
        async with opened(tmp_path) as store:
            imported = await store.import_(file)
            assert (imported.session, imported.warnings) == (id, ())
            assert (await store.verify(id)).intact
            viewer = await store.view(id)
            same(viewer, id)
            await viewer.close()
            assert b"".join([piece async for piece in store.export(id)]) == file.read_bytes()

    play(script)


def test_a_store_of_version_one_is_opened_with_its_folds_and_goes_on(tmp_path: Path) -> None:
    shutil.copyfile(GOLDEN / "v1.db", tmp_path / "sessions.db")

    async def script() -> None:
        async with opened(tmp_path) as store:
            for id in FOLDS:
                assert (await store.verify(id)).intact
                viewer = await store.view(id)
                same(viewer, id)
                assert all(fact.event for fact in (await viewer.history(limit=10_000)).facts)
                await viewer.close()
                session = await store.open_session(id)
                for command in recovery(session.state):
                    await session.commit(command)
            assert {row.title for row in await store.list()} == {"golden, renamed", "golden ✓ 漢"}

    play(script)


def test_the_golden_ledger_holds_every_kind_of_fact_of_its_version(tmp_path: Path) -> None:
    shutil.copyfile(GOLDEN / "v1.db", tmp_path / "sessions.db")
    found: set[type] = set()

    async def script() -> None:
        async with opened(tmp_path) as store:
            for id in FOLDS:
                every = await store.reader.run(lambda db: list(commits(db, lineage(db, id))), plain=True)  # noqa: B023
                for commit in every:
                    groups = thaw(commit.body)
                    assert freeze(groups) == commit.body  # encode, decode, encode: the same bytes
                    found.update(type(event) for group in groups for event in group.events())

    play(script)
    assert found == set(typing.get_args(AnyEvent))


def test_a_golden_session_takes_part_in_todays_life(tmp_path: Path) -> None:
    async def script() -> None:
        async with opened(tmp_path) as store:
            imported = await store.import_(GOLDEN / "v1-fork.jsonl")
            session = await store.open_session(imported.session)
            await turn(session, "after all these years")
            assert session.view.turns[-1].state == "completed"

    play(script)
