"""Compaction: when the context nears the window, a summary takes the place of what is old.

The history on screen and in the ledger stays whole; only what the model is sent begins anew: the summary, then the
retained entries. The summary request is sendable by itself: large results are cut first, and what still does not
fit is summarised in pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from panto.agent import waiting
from panto.agent.context import Frozen
from panto.agent.ports import Control, Ports, Setup
from panto.agent.words import CHARS, estimate
from panto.schema.bodies import MessageBody
from panto.schema.codec import canonical
from panto.schema.errors import ProviderError
from panto.schema.messages import (
    Image,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    ResultPart,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from panto.schema.messages import Usage as Tokens
from panto.schema.signals import Noticed
from panto.schema.stream import StreamPart
from panto.session import stage
from panto.session.commands import MakeCheckpoint
from panto.session.context import AssistantEntry, Entry, InputEntry, ResultEntry

KEEP = 0.2
"""Share of the window that retained entries may fill; never more than a third of what there is."""

PIECE = 0.6
"""Share of the window that one summary request may fill."""

CUT = 2000
"""Characters of a tool result that a summary request carries."""

HOPELESS = 1.5
"""Share of the window above which an estimate is surely too much: nothing is sent."""

ATTEMPTS = 2
"""Automatic attempts without progress, after which the person is told what fills the window."""

DEFAULT_WINDOW = 128_000
"""Tokens, where nobody knows the model's window."""

ASK = """\
Summarise this conversation for yourself: you will go on with the work and see nothing of it but this summary and \
the latest messages. Keep: what the person asked for, word for word where it matters; decisions and why; files read or \
changed and what is in them that matters; commands that work here; what failed; what is left to do, next step first. \
No greeting, no comment on this request."""

HEAD = "Summary of the conversation so far:\n\n"


def window(setup: Setup) -> int:
    """The model's context window in tokens."""
    return setup.model.spec.context or DEFAULT_WINDOW


def due(control: Control, setup: Setup, frozen: Frozen) -> bool:
    """Whether this request should not be sent before the context is summarised."""
    if not setup.compact_at or control.compactions >= ATTEMPTS:
        return False
    size, newest = setup.model.spec.context, frozen.request.messages[-1:]
    if size and sum(estimate(message) for message in newest) >= HOPELESS * size:
        return False  # no summary of what came before makes room for it
    return control.crowded or frozen.tokens > setup.compact_at * window(setup)


def hopeless(setup: Setup, frozen: Frozen) -> str:
    """Why no server could take this request, whatever is summarised ("" it may)."""
    size = setup.model.spec.context
    if not size or frozen.tokens < HOPELESS * size:
        return ""
    largest_message = max((estimate(message) for message in frozen.request.messages), default=0)
    one = f"; one message alone has about {_thousands(largest_message)}" if largest_message > size else ""
    takes = f"{setup.model.label} takes {_thousands(size)}"
    way = "/rewind takes it back" if one else largest(setup)
    return f"not sent: about {_thousands(frozen.tokens)} tokens, and {takes}{one}. {way}."


def _thousands(tokens: int) -> str:
    return f"{tokens / 1e6:.1f}M" if tokens >= 1_000_000 else f"{tokens / 1000:.0f}k"


async def automatic(ports: Ports, control: Control, setup: Setup) -> None:
    """Summarise on the way to a request. Counted: without progress the person is told, and the request is sent."""
    control.compactions += 1
    control.crowded = False
    try:
        done = await waiting.unless(control.interrupt, compact(ports, setup, automatic=True))
        if done is None:
            return
        if done and await ports.context.tokens(setup) < setup.compact_at * window(setup):
            control.compactions = 0
    except ProviderError as error:
        ports.signal(Noticed(ports.session.id, f"compaction failed: {error.message}", "attention", error.hint))
    if control.compactions >= ATTEMPTS:
        ports.signal(Noticed(ports.session.id, largest(setup), "attention", "/context shows every part"))


def largest(setup: Setup) -> str:
    """What fills the window and cannot be summarised away, largest first."""
    parts = [(len(s.text), s.name) for s in setup.system]
    parts.append((sum(len(t.schema) + len(t.description) for t in setup.tools), f"{len(setup.tools)} tools"))
    named = ", ".join(f"{name} {size / 1000:.1f} kB" for size, name in sorted(parts, reverse=True)[:4])
    return f"the context stays nearly full after compaction; fixed parts: {named}"


