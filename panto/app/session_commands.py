"""`panto session ...`: what can be done with stored sessions without running anything in them."""

from __future__ import annotations

import asyncio
import sys
import time
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from panto.app import ground as ground_
from panto.app.argv import COMMAND_HELP, Arguments, nearest
from panto.app.config_edit import write_atomically
from panto.app.ground import Ground
from panto.app.paths import Paths
from panto.app.saying import say_error
from panto.schema.errors import StorageFailed, UsageError
from panto.tools.paths import storable

if TYPE_CHECKING:
    from msgspec import Struct

    from panto.schema.queries import SessionRow
    from panto.session import Store
    from panto.session.repair import Repaired
    from panto.session.verify import Finding

EVERYTHING = 1 << 30
SHORTEST = 4
"""Characters of a turn's id that name it; fewer are a number."""
WRITABLE = "see to it that it can be written and has space, or set PANTO_SESSION_DIR"
READ = ("list", "show", "search", "export", "verify")
MOST = 5
"""Findings that are told one by one."""
KINDS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}
"""What a file's ending asks for."""
Command = Callable[["Store", Ground, list[str], Arguments], Awaitable[int]]


def run(arguments: Arguments, paths: Paths) -> int:
    """Runs one session command; returns its exit code. Raises PantoError."""
    usage = COMMAND_HELP["session"].strip()
    verb = arguments.words[0] if arguments.words else ""
    if verb not in COMMANDS:
        near = nearest(verb, COMMANDS)
        said = f"panto session does not know {verb!r}" if verb else "panto session needs a word"
        raise UsageError(said, f"did you mean {near}?" if near else usage)
    least, most, command = COMMANDS[verb]
    words = arguments.words[1:]
    if not least <= len(words) <= most:
        what = "something is missing" if len(words) < least else "too many words"
        raise UsageError(f"panto session {verb}: {what}", usage)
    ground = ground_.read(paths, arguments.options)
    return asyncio.run(_with_store(ground, verb, lambda store: command(store, ground, words, arguments)))


async def _with_store(ground: Ground, verb: str, use: Callable[[Store], Awaitable[int]]) -> int:
    from panto.session import Store

    root = ground.paths.sessions
    if root is None:
        raise UsageError("there is no place where sessions could be", "set HOME, or PANTO_SESSION_DIR")
    store = await Store.open(root)
    try:
        mends = verb == "repair" and "damaged" in store.notice
        if store.memory and not mends:
            await _need_disk(store, verb)
        elif store.notice and not mends:
            say_error(store.notice)
        return await use(store)
    except BrokenPipeError:
        raise  # whoever reads has had enough: not the store's trouble
    except OSError as e:
        raise StorageFailed(f"{e.filename or root}: {e.strerror}", WRITABLE) from None
    finally:
        await store.close()


async def _need_disk(store: Store, verb: str) -> None:
    """A store that could not be opened on disk must not look like an empty one, and nothing is written to memory.

    Raises StorageFailed. Where it could be read, whoever only reads goes on.
    """
    said = store.notice.partition("; this session lives in memory")[0]
    if verb in READ and await store.list(limit=1, all=True):
        say_error(said)
    elif "damaged" in said:
        raise StorageFailed(said, "panto session repair store brings back all that can be read of it")
    elif verb not in READ or (store.root / "sessions.db").exists():
        raise StorageFailed(said, WRITABLE)


# ---------------------------------------------------------------- listing


