"""The property behind section A of the failure kinds: whatever prefix of a ledger there is, its request is accepted."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.agent.ports import Setup
from panto.providers.anthropic_messages import AnthropicMessages
from panto.providers.google_generate import GoogleGenerate
from panto.providers.model import Model, ModelSpec, ProviderSettings
from panto.providers.openai_chat import OpenAIChat
from panto.providers.openai_responses import OpenAIResponses
from panto.schema import ops
from panto.schema.errors import PantoError
from panto.schema.messages import Message, Text
from panto.schema.signals import Fact
from panto.session.context import Context as Entries
from panto.session.fold import fold
from panto.session.view import View
from tests.scheduler.house import House, call, house, scripted
from tests.wire_check import PROTOCOLS, refusal

WIRES: dict[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
    "google_generate": GoogleGenerate,
}

CALLS = st.sampled_from([
    call("ls"), call("read", path="a"), call("bash", command="echo hi"), call("nothing"), call("read"),
    {"name": "read", "arguments": '{"path": "a", oops": 1}'}, {"name": "ls", "arguments": ""},
    {"name": "bash", "arguments": "[1]"}, call("bash", command="sleep 0.2; echo late"),
])  # fmt: skip
REPLIES = st.one_of(
    st.fixed_dictionaries({"text": st.sampled_from(["Yes.", " ", "", "Möglich 漢"])}),
    st.fixed_dictionaries({
        "reasoning": st.sampled_from(["", "hm"]), "text": st.sampled_from(["", "I look."]),
        "calls": st.lists(CALLS, min_size=1, max_size=4),
    }),
    st.fixed_dictionaries({"calls": st.lists(CALLS, min_size=1, max_size=2), "finish": st.just("length")}),
    st.fixed_dictionaries({"text": st.just(["a ", "b ", "c "]), "each_s": st.just(0.02)}),
    st.just({"error": {"kind": "server", "status": 400, "message": "no"}}),
    st.just({"text": "cut", "error": {"kind": "auth", "status": 401, "message": "no", "after": 1}}),
)  # fmt: skip
ACTS = st.lists(
    st.sampled_from(["prompt", "prompt", "steer", "queue", "escape", "compact", "rewind", "continue", "wait", "fork"]),
    min_size=1, max_size=8,
)  # fmt: skip


async def live(at: House, acts: list[str], dice: random.Random) -> None:
    """Do what people do, at odd moments."""
    for act in acts:
        try:
            match act:
                case "prompt" | "steer":
                    await at.client.submit(ops.Prompt(f"{act} {dice.random()}"))
                case "queue":
                    await at.client.submit(ops.Prompt("later", when="turn"))
                case "escape":
                    await asyncio.sleep(dice.random() * 0.05)
                    await at.client.submit(ops.Interrupt())
                case "compact":
                    await at.client.submit(ops.Compact())
                case "rewind":
                    turns = [t for t in at.agent.session.view.turns if t.state != "superseded"]
                    if turns:
                        await at.client.submit(ops.Rewind(dice.choice(turns).turn))
                case "continue":
                    await at.client.submit(ops.Continue())
                case "fork":
                    await at.client.submit(ops.Fork())
                    at.seen.clear()
                case _:
                    await at.rest()
        except PantoError:
            pass  # refused at this moment: so it is for a person, too
        await asyncio.sleep(dice.random() * 0.01)
    await at.rest()


async def check_every_prefix(at: House, before: list[Fact]) -> int:
    """Fold the facts one commit after the other; each time the request that would follow is accepted by all vendors."""
    view, setup, checked = View(Entries()), at.agent.setup(), 0
    facts = before + [u for u in at.seen if isinstance(u, Fact)]
    for number, fact in enumerate(facts):
        fold(view, fact.event, fact.seq, fact.time)
        if number + 1 < len(facts) and facts[number + 1].seq == fact.seq:
            continue
        messages = await at.agent.mailbox.ports.context.messages(view.context)
        for protocol in PROTOCOLS:
            await accepted(at, protocol, setup, (*messages, Message("user", (Text("go on"),))))
            checked += 1
    return checked


async def accepted(at: House, protocol: str, setup: Setup, messages: tuple[Message, ...]) -> None:
    from dataclasses import replace

    spec = ModelSpec("m", max_output=4096)
    model = Model("fake:m", setup.model.provider, spec)
    request = (await at.agent.mailbox.ports.context.freeze((), replace(setup, model=model), "")).request
    from msgspec.structs import replace as with_

    wire = WIRES[protocol](ProviderSettings("fake", protocol, "http://127.0.0.1:9/v1"))
    prepared = wire.prepare(with_(request, messages=messages), spec, stream=True)
    headers = {name.lower(): value for name, value in {**prepared.headers, **wire.key_headers("k")}.items()}
    why = refusal(protocol, json.loads(prepared.body), headers, path=prepared.path)  # type: ignore[arg-type]
    assert why is None, f"{protocol}: {why}\n{prepared.body.decode()}"


@pytest.mark.timeout(600)
@given(st.lists(REPLIES, min_size=3, max_size=8), ACTS, st.integers(0, 999))
def test_the_request_built_from_any_prefix_of_a_ledger_is_accepted_by_every_vendor(
    replies: list[Any], acts: list[str], seed: int
) -> None:
    async def main(root: Path) -> None:
        tables = scripted(*replies, *[{"text": "Summary or answer."}] * 12)
        async with house(root, tables) as at:
            (at.cwd / "a").write_text("x\n")
            await live(at, acts, random.Random(seed))
            page = await at.agent.session.history(None, 1 << 20)
            last = page.facts[-1].seq if page.facts else -1
            at.seen[:] = [u for u in at.seen if not isinstance(u, Fact) or u.seq > last]
            await check_every_prefix(at, list(page.facts))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
