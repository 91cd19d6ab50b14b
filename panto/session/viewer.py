"""A read-only view of a session, also one that is live in another process."""

from __future__ import annotations


class Viewer:
    """Follows a session without owning it."""
