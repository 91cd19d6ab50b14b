"""Protocols written in Lua: the conformance suite over HTTP and in memory, and streams that never mix."""

import asyncio
import dataclasses
import json
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panto.lua.protocol import LuaProvider
from panto.providers import Http, ProviderSettings
from panto.providers.conformance import CASES, Canned, CannedError, Case, Fixture, check
from panto.providers.model import NetworkSettings
from panto.schema.errors import ProviderError
from panto.schema.messages import Message, Request, Text
from panto.schema.stream import FinishPart, ReasoningDelta, StreamPart, TextDelta
from tests.lua.home import Home, home
from tests.providers.fixtures import fixture
from tests.scheduler.house import scripted

SHIPPED = Path(__file__).parent.parent.parent / "extensions"

MEMORY = """
local ext = require('panto').ext
local json = ext.json
replies, heard = {}, ''
ext.register_protocol { name = 'memory', open = function(request)
  local seen = {}
  for k, v in pairs(request) do if k ~= 'endpoint' then seen[k] = v end end
  heard = json.encode(seen)
  local parts, at = replies, 0
  return { next = function() at = at + 1 return parts[at] end }
end }
"""


def request(text: str = "hi") -> Request:
    return Request(model="m", messages=(Message("user", (Text(text),)),))


def provider(at: Home, name: str, url: str = "", idle_s: float = 5, **settings: Any) -> LuaProvider:
    made = ProviderSettings(name=name, protocol=name, base_url=url, **settings)
    return LuaProvider(at.extensions.streams, name, made, Http(NetworkSettings(idle_s=idle_s)))


async def parts(made: LuaProvider, text: str = "hi") -> list[StreamPart]:
    async with aclosing(made.stream(request(text))) as stream:  # type: ignore[type-var]
        return [part async for part in stream]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_the_example_over_http_conforms(tmp_path: Path, case: Case) -> None:
    code = (SHIPPED / "chat-protocol/init.lua").read_text()

    async def work() -> None:
        async with home(tmp_path, scripted(), {"chat": code}) as at:
            mine = dataclasses.replace(
                fixture("openai_chat"), name="chat_lua",
                provider=lambda url, stream, options: provider(at, "chat_lua", url, stream=stream, options=options),
            )  # fmt: skip
            (outcome,) = await check(mine, [case])
            assert outcome.state == "passed", outcome.why
            await at.house.until(lambda: not at.driver.counts()["tasks"] and not at.extensions.requests.bodies)

    asyncio.run(work())


# In memory everything of the request is handed over: there is no wire to keep a foreign history's ids from.
IN_MEMORY = [case for case in CASES if case.name != "foreign history"]


@pytest.mark.parametrize("case", IN_MEMORY, ids=lambda case: case.name.replace(" ", "_"))
def test_a_protocol_in_memory_conforms(tmp_path: Path, case: Case) -> None:
    async def work() -> None:
        async with home(tmp_path, scripted(), {"memory": MEMORY}) as at:
            lua: Any = at.extensions.host.lua
            set_replies = lua.eval("function(H) return function(s) replies = H.json_decode(s) end end")
            give = set_replies(at.extensions.host.private)

            def play(reply: Canned | CannedError, stream: bool) -> None:
                give(json.dumps(scripted_parts(reply)))

            theirs = fixture("openai_chat")
            mine = Fixture(
                name="memory", provider=lambda url, stream, options: provider(at, "memory"), text=theirs.text,
                calls=theirs.calls, reasoning=theirs.reasoning, error=theirs.error, play=play,
                heard=lambda: str(lua.eval("heard")),
                lacks=frozenset({"whole", "bytes", "options", "status", "signatures"}),
            )  # fmt: skip
            (outcome,) = await check(mine, [case])
            assert outcome.state == ("skipped" if case.needs & mine.lacks else "passed"), outcome.why

    asyncio.run(work())


def scripted_parts(reply: Canned | CannedError) -> list[dict[str, object]]:
    if isinstance(reply, CannedError):
        return [{"type": "error", "kind": reply.kind, "message": "refused"}]
    meaning = reply.meaning
    out: list[dict[str, object]] = [
        {"type": "response", "id": meaning.response_id, "model": meaning.response_model, "created": meaning.created}
    ]
    if meaning.reasoning:
        out.append({"type": "reasoning", "text": meaning.reasoning})
    if meaning.text:
        out.append({"type": "text", "text": meaning.text})
    for index, (name, arguments) in enumerate(meaning.calls):
        out += [
            {"type": "tool_call_start", "index": index, "name": name, "id": str(index)},
            {"type": "tool_call_delta", "index": index, "text": arguments},
            {"type": "tool_call_end", "index": index},
        ]
    usage = {name: getattr(meaning.usage, name) for name in ("input", "output", "cache_read", "reasoning")}
    return [*out, {"type": "usage", **usage}, {"type": "finish", "reason": meaning.finish, "raw": meaning.raw}]


