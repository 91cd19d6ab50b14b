"""One model call to its result: tries, waits, idle limits, Escape."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import pytest

from panto.providers import Model, ModelSpec, NetworkSettings, Price, RetryPolicy, Scripted, Wait, complete
from panto.providers.conformance import Answer, LocalServer, Seen, json_answer
from panto.providers.provider import Provider
from panto.schema.errors import ProviderError
from panto.schema.messages import Message, ModelResult, Request, Text
from panto.schema.stream import StreamPart, TextDelta
from tests.providers.fixtures import MODEL, provider
from tests.wire_check import PROTOCOLS, Fault, Protocol, Reply, WireCheck, rendered

QUICK = RetryPolicy(first_s=0.01, longest_s=0.02)
REQUEST = Request(MODEL, messages=(Message("user", (Text("hi"),)),))


@dataclass
class Told:
    """What the caller was told, in order."""

    parts: list[StreamPart] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    shown: str = ""
    retry_now: asyncio.Event = field(default_factory=asyncio.Event)

    def part(self, part: StreamPart) -> None:
        self.parts.append(part)
        if isinstance(part, TextDelta):
            self.shown += part.text

    def reset(self, generation: int) -> None:
        self.resets.append(generation)
        self.shown = ""

    async def ask(self, provider: Provider, policy: RetryPolicy = QUICK, **changes: Any) -> ModelResult:
        model = Model("local:m", provider, ModelSpec(MODEL, price=Price(1, 2)))
        return await complete(
            model,
            REQUEST,
            on_part=self.part,
            on_wait=self.waits.append,
            on_reset=self.reset,
            retry_now=self.retry_now,
            policy=policy,
        )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_overload_is_waited_out_and_shown(protocol: Protocol) -> None:
    async def main() -> None:
        told = Told()
        async with WireCheck(protocol) as vendor:
            vendor.replies += [Fault(529), Fault(429, headers={"retry-after": "0.2"}), Fault(503), Reply("fine")]
            began = time.monotonic()
            result = await told.ask(provider(protocol, vendor.base_url))
        assert result.text() == told.shown == "fine"
        assert [w.status for w in told.waits if not w.over] == [529, 429, 503]
        assert [w.over for w in told.waits] == [False, True] * 3
        assert told.waits[2].wait_s == 0.2 and time.monotonic() - began >= 0.2
        assert [w.attempt for w in told.waits if not w.over] == [2, 3, 4]
        assert told.resets == [] and not vendor.refusals

    asyncio.run(main())


def test_a_date_is_a_wish_too() -> None:
    async def main() -> None:
        told = Told()
        async with WireCheck("openai_chat") as vendor:
            vendor.replies += [
                Fault(429, headers={"retry-after": formatdate(time.time() + 90, usegmt=True)}),
                Reply("ok"),
            ]
            task = asyncio.create_task(told.ask(provider("openai_chat", vendor.base_url)))
            while not told.waits:
                await asyncio.sleep(0.01)
            assert 80 < told.waits[0].wait_s <= 90
            told.retry_now.set()  # the person does not want to wait
            assert (await task).text() == "ok"

    asyncio.run(main())


def test_a_wait_beyond_patience_is_an_error_that_says_so() -> None:
    async def main() -> None:
        async with WireCheck("openai_chat") as vendor:
            vendor.replies += [Fault(429, headers={"retry-after": "3600"})]
            with pytest.raises(ProviderError) as caught:
                await Told().ask(provider("openai_chat", vendor.base_url))
        assert caught.value.kind == "rate_limited" and "3600 s" in caught.value.hint

    asyncio.run(main())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 402])
def test_what_another_try_cannot_mend_is_not_tried_again(status: int) -> None:
    async def main() -> None:
        async with WireCheck("anthropic_messages") as vendor:
            vendor.replies += [Fault(status, "no"), Reply("ok")]
            with pytest.raises(ProviderError) as caught:
                await Told().ask(provider("anthropic_messages", vendor.base_url))
            assert len(vendor.requests) == 1
        host = vendor.base_url.split("/")[2]
        assert all(word in caught.value.message for word in (host, MODEL, str(status)))

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_attempt_cut_midway_is_dropped_whole_and_tried_again_at_most_twice(protocol: Protocol) -> None:
    async def main() -> None:
        told = Told()
        async with WireCheck(protocol) as vendor:
            cut = Fault(after=6 if protocol == "openai_responses" else 4)
            vendor.replies += [cut, cut, Reply("whole")]
            result = await told.ask(provider(protocol, vendor.base_url))
            assert result.text() == told.shown == "whole"
            assert told.resets == [1, 2]
            vendor.replies += [cut] * 3
            with pytest.raises(ProviderError) as caught:
                await told.ask(provider(protocol, vendor.base_url))
            assert caught.value.kind == "connection" and len(vendor.requests) == 6

    asyncio.run(main())


def silent(protocol: Protocol, pieces: list[bytes], pause_s: float = 0.0) -> Callable[[Seen], Answer]:
    return lambda seen: Answer(pieces, hang_s=600, pause_s=pause_s)


@pytest.mark.parametrize("protocol", ["openai_chat", "google_generate"])
def test_a_connection_that_breaks_after_the_finish_loses_nothing(protocol: Protocol) -> None:
    async def main() -> None:
        whole = rendered(protocol, Reply("one two"), MODEL, stream=True)
        pieces = whole[:-2] if protocol == "openai_chat" else whole
        async with LocalServer(lambda seen: Answer(pieces, cut=True)) as server:
            told = Told()
            assert (await told.ask(provider(protocol, server.url))).text() == "one two"
            assert told.waits == []

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("pings", [False, True])
def test_a_stream_that_goes_silent_ends_at_the_idle_limit_pings_or_not(protocol: Protocol, pings: bool) -> None:
    async def main() -> None:
        first = rendered(protocol, Reply("one two", "I think"), MODEL, stream=True)[:2]
        pieces = first + [b": ping\n\n"] * 2_000 if pings else first
        async with LocalServer(silent(protocol, pieces, 0.05 if pings else 0)) as server:
            began = time.monotonic()
            with pytest.raises(ProviderError) as caught:
                one = RetryPolicy(tries=1, dropped=0)
                await Told().ask(provider(protocol, server.url, network=NetworkSettings(idle_s=0.4)), one)
        assert caught.value.kind == "timeout" and 0.3 < time.monotonic() - began < 50

    asyncio.run(main())


@pytest.mark.parametrize("state", ["connecting", "waiting", "streaming", "pinging", "retrying", "reading an error"])
def test_escape_ends_any_state_at_once(state: str) -> None:
    async def main() -> None:
        pieces = rendered("openai_chat", Reply("one two"), MODEL, stream=True)[:3]
        answers = {
            "waiting": Answer(hang_s=600),
            "streaming": Answer(pieces, hang_s=600),
            "pinging": Answer([*pieces, *[b": ping\n\n"] * 10_000], pause_s=0.01),
            "retrying": json_answer(b"{}", 503, {"retry-after": "100"}),
            "reading an error": Answer([b"{"], 500, {"content-type": "application/json"}, hang_s=600),
        }
        async with LocalServer(lambda seen: answers[state]) as server:
            url = "http://192.0.2.1:9/v1" if state == "connecting" else server.url
            told = Told()
            task = asyncio.create_task(told.ask(provider("openai_chat", url)))
            deadline = time.monotonic() + 20
            while state != "connecting" and not server.seen and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert not task.done()
            began = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 20  # each of them goes on for longer, untouched

    asyncio.run(main())


def test_a_cancelled_stream_hangs_up() -> None:
    async def main() -> None:
        pieces = rendered("openai_chat", Reply("one two"), MODEL, stream=True)[:3]
        async with LocalServer(lambda seen: Answer([*pieces, *[b": ping\n\n"] * 10_000], pause_s=0.01)) as server:
            task = asyncio.create_task(Told().ask(provider("openai_chat", server.url)))
            while not server.seen:
                await asyncio.sleep(0.01)
            task.cancel()
            deadline = time.monotonic() + 20
            while not server.gone and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            assert server.gone == 1

    asyncio.run(main())


def test_an_unreachable_local_server_is_said_at_once() -> None:
    async def main() -> None:
        async with LocalServer(lambda seen: Answer()) as server:
            url = server.url
        told = Told()
        with pytest.raises(ProviderError) as caught:
            await told.ask(provider("openai_chat", url))
        assert caught.value.kind == "connection" and told.waits == []
        assert url.removeprefix("http://") in caught.value.message and "running" in caught.value.hint

    asyncio.run(main())


def test_one_connection_serves_call_after_call() -> None:
    async def main() -> None:
        async with WireCheck("openai_chat") as vendor:
            one = provider("openai_chat", vendor.base_url)
            for _ in range(5):
                await Told().ask(one)
            assert vendor.connections == 1

    asyncio.run(main())


def test_the_scripted_provider_needs_no_network_and_fails_on_demand() -> None:
    async def main() -> None:
        script = [
            {"error": {"kind": "overloaded", "status": 529}},
            {"text": ["a", "b", "c"], "error": {"kind": "connection", "after": 3}},
            {
                "reasoning": "hm",
                "text": ["a", "b"],
                "calls": [{"name": "read", "arguments": {"path": "x"}}],
                "usage": {"input": 7},
            },
        ]
        told = Told()
        result = await told.ask(Scripted(script))
        assert (result.text(), [c.name for c in result.calls()], told.resets) == ("ab", ["read"], [1])
        assert result.usage.input == 7 and result.cost == pytest.approx(7e-6)
        assert result.finish.reason == "tool_calls"

    asyncio.run(main())


def test_a_key_goes_into_its_header_and_nowhere_else() -> None:
    canary = "sk-canary-1234567890"

    async def main() -> None:
        for protocol in PROTOCOLS:
            said = json_answer(b'{"error":{"message":"Incorrect API key provided: ' + canary.encode() + b'"}}', 401)
            async with LocalServer(lambda seen, said=said: said) as server:  # type: ignore[misc]
                one = provider(protocol, server.url, key=lambda: canary + "\n")
                with pytest.raises(ProviderError) as caught:
                    await Told().ask(one)
                (seen,) = server.seen
                assert sum(canary in value for value in seen.headers.values()) == 1
                assert canary.encode() not in seen.body and canary not in seen.path
                error = caught.value
                assert canary not in f"{error.message} {error.hint} {error!r}" and "***" in error.message
                assert error.kind == "auth" and canary not in repr(vars(error))

    asyncio.run(main())


@pytest.mark.parametrize("key", ["", " \n", "sk\u00e9", "two\nlines"])
def test_a_key_that_no_header_can_carry_is_an_error_that_does_not_show_it(key: str) -> None:
    async def main() -> None:
        with pytest.raises(ProviderError) as caught:
            await Told().ask(provider("openai_chat", "http://127.0.0.1:9", key=lambda: key))
        assert caught.value.kind == "auth" and (not key.strip() or key not in str(caught.value))

    asyncio.run(main())


def test_a_model_that_wrote_a_bad_call_is_asked_again() -> None:
    body = b'{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<x>"}}'

    async def main() -> None:
        answers = [json_answer(body, 400), Answer(rendered("openai_chat", Reply("ok"), MODEL, stream=True))]
        async with LocalServer(lambda seen: answers.pop(0)) as server:
            assert (await Told().ask(provider("openai_chat", server.url))).text() == "ok"

    asyncio.run(main())


def test_a_prompt_that_silently_fills_the_window_is_overflow() -> None:
    async def main() -> None:
        model = Model("p:m", Scripted([{"usage": {"input": 4096}, "finish": "length"}]), ModelSpec("m", context=4096))
        told = Told()
        with pytest.raises(ProviderError) as caught:
            await complete(
                model,
                REQUEST,
                on_part=told.part,
                on_wait=told.waits.append,
                on_reset=told.reset,
                retry_now=told.retry_now,
            )
        assert caught.value.kind == "overflow" and "4096" in caught.value.message

    asyncio.run(main())


def test_an_unusable_reply_is_tried_again_twice_and_no_more() -> None:
    async def main() -> None:
        async with WireCheck("google_generate") as vendor:
            vendor.replies += [Reply(finish="MALFORMED_FUNCTION_CALL")] * 9
            with pytest.raises(ProviderError) as caught:
                await Told().ask(provider("google_generate", vendor.base_url))
            assert caught.value.kind == "malformed" and len(vendor.requests) == 3

    asyncio.run(main())
