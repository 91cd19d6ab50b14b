"""What every wire protocol shares: the pure seam between a protocol and the network, and how things are spelt."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from panto.providers.failure import Failure, Place
from panto.providers.model import ModelSpec, ProviderSettings
from panto.providers.names import Names
from panto.providers.shape import Group
from panto.schema.messages import Request, ToolChoice, ToolSpec
from panto.schema.stream import StreamPart

encode = msgspec.json.encode


class Reader(Protocol):
    """Turns one reply's events into parts. Pure; raises ProviderError for an error in the reply."""

    done: bool
    """Nothing more will come that matters."""
    settled: bool
    """The finish is known; only an end mark or the usage may still come."""

    def feed(self, events: Sequence[tuple[bytes, bytes]], out: list[StreamPart]) -> None:
        """Append the parts of these server-sent events (name, data) to `out`."""
        ...

    def end(self, out: list[StreamPart]) -> None:
        """The stream is over: append what is still due, FinishPart last, if the reply was whole."""
        ...

    def whole(self, body: bytes, out: list[StreamPart]) -> None:
        """A reply that was not streamed, as the same parts; FinishPart last."""
        ...


class Prepared(Struct):
    """A request ready to be sent. `path` is put behind the base URL."""

    path: str
    body: bytes
    reader: Reader
    headers: dict[str, str] = {}
    notes: list[str] = []


class Wire(Protocol):
    """One wire protocol for one provider: no I/O. Holds only what makes later requests cheaper or fit."""

    def __init__(self, settings: ProviderSettings) -> None: ...

    def key_headers(self, key: str) -> dict[str, str]:
        """The headers that carry the key."""
        ...

    def prepare(self, request: Request, spec: ModelSpec, *, stream: bool) -> Prepared:
        """The request as this protocol spells it. Raises ProviderError (invalid_request) for what it cannot carry."""
        ...

    def adapt(self, failure: Failure, request: Request) -> str | None:
        """After a refusal: remember what to leave out from now on and say so, or None if nothing would help.

        Called before any part came; the request is prepared and sent again after a text. Never gives the same twice.
        """
        ...


class Speller:
    """Spells tools and groups once, and again only where something they depend on has changed."""

    def __init__(self) -> None:
        self._tools: tuple[tuple[ToolSpec, ...], Names, list[msgspec.Raw]] = ((), Names(()), [])

    def tools(
        self, tools: tuple[ToolSpec, ...], make: Callable[[ToolSpec, Names], object]
    ) -> tuple[Names, list[msgspec.Raw]]:
        """The tools' names for this wire, and each tool's JSON."""
        if tools != self._tools[0]:
            names = Names(tool.name for tool in tools)
            self._tools = tools, names, [msgspec.Raw(encode(make(tool, names))) for tool in tools]
        return self._tools[1], self._tools[2]

    def groups(
        self, groups: Sequence[Group], depends: object, make: Callable[[Group], Sequence[object]]
    ) -> list[list[msgspec.Raw]]:
        """The JSON of what `make` gives for each group; `depends` is all else that bears on it, the tools apart."""
        depends = (self._tools[1].known, depends)
        out: list[list[msgspec.Raw]] = []
        for group in groups:
            spelt = group.spelt
            if spelt is None or spelt[0] != depends:
                spelt = group.spelt = (depends, [msgspec.Raw(encode(value)) for value in make(group)])
            out.append(spelt[1])
        return out


def raw(text: str | bytes) -> msgspec.Raw:
    """JSON text to be put into a body as it is."""
    return msgspec.Raw(text.encode() if isinstance(text, str) else text)


def merged(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """`over` wins; objects are merged member by member."""
    out = dict(base)
    for name, value in over.items():
        known = out.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            out[name] = merged(known, value)
        else:
            out[name] = value
    return out


def check_options(options: Mapping[str, object], protocol: str, known: frozenset[str], owned: frozenset[str]) -> None:
    """Refuse members that this protocol does not know or that are not the person's to set; names the nearest."""
    for name in options:
        if name in owned:
            raise Failure("invalid_request", f"option {name!r} cannot be set: {protocol} sets it itself")
        if name not in known:
            from difflib import get_close_matches  # only on the way to an error

            near = get_close_matches(name, sorted(known - owned), 1)
            hint = (
                f"Did you mean {near[0]!r}?" if near else "Name it in wire.members of the provider to send it anyway."
            )
            raise Failure("invalid_request", f"{protocol} carries no member {name!r} in its body", hint=hint)


def members(settings: ProviderSettings, known: frozenset[str]) -> frozenset[str]:
    """The body members that options may name: the protocol's, and those that the provider's `wire.members` adds."""
    extra = settings.wire.get("members", ())
    return known | frozenset(str(m) for m in extra) if isinstance(extra, list | tuple) and extra else known


def switches(settings: ProviderSettings, spec: ModelSpec) -> dict[str, object]:
    """The server's switches with the model's over them."""
    return {**settings.wire, **spec.wire}


def forced(request: Request, spec: ModelSpec, allowed: bool = True) -> tuple[ToolChoice, str, str]:
    """The choice to send, and, where force was asked of a model that does not obey it: instruction and note."""
    choice = request.tool_choice
    if not request.tools or choice.kind in ("auto", "none") or (spec.forced_tool and allowed):
        return choice, "", ""
    if choice.kind == "named":
        text = f"Answer with exactly one call of the tool {choice.name}, and nothing else."
        note = f"{request.model} cannot be forced to call {choice.name}: it was asked to"
    else:
        text = "Answer with a call of one of your tools."
        note = f"{request.model} cannot be forced to call a tool: it was asked to"
    return ToolChoice("auto"), text, note


def place_of(settings: ProviderSettings, model: str) -> Place:
    """Who is asked, for messages."""
    return Place(settings.name, host_of(settings.base_url), model)


def host_of(url: str) -> str:
    """The host and port of an address, or the whole of what is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or url
    except ValueError:
        return url


LEVELS = ("off", "none", "minimal", "low", "medium", "high", "xhigh", "max")


def level_for(asked: str, levels: Sequence[str]) -> str:
    """The reasoning level to send: the one asked for, else the next higher that the model takes, else its highest.

    "" if none was asked for or the model takes none; "off" for off and none alike, where the model can be off.
    """
    if not asked or not levels:
        return ""
    can_be_off = "off" in levels or "none" in levels
    if asked in ("off", "none") and can_be_off:
        return "off"
    if asked in levels or asked not in LEVELS:
        return asked
    thinking = sorted((one for one in levels if one in LEVELS[2:]), key=LEVELS.index)
    higher = [one for one in thinking if LEVELS.index(one) > LEVELS.index(asked)]
    return (higher or thinking[-1:] or [""])[0]


def cache_key(request: Request, head: Sequence[str]) -> str:
    """The same for all requests of one conversation, telling nothing of it."""
    seed = "\0".join((request.session_id, request.agent, request.model, *head))
    return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_PAIRS = re.compile(rb"\\\\|" + _HIGH + _LOW + rb"|(" + _HIGH + rb"|" + _LOW + rb")")


def mend_surrogates(data: bytes) -> bytes:
    """JSON bytes with each half surrogate escape replaced by U+FFFD."""
    return _PAIRS.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
