"""Random conversations: everything a session may hold, from any protocol, as strategies."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from panto.schema.messages import (
    BadJson,
    Image,
    Json,
    Message,
    Origin,
    Reasoning,
    Request,
    SystemBlock,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from tests.wire_check import PROTOCOLS, Protocol, seal

MODELS = ("gemini-3-a", "gemini-3-b")
_PLAIN = '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
TOOLS = (
    ToolSpec("read", "Reads.", _PLAIN),
    ToolSpec("subagents.run", "Runs.", '{"properties":{"tasks":{"type":"array"}}}'),
    ToolSpec("subagents_run", "Runs otherwise.", '{"type":"object"}'),
    ToolSpec("x" * 90, "Long.", '{"type":"object","$defs":{"P":{"const":1}},"properties":{"p":{"$ref":"#/$defs/P"}}}'),
    ToolSpec("7zip", "Packs.", '{"anyOf":[{"type":"object","properties":{"a":{"type":"array"}}},{"type":"object"}]}'),
    ToolSpec("any", "Takes all.", "true"),
)

protocols: st.SearchStrategy[Protocol] = st.shared(st.sampled_from(PROTOCOLS), key="protocol")
models: st.SearchStrategy[str] = st.shared(st.sampled_from(MODELS), key="model")
"""Who is asked: the same in a whole example, so that a history knows its own."""
texts = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "\n\t",
            "hello",
            "ñ北👩‍👩‍👧",
            "nul\0here",
            "half \ud83d pair",
            "<think>x</think>",
            "[DONE]",
            '{"a":1}',
        ]
    ),
    st.text(max_size=12),
)
images = st.builds(
    Image,
    st.sampled_from(["image/png", "image/jpeg", "image/tiff"]),
    st.binary(max_size=30),
    st.sampled_from(["", "a.png"]),
)
names = st.sampled_from([tool.name for tool in TOOLS] + ["gone.tool", "größe", ""])
ids = st.one_of(
    st.sampled_from(["", "call_0", "call_0", "toolu_1", "not valid!", "x" * 80, "AbCdEfGh9"]), st.text(max_size=6)
)
objects = st.dictionaries(
    st.sampled_from(["path", "n", "ñ"]), st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=2
)


@st.composite
def arguments(draw: Any) -> Json | BadJson:
    if draw(st.booleans()):
        return Json(json.dumps(draw(objects)))
    bad = draw(st.sampled_from(['{"a": 1', "[1]", "null", '"x"', '{"a":"\\u00"}', "{a:1}"]))
    return BadJson(bad, "it is broken")


def _reasoning(protocol: str, model: str, text: str, number: int) -> Reasoning:
    """Reasoning as that protocol's reader makes it."""
    match protocol:
        case "openai_chat":
            return Reasoning(text, {protocol: {"field": "reasoning_content"}})
        case "openai_responses":
            ident, summary = f"rs_{number}", [{"type": "summary_text", "text": text}]
            item = {"id": ident, "type": "reasoning", "summary": summary}
            whole = {**item, "encrypted_content": seal(model, ident + json.dumps(summary))}
            return Reasoning(text, {protocol: {"item": json.dumps(whole)}})
        case "anthropic_messages":
            if text == "redacted":
                return Reasoning("", {protocol: {"redacted": seal(model, text)}})
            return Reasoning(text, {protocol: {"signature": seal(model, text)}})
        case _:
            return Reasoning("", {"google_generate": {"signature": seal(model, ""), "of": "text"}})


def _call_metadata(
    protocol: str, model: str, name: str, args: Json | BadJson, number: str
) -> dict[str, dict[str, str]]:
    if protocol == "openai_responses":
        return {protocol: {"id": f"fc_{number}"}}
    if (
        protocol == "google_generate" and name == "read" and r"\u0000" not in args.text
    ):  # else it depends on the other tools
        inner = name + json.dumps(json.loads(args.text if isinstance(args, Json) else "{}"), sort_keys=True)
        return {protocol: {"signature": seal(model, inner)}}
    return {}


