"""Reading a session back from JSON lines: whole where it is whole, else all that proves.

A whole file gives the session itself, with its id and its digests. From a damaged one the proven beginning is kept
as it is, and what proves after the first gap is recorded anew in a fork of it; unusable lines are put aside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.codec import BadText
from panto.schema.errors import Conflict, UsageError
from panto.session import lease
from panto.session.bodies import Bodies, Staged
from panto.session.catalog import refresh
from panto.session.ids import new_id
from panto.session.ledger import Commit, seed
from panto.session.ownership import Birth
from panto.session.repair import begin, store
from panto.session.transfer import EndLine, Header, SegmentLine, parse

if TYPE_CHECKING:
    import sqlite3


class Imported(Struct, frozen=True):
    """What an import did. `session`: where it can be found; `warnings` for the person; `aside`: file of bad lines."""

    session: str
    commits: int
    bodies: int
    warnings: tuple[str, ...] = ()
    aside: str = ""


class Draft:
    """What was read of a file so far. Bodies are handed on as they come; commits stay until the end."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.commits: list[Commit] = []
        self.bad: list[tuple[int, str, bytes]] = []
        self.bodies = 0
        self.ended = False
        self.manifest: Staged | None = None
        self._number = 0

    def take(self, lines: list[bytes]) -> list[Staged]:
        """Read some lines; the bodies among them."""
        staged = []
        for line in lines:
            self._number += 1
            if not line.strip():
                continue
            try:
                found = parse(line)
            except BadText as error:
                self.bad.append((self._number, str(error), line))
                continue
            match found:
                case Header():
                    self.header = self.header or found
                case Staged():
                    staged.append(found)
                case Commit():
                    self.commits.append(found)
                case EndLine():
                    self.ended = True
        self.bodies += len(staged)
        return staged

    def warnings(self) -> list[str]:
        """What a person should know about the file."""
        out = [f"line {number} cannot be used ({why})" for number, why, _ in self.bad[:10]]
        if len(self.bad) > 10:
            out.append(f"… and {len(self.bad) - 10} more lines")
        if self.header is not None and (not self.commits or self.commits[-1].digest != self.header.digest):
            out.append(f"the file ends before its last commit ({self.header.head})")
        return out


def _proven(draft: Draft) -> tuple[list[SegmentLine], int]:
    """The segments that may be used, and how many commits prove from the beginning."""
    if draft.header is None:
        return [], 0
    segments = list(draft.header.segments)
    digest, seq, place, good = "", -1, -1, 0
    for commit in draft.commits:
        while commit.seq == seq + 1 and place + 1 < len(segments) and commit.segment != _id(segments, place):
            place += 1
            s = segments[place]
            start = seed(
                s.id, s.parent or None, s.parent_seq, s.parent_digest, s.created, s.under, s.opener, s.depth
            )
            if start != s.seed or s.parent_digest != digest or s.parent_seq != seq:
                return segments[:place], good
            digest = s.seed
        if commit.segment != _id(segments, place) or commit.seq != seq + 1 or commit.prev != digest:
            break
        digest, seq, good = commit.digest, commit.seq, good + 1
    return segments[: place + 1], good


def _id(segments: list[SegmentLine], place: int) -> str:
    return segments[place].id if place >= 0 else ""


def finish(db: sqlite3.Connection, bodies: Bodies, draft: Draft, holder: lease.Holder) -> str:
    """Write what was read; the id of the session that holds it. Raises UsageError, Conflict."""
    if not draft.commits:
        raise UsageError("the file holds no session", "panto session export ID FILE writes one")
    segments, good = _proven(draft)
    whole = (
        draft.header is not None
        and good == len(draft.commits)
        and draft.commits[-1].digest == draft.header.digest
        and segments[-1].id == draft.header.id
    )
    if whole:
        head = _here(db, draft.commits[-1])
        if head:
            return head
    for segment in segments:
        _segment(db, segment)
    for commit in draft.commits[:good]:
        _once(db, bodies, commit)
    if whole:
        last = segments[-1]
        db.execute(
            "INSERT INTO session VALUES(?, 0, NULL, ?, -1, x'', 0, 0, '', '', '', 0, 0, NULL, '', '')",
            (last.id, last.under),
        )
        refresh(db, last.id)
        return last.id
    shared = draft.commits[good - 1] if good else None
    later = tuple(draft.commits[good:])
    under = segments[-1].under if segments else ""
    return begin(db, bodies, Birth(new_id(), under), shared, later, holder)


def _here(db: sqlite3.Connection, last: Commit) -> str:
    """The id, where the very same session is in the store. Raises Conflict where another state of it is."""
    row = db.execute("SELECT digest FROM session WHERE id = ?", (last.segment,)).fetchone()
    if row is None:
        return ""
    if row[0].hex() != last.digest:
        raise Conflict(
            f"session {last.segment[:8]} is here already, and further or other than the file",
            f"panto session delete {last.segment[:8]}, then import again",
        )
    return last.segment


def _segment(db: sqlite3.Connection, s: SegmentLine) -> None:
    row = db.execute("SELECT seed FROM segment WHERE id = ?", (s.id,)).fetchone()
    if row is None:
        parent_digest = bytes.fromhex(s.parent_digest) if s.parent else None
        db.execute(
            "INSERT INTO segment VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (s.id, s.parent or None, s.parent_seq, parent_digest, s.created, s.under, s.opener, s.depth,
             bytes.fromhex(s.seed)),
        )  # fmt: skip
    elif row[0].hex() != s.seed:
        raise Conflict(f"another session has the id {s.id}", "import it into another store (PANTO_SESSION_DIR)")


def _once(db: sqlite3.Connection, bodies: Bodies, commit: Commit) -> None:
    row = db.execute(
        "SELECT digest FROM commits WHERE segment = ? AND seq = ?", (commit.segment, commit.seq)
    ).fetchone()
    if row is None:
        store(db, bodies, commit)
    elif row[0].hex() != commit.digest:
        raise Conflict(f"session {commit.segment[:8]} has another commit {commit.seq} here", "")
