"""Folds to request. Every word that a model sees passes here.

Each entry of the session's context becomes a message once and is kept; a request only adds what is new, so that
its cost does not grow with the session and its prefix never changes.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from panto.agent.ports import Setup
from panto.agent.words import CHARS, assistant_message, estimate, tool_result, visible
from panto.providers.cache_report import prefix_change
from panto.schema.bodies import Body, MessageBody, RequestManifest, ResultBody, TextBody, ToolOutcome
from panto.schema.codec import Digest, canonical, digest
from panto.schema.errors import Corrupt, Missing
from panto.schema.messages import Json, Message, Request, Text, ToolCall, Usage
from panto.session import Session, Staged, stage
from panto.session.context import AssistantEntry, Entry, InputEntry, KeptEntry, ResultEntry, SummaryEntry
from panto.session.state import Run

LOST = "[this part of the conversation was lost from storage]"
"""What stands for a body that a damaged store cannot give."""

SUSPECT = 3000
"""Estimated tokens from which a vendor's much smaller count is suspect."""


@dataclass(slots=True, eq=False)
class _Built:
    """An entry's message: `staged` until a request that names it was recorded, `size` in tokens, about. `metadata`
    stands apart, since no model is to see it."""

    name: str
    key: tuple[object, ...]
    message: Message
    digest: Digest
    staged: Staged | None
    size: int
    metadata: dict[str, object]


@dataclass(slots=True)
class _Line:
    """The messages of the last request as they were built from its entries.

    For each message: `turns` whose it is, `upto` how many entries it and all before it took. `messages` are marked
    where they belong to `turn`, the one that ran. `size` of all of them in tokens, about.
    """

    turn: str = ""
    size: int = 0
    entries: list[Entry] = field(default_factory=list)
    built: list[_Built] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    upto: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def add(self, built: _Built, turn: str, upto: int) -> None:
        """One more message."""
        self.built.append(built)
        self.turns.append(turn)
        self.upto.append(upto)
        self.messages.append(_marked(built.message, turn == self.turn))
        self.size += built.size

    def cut(self, entries: list[Entry]) -> int:
        """Forget all messages that these entries do not lead to any more; the entry from which to build on."""
        place = _common(self.entries, entries)
        while place and isinstance(entries[place - 1], ResultEntry):  # a step's call and results are one
            place -= 1
        if place and isinstance(entries[place - 1], AssistantEntry):
            place -= 1
        kept = bisect_right(self.upto, place)
        self.size -= sum(built.size for built in self.built[kept:])
        for each in (self.built, self.turns, self.upto, self.messages):
            del each[kept:]
        self.entries = entries[:place]
        return place

    def mark(self, turn: str) -> None:
        """Another turn runs now."""
        if turn != self.turn:
            self.turn = turn
            own = (each == turn for each in self.turns)
            self.messages = [_marked(b.message, mine) for b, mine in zip(self.built, own, strict=True)]


@dataclass(frozen=True, slots=True)
class Frozen:
    """A request ready to be recorded and sent to the model `label`: its manifest, all bodies that are not stored yet,
    about how many tokens it takes."""

    request: Request
    label: str
    manifest: Staged
    bodies: tuple[Staged, ...]
    tokens: int
    _parts: tuple[Staged, ...]
    _built: tuple[_Built, ...]


