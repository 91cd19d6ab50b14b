"""Folds to request. Every word that a model sees passes here.

Each entry of the session's context becomes a message once and is kept; a request only adds what is new, so that
its cost does not grow with the session and its prefix never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from panto.agent.loop_guard import repeated_tail
from panto.agent.ports import Setup
from panto.providers.cache_report import prefix_change
from panto.schema.bodies import Body, MessageBody, RequestManifest, ResultBody, TextBody, ToolOutcome
from panto.schema.codec import Digest, canonical, decode_own, digest
from panto.schema.messages import (
    BadJson,
    Image,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    SystemBlock,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from panto.session import Session, Staged, stage
from panto.session.context import AssistantEntry, Entry, InputEntry, KeptEntry, ResultEntry, SummaryEntry
from panto.session.state import Run

EXCERPT = 200
"""Characters of unreadable arguments that are sent back to the model inside valid JSON."""

T = TypeVar("T")

CHARS = 4
"""Characters a token, where no vendor has counted."""

IMAGE_TOKENS = 1600

SUSPECT = 3000
"""Estimated tokens from which a vendor's much smaller count is suspect."""

UNFINISHED = "This call has not finished."
UNKNOWN = "Outcome unknown: panto ended or lost the tool while this ran. It may have had effects: check first."


@dataclass(slots=True)
class _Built:
    """An entry's message in both forms: as stored, and marked as part of the turn that runs."""

    name: str
    key: tuple[object, ...]
    staged: Staged
    message: Message
    current: Message


@dataclass(frozen=True, slots=True)
class Frozen:
    """A request ready to be recorded and sent: its manifest and all bodies that are not stored yet."""

    request: Request
    manifest: Staged
    bodies: tuple[Staged, ...]


