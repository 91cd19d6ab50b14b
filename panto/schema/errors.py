"""Every error that crosses a room's door, as one tree.

    PantoError                       message, hint (the way out)
    ├── UsageError                   the person asked for something that cannot be (exit 2)
    ├── ConfigError                  a config line is wrong (file, line)
    ├── ProviderError                one model call failed (kind, status, retry_after)
    ├── ToolFailure                  a tool says no; the model is told (class, retry_allowed, effects)
    ├── ToolStop                     a tool's surroundings broke; the run stops
    ├── SessionError
    │   ├── Refused                  decide said no; nothing was written (reason)
    │   ├── Conflict                 a known command id with another intent
    │   ├── Owned                    another process holds the session (owner)
    │   ├── OwnershipLost            a newer epoch took over; stop at once
    │   ├── Corrupt                  stored bytes do not prove (segment, seq)
    │   ├── Missing                  a body or session is not there (id or digest)
    │   ├── ViewOnly                 viewed here, or an unknown machine event: read, do not write
    │   └── StorageFailed            disk full, read only, I/O (poisons the writer)
    └── ExtensionError               an extension's fault (owner, place, traceback in the log)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # values that errors only carry; importing them here would be a circle
    from panto.schema.bodies import ToolOutcome
    from panto.schema.events import FileChange
    from panto.schema.signals import SessionOwner

ProviderErrorKind = Literal[
    "auth", "permission", "not_found", "invalid_request", "rate_limited", "quota", "overloaded", "server",
    "timeout", "connection", "overflow", "content_filter", "malformed", "cancelled",
]  # fmt: skip

FailureClass = Literal[
    "not_found", "invalid_input", "permission_denied", "response_rejected", "not_dispatched", "cancelled",
    "timeout", "unavailable", "rate_limited", "conflict", "internal",
]  # fmt: skip


class PantoError(Exception):
    """A fault a person may see: `message` names the thing and the place, `hint` the way out ("" if none)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PantoError):
    """Asked for something that cannot be: unknown model, bad option, ambiguous id. Exit code 2."""


class ConfigError(PantoError):
    """A wrong line in a config file. `line` counts from 1 (0: unknown)."""

    def __init__(self, message: str, file: str, line: int = 0, hint: str = "") -> None:
        super().__init__(message, hint)
        self.file = file
        self.line = line


class ProviderError(PantoError):
    """One model call failed. `status` is the HTTP status (0: none), `retry_after` in seconds."""

    def __init__(
        self,
        kind: ProviderErrorKind,
        message: str,
        *,
        status: int = 0,
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint)
        self.kind: ProviderErrorKind = kind
        self.status = status
        self.retry_after = retry_after


class ToolFailure(PantoError):
    """A tool could not do what was asked; the model reads `message`.

    `retry_allowed`: this failure proves that nothing unrepeatable happened. `effects` "unknown": it may have.
    `outcome` is partial output worth keeping, `files` what was touched before it failed. `lost`: nobody can say whether
    it failed at all.
    """

    def __init__(
        self,
        message: str,
        cls: FailureClass = "invalid_input",
        *,
        retry_allowed: bool = False,
        effects: Literal["none", "unknown"] = "none",
        outcome: ToolOutcome | None = None,
        files: tuple[FileChange, ...] = (),
        lost: bool = False,
    ) -> None:
        super().__init__(message)
        self.lost = lost
        self.outcome = outcome
        self.files = files
        self.cls: FailureClass = cls
        self.retry_allowed = retry_allowed
        self.effects: Literal["none", "unknown"] = effects


class ToolStop(PantoError):
    """A tool's surroundings are broken (no disk, no shell): the run stops with this as its reason."""


class SessionError(PantoError):
    """The ledger's errors."""


class Refused(SessionError):
    """The machine refused a command; nothing was written. `reason` is a stable word, e.g. "stale", "terminal"."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Conflict(SessionError):
    """A known command id with another intent; nothing was written."""


class Owned(SessionError):
    """Another live process holds the session for writing. `owner` says which one, and which session that is.

    The ways out: `OpenSession(owner.session, how=...)` with "view", "fork" or "take_over".
    """

    def __init__(self, message: str, owner: SessionOwner, hint: str = "") -> None:
        super().__init__(message, hint)
        self.owner = owner


class OwnershipLost(SessionError):
    """A newer epoch exists: this handle may never write again."""


class Corrupt(SessionError):
    """Stored bytes do not prove. `segment` and `seq` are the first bad commit's coordinates."""

    def __init__(self, message: str, segment: str, seq: int, hint: str = "") -> None:
        super().__init__(message, hint)
        self.segment = segment
        self.seq = seq


class Missing(SessionError):
    """A session or body that is not there; the message names its id or digest."""


class ViewOnly(SessionError):
    """It can be read, not written: the session is only viewed here (the message says who holds it), or it holds
    machine events that this version does not know."""


class StorageFailed(SessionError):
    """The disk said no (full, read only, I/O). The handle is poisoned until reopened."""


class ExtensionError(PantoError):
    """An extension's fault. `owner` is its name, `place` is file:line."""

    def __init__(self, message: str, owner: str, place: str = "", hint: str = "") -> None:
        super().__init__(message, hint)
        self.owner = owner
        self.place = place