KEY = """
local ext = require('panto').ext
ext.register_protocol { name = 'keyed', open = function(request, handle)
  return ext.wire.stream(handle, function(put)
    local found = {}
    for k, v in pairs(request.endpoint) do found[#found + 1] = tostring(v) end
    local ok, e = pcall(ext.http, { endpoint = request.endpoint, path = '@127.0.0.1:1/x' })
    local r = ext.http { endpoint = request.endpoint, path = '/v1/x', body = '{}' }
    local seen = { #found, tostring(request.endpoint.key), e.message, r.status }
    put { type = 'text', text = table.concat(seen, ' ') }
    put { type = 'finish', reason = 'stop' }
  end)
end }
"""


def test_an_endpoints_key_is_added_out_of_sight_and_only_for_its_host(tmp_path: Path) -> None:
    from panto.providers.conformance import Answer, LocalServer

    async def work() -> None:
        async with LocalServer(lambda seen: Answer([b"{}"])) as server, home(tmp_path, scripted(), {"k": KEY}) as at:
            made = provider(at, "keyed", server.url, key=lambda: "canary", headers={"x-team": "a"})
            got = await parts(made)
            assert got[0] == TextDelta("0 nil http: path must begin with / and stay with the endpoint 200")
            assert server.seen[-1].headers["authorization"] == "Bearer canary"
            assert server.seen[-1].headers["x-team"] == "a"
            assert await at.value("local s = '' for k in pairs(_G) do s = s .. k end return s:match('canary') == nil")

    asyncio.run(work())


