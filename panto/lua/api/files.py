"""fs: files, read and written by a thread, so that only the calling task waits. Contents are bytes."""

from __future__ import annotations

import asyncio
import os
import stat as modes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from panto.lua.driver import Driver, LuaTask
from panto.schema.errors import UsageError

LARGEST = 64 << 20
"""Bytes that fs.read gives at most."""


def _bytes(data: object) -> bytes:
    if not isinstance(data, str):
        raise UsageError("the contents must be text")
    return data.encode("utf-8", "surrogateescape")


def _read(path: Path) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # a FIFO must not hang it
            info = os.fstat(file.fileno())
            if not modes.S_ISREG(info.st_mode):
                raise UsageError(f"{path} is not a regular file")
            if info.st_size > LARGEST:
                raise UsageError(f"{path} is larger than {LARGEST >> 20} MiB")
            return file.read().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _write(path: Path, data: object) -> None:
    try:
        _replace(path, _bytes(data))
    except OSError as e:  # it would name a file that nobody knows of
        raise OSError(e.errno, e.strerror, str(path)) from None


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
        os.chmod(name, mode)
        os.replace(name, os.path.realpath(path))
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    value = os.umask(0o022)
    os.umask(value)
    return value


def _append(path: Path, data: object) -> None:
    with path.open("ab") as file:
        file.write(_bytes(data))


def _list(path: Path, more: object) -> list[str] | None:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    except FileNotFoundError:
        return None


def _stat(path: Path, more: object) -> dict[str, object] | None:
    try:
        info = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    kind = "directory" if modes.S_ISDIR(info.st_mode) else "file" if modes.S_ISREG(info.st_mode) else "other"
    return {"kind": kind, "size": info.st_size, "mtime": info.st_mtime}


def _remove(path: Path, more: object) -> bool:
    try:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    except FileNotFoundError:
        return False
    return True


def install(driver: Driver, cwd: Callable[[str], str]) -> None:
    """Add the ops of fs. `cwd` gives a lane's working directory; relative paths start there."""

    def at(task: LuaTask, path: str) -> Path:
        if "\0" in path or not path:
            raise UsageError("not a path")
        return Path(cwd(task.lane), os.path.expanduser(path))

    def on_thread(work: Callable[..., Any]) -> Callable[..., Any]:
        return lambda task, path, more=None: asyncio.to_thread(work, at(task, path), more)

    driver.ops["fs_read"] = lambda task, path, more=None: asyncio.to_thread(_read, at(task, path))
    driver.ops["fs_write"] = on_thread(_write)
    driver.ops["fs_append"] = on_thread(_append)
    driver.ops["fs_list"] = on_thread(_list)
    driver.ops["fs_stat"] = on_thread(_stat)
    driver.ops["fs_mkdir"] = on_thread(lambda path, more: path.mkdir(parents=True, exist_ok=True))
    driver.ops["fs_remove"] = on_thread(_remove)
    driver.ops["fs_rename"] = lambda task, path, to: asyncio.to_thread(os.replace, at(task, path), at(task, to))