async def compact(ports: Ports, setup: Setup, instructions: str = "", *, automatic: bool = False) -> bool:
    """Put a summary in the place of all but the latest entries; False where there is nothing to summarise.

    Raises ProviderError (nothing was written), Refused where the context changed meanwhile.
    """
    context = ports.session.view.context
    base, entries = context.digest(), list(context)
    now = sum(estimate(m) for m in await ports.context.messages(entries))
    retained = await keep(ports, entries, min(int(window(setup) * KEEP), now // 3))
    old = {entry.id for entry in entries} - retained
    if len(old) < 2:
        return False
    own = await ports.hooks.before_compact(ports.session.id, instructions)
    usage, cost, text = Tokens(), None, own or ""
    if not text:
        told = [entry for entry in entries if entry.id in old or isinstance(entry, InputEntry)]
        room = int(window(setup) * PIECE)
        slimmed = (slim(m, room) for m in await ports.context.messages(told))
        messages = tuple(m for m in slimmed if m.parts)
        text, usage, cost = await summarise(ports, setup, messages, instructions)
    summary = stage(MessageBody(Message("user", (Text(HEAD + text),))))
    made = MakeCheckpoint(
        base=base, summary=summary.digest, retained=tuple(e.id for e in entries if e.id in retained), usage=usage,
        cost=cost, automatic=automatic,
    )  # fmt: skip
    await ports.session.commit(made, bodies=(summary,))
    ports.context.replaced()
    await ports.context.recount(setup)
    return True


async def keep(ports: Ports, entries: Sequence[Entry], room: int) -> set[str]:
    """Ids of the entries to retain: the latest that fit into `room` tokens, calls with their results.

    Always the input that the running turn answers, and an assistant entry whose calls are not finished.
    """
    units: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry, ResultEntry) and units and isinstance(units[-1][0], AssistantEntry):
            units[-1].append(entry)
        else:
            units.append([entry])
    kept: set[str] = set()
    full = False
    for unit in reversed(units):
        cost = sum(estimate(m) for m in await ports.context.messages(unit))
        open_ = any(isinstance(e, ResultEntry) and not e.finished for e in unit)
        full = full or cost > room
        if open_ or not full:
            kept.update(e.id for e in unit)
            room -= cost
    turn = ports.session.state.turn
    asked = next((e for e in entries if isinstance(e, InputEntry) and turn and e.turn == turn.turn), None)
    if asked is not None:
        kept.add(asked.id)
    return kept


def slim(message: Message, room: int = DEFAULT_WINDOW) -> Message:
    """A message as a summary request with `room` tokens carries it: what is long is cut, no images, no reasoning that
    is bound to its place."""

    def short(text: str, most: int) -> str:
        left = len(text) - most
        return text if left <= 0 else f"{text[: most // 2]}\n[… {left} characters left out …]\n{text[-most // 2 :]}"

    def inside(part: ResultPart) -> ResultPart:
        if isinstance(part, Image):
            return Text(f"[image {part.name or part.media_type}]")
        return part if len(part.text) <= CUT else Text(short(part.text, CUT))

    def cut(part: Part) -> Part:
        match part:
            case Text(text=text):
                return Text(short(text, room * CHARS // 2))
            case Image():
                return Text(f"[image {part.name or part.media_type}]")
            case ToolResult(parts=parts):
                return replace(part, parts=tuple(inside(each) for each in parts))
            case ToolCall(arguments=arguments) if len(arguments.text) > CUT:
                return replace(part, arguments=Json(canonical({"beginning": arguments.text[:CUT]}).decode("utf-8")))
            case _:
                return part

    parts = (cut(part) for part in message.parts if not isinstance(part, Reasoning | Opaque))
    return replace(message, parts=tuple(parts), in_progress=False)


async def summarise(
    ports: Ports, setup: Setup, messages: Sequence[Message], instructions: str
) -> tuple[str, Tokens, float | None]:
    """The summary of these messages, what it took and what it cost in USD; in pieces where they do not fit."""
    room = int(window(setup) * PIECE)
    ask = f"{ASK}\n\n{instructions}".strip()
    text, usage, cost = "", Tokens(), None
    for piece in pieces(messages, room):
        first = (Message("user", (Text(HEAD + text),)),) if text else ()
        request = Request(
            model=setup.model.spec.id, system=setup.system, messages=(*first, *piece, Message("user", (Text(ask),))),
            tools=setup.tools, tool_choice=ToolChoice("none"), max_output=setup.model.spec.max_output or None,
            agent=ports.session.id, session_id=ports.session.under or ports.session.id,
        )  # fmt: skip
        text = ""
        for asked in (request, replace(request, tools=(), tool_choice=ToolChoice())):  # one calls a tool all the same
            result = await ports.complete(
                setup.model, asked, on_part=_ignore, on_wait=_ignore, on_reset=_ignore, retry_now=asyncio.Event()
            )
            text, usage = result.text().strip(), usage + result.usage
            cost = cost if result.cost is None else (cost or 0.0) + result.cost
            if text:
                break
        if not text:
            raise ProviderError("malformed", "the summary came back empty")
    return text, usage, cost


def pieces(messages: Sequence[Message], room: int) -> list[list[Message]]:
    """Messages in runs of about `room` tokens; never between a call and its results."""
    out: list[list[Message]] = [[]]
    filled = 0
    for message in messages:
        size = estimate(message)
        if out[-1] and filled + size > room and message.role != "tool":
            out.append([])
            filled = 0
        out[-1].append(message)
        filled += size
    return out


def _ignore(_: StreamPart | object) -> None:
    pass
