"""A file's content: read whole and identified, or replaced whole, atomically.

Reading never waits on a pipe or device; writing leaves links, mode bits, owner and attributes as they were. All
functions block: call them in a thread. Changes to one real path are serialised in this process by `changing`.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from panto.schema.codec import Digest, digest
from panto.schema.errors import ToolFailure
from panto.schema.events import FileChange
from panto.tools.masks import holds_secret
from panto.tools.paths import storable
from panto.tools.text import shown, size
from panto.tools.tool import ToolContext

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that is edited, or read whole."""

_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
_written: dict[str, tuple[str, Digest]] = {}
"""Real path -> the session that last wrote there in this process, and what; guarded by `changing`."""
_LOCKS = tuple(threading.Lock() for _ in range(64))


def changing(path: str) -> threading.Lock:
    """The lock to hold from reading a file to having replaced it. `path` is real."""
    return _LOCKS[hash(path) % len(_LOCKS)]


@dataclass(frozen=True, slots=True)
class Content:
    """What a file held, and the state of its node at that time."""

    data: bytes
    node: os.stat_result

    @property
    def digest(self) -> Digest:
        return digest(self.data)


def open_regular(path: str, name: str) -> int:
    """A descriptor of a regular file. Raises ToolFailure for what is not there, not readable or not a file."""
    try:
        fd = os.open(path, _READING)
    except FileNotFoundError:
        raise ToolFailure(f"{shown(name)} does not exist", "not_found") from None
    except OSError as e:
        raise ToolFailure(f"{shown(name)}: {e.strerror}", "permission_denied") from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise ToolFailure(f"{shown(name)} is a directory: use ls", "invalid_input")
    kind = _KINDS.get(stat.S_IFMT(mode), "something special")
    raise ToolFailure(f"{shown(name)} is {kind}, not a file with content", "invalid_input")


def read(path: str, name: str, largest: int = LARGEST) -> Content:
    """The whole content of a regular file of at most `largest` bytes. Raises ToolFailure."""
    fd = open_regular(path, name)
    with open(fd, "rb") as file:
        node = os.fstat(fd)
        data = file.read(largest + 1)
    if len(data) > largest:
        raise ToolFailure(f"{shown(name)} is larger than {size(largest)}: use bash", "invalid_input")
    return Content(data, node)


def read_if_there(path: str, name: str) -> Content | None:
    """As `read`; None where there is nothing."""
    return read(path, name) if os.path.lexists(path) else None


def require_fresh(
    path: str, name: str, now: Content, fresh: Mapping[str, Digest | None], session: str, unread: bool
) -> None:
    """Refuse a file whose content is not what this session last saw. `unread`: one never read is fine."""
    key = storable(path)
    if _written.get(path) == (session, now.digest):
        return  # its own change, perhaps of this very step and not yet in `fresh`
    if key not in fresh:
        if unread:
            return
        raise ToolFailure(f"{shown(name)} exists and was not read yet: read it first", "conflict")
    if fresh[key] != now.digest:
        raise ToolFailure(f"{shown(name)} has changed since it was last read: read it again", "conflict")


def seen(path: str, content: Content) -> FileChange:
    """The record of a read."""
    return FileChange(path=storable(path), before=content.digest, after=content.digest)


def changed(
    path: str, before: Content | None, data: bytes, context: ToolContext
) -> tuple[FileChange, tuple[bytes, ...]]:
    """The record of a change and the bodies to keep for undoing it. Call it under the lock.

    What holds a known secret is not kept: it cannot be undone from the record, and cannot leak from there.
    """
    change = FileChange(path=storable(path), before=before.digest if before else None, after=digest(data))
    while len(_written) > 1_000:
        del _written[next(iter(_written))]
    _written[path] = (context.session, digest(data))
    if before is None or holds_secret(before.data, context.mask):
        return change, ()
    return change, (before.data,)


def replace(path: str, name: str, data: bytes, before: Content | None) -> None:
    """Make `data` the content of real path `path`: all of it or, on any failure, nothing. Raises ToolFailure.

    `before` is what was read under the lock (None: there was no file); a file that came or changed since is refused.
    """
    try:
        if before is None:
            _create(path, data)
        else:
            if not before.node.st_mode & 0o222:
                mode = stat.S_IMODE(before.node.st_mode)
                raise ToolFailure(f"{shown(name)} is read-only (mode {mode:04o})", "permission_denied")
            _replace(path, name, data, before)
    except FileExistsError:
        raise ToolFailure(f"{shown(name)} has just been made by someone else: read it first", "conflict") from None
    except OSError as e:
        raise ToolFailure(f"{shown(name)} could not be written: {e.strerror}", "permission_denied") from None


def _create(path: str, data: bytes) -> None:
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except RecursionError:  # it calls itself for each folder, before it makes the first
        raise OSError(errno.ENAMETOOLONG, "too many folders in one another", folder) from None
    temporary = _temporary(folder, data, 0o666)
    try:
        try:
            os.link(temporary, path)  # unlike rename, refuses to replace what came meanwhile
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if os.path.lexists(path):
                raise FileExistsError(path) from None
            os.rename(temporary, path)
            return
        os.unlink(temporary)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _replace(path: str, name: str, data: bytes, before: Content) -> None:
    node = before.node
    if node.st_nlink > 1:
        return _in_place(path, data)  # a new node would cut the other names off
    try:
        temporary = _temporary(os.path.dirname(path), data, 0o600)
    except PermissionError:
        return _in_place(path, data)  # the file may be written, its directory not
    try:
        _dress(temporary, path, node)
        now = os.stat(path, follow_symlinks=False)
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (node.st_ino, node.st_size, node.st_mtime_ns):
            again = read(path, name)
            if again.data != before.data:
                raise ToolFailure(f"{shown(name)} has just been changed by someone else: read it again", "conflict")
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _temporary(folder: str, data: bytes, mode: int) -> str:
    temporary = os.path.join(folder, f".panto-{os.urandom(8).hex()}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
    try:
        with open(fd, "wb", buffering=0) as file:
            _write_all(file.fileno(), data)
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _dress(temporary: str, path: str, node: os.stat_result) -> None:
    """Give the new node the old one's owner, mode and attributes."""
    made = os.stat(temporary)
    if (made.st_uid, made.st_gid) != (node.st_uid, node.st_gid):
        with suppress(OSError):
            os.chown(temporary, node.st_uid, node.st_gid)
    os.chmod(temporary, stat.S_IMODE(node.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for key in os.listxattr(path):
                with suppress(OSError):
                    os.setxattr(temporary, key, os.getxattr(path, key))


def _in_place(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        _write_all(fd, data)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)
