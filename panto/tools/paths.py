"""Paths: from what a model wrote to one real path, and whether that lies inside the workspace.

The exact name comes first. Only if nothing has it, a name that is the same to the eye (Unicode spaces, composed or
decomposed accents, the escapes `text.shown` prints) is taken, and only if it is the one such name in its directory.
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata

from panto.schema.errors import ToolFailure
from panto.tools.text import shown

_SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]")


def fold(name: str) -> str:
    """The form in which names that look the same are equal."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", shown(name)))


def absolute(path: str, cwd: str) -> str:
    """A path as written, made absolute; `~` is the home directory. Links are not resolved."""
    if "\0" in path:
        raise ToolFailure("path holds a NUL byte", "invalid_input")
    if path == "~" or path.startswith("~/"):
        path = os.path.expanduser(path)
    return os.path.normpath(path) if os.path.isabs(path) and ".." not in path else os.path.join(cwd, path)


def real(path: str, cwd: str, *, new: bool = False) -> str:
    """The real path that `path` means, links resolved (also through the deepest existing parent of a new file).

    `new`: the last component may be a file to create, so only its parents are looked up by appearance.
    Raises ToolFailure(conflict) where several names look the same and none is exact.
    """
    written = absolute(path, cwd)
    if not os.path.lexists(written):
        written = _by_appearance(written, keep_last=new)
    return os.path.realpath(written)


def touched(path: str, cwd: str, *, new: bool = False) -> tuple[str, ...]:
    """The real path a call would touch, as `real` has it, for rules; never raises.

    A path that `real` refuses is given as it is written: the call itself will be refused before it does anything.
    """
    try:
        return (real(path, cwd, new=new),)
    except ToolFailure:
        return (os.path.realpath(absolute(path.replace("\0", ""), cwd)),)


def _by_appearance(written: str, keep_last: bool) -> str:
    parts = [part for part in written.split("/") if part not in ("", ".")]
    here = "/"
    for index, part in enumerate(parts):
        there = os.path.join(here, part)
        last = index == len(parts) - 1
        if part != ".." and not os.path.lexists(there) and not (last and keep_last):
            found = _twins(here, part)
            if len(found) > 1:
                names = ", ".join(repr(os.path.join(here, name)) for name in found)
                raise ToolFailure(f"{part!r} is not there, and several names look like it: {names}", "conflict")
            if not found:
                return os.path.join(here, *parts[index:])
            there = os.path.join(here, found[0])
        here = there
    return here


def _twins(directory: str, name: str) -> list[str]:
    wanted = fold(name)
    try:
        return sorted(entry for entry in os.listdir(directory) if fold(entry) == wanted)
    except OSError:
        return []


def inside(path: str, root: str) -> bool:
    """Whether a real path is `root` (a real directory) or lies below it."""
    root = root.rstrip("/")
    return path == root or path.startswith(root + "/")


def relative(path: str, cwd: str) -> str:
    """A real path as a person in `cwd` would write it, printable."""
    base = os.path.realpath(cwd)
    return shown(os.path.relpath(path, base) if inside(path, base) else path)


def storable(path: str) -> str:
    """A real path as text that can be stored: itself, or its printable form where its bytes are not UTF-8."""
    try:
        path.encode("utf-8")
        return path
    except UnicodeEncodeError:
        return shown(path)


def missing(path: str, cwd: str) -> ToolFailure:
    """The failure for a path that is not there, naming what is like it."""
    written = absolute(path, cwd)
    parent, name = os.path.split(written.rstrip("/"))
    try:
        names = os.listdir(parent)
    except FileNotFoundError:
        return ToolFailure(f"{shown(path)} does not exist, nor does its directory", "not_found")
    except OSError as e:
        return ToolFailure(f"{shown(path)}: {e.strerror}", "not_found")
    like = difflib.get_close_matches(name, names[:2000], 3, 0.6)
    hint = f"; there are {', '.join(shown(other) for other in like)}" if like else ""
    return ToolFailure(f"{shown(path)} does not exist{hint}", "not_found")
