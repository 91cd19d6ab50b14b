"""A conversation put in the one order every vendor accepts: what each protocol then only has to spell.

Users, assistants and results alternate; each call is answered exactly once, directly after it, in call order; nothing
is empty; the first word and the last are a user's. History is not repaired here: what a session holds is already
paired. A stray result is left out and said; a missing one is answered with an error, since the vendor refuses else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from panto.schema.messages import (
    Image,
    Json,
    Message,
    Part,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)

_NUL = re.compile(r"\\\\|\\u0000")
CONTINUE = Message("user", (Text("Continue."),))


def clean(text: str) -> str:
    """Text that every JSON reader takes: no NUL, no lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def wire_arguments(call: ToolCall) -> str:
    """A call's arguments as the text of a JSON object; what was not one is replayed empty (its result says why)."""
    match call.arguments:
        case Json(text=text) if text.lstrip()[:1] == "{":
            if r"\u0000" in text:
                text = _NUL.sub(lambda found: found[0] if found[0] == r"\\" else r"\ufffd", text)
            return text
        case _:
            return "{}"


class IdRule(Struct, frozen=True):
    """Which call ids a wire takes: `shape` must match whole; others become `prefix` and a digest, `length` in all."""

    shape: re.Pattern[str]
    prefix: str
    length: int

    def make(self, seed: str) -> str:
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
        return (self.prefix + digest)[: self.length]


class Target(Struct, frozen=True):
    """Where a conversation goes. `any_model`: signatures hold for every model of this provider."""

    provider: str
    protocol: str
    ids: IdRule
    any_model: bool = False

    def own(self, message: Message, model: str) -> bool:
        """Whether this message's vendor data may be handed back to that model."""
        origin = message.origin
        return (
            origin is not None
            and origin.provider == self.provider
            and origin.protocol == self.protocol
            and (self.any_model or origin.model == model)
        )


class Group(Struct):
    """One turn of the wire's alternation.

    user: `messages`, to be joined. assistant: one message, its calls' wire `ids` in order, `own` (vendor data may go
    back) and `keep` (reasoning may, too). results: `results` with their wire ids, in call order.
    """

    kind: Literal["user", "assistant", "results"]
    messages: tuple[Message, ...] = ()
    ids: tuple[str, ...] = ()
    own: bool = False
    keep: bool = False
    results: tuple[tuple[ToolResult, str], ...] = ()
    echoed: frozenset[str] = frozenset()
    """Those of the wire ids that are the provider's own."""
    spelt: tuple[object, list[msgspec.Raw]] | None = None
    """As a wire spelt it, and under what circumstances: a group that stays is not spelt again."""


class Shaped(Struct):
    """The conversation in order. `head`: system texts that stand before everything."""

    head: list[str]
    groups: list[Group]
    notes: list[str] = []
    stale: bool = False
    """Reasoning of the turn in progress was made under another prefix."""


def sendable(part: Part) -> bool:
    """Whether a part is more than nothing by itself."""
    match part:
        case Text(text=text):
            return bool(text) and not text.isspace()
        case Reasoning():
            return False
        case _:
            return True


class _Mark(Struct, frozen=True):
    """What was there before the assistant message at `at`: how many groups, which last, how many notes and wire ids."""

    at: int
    groups: int
    last: Group | None  # a later one may have taken its place: people's words are joined
    notes: int
    ids: int


class _Known(Struct):
    """A conversation as it was last shaped, to go on from."""

    messages: tuple[Message, ...]
    key: object
    groups: list[Group]
    notes: list[str]
    ids: dict[str, None]  # in order
    marks: list[_Mark]


MOST_KNOWN = 32
"""Conversations remembered at once."""


class Shaper:
    """Orders conversations for one target. What was ordered before is kept: a request costs what is new in it.

    Hand in the same Message objects (or equal ones) from request to request.
    """

    def __init__(self, target: Target, voided: Mapping[int, object] | None = None) -> None:
        """`voided`: ids of the parts of messages whose vendor data the server refuses (see lessons.py)."""
        self._target = target
        self._voided = {} if voided is None else voided
        self._known: dict[object, _Known] = {}

    def shape(self, request: Request) -> Shaped:
        """The request's conversation in order. Notes say what had to be left out."""
        messages = request.messages
        out = Shaped([b.text for b in request.system if b.text.strip()], [])
        first = 0
        while first < len(messages) and messages[first].role == "system":
            out.head.extend(p.text for p in messages[first].parts if isinstance(p, Text) and p.text.strip())
            first += 1
        keep_from, out.stale = _keep_from(request, self._target)
        name = (request.model, request.session_id, request.agent)
        known = self._resume(
            self._known.pop(name, None), messages, (first, keep_from, request.context_digest, len(self._voided))
        )
        if known.marks:
            at = known.marks.pop().at
        else:
            at = _said(messages, first, known)
        while at < len(messages):
            last = known.groups[-1] if known.groups else None
            known.marks.append(_Mark(at, len(known.groups), last, len(known.notes), len(known.ids)))
            at = self._assistant(request, at, at >= keep_from, known)
        self._known[name] = known
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        out.groups, out.notes = list(known.groups), list(dict.fromkeys(known.notes))
        if not out.groups or out.groups[-1].kind == "assistant":
            out.groups.append(Group("user", (CONTINUE,)))
        return out

    def _resume(self, known: _Known | None, messages: tuple[Message, ...], key: object) -> _Known:
        """The state before the last assistant message that is still as it was, or a new one."""
        if known is None or known.key != key:
            return _Known(messages, key, [], [], {}, [])
        same = 0
        for one, two in zip(known.messages, messages, strict=False):
            if one is not two and one != two:
                break
            same += 1
        marks = known.marks
        while marks and marks[-1].at >= same:  # that message, or what follows it, may be another now
            marks.pop()
        if not marks:
            return _Known(messages, key, [], [], {}, [])
        mark = marks[-1]
        del known.notes[mark.notes :]
        known.groups[max(0, mark.groups - 1) :] = [mark.last] if mark.last is not None else []
        for wire in list(known.ids)[mark.ids :]:
            del known.ids[wire]
        known.messages = messages
        return known

    def _assistant(self, request: Request, at: int, bound: bool, known: _Known) -> int:
        """Add an assistant message, its results, and what is said after them; returns the next one's index."""
        messages, target, groups = request.messages, self._target, known.groups
        message = messages[at]
        if any(sendable(p) for p in message.parts):
            if not groups or groups[-1].kind == "assistant":
                groups.append(Group("user", (CONTINUE,)))
            own = target.own(message, request.model) and id(message.parts) not in self._voided
            calls = [p for p in message.parts if isinstance(p, ToolCall)]
            ids = tuple(_wire_id(call, own, target.ids, known.ids) for call in calls)
            echoed = frozenset(wire for call, wire in zip(calls, ids, strict=True) if wire == call.provider_id)
            keep = own and (bound or message.in_progress)
            groups.append(Group("assistant", (message,), ids, own, keep, echoed=echoed))
            if calls:
                answers = _answers(messages, at + 1, calls, ids, known)
                groups.append(Group("results", own=own, results=answers, echoed=echoed))
        return _said(messages, at + 1, known, answered=True)


