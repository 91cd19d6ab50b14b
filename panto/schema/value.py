"""The base of every value that is stored or sent: frozen, strict, defaults left out."""

from __future__ import annotations

from msgspec import Struct


class Value(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A frozen record. Unknown fields are refused, never dropped; fields at their default are not written."""
