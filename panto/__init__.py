"""panto: a coding agent for the terminal, durable and extensible. As a library: see panto.app.library."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from panto.app.library import (
        Agent,
        Conversation,
        Event,
        Job,
        Pending,
        Provider,
        SessionStore,
        Stream,
        Tool,
        run,
    )

__version__ = "0.1.0"
__all__ = ["Agent", "Conversation", "Event", "Job", "Pending", "Provider", "SessionStore", "Stream", "Tool", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'panto' has no attribute {name!r}")
    from panto.app import library

    return getattr(library, name)