class Context:
    """One agent's messages, built incrementally from its session's entries."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._built: dict[str, _Built] = {}
        self._stored: set[Digest] = set()
        self._heads: dict[tuple[object, ...], tuple[Staged, ...]] = {}
        self._frozen: Frozen | None = None
        self._measured = (0, 0)
        self._warned = False
        self.broken_prefix = ""
        """Why the last request could not be served from the vendor's cache from its start ("" it could)."""
        self.used = 0
        """Tokens of the last request and its reply, as the vendor counted them."""

    async def messages(
        self, entries: Iterable[Entry], turn: str = "", staged: Mapping[Digest, Body] | None = None
    ) -> tuple[Message, ...]:
        """The entries as messages: never empty ones, every call directly followed by its one result.

        `turn` is the running one; `staged` are bodies of a commit that is being planned.
        """
        return tuple(b.current if live else b.message for b, live in await self._walk(entries, turn, staged or {}))

    async def named(self, entries: Iterable[Entry]) -> list[tuple[str, Message]]:
        """The entries as messages, each with the id its metadata is kept under."""
        return [(b.name, b.message) for b, _ in await self._walk(entries, "", {})]

    async def freeze(self, entries: Iterable[Entry], setup: Setup, turn: str, staged: Iterable[Staged] = ()) -> Frozen:
        """The next request over these entries, as a value and as what is recorded of it."""
        bodies = {s.digest: s.value for s in staged if s.value is not None}
        walked = await self._walk(entries, turn, bodies)
        system, tools = self._head("system", setup.system), self._head("tools", setup.tools)
        base = next((b.staged.digest for b, _ in walked if b.key[0] == "summary"), "")
        provider = setup.model.provider
        request = Request(
            model=setup.model.spec.id,
            system=setup.system,
            messages=tuple(b.current if live else b.message for b, live in walked),
            tools=setup.tools,
            tool_choice=setup.tool_choice,
            reasoning=setup.reasoning,
            max_output=setup.model.spec.max_output or None,
            context_digest=digest(canonical([[s.digest for s in system], [t.digest for t in tools], base])),
            agent=self._session.id,
            session_id=self._session.under or self._session.id,
        )
        manifest = stage(
            RequestManifest(
                provider=provider.name,
                protocol=provider.protocol,
                label=setup.model.label,
                model=request.model,
                system=tuple(s.digest for s in system),
                tools=tuple(t.digest for t in tools),
                messages=tuple(b.staged.digest for b, _ in walked),
                tool_choice=request.tool_choice,
                reasoning=request.reasoning,
                max_output=request.max_output,
                context_digest=request.context_digest,
            )
        )
        parts = (*system, *tools, *(b.staged for b, _ in walked))
        return Frozen(request, manifest, (*(p for p in parts if p.digest not in self._stored), manifest))

    def recorded(self, frozen: Frozen) -> None:
        """The request was committed: its bodies need not go along again."""
        self._stored.update(body.digest for body in frozen.bodies)
        if self._frozen is not None and (change := prefix_change(self._frozen.request, frozen.request)):
            self.broken_prefix = str(change)
        self._frozen = frozen

    async def request(self, run: Run) -> Request:
        """The request that the run froze; read back where it was frozen by another process."""
        if self._frozen is not None and self._frozen.manifest.digest == run.request:
            return self._frozen.request
        manifest = await self._session.body(run.request or "")
        assert isinstance(manifest, RequestManifest)
        walked = await self._walk(self._session.view.context, run.turn, {})
        current = {b.staged.digest for b, live in walked if live}

        async def each(names: tuple[Digest, ...], kind: type[T]) -> tuple[T, ...]:
            return tuple([decode_own(await self._session.raw(name), kind) for name in names])

        messages = await each(manifest.messages, Message)
        return Request(
            model=manifest.model,
            system=await each(manifest.system, SystemBlock),
            messages=tuple(
                replace(m, in_progress=True) if name in current else m
                for name, m in zip(manifest.messages, messages, strict=True)
            ),
            tools=await each(manifest.tools, ToolSpec),
            tool_choice=manifest.tool_choice,
            reasoning=manifest.reasoning,
            max_output=manifest.max_output,
            context_digest=manifest.context_digest,
            agent=self._session.id,
            session_id=self._session.under or self._session.id,
        )

    def measure(self, usage: Usage, setup: Setup) -> str:
        """Take the vendor's own count of the last request and its reply; what is odd about it ("" nothing).

        A count far below what was sent means that the server cut the front off: it is not relied on.
        """
        if self._frozen is None or not usage.input:
            return ""
        messages = self._frozen.request.messages
        about = self.tokens(setup, messages)
        if about > SUSPECT and usage.input < about * 0.4:
            odd = "" if self._warned else f"the server read {usage.input} tokens of a prompt of about {about}"
            self._warned = True
            return odd
        self._measured = (len(messages), usage.input + usage.output)
        self.used = usage.input + usage.output
        return ""

    def tokens(self, setup: Setup, messages: tuple[Message, ...]) -> int:
        """About how many tokens a request over these messages takes: the vendor's last count and what came since."""
        counted, total = self._measured
        if counted and counted < len(messages):
            return total + sum(estimate(m) for m in messages[counted + 1 :])
        head = sum(len(s.text) for s in setup.system) + sum(len(t.schema) + len(t.description) for t in setup.tools)
        return head // CHARS + sum(estimate(m) for m in messages)

    def replaced(self) -> None:
        """The context was replaced (a checkpoint, a rewind): the last count says nothing any more."""
        self._measured = (0, 0)

    def _head(self, kind: str, parts: tuple[SystemBlock, ...] | tuple[ToolSpec, ...]) -> tuple[Staged, ...]:
        found = self._heads.get((kind, parts))
        if found is None:
            found = self._heads[kind, parts] = tuple(stage(part) for part in parts)
        return found

    async def _walk(
        self, entries: Iterable[Entry], turn: str, staged: Mapping[Digest, Body]
    ) -> list[tuple[_Built, bool]]:
        out: list[tuple[_Built, bool]] = []
        calls: AssistantEntry | None = None
        results: list[ResultEntry] = []
        for entry in (*entries, None):
            if calls is not None and not isinstance(entry, ResultEntry):
                key = ("results", *((r.status, r.outcome, r.superseded) for r in results))
                built = await self._one(f"{calls.id}:results", key, tuple(results), staged)
                out.append((built, calls.turn == turn)) if built else None
                calls, results = None, []
            match entry:
                case None:
                    break
                case ResultEntry():
                    results.append(entry)
                    continue
                case AssistantEntry(calls=bound) if bound:
                    calls = entry
                case _:
                    pass
            built = await self._one(entry.id, (type(entry).__name__.removesuffix("Entry").lower(),), entry, staged)
            if built is not None:
                out.append((built, entry.turn == turn))
        return out

    async def _one(
        self, name: str, key: tuple[object, ...], what: Entry | tuple[ResultEntry, ...], staged: Mapping[Digest, Body]
    ) -> _Built | None:
        found = self._built.get(name)
        if found is not None and found.key == key:
            return found
        message = await self._message(what, staged)
        if not message.parts:
            return None
        built = _Built(name, key, stage(message), message, replace(message, in_progress=True))
        self._built[name] = built
        return built

    async def _message(self, what: Entry | tuple[ResultEntry, ...], staged: Mapping[Digest, Body]) -> Message:
        async def body(name: Digest) -> Body:
            return staged[name] if name in staged else await self._session.body(name)

        match what:
            case InputEntry(body=name) | SummaryEntry(summary=name):
                said = await body(name)
                assert isinstance(said, MessageBody)
                return Message(said.message.role, _visible(said.message.parts))
            case AssistantEntry():
                answer = await body(what.result)
                assert isinstance(answer, ResultBody)
                return assistant_message(answer.result.message, tuple(b.call for b in what.calls))
            case KeptEntry(text=name):
                kept = await body(name)
                assert isinstance(kept, TextBody)
                return Message("assistant", _visible((Text(kept.text),)))
            case ResultEntry():
                raise AssertionError("results are built together")
            case _:
                parts = [tool_result(r, await body(r.outcome) if r.outcome else None) for r in what]
                return Message("tool", tuple(parts))


