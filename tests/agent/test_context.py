"""Requests that are built from what is new are the same as those built anew, and cost what is new."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from panto.agent.context import Context
from panto.schema import ops
from panto.schema.bodies import RequestManifest
from panto.schema.codec import Digest
from panto.schema.events import ModelStepPrepared
from panto.schema.messages import Message
from panto.session import stage
from tests.agent.test_compaction import is_summary, paired
from tests.agent.test_turns import requests
from tests.scheduler.house import House, call, house, scripted


async def recorded(at: House, name: Digest) -> tuple[RequestManifest, tuple[Digest, ...]]:
    """A stored manifest and the digests of all its messages, those of former ones included."""
    manifest = await at.agent.session.body(name)
    assert isinstance(manifest, RequestManifest)
    if manifest.former is None:
        assert manifest.kept == 0
        return manifest, manifest.messages
    _, before = await recorded(at, manifest.former)
    assert 0 < manifest.kept <= len(before)
    return manifest, (*before[: manifest.kept], *manifest.messages)


def unguarded(at: House) -> None:
    """The same call may come again and again."""
    at.scheduler.shared.settings = dataclasses.replace(at.scheduler.shared.settings, repeat=0)


def digests(messages: tuple[Message, ...]) -> tuple[Digest, ...]:
    return tuple(stage(replace(message, in_progress=False)).digest for message in messages)


async def agrees(at: House) -> None:
    """What the agent's own context would send is what a new one would, and is sendable."""
    session, turn = at.agent.session, at.agent.session.state.turn
    name = turn.turn if turn else "none"
    mine = await at.agent.mailbox.ports.context.freeze(session.view.context, at.agent.setup(), name)
    new = await Context(session).freeze(session.view.context, at.agent.setup(), name)
    assert mine.request == new.request
    assert not mine.request.messages or paired(mine.request)


@pytest.mark.long(sample=4)
@pytest.mark.parametrize("seed", range(40))
def test_after_any_course_a_request_is_the_same_as_one_built_anew_and_its_record_names_its_messages(
    tmp_path: Path, seed: int
) -> None:
    async def main() -> None:
        dice = random.Random(seed)

        def reply() -> dict[str, Any]:
            kind = dice.random()
            if kind < 0.45:
                calls = [call("ls", path=".", depth=dice.randint(1, 3)) for _ in range(dice.randint(1, 3))]
                return {"text": dice.choice(["", "look"]), "calls": calls}
            if kind < 0.55:
                return {"error": {"kind": "auth", "status": 401, "message": "no"}}
            if kind < 0.65:
                return {"reasoning": "hm", "text": ["a"] * 50, "each_s": 0.02}
            return {"text": f"answer {dice.randint(0, 9)} " * dice.randint(1, 40)}

        async with house(tmp_path, scripted(*[reply() for _ in range(80)]), compact_at=0) as at:
            unguarded(at)
            for _ in range(12):
                match dice.choice("ppppcceerrf"):
                    case "p" | "c":
                        await at.client.submit(ops.Prompt(f"say {dice.randint(0, 99)} " * dice.randint(1, 30)))
                        await at.until(lambda: not at.agent.in_turn)
                    case "e":
                        await at.client.submit(ops.Prompt("and stop"))
                        await asyncio.sleep(dice.random() * 0.05)
                        await at.client.submit(ops.Interrupt())
                    case "r" if at.agent.session.view.turns and at.agent.session.state.run is None:
                        live = [t.turn for t in at.agent.session.view.turns if t.state != "superseded"]
                        if live:
                            await at.client.submit(ops.Rewind(dice.choice(live)))
                    case "f":
                        await at.client.submit(ops.Compact())
                    case _:
                        await at.client.submit(ops.Continue())
                        await at.until(lambda: not at.agent.in_turn)
                await agrees(at)
            prepared = [e.request for e in at.events(ModelStepPrepared) if isinstance(e, ModelStepPrepared)]
            sent = [r for r in requests(at) if not is_summary(r)]
            stored = [(await recorded(at, name))[1] for name in prepared]
            assert {digests(r.messages) for r in sent} <= set(stored)
            assert (await at.scheduler.shared.store.verify(at.agent.id)).findings == ()

    asyncio.run(main())


def test_what_is_recorded_of_a_request_does_not_grow_with_the_turn(tmp_path: Path) -> None:
    async def main() -> None:
        steps = [{"text": f"{n}", "calls": [call("ls", path=".", depth=1 + n % 3)]} for n in range(60)]
        async with house(tmp_path, scripted(*steps, {"text": "Done."})) as at:
            unguarded(at)
            await at.prompt("go")
            prepared = [e.request for e in at.events(ModelStepPrepared) if isinstance(e, ModelStepPrepared)]
            sizes = [len(await at.agent.session.raw(name)) for name in prepared]
            assert len(sizes) == 61 and max(sizes[1:]) < sizes[1] * 1.2
            _, all_of_them = await recorded(at, prepared[-1])
            assert len(all_of_them) == 1 + 2 * 60

    asyncio.run(main())


def test_after_a_restart_the_first_request_is_recorded_whole_and_the_next_ones_go_on_from_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "1"}, {"text": "2"})) as at:
            await at.prompt("one")
            await at.prompt("two")
            name = at.agent.id
        async with house(tmp_path, scripted({"text": "3"}, {"text": "4"}), resume=name) as at:
            await at.prompt("three")
            await at.prompt("four")
            prepared = [e.request for e in at.events(ModelStepPrepared) if isinstance(e, ModelStepPrepared)]
            manifests = [(await recorded(at, request)) for request in prepared]
            assert [(m.former is None, m.kept, len(m.messages)) for m, _ in manifests] == [(True, 0, 5), (False, 5, 2)]
            assert manifests[-1][1] == digests(requests(at)[-1].messages)

    asyncio.run(main())


def test_the_status_says_what_last_broke_the_cached_prefix(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(tmp_path, scripted({"text": "1"}, {"text": "2"}, {"text": "3"})) as at:
            await at.prompt("one")
            await at.prompt("two")
            assert at.agent.status().prefix_broken == ""
            await at.client.submit(ops.Rewind(at.agent.session.view.turns[0].turn))
            await at.prompt("another one")
            assert at.agent.status().prefix_broken == "message 1 (user) was changed"

    asyncio.run(main())
