"""Project rules: AGENTS.md and CLAUDE.md, from the repository's root down to the working directory.

They are text for a model and nothing more: a link that leads out of the repository is not followed, what is too long is
cut, escape sequences are taken out.
"""

from __future__ import annotations

import os

from panto.schema.errors import ToolFailure
from panto.tools import contents, paths
from panto.tools.text import encoding_of, plain

NAMES = ("AGENTS.md", "CLAUDE.md")
LARGEST = 32_000
"""Characters of one file; all together at most three times that."""
_ROOTS = (".git", ".hg", ".jj", ".svn")


def repository(cwd: str) -> str | None:
    """The root of the repository that a directory lies in; None: it lies in none."""
    here = os.path.realpath(cwd)
    while True:
        if any(os.path.lexists(os.path.join(here, name)) for name in _ROOTS):
            return here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def find(cwd: str) -> tuple[tuple[str, str], ...]:
    """(printable path, text) of every rules file that applies in `cwd`, outermost first; outside a repository its own.

    Blocks on the disk. Never raises: what cannot be read is left out.
    """
    here = os.path.realpath(cwd)
    root = repository(here) or here
    folders = [here]
    while folders[-1] != root:
        folders.append(os.path.dirname(folders[-1]))
    out: list[tuple[str, str]] = []
    seen: set[str] = set()
    room = 3 * LARGEST
    for folder in reversed(folders):
        for name in NAMES:
            path = os.path.join(folder, name)
            text = _text(path, root)
            if not text or text in seen or room <= 0:
                continue
            seen.add(text)
            most = min(room, LARGEST)
            room -= min(len(text), most)
            cut = text if len(text) <= most else f"{text[:most]}\n(cut: the file is longer)"
            out.append((paths.storable(path), cut))
    return tuple(out)


def _text(path: str, root: str) -> str:
    try:
        target = os.path.realpath(path)
        if not os.path.lexists(path) or not paths.inside(target, root):
            return ""
        content = contents.read(target, path, largest=4 * LARGEST * 8)
    except (ToolFailure, OSError):
        return ""
    encoding = encoding_of(content.data)
    return plain(encoding.decode(content.data)).strip() if encoding else ""
