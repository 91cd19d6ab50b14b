"""The base of all commands."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import replace

from panto.schema.codec import Digest, canonical, derive_id, digest
from panto.schema.value import Value
from panto.session.ids import new_id

Position = tuple[int, int]
"""(seq of the commit, index of the event in it)."""


class Command(Value, frozen=True, tag_field="do", tag=True, kw_only=True):
    """The base. `command_id` may be left out; where given it must be the derived one, else the commit is refused."""

    command_id: str = ""

    def subject(self) -> tuple[object, ...]:
        """What the command is about: equal subjects are the same operation."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """The command's id, derived from its subject alone."""
        return derive_id(*self.subject())

    @property
    def intent(self) -> Digest:
        """The digest of the whole operation: a known id with another intent is a conflict."""
        return digest(canonical(replace(self, command_id="") if self.command_id else self))


class Free(Command, frozen=True, kw_only=True):
    """The base of commands that may be given any number of times: each has a key of its own."""

    key: str = field(default_factory=new_id)

    def subject(self) -> tuple[object, ...]:
        return ("free", type(self).__name__, self.key)