FAULTS = {
    "a nil before the finish": ("return { next = function() return nil end }", "malformed", "without a finish"),
    "no stream": ("return 1", "server", "open must return a table"),
    "an error in open": ("error('broken')", "server", "broken"),
    "an error with a kind": (
        "return { next = function() error { kind = 'rate_limited', message = 'slow down', status = 429,"
        " retry_after = 2 } end }",
        "rate_limited", "slow down",
    ),
    "what is no part": ("return { next = function() return { type = 'nothing' } end }", "malformed", "no part"),
    "a part of the wrong type": ("return { next = function() return 5 end }", "server", "next must return a table"),
    "a wait in a body": ("return { next = function() ext.sleep(1) end }", "server", "sleep waits"),
    "an endless loop": ("return { next = function() while true do end end }", "server", "ran too long"),
    "silence": ("return { next = function() return ext.pending() end }", "timeout", "gave nothing"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_stream_becomes_an_error_of_its_kind(tmp_path: Path, fault: str) -> None:
    body, kind, said = FAULTS[fault]
    code = f"""local ext = require('panto').ext
      ext.register_protocol {{ name = 'bad', open = function(request, handle) {body} end }}"""

    async def work() -> None:
        async with home(tmp_path, scripted(), {"bad": code}) as at:
            with pytest.raises(ProviderError) as raised:
                await parts(provider(at, "bad", idle_s=0.2))
            assert raised.value.kind == kind
            assert said in raised.value.message
            if kind == "rate_limited":
                assert (raised.value.status, raised.value.retry_after) == (429, 2)
            assert not at.extensions.streams.wakes and not at.extensions.streams.endpoints

    asyncio.run(work())


PIECES = """
local ext = require('panto').ext
ext.register_protocol { name = 'pieces', open = function(request)
  local what = request.messages[1].parts[1].text
  local parts, at = {}, 0
  for i = 1, 100 do parts[i] = { type = 'text', text = i .. ' ' } end
  parts[#parts + 1] = { type = 'reasoning', text = 'a' }
  parts[#parts + 1] = { type = 'reasoning', text = 'b' }
  parts[#parts + 1] = { type = 'text', text = 'last' }
  if what == 'ends' then parts[#parts + 1] = { type = 'finish', reason = 'stop' } end
  return { next = function()
    at = at + 1
    if at > #parts and what == 'fails' then error { kind = 'overloaded', message = 'too much' } end
    return parts[at]
  end }
end }
"""


@pytest.mark.parametrize("how", ["ends", "fails", "stops"])
def test_what_is_there_at_once_comes_together_and_before_what_follows_it(tmp_path: Path, how: str) -> None:
    got: list[StreamPart] = []

    async def work() -> None:
        async with home(tmp_path, scripted(), {"pieces": PIECES}) as at:
            async with aclosing(provider(at, "pieces").stream(request(how))) as stream:  # type: ignore[type-var]
                async for part in stream:
                    got.append(part)

    if how == "ends":
        asyncio.run(work())
        assert got.pop() == FinishPart("stop")
    else:
        with pytest.raises(ProviderError) as raised:
            asyncio.run(work())
        assert raised.value.kind == ("overloaded" if how == "fails" else "malformed")
    texts = [part.text for part in got if isinstance(part, TextDelta)]
    assert "".join(texts) == "".join(f"{i} " for i in range(1, 101)) + "last"
    assert got[-2:] == [ReasoningDelta("ab"), TextDelta("last")] and len(got) < 10


SLOW = """
local ext = require('panto').ext
pulls, log = 0, {}
ext.register_protocol { name = 'slow',
  open = function(request, handle)
    local name, n, ready = request.messages[1].parts[1].text, 0, {}
    if name ~= 'idle' then
      ext.spawn(function() while true do ext.sleep(2) ready[#ready + 1] = true handle:wake() end end)
    end
    return {
      next = function()
        pulls = pulls + 1
        if #ready == 0 then return ext.pending() end
        table.remove(ready)
        n = n + 1
        if n > 20 then return { type = 'finish', reason = 'stop' } end
        return { type = 'text', text = name .. n .. ' ' }
      end,
      cancel_turn = name ~= 'plain' and function() log[#log + 1] = 'cancel ' .. name end or nil,
      close = function() log[#log + 1] = 'close ' .. name end,
    }
  end,
  cancel_turn = function() log[#log + 1] = 'cancel any' end,
  close = function() log[#log + 1] = 'protocol closed' end,
}
"""


def test_streams_interleave_and_cancelling_one_leaves_the_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with home(tmp_path, scripted(), {"slow": SLOW}) as at:
            made = provider(at, "slow")

            async def abandon(name: str) -> None:
                async with aclosing(made.stream(request(name))) as stream:  # type: ignore[type-var]
                    async for _ in stream:
                        return

            a, b, *_ = await asyncio.gather(parts(made, "a"), parts(made, "b"), abandon("c"), abandon("plain"))
            for name, got in (("a", a), ("b", b)):
                text = "".join(part.text for part in got if isinstance(part, TextDelta))
                assert text == "".join(f"{name}{n} " for n in range(1, 21))
                assert isinstance(got[-1], FinishPart)
            log = await at.value("return log")
            assert sorted(log) == ["cancel any", "cancel c", "close a", "close b", "close c", "close plain"]
            await at.extensions.reload()
            assert await at.value("return #log") == 0
            assert (await parts(made, "d"))[0] == TextDelta("d1 ")
            assert at.driver.counts()["tasks"] == 0

    asyncio.run(work())


def test_a_stream_with_nothing_ready_is_not_pulled_busily(tmp_path: Path) -> None:
    async def work() -> None:
        async with home(tmp_path, scripted(), {"slow": SLOW}) as at:
            reading = asyncio.create_task(parts(provider(at, "slow"), "idle"))
            await asyncio.sleep(1)
            reading.cancel()
            await asyncio.wait({reading})
            assert await at.value("return pulls") < 20

    asyncio.run(work())


def test_a_turn_over_a_lua_protocol_stops_within_the_window(tmp_path: Path) -> None:
    from panto.schema import ops

    tables = {"fake": {"protocol": "slow", "models": {"m": {"id": "m", "context": 1000}}}}

    async def work() -> None:
        async with home(tmp_path, tables, {"slow": SLOW}) as at:
            await at.house.client.submit(ops.Prompt("idle"))
            async with asyncio.timeout(30):
                while not await at.value("return pulls"):
                    await asyncio.sleep(0.01)
            begun = time.monotonic()
            await at.house.client.submit(ops.Interrupt())
            await at.house.rest()
            assert time.monotonic() - begun < 20
            assert await at.value("return log") == ["cancel idle", "close idle"]

    asyncio.run(work())
