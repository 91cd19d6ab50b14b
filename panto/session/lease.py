"""Who writes a session: one lease row for each process, which all its sessions point at.

The lease only decides whether somebody may take over unasked; what keeps two writers apart is the epoch.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import sqlite3

DURATION = 30.0
"""Seconds a lease holds after its last renewal; it is renewed every third of that."""


class Holder(Struct, frozen=True):
    """A lease: who and where. `until` is UTC seconds, `started` and `machine` are opaque."""

    id: str
    pid: int
    started: str
    host: str
    machine: str
    until: float


@functools.cache
def machine() -> str:
    """Names this boot of this machine and its space of process ids: only inside it can a process be proven dead."""
    parts = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    for path in ("/proc/sys/kernel/random/boot_id",):
        try:
            parts.append(Path(path).read_text())
        except OSError:
            parts.append("")
    try:
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def started(pid: int) -> str:
    """When a process began, as an opaque word that no later process with its number shares ("" unknown)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return stat.rpartition(b")")[2].split()[19].decode()


def own(id: str, now: float) -> Holder:
    """This process's lease, fresh."""
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return Holder(id, os.getpid(), started(os.getpid()), host, machine(), now + DURATION)


def alive(holder: Holder, now: float) -> bool:
    """Whether the holder may still be there: its lease has not run out and it is not proven dead."""
    if holder.until <= now:
        return False
    if holder.machine != machine():
        return True
    return _running(holder.pid) and (not holder.started or started(holder.pid) in ("", holder.started))


def _proven(holder: Holder) -> bool:
    """Whether the very process is still there, whatever its lease says."""
    here = holder.machine == machine() and holder.started != "" and started(holder.pid) == holder.started
    return here and _running(holder.pid)


def _running(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere this signal would end the process: there the lease's time alone decides
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    try:
        # A killed process whose parent has not fetched it yet is dead all the same.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return True


def put(db: sqlite3.Connection, holder: Holder) -> None:
    """Write or renew a lease."""
    db.execute(
        "INSERT INTO lease VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET until = excluded.until",
        (holder.id, holder.pid, holder.started, holder.host, holder.machine, holder.until),
    )


def get(db: sqlite3.Connection, id: str | None) -> Holder | None:
    """A lease by its id."""
    row = db.execute("SELECT id, pid, started, host, machine, until FROM lease WHERE id = ?", (id,)).fetchone()
    return None if row is None else Holder(*row)


def living(db: sqlite3.Connection) -> dict[str, Holder]:
    """All leases whose holders may still be there, by id.

    Also those that ran out of a process that is there: one that is stopped, or slept with its machine, renews nothing,
    and goes on with what it had.
    """
    now = time.time()
    rows = db.execute("SELECT id, pid, started, host, machine, until FROM lease").fetchall()
    holders = [Holder(*row) for row in rows]
    return {holder.id: holder for holder in holders if alive(holder, now) or _proven(holder)}
