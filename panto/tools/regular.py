"""Small files that others may have put there: a pipe, a device or a file without end holds nobody up."""

from __future__ import annotations

import errno
import functools
import os
import stat


def read(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of a file. Raises OSError, also where it is no regular file or holds more than `most` bytes."""
    name = os.fspath(path)
    flags = (getattr(os, flag, 0) for flag in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY"))  # not everywhere
    fd = os.open(name, functools.reduce(int.__or__, flags, os.O_RDONLY))
    with os.fdopen(fd, "rb") as source:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device", name)
        data = source.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 10} kB", name)
    return data