class Context:
    """One agent's messages, built incrementally from its session's entries."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._built: dict[str, _Built] = {}
        self._line = _Line()
        self._head: tuple[object, tuple[Staged, ...], tuple[Staged, ...]] = (None, (), ())
        self._frozen: Frozen | None = None
        self._measured = (0, 0)
        self._warned = False
        self.broken_prefix = ""
        """Why a request could last not be served from the vendor's cache from its start ("" it always could)."""
        self.used = 0
        """Tokens of the last request and its reply as the vendor counted them, an estimate where the context was
        replaced since, 0 where nothing was sent by this process."""

    async def messages(self, entries: Iterable[Entry]) -> tuple[Message, ...]:
        """The entries as messages: never empty ones, every call directly followed by its one result."""
        return tuple([built.message async for built, _, _ in self._walk(list(entries), 0, {})])

    async def named(self, entries: Iterable[Entry]) -> list[tuple[str, Message]]:
        """The entries as messages with the metadata they were said with, and the ids under which it is changed."""
        walked = self._walk(list(entries), 0, {})
        return [(built.name, replace(built.message, metadata=built.metadata)) async for built, _, _ in walked]

    async def freeze(self, entries: Iterable[Entry], setup: Setup, turn: str, staged: Iterable[Staged] = ()) -> Frozen:
        """The next request over these entries, as a value and as what is recorded of it.

        `turn` is the running one; `staged` are bodies of a commit that is being planned.
        """
        line, bodies = self._line, {s.digest: s.value for s in staged if s.value is not None}
        now = list(entries)
        start = line.cut(now)
        line.mark(turn)
        async for built, whose, upto in self._walk(now, start, bodies):
            line.add(built, whose, upto)
        line.entries = now
        self._forget()
        system, tools = self._staged_head(setup)
        base = line.built[0].digest if line.built and isinstance(now[0], SummaryEntry) else ""
        request = Request(
            model=setup.model.spec.id,
            system=setup.system,
            messages=tuple(line.messages),
            tools=setup.tools,
            tool_choice=setup.tool_choice,
            reasoning=setup.reasoning,
            max_output=setup.model.spec.max_output or None,
            context_digest=digest(canonical([[s.digest for s in system], [t.digest for t in tools], base])),
            agent=self._session.id,
            session_id=self._session.under or self._session.id,
        )
        return self._recordable(request, setup, system, tools)

    def _recordable(
        self, request: Request, setup: Setup, system: tuple[Staged, ...], tools: tuple[Staged, ...]
    ) -> Frozen:
        """A request with its manifest, which names only what is new since the last one that was recorded."""
        former, built = self._frozen, tuple(self._line.built)
        kept = _common(former._built, built) if former else 0
        manifest = stage(
            RequestManifest(
                provider=setup.model.provider.name,
                protocol=setup.model.provider.protocol,
                label=setup.model.label,
                model=request.model,
                system=tuple(s.digest for s in system),
                tools=tuple(t.digest for t in tools),
                messages=tuple(b.digest for b in built[kept:]),
                tool_choice=request.tool_choice,
                reasoning=request.reasoning,
                max_output=request.max_output,
                context_digest=request.context_digest,
                former=former.manifest.digest if former and kept else None,
                kept=kept,
            )
        )
        parts = (*system, *tools)
        head = parts if former is None or former._parts != parts else ()
        new = tuple(b.staged for b in built[kept:] if b.staged is not None)
        bodies = (*head, *new, manifest)
        return Frozen(request, setup.model.label, manifest, bodies, self._about(setup), parts, built)

    def recorded(self, frozen: Frozen) -> None:
        """The request was committed: its bodies need not go along again."""
        former, self._frozen = self._frozen, frozen
        kept = _common(former._built, frozen._built) if former else 0
        for built in frozen._built[kept:]:
            built.staged = None
        if former is None or (kept == len(former._built) and former._parts == frozen._parts):
            return
        if change := prefix_change(former.request, frozen.request):
            self.broken_prefix = str(change)

    def request(self, run: Run, setup: Setup) -> Request | None:
        """The request that the run froze; None where another process froze it, or for another model than this."""
        frozen = self._frozen
        if frozen is None or frozen.manifest.digest != run.request or frozen.label != setup.model.label:
            return None
        return frozen.request

    def measure(self, usage: Usage, setup: Setup) -> str:
        """Take the vendor's own count of the last request and its reply; what is odd about it ("" nothing).

        A count far below what was sent means that the server cut the front off: it is not relied on.
        """
        if self._frozen is None or not usage.input:
            return ""
        about = self._frozen.tokens
        if about > SUSPECT and usage.input < about * 0.4:
            odd = "" if self._warned else f"the server read {usage.input} tokens of a prompt of about {about}"
            self._warned = True
            return odd
        self._measured = (len(self._frozen.request.messages), usage.input + usage.output)
        self.used = usage.input + usage.output
        return ""

    async def tokens(self, setup: Setup) -> int:
        """About how many tokens a request over the session's present context would take."""
        return _head_size(setup) + sum(estimate(m) for m in await self.messages(self._session.view.context))

    async def recount(self, setup: Setup) -> None:
        """Estimate what is used, where no vendor has counted it as it is now."""
        self.used = await self.tokens(setup)

    def _about(self, setup: Setup) -> int:
        """The same of the request that is being frozen: the vendor's last count, and what came since."""
        counted, total = self._measured
        built = self._line.built
        if 0 < counted < len(built):
            return total + sum(b.size for b in built[counted + 1 :])
        return _head_size(setup) + self._line.size

    def replaced(self) -> None:
        """The context was replaced (a checkpoint, a rewind): the last count says nothing any more."""
        self._measured, self.used = (0, 0), 0

    def _staged_head(self, setup: Setup) -> tuple[tuple[Staged, ...], tuple[Staged, ...]]:
        head = (setup.system, setup.tools)
        if self._head[0] != head:
            self._head = (head, tuple(stage(part) for part in setup.system), tuple(stage(t) for t in setup.tools))
        return self._head[1:]

    def _forget(self) -> None:
        """Drop messages that no request needs any more (compacted, rewound); the store has them."""
        if len(self._built) > 2 * len(self._line.built) + 64:
            self._built = {built.name: built for built in self._line.built}

    async def _walk(
        self, entries: list[Entry], start: int, staged: Mapping[Digest, Body]
    ) -> AsyncIterator[tuple[_Built, str, int]]:
        """The messages of the entries from `start` on, each with its turn and how many entries lie before its end."""
        place = start
        while place < len(entries):
            entry = entries[place]
            place += 1
            if isinstance(entry, ResultEntry):
                continue  # its call is not among these entries
            bound = entry.calls if isinstance(entry, AssistantEntry) else ()
            built = await self._one(entry.id, bound, entry, staged)
            if built is not None:
                yield built, entry.turn, place
            first = place
            while place < len(entries) and isinstance(entries[place], ResultEntry):
                place += 1
            if place > first:
                results = tuple(e for e in entries[first:place] if isinstance(e, ResultEntry))
                key = tuple((r.status, r.outcome, r.superseded) for r in results)
                built = await self._one(f"{entry.id}:results", key, results, staged)
                if built is not None:
                    yield built, entry.turn, place

    async def _one(
        self, name: str, key: tuple[object, ...], what: Entry | tuple[ResultEntry, ...], staged: Mapping[Digest, Body]
    ) -> _Built | None:
        found = self._built.get(name)
        if found is not None and found.key == key:
            return found
        said = await self._message(what, staged)
        if not said.parts:
            return None
        message = replace(said, metadata={})
        body = stage(message)
        built = _Built(name, key, message, body.digest, body, estimate(message), said.metadata)
        self._built[name] = built
        return built

    async def _message(self, what: Entry | tuple[ResultEntry, ...], staged: Mapping[Digest, Body]) -> Message:
        async def body(name: Digest) -> Body | None:
            try:
                return staged[name] if name in staged else await self._session.body(name)
            except (Missing, Corrupt):  # a damaged store must not silence the rest of the session
                return None

        match what:
            case InputEntry(body=name) | SummaryEntry(summary=name):
                said = await body(name)
                if not isinstance(said, MessageBody):
                    return Message("user", (Text(LOST),))
                return replace(said.message, parts=visible(said.message.parts))
            case AssistantEntry():
                answer = await body(what.result)
                if not isinstance(answer, ResultBody):
                    calls = (ToolCall(b.name, Json("{}"), b.call, b.provider_id) for b in what.calls)
                    return Message("assistant", (Text(LOST), *calls))
                return assistant_message(answer.result.message, tuple(b.call for b in what.calls))
            case KeptEntry(text=name):
                kept = await body(name)
                return Message("assistant", visible((Text(kept.text if isinstance(kept, TextBody) else LOST),)))
            case ResultEntry():
                raise AssertionError("results are built together")
            case _:
                lost = ToolOutcome((Text(LOST),))
                parts = [tool_result(r, (await body(r.outcome) or lost) if r.outcome else None) for r in what]
                return Message("tool", tuple(parts))


def _common(one: Sequence[object], two: Sequence[object]) -> int:
    """How many things both begin with."""
    same = list(map(operator.is_, one, two))
    return same.index(False) if False in same else len(same)


def _marked(message: Message, current: bool) -> Message:
    """A message as it is sent: those of the turn that runs are marked."""
    return replace(message, in_progress=True) if current else message


def _head_size(setup: Setup) -> int:
    texts = sum(len(s.text) for s in setup.system) + sum(len(t.schema) + len(t.description) for t in setup.tools)
    return texts // CHARS