def estimate(message: Message) -> int:
    """About how many tokens a message takes."""
    total = 8
    for part in message.parts:
        match part:
            case Text(text=text) | Reasoning(text=text) | Opaque(value=text):
                total += len(text) // CHARS
            case ToolCall(arguments=arguments):
                total += 12 + len(arguments.text) // CHARS
            case ToolResult(parts=results):
                total += 12 + sum(IMAGE_TOKENS if isinstance(p, Image) else len(p.text) // CHARS for p in results)
            case Image():
                total += IMAGE_TOKENS
    return total


def _visible(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Parts without blank text, which strict vendors refuse."""
    return tuple(p for p in parts if not (isinstance(p, Text) and not p.text.strip()))


def assistant_message(message: Message, calls: tuple[str, ...]) -> Message:
    """A model's own message as it goes back: calls under panto's ids, unreadable arguments inside valid JSON.

    One that would hold nothing but unsigned reasoning has no parts: it is left out.
    """
    ids = iter(calls)
    parts: list[Part] = []
    for part in _visible(message.parts):
        if isinstance(part, ToolCall):
            arguments = part.arguments
            if isinstance(arguments, BadJson):
                excerpt = canonical({"unreadable_arguments": arguments.text[:EXCERPT]})
                arguments = Json(excerpt.decode("utf-8"))
            call = next(ids, None)
            if call is None:
                continue
            part = replace(part, call_id=call, arguments=arguments)
        if isinstance(part, Text) and (cut := repeated_tail(part.text)) is not None:
            part = replace(part, text=part.text[:cut] + "\n[… and so on]")
        parts.append(part)
    if all(isinstance(part, Reasoning) for part in parts):
        parts = []
    return replace(message, parts=tuple(parts))


def tool_result(entry: ResultEntry, outcome: Body | None) -> ToolResult:
    """What the model is told of one call."""
    parts = list(outcome.parts) if isinstance(outcome, ToolOutcome) else []
    says = ""
    match entry.status:
        case "ok":
            pass
        case "pending" | "waiting" | "executing":
            says = UNFINISHED
        case "unknown":
            says = UNKNOWN
        case "cancelled":
            says = "Cancelled by user." + (" It may have had effects." if entry.effects == "unknown" else "")
        case "denied":
            says = f"Not run: {entry.message}"
        case "error":
            says = entry.message
    if says:
        parts.insert(0, Text(says))
    if not any(not isinstance(p, Text) or p.text.strip() for p in parts):
        parts = [Text("(no output)")]
    failed = entry.status != "ok" or (isinstance(outcome, ToolOutcome) and outcome.is_error)
    return ToolResult(entry.id, entry.name, tuple(parts), failed, entry.provider_id)
