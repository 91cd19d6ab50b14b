"""Who writes a store: the thread on its file, or, where nothing can be written, one in memory."""

from __future__ import annotations

import os
import pathlib

from panto.schema.errors import StorageFailed
from panto.session import connect
from panto.session.bodies import Bodies
from panto.session.disk import Disk, Failed


async def writer_of(root: pathlib.Path, *, memory: bool = False) -> tuple[Disk, Bodies, str, Failed | None]:
    """The writer of a root, or one in memory, with what a person must know of it, and the damage it has."""
    found, error = connect.Found(), StorageFailed("")
    if not memory:
        writer = Disk(lambda: connect.for_writing(root, found), str(root / connect.FILE), writes=True)
        try:
            await writer.run(lambda db: None)
            if next(root.glob(f"{connect.ASIDE}*"), None) is not None:
                found.notice = f"a damaged session store lies aside in {root}; {connect.BRING_BACK}"
            return writer, Bodies(root / "blobs"), found.notice, None
        except StorageFailed as failed:
            await writer.close()
            error = failed
    notice = f"{error.message}; this session lives in memory and is gone when panto ends ({error.hint})"
    place = root if not memory else pathlib.Path(os.devnull)
    writer = Disk(lambda: connect.in_memory(place), "in memory", writes=True)
    damage = error if isinstance(error, Failed) and error.damaged else None
    return writer, Bodies(root / "blobs", writes=False), notice, damage
