"""The last bodies that were looked at, bounded by size."""

from __future__ import annotations

from collections import OrderedDict

from panto.schema.bodies import Body
from panto.schema.codec import Digest


class Recent:
    """Bodies by digest; the least recently used go first. `most` is the sum of stored sizes, in bytes."""

    def __init__(self, most: int = 4 * 1024 * 1024) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[Digest, tuple[Body, int]] = OrderedDict()

    def get(self, name: Digest) -> Body | None:
        """The body, if it is still here."""
        found = self._kept.get(name)
        if found is None:
            return None
        self._kept.move_to_end(name)
        return found[0]

    def put(self, name: Digest, body: Body, size: int) -> None:
        """Remember a body of this stored size."""
        if name in self._kept or size > self._most // 4:
            return
        self._kept[name] = (body, size)
        self._size += size
        while self._size > self._most:
            _, (_, gone) = self._kept.popitem(last=False)
            self._size -= gone