def instruct(shaped: Shaped, text: str) -> None:
    """Append an instruction to the last user message."""
    message = Message("user", (Text(text),))
    last = shaped.groups[-1]
    if last.kind == "user":
        shaped.groups[-1] = Group("user", (*last.messages, message))
    else:
        shaped.groups.append(Group("user", (message,)))


def _keep_from(request: Request, target: Target) -> tuple[int, bool]:
    """The message from which on reasoning is kept: behind the last one that was made under another prefix.

    Vendors bind a block to all that stood before it, earlier blocks included: only a front may be cut away. Also
    whether the turn in progress holds such a one.
    """
    stale = False
    for at in range(len(request.messages) - 1, -1, -1):
        message = request.messages[at]
        if message.role != "assistant" or message.made_under == request.context_digest:
            continue
        if not target.own(message, request.model):
            continue
        if message.in_progress:
            stale = True
            continue
        return at + 1, stale
    return 0, stale


def _said(messages: Sequence[Message], at: int, out: _Known, answered: bool = False) -> int:
    """Join what people and the host say up to the next assistant message into one group; returns its index."""
    said: list[Message] = []
    stray = 0
    while at < len(messages) and messages[at].role != "assistant":
        message = messages[at]
        if message.role == "tool":
            stray += not answered
        elif any(sendable(p) for p in message.parts):
            said.append(marked(message) if message.role == "system" else message)
        at += 1
    if stray:
        out.notes.append("a tool result without its call was left out of the request")
    if said:
        if out.groups and out.groups[-1].kind == "user":
            out.groups[-1] = Group("user", (*out.groups[-1].messages, *said))
        else:
            out.groups.append(Group("user", tuple(said)))
    return at


def marked(message: Message) -> Message:
    """A system message in mid-conversation as user text that says what it is."""
    text = "\n".join(p.text for p in message.parts if isinstance(p, Text))
    return Message("user", (Text(f"<system>\n{text}\n</system>"),))


def _wire_id(call: ToolCall, own: bool, rule: IdRule, seen: dict[str, None]) -> str:
    """The provider's own id where it may be echoed, fits and is new; else one made from panto's."""
    wire = call.provider_id
    if not (own and wire and wire not in seen and rule.shape.fullmatch(wire)):
        seed = call.call_id or f"{call.provider_id}/{call.name}/{len(seen)}"
        wire = rule.make(seed)
        while wire in seen:
            seed += "+"
            wire = rule.make(seed)
    seen[wire] = None
    return wire


def _answers(
    messages: Sequence[Message], at: int, calls: Sequence[ToolCall], ids: Sequence[str], out: _Known
) -> tuple[tuple[ToolResult, str], ...]:
    left: list[ToolResult] = []
    while at < len(messages) and messages[at].role != "assistant":
        if messages[at].role == "tool":
            left.extend(p for p in messages[at].parts if isinstance(p, ToolResult))
        at += 1
    answers = []
    for call, wire in zip(calls, ids, strict=True):
        found = next((r for r in left if _is_for(r, call)), None)
        if found is None:
            text = Text("No result was recorded for this call.")
            found = ToolResult(call.call_id, call.name, (text,), is_error=True)
        else:
            left.remove(found)
        answers.append((found, wire))
    if left:
        out.notes.append("a tool result without its call was left out of the request")
    return tuple(answers)


def _is_for(result: ToolResult, call: ToolCall) -> bool:
    if call.call_id:
        return result.call_id == call.call_id
    return result.provider_id == call.provider_id and result.name == call.name


def result_text(result: ToolResult, flagged: bool) -> str:
    """A result's text for wires that take one string. `flagged`: the wire has no error flag, so the text says it."""
    texts = [clean(p.text) for p in result.parts if isinstance(p, Text | Json) and p.text.strip()]
    text = "\n".join(texts)
    if not text:
        text = "(an image, see below)" if any(isinstance(p, Image) for p in result.parts) else "(no output)"
    if flagged and result.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"
    return text


def images_of(result: ToolResult) -> list[Image]:
    """The images in a result, in order."""
    return [p for p in result.parts if isinstance(p, Image)]
