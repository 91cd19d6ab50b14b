"""Undoing what calls did to files, from the ledger's record of changes and the contents it kept."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from panto.schema.codec import Digest
from panto.schema.errors import Missing, ToolFailure
from panto.schema.events import FileChange
from panto.tools import contents, paths

ReadBody = Callable[[Digest], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Restored:
    """Real paths that are again as they were, those that are gone again, and those left alone, with the reason.

    What was as it had been all along is in none.
    """

    restored: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Change:
    """All changes of one file as one. `known`: what it has been; `broken`: somebody else changed it between two."""

    before: Digest | None
    known: frozenset[Digest | None]
    broken: bool = False


def net_changes(changes: Iterable[FileChange]) -> dict[str, _Change]:
    """Path -> what it was at first and has been since, of changes in the order they happened; reads do not count."""
    out: dict[str, _Change] = {}
    for change in changes:
        if change.before == change.after:
            continue
        known = out.get(change.path)
        if known is None:
            out[change.path] = _Change(change.before, frozenset((change.before, change.after)))
        else:  # put back in between, as an earlier rewind does, it is something that was there before
            broken = known.broken or change.before not in known.known
            out[change.path] = _Change(known.before, known.known | {change.after}, broken)
    return out


async def restore(changes: Iterable[FileChange], read_body: ReadBody) -> Restored:
    """Put files back to before `changes` (in the order they happened). `read_body` gives a stored content.

    A file that somebody else (a command, a person) has changed since or between is left alone and named.
    """
    done: list[str] = []
    gone: list[str] = []
    left: list[tuple[str, str]] = []
    for path, change in net_changes(changes).items():
        if change.broken:
            left.append((path, "was also changed by a command or by you in between"))
            continue
        try:
            before = await read_body(change.before) if change.before is not None else None
            if await asyncio.to_thread(_put_back, path, change, before):
                (gone if before is None else done).append(path)
        except Missing:
            left.append((path, "held a secret, so that its earlier content was not kept"))
        except ToolFailure as failure:
            left.append((path, failure.message))
        except OSError as e:
            left.append((path, e.strerror or str(e)))
    return Restored(tuple(done), tuple(left), tuple(gone))


def _put_back(name: str, change: _Change, before: bytes | None) -> bool:
    """Whether anything was to be done."""
    path = paths.real(name, "/")
    with contents.changing(path):
        now = contents.read_if_there(path, name)
        digest = now.digest if now else None
        if digest == change.before:
            return False
        if digest not in change.known:  # an earlier rewind may have put it back half the way
            raise ToolFailure("was changed since, by a command or by you", "conflict")
        if before is not None:
            contents.replace(path, name, before, now)
        elif now is not None:
            os.unlink(path)
    return True


_SKIPPED = frozenset((".git", ".hg", ".jj", ".svn", "node_modules", "__pycache__", ".venv"))
_LOOKED_AT = 50_000


def changed_since(root: str, moment: float) -> list[str]:
    """Real paths of files below `root` whose content is newer than `moment` (UTC seconds). Blocks on the disk.

    Looks at some ten thousand files, not into what programs keep for themselves.
    """
    out: list[str] = []
    left = _LOOKED_AT
    for folder, names, files in os.walk(os.path.realpath(root)):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        for name in sorted(files):
            left -= 1
            with suppress(OSError):
                path = os.path.join(folder, name)
                if os.lstat(path).st_mtime >= moment:
                    out.append(path)
        if left < 0:
            break
    return out