@st.composite
def replies(draw: Any, number: int) -> tuple[Message, ...]:
    """An assistant message and the results of its calls."""
    own = draw(st.booleans())  # by the very model that is asked, which is where signatures and ids count
    protocol = draw(protocols if own else st.sampled_from([*PROTOCOLS, "lua_thing"]))
    model = draw(models if own else st.sampled_from(MODELS))
    parts: list[Any] = []
    clean = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
    if draw(st.booleans()):
        said = draw(st.one_of(st.sampled_from(["redacted", ""]), clean))
        parts.append(_reasoning(protocol, model, said, number))
    if draw(st.booleans()):
        metadata = {protocol: {"id": f"msg_{number}", "phase": "commentary"}} if protocol == "openai_responses" else {}
        parts.append(Text(draw(texts), metadata))
    calls = []
    for index in range(draw(st.integers(0, 3))):
        name, args = draw(names), draw(arguments())
        mark = f"{number}_{index}"
        metadata = _call_metadata(protocol, model, name, args, mark) if draw(st.booleans()) else {}
        if protocol == "openai_responses":
            metadata = _call_metadata(protocol, model, name, args, mark)
        calls.append(ToolCall(name, args, f"{number:02}{index}" + "f" * 29, draw(ids), metadata))
    parts += calls
    if draw(st.booleans()) and not calls:
        parts.append(_reasoning(protocol, model, "trailing", number + 1000))
    origin = Origin("local", protocol, model)
    if not own:
        origin = draw(st.sampled_from([origin, Origin("elsewhere", protocol, model), None]))
    made_under = draw(st.sampled_from(["now", "now", "before"]))
    message = Message("assistant", tuple(parts), origin=origin, made_under=made_under)
    return (message, *draw(answers(calls)))


@st.composite
def answers(draw: Any, calls: list[ToolCall]) -> tuple[Message, ...]:
    """Results, in one message or several, in any order; now and then one is missing or one too many."""
    results = []
    for call in draw(st.permutations(calls)):
        inside = draw(
            st.lists(st.one_of(st.builds(Text, texts), images, st.builds(Json, st.just('{"r":1}'))), max_size=2)
        )
        results.append(ToolResult(call.call_id, call.name, tuple(inside), draw(st.booleans()), call.provider_id))
    if results and draw(st.integers(0, 9)) == 0:
        results.pop()
    if draw(st.integers(0, 9)) == 0:
        results.append(ToolResult("stray", "read", (Text("stray"),)))
    if draw(st.booleans()):
        return (Message("tool", tuple(results)),) if results else ()
    return tuple(Message("tool", (result,)) for result in results)


@st.composite
def said(draw: Any) -> tuple[Message, ...]:
    """What a person, or the host, says."""
    role = draw(st.sampled_from(["user", "user", "user", "system"]))
    parts = draw(
        st.lists(st.one_of(st.builds(Text, texts), images) if role == "user" else st.builds(Text, texts), max_size=3)
    )
    return (Message(role, tuple(parts)),)


@st.composite
def conversations(draw: Any, most: int = 7, first: int = 0) -> tuple[Message, ...]:
    """A conversation of any shape; its calls are numbered from `first`."""
    out: list[Message] = []
    for number in range(first, first + draw(st.integers(0, most))):
        out += draw(st.one_of(said(), replies(number)))
    return tuple(out)


@st.composite
def requests(draw: Any) -> Request:
    """A request of any shape, to one of two models."""
    tools = TOOLS[: draw(st.integers(0, len(TOOLS)))]
    kinds = ["auto", "none", "required", "named"] if tools else ["auto"]
    kind = draw(st.sampled_from(kinds))
    return Request(
        model=draw(models),
        system=tuple(SystemBlock(str(i), draw(texts), draw(st.booleans())) for i in range(draw(st.integers(0, 3)))),
        messages=draw(conversations()),
        tools=tools,
        tool_choice=ToolChoice(kind, tools[-1].name if kind == "named" else ""),
        reasoning=draw(st.sampled_from(["", "off", "low", "high", "max"])),
        max_output=draw(st.sampled_from([None, 1, 4000])),
        context_digest="now",
    )
