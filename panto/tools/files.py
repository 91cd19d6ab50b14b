"""The files of a project for completion after `@`: read by ripgrep, kept in memory, searched off the loop's thread.

Answers come from what is known at that time; a first answer may be incomplete and says so.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from panto.schema.errors import ToolFailure
from panto.schema.queries import FileRow, Files
from panto.tools import ripgrep
from panto.tools.processes import Spawner
from panto.tools.text import shown

_PIECE = 1 << 18
_STALE = 2.0
"""Seconds after which a finished index is read anew when somebody asks (at least five times what reading it took)."""
_PATIENCE = 0.12
_ENOUGH = 400


@dataclass(slots=True)
class _Index:
    """Paths in blocks: as they are, and in lower case with the same line breaks, to be searched as one text."""

    blocks: list[tuple[str, str]] = field(default_factory=list)
    total: int = 0
    complete: bool = False
    took: float = 0.0
    finished: float = 0.0


class FileIndex:
    """The files below one directory. Belongs to one loop; `close` ends a reading under way."""

    def __init__(self, root: str, spawner: Spawner) -> None:
        self._root = root
        self._spawner = spawner
        self._index = _Index()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin reading, if that is not under way. Cheap."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._read())

    async def search(self, text: str, limit: int = 8) -> Files:
        """The best matches for what was typed; never raises."""
        if text.startswith(("/", "~", "..")):
            return await asyncio.to_thread(_listed, text, self._root, limit)
        index = self._index
        if not index.complete or time.monotonic() - index.finished > max(_STALE, 5 * index.took):
            self.start()
        if not index.total and self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=_PATIENCE)
        index = self._index
        rows = await asyncio.to_thread(_best, tuple(index.blocks), text, limit)
        return Files(rows=tuple(FileRow(path=shown(row)) for row in rows), total=index.total, complete=index.complete)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _read(self) -> None:
        fresh = _Index()
        if not self._index.total:
            self._index = fresh  # the first time, what is there so far is better than nothing
        began = time.monotonic()
        output = os.pipe()
        try:
            env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.path.expanduser("~")}
            argv = [ripgrep.find(), *ripgrep.COMMON, "--files", "-0"]
            child = await self._spawner.start(argv, env=env, cwd=self._root, stdout=output[1])
        except ToolFailure:  # no ripgrep, no such directory: completion has nothing to offer
            os.close(output[0])
            fresh.complete = True
            return
        finally:
            os.close(output[1])
        try:
            await asyncio.to_thread(_fill, fresh, output[0])
        finally:
            child.kill()
        fresh.took = time.monotonic() - began
        fresh.finished = time.monotonic()
        fresh.complete = True
        self._index = fresh


def _fill(index: _Index, fd: int) -> None:
    """Read NUL-separated paths to the end, adding each new directory in front of its first file."""
    folders: set[str] = set()
    rest = b""
    with open(fd, "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            *records, rest = (rest + piece).split(b"\0")
            lines: list[str] = []
            for record in records:
                path = os.fsdecode(record).replace("\n", "\\n")
                folder = path.rpartition("/")[0]
                while folder and folder not in folders:
                    folders.add(folder)
                    lines.append(folder + "/")
                    folder = folder.rpartition("/")[0]
                lines.append(path)
            block = "\n".join(lines)
            lower = block.lower()
            index.blocks.append((block, lower if len(lower) == len(block) else block))
            index.total += len(lines)


def _best(blocks: tuple[tuple[str, str], ...], text: str, limit: int) -> list[str]:
    """Matches in order: name begins so, name holds it, path holds it, letters in this order; short ones first."""
    wanted = text.strip().lower()
    found: dict[str, tuple[int, int, str]] = {}
    for line in _containing(blocks, wanted):
        name = line.rstrip("/").rpartition("/")[2].lower()
        rank = 0 if name == wanted else 1 if name.startswith(wanted) else 2 if wanted in name else 3
        found.setdefault(line, (rank, len(line), line))
        if len(found) >= _ENOUGH * 10:
            break
    if not found and len(wanted) > 1:
        until = time.monotonic() + _PATIENCE
        for line in _scattered(blocks, wanted, until):
            found.setdefault(line, (4, len(line), line))
            if len(found) >= _ENOUGH:
                break
    return [line for _, _, line in sorted(found.values())[:limit]]


def _containing(blocks: tuple[tuple[str, str], ...], wanted: str) -> Iterator[str]:
    for block, lower in blocks:
        at = lower.find(wanted)
        while at >= 0:
            start = block.rfind("\n", 0, at) + 1
            end = block.find("\n", at)
            end = len(block) if end < 0 else end
            yield block[start:end]
            at = lower.find(wanted, end + 1) if end < len(block) else -1


def _scattered(blocks: tuple[tuple[str, str], ...], wanted: str, until: float) -> Iterator[str]:
    pattern = re.compile("[^\n]*?".join(re.escape(char) for char in wanted))
    for block, lower in blocks:
        at = 0
        while time.monotonic() < until and (found := pattern.search(lower, at)):
            start = block.rfind("\n", 0, found.start()) + 1
            end = block.find("\n", found.end())
            end = len(block) if end < 0 else end
            yield block[start:end]
            at = end


def _listed(text: str, root: str, limit: int) -> Files:
    """Entries of a directory outside the index whose names begin as typed."""
    folder, _, start = text.rpartition("/")
    where = os.path.join(root, os.path.expanduser(folder or ("/" if text.startswith("/") else text)))
    try:
        with os.scandir(where) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir() else "") for entry in entries if entry.name.startswith(start)
            )
    except OSError:
        names = []
    prefix = f"{folder}/" if "/" in text else ""
    return Files(rows=tuple(FileRow(path=prefix + shown(name)) for name in names[:limit]), total=len(names))