async def _list(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    everywhere = arguments.has("--all")
    cwd = "" if everywhere else storable(str(ground.paths.cwd))
    rows = await store.list(cwd=cwd, limit=EVERYTHING)
    _print_rows(rows, arguments, with_cwd=everywhere)
    if not rows and not arguments.has("--json"):
        print("No sessions" + (" yet." if everywhere else " in this directory yet; --all lists those of others."))
    return 0


async def _search(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    hits = await store.search(" ".join(words), limit=EVERYTHING)
    if arguments.has("--json"):
        _print_json(hits)
        return 0
    _print_table(
        [
            (h.short, _age(h.time), "", f"{_one_line(h.title or '(no title)', 40)}: {_one_line(h.text, 80)}")
            for h in hits
        ]
    )
    if not hits:
        print("Nothing was found.")
    return 0


def _print_json(rows: Iterable[Struct]) -> None:
    import msgspec

    for row in rows:  # every member, defaults too
        record = {name: getattr(row, name) for name in row.__struct_fields__}
        sys.stdout.buffer.write(msgspec.json.encode(record) + b"\n")


def _print_rows(rows: tuple[SessionRow, ...], arguments: Arguments, *, with_cwd: bool) -> None:
    if arguments.has("--json"):
        _print_json(rows)
        return
    table = []
    for row in rows:
        fork = "Fork of: " if row.forked_from else ""
        title = _one_line(fork + (row.title or row.last_prompt or "(empty)"), 60)
        state = f"[{row.broken}]" if row.broken else f"[open: {row.owner}]" if row.owner else ""
        turns = f"{row.turns} turn{'s' if row.turns != 1 else ''}"
        table.append((row.short, _age(row.time), turns, title, _one_line(row.cwd, 200) if with_cwd else "", state))
    _print_table(table)


def _print_table(table: Sequence[tuple[str, ...]]) -> None:
    """Columns as wide as what is in them, empty ones left out; the second and third (ages, numbers) to the right."""
    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = []
        for number, (text, width) in enumerate(zip(row, widths, strict=True)):
            pad = " " * (width - _width(text))
            if width:
                cells.append(pad + text if number in (1, 2) else text + pad)
        print("  ".join(cells).rstrip())


def _width(text: str) -> int:
    """Cells that a terminal takes for a text."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _age(then: float) -> str:
    seconds = max(0.0, time.time() - then)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"


def _one_line(text: str, most: int) -> str:
    from panto.remote.words import clean

    flat = " ".join(clean(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


# ---------------------------------------------------------------- one session


async def _show(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    from panto.app import transcript

    story = await transcript.read(store, words[0])
    if arguments.has("--json"):
        from panto.remote.jsonl import line
        from panto.schema.records import Recorder

        recorder = Recorder(story.id)
        for fact in story.facts:
            for record in recorder.records(fact):
                sys.stdout.buffer.write(line(record))
        return 0
    for text in transcript.lines(story):
        print(text)
    return 0


async def _rename(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    name, title = await store.resolve(words[0]), " ".join(words[1:])
    await store.rename(name, title)
    print(f"{name[:8]} is now called: {_one_line(title, 200)}")
    return 0


async def _delete(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    # All ids are found before the first session goes: a typing error in the last one deletes nothing.
    names = [await store.resolve(word) for word in words]
    await store.delete(names)
    await store.collect()
    print(f"deleted: {' '.join(names)}")
    return 0


async def _fork(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    name = await store.resolve(words[0])
    session = await store.fork(name, await _turn(store, name, arguments.get("--at")), settled=True)
    print(session.id)
    await session.close()
    return 0


async def _turn(store: Store, name: str, said: str) -> str | None:
    """The turn that is meant, by its number as `session show` counts or the beginning of its id. Raises UsageError."""
    if not said:
        return None
    viewer = await store.view(name)
    turns = [turn for turn in viewer.view.turns if turn.state != "superseded"]
    await viewer.close()
    if said.isdigit() and 1 <= int(said) <= len(turns):
        return turns[int(said) - 1].turn
    found = [turn.turn for turn in viewer.view.turns if len(said) >= SHORTEST and turn.turn.startswith(said)]
    if len(found) != 1:
        raise UsageError(f"session {name[:8]} has no turn {said}", f"panto session show {name[:8]} numbers them")
    return found[0]


# ---------------------------------------------------------------- out, in, and proof


async def _export(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    name, file = await store.resolve(words[0]), words[1] if len(words) > 1 else ""
    kind = arguments.get("--format") or KINDS.get(Path(file).suffix.lower(), "jsonl")
    if len(words) > 1 and words[1] != "-":
        write_atomically(Path(words[1]).absolute(), await export_bytes(store, name, kind), 0o600)
    elif kind == "jsonl":
        async for piece in store.export(name):
            sys.stdout.buffer.write(piece)
    else:
        sys.stdout.buffer.write(await export_bytes(store, name, kind))
    return 0


async def _import(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    try:
        done = await store.import_(Path(words[0]).absolute())
        await store.disown(done)
    except OSError as e:
        raise UsageError(f"{words[0]}: {e.strerror}") from None
    report = await store.verify(done.session)
    findings = [f"{_where(finding)}{finding.text}" for finding in report.findings]
    print(done.session)
    if not done.warnings and report.intact:
        return 0
    for text in (*done.warnings, *findings[:MOST]):
        say_error(text)
    aside = f"; what could not be used is in {done.aside}" if done.aside else ""
    said = f"{words[0]} is not as it was written: {report.commits} commits of it are session {done.session[:8]}{aside}"
    say_error(said, "" if report.intact else f"panto session repair {done.session[:8]} keeps all that proves")
    return 1


def _where(finding: Finding) -> str:
    return f"commit {finding.seq} of {finding.segment[:12]}: " if finding.seq >= 0 else ""


async def _verify(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    names = [await store.resolve(word) for word in words]
    if not names:
        names = [row.id for row in await store.list(limit=EVERYTHING, all=True)]
    broken = 0
    for name in names:
        report = await store.verify(name)
        if report.intact:
            print(f"{name[:12]}  intact: {report.commits} commits, {report.events} events, {report.bodies} bodies")
            continue
        broken += 1
        first = report.findings[0]
        more = f" (and {len(report.findings) - 1} more)" if len(report.findings) > 1 else ""
        print(f"{name[:12]}  NOT intact: {_where(first)}{first.text}{more}")
    if broken:
        say_error(f"{broken} of {len(names)} sessions do not prove", "panto session repair ID keeps all that does")
    return 1 if broken else 0


async def _repair(store: Store, ground: Ground, words: list[str], arguments: Arguments) -> int:
    whole = words[0] == "store"
    done = await store.repair(words[0])
    if done.outcome == "intact":
        intact = f"{done.session[:12]}  intact, nothing to repair: {done.kept} commits"
        print("the store is whole, nothing to repair" if whole else intact)
        return 0
    for loss in done.lost:
        print(f"{'lost' if done.outcome == 'replaced' else 'found'}: {_where(loss)}{loss.text}")
    if done.aside:
        print(f"what could not be kept is in {done.aside}")
    said = f"the store  {done.kept} commits were brought back" if whole else f"{done.session}  {_outcome(done)}"
    print(said)
    return 0


def _outcome(done: Repaired) -> str:
    if done.outcome == "mended":
        return f"is mended: {done.kept} commits"
    return f"holds the {done.kept} commits that prove; {done.old[:8]} is kept as it was"


async def export_bytes(store: Store, name: str, kind: str) -> bytes:
    """A session as a file's content. `kind`: jsonl, markdown or html. Raises as Store.view."""
    if kind == "jsonl":
        return b"".join([piece async for piece in store.export(name)])
    from panto.app import transcript

    story = await transcript.read(store, name)
    text = transcript.markdown(story) if kind == "markdown" else transcript.html(story)
    return text.encode("utf-8", "replace")


COMMANDS: dict[str, tuple[int, int, Command]] = {
    "list": (0, 0, _list),
    "show": (1, 1, _show),
    "search": (1, EVERYTHING, _search),
    "rename": (2, EVERYTHING, _rename),
    "delete": (1, EVERYTHING, _delete),
    "fork": (1, 1, _fork),
    "export": (1, 2, _export),
    "import": (1, 1, _import),
    "verify": (0, 1, _verify),
    "repair": (1, 1, _repair),
}
"""Name -> least and most words after it, and what it does."""
