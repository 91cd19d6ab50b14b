"""Proving a session: its chain, its index, its bodies and its folds, recomputed from what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.bodies import RequestManifest
from panto.schema.codec import Digest
from panto.schema.errors import Corrupt, Missing
from panto.schema.events import ModelStepPrepared
from panto.session.bodies import Bodies, thaw
from panto.session.digests import needed, parts
from panto.session.ledger import Commit, Unknown, records
from panto.session.projection import load
from panto.session.read import Lineage, birth, commit_at, lineage

if TYPE_CHECKING:
    import sqlite3


class Finding(Struct, frozen=True):
    """Something that does not prove. `segment` and `seq` say where (seq -1: not at one commit)."""

    text: str
    segment: str
    seq: int = -1
    body: Digest = ""


class Report(Struct, frozen=True):
    """What verifying a session found. `findings` in order, the first bad commit first; none: it is intact."""

    session: str
    commits: int
    events: int
    bodies: int
    findings: tuple[Finding, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether everything proves."""
        return not self.findings


def scan(db: sqlite3.Connection, segment: str, last: int) -> list[tuple[int, Commit | None]]:
    """A segment's commits by seq, also around rows that cannot be read (None)."""
    import sqlite3

    try:
        seqs = [seq for (seq,) in db.execute("SELECT seq FROM commits WHERE segment = ? AND seq <= ?", (segment, last))]
    except sqlite3.DatabaseError:
        seqs = sorted(_ends(db, segment, last, "ASC") | _ends(db, segment, last, "DESC"))
    found: list[tuple[int, Commit | None]] = []
    for seq in seqs:
        try:
            found.append((seq, commit_at(db, segment, seq)))
        except (sqlite3.DatabaseError, Corrupt):
            found.append((seq, None))
    return found


def _ends(db: sqlite3.Connection, segment: str, last: int, order: str) -> set[int]:
    """Seqs as far as they can be read from one end."""
    import sqlite3

    found: set[int] = set()
    try:
        query = f"SELECT seq FROM commits WHERE segment = ? AND seq <= ? ORDER BY seq {order}"
        for (seq,) in db.execute(query, (segment, last)):
            found.add(seq)
    except sqlite3.DatabaseError:
        pass  # what lies beyond is read from the other end
    return found


def chain(db: sqlite3.Connection, line: Lineage) -> tuple[list[Commit], list[Finding]]:
    """Every provable commit of a lineage, and what is wrong, in order.

    A commit proves when its digest is that of its content and its previous digest the one its neighbour carries.
    """
    good: list[Commit] = []
    findings: list[Finding] = []
    digest, seq = "", -1
    for place, (segment, last) in enumerate(line):
        start, stands_on, proves = birth(db, segment)
        if not proves or (place > 0 and stands_on != digest):
            findings.append(Finding("the creation record does not prove", segment, seq + 1))
        digest = start
        for at, commit in scan(db, segment, last):
            while seq + 1 < at:
                seq += 1
                findings.append(Finding(f"commit {seq} is gone", segment, seq))
                digest = ""
            seq = at
            if commit is None or not commit.proven() or digest not in ("", commit.prev):
                findings.append(Finding(f"commit {seq} is damaged", segment, seq))
                digest = commit.digest if commit is not None else ""
                continue
            digest = commit.digest
            good.append(commit)
    return good, findings


def _index(db: sqlite3.Connection, segment: str, good: list[Commit]) -> list[Finding]:
    """Whether the table of commands says exactly what the segment's commits say."""
    stored = {
        (id.hex(), seq, intent.hex())
        for id, seq, intent in db.execute("SELECT id, seq, intent FROM command WHERE segment = ?", (segment,))
    }
    wanted = {(g.id, c.seq, g.intent) for c in good if c.segment == segment for g in c.groups()}
    wrong = sorted({seq for _, seq, _ in stored ^ wanted})
    return [Finding("the index of commands differs from the commits", segment, wrong[0])] if wrong else []


def _bodies(db: sqlite3.Connection, bodies: Bodies, good: list[Commit]) -> tuple[int, list[Finding]]:
    seen: set[Digest] = set()
    findings: list[Finding] = []
    for commit in good:
        for record in records(commit):
            if isinstance(record.event, Unknown):
                continue
            names = needed(record.event)
            if isinstance(record.event, ModelStepPrepared) and record.event.request not in seen:
                names += manifest_parts(db, bodies, record.event.request)
            for name in names:
                if name in seen:
                    continue
                seen.add(name)
                try:
                    bodies.read(db, name)
                except (Missing, Corrupt) as error:
                    findings.append(Finding(error.message, commit.segment, commit.seq, name))
    return len(seen), findings


def manifest_parts(db: sqlite3.Connection, bodies: Bodies, name: Digest) -> tuple[Digest, ...]:
    """The bodies that a stored manifest names; none where it is missing or damaged."""
    try:
        body = thaw(name, bodies.read(db, name))
    except (Missing, Corrupt):
        return ()  # the manifest itself is reported
    return parts(body) if isinstance(body, RequestManifest) else ()


def _folds(db: sqlite3.Connection, id: str, line: Lineage) -> list[Finding]:
    """Whether the cached fold is what folding from the start gives."""
    fresh = load(db, id, line, cached=False)
    kept = load(db, id, line)
    fresh.folded = kept.folded = 0
    if fresh != kept:
        return [Finding("the cached fold differs from the commits", id, kept.seq)]
    head = db.execute("SELECT head, digest FROM session WHERE id = ?", (id,)).fetchone()
    if (head[0], head[1].hex()) != (fresh.seq, fresh.digest):
        return [Finding(f"commits are gone from the end: it was written up to {head[0]}", id, fresh.seq + 1)]
    return []


def verify(db: sqlite3.Connection, bodies: Bodies, id: str) -> Report:
    """Prove one session, also where pages of the file cannot be read. Raises Missing."""
    import sqlite3

    good: list[Commit] = []
    findings: list[Finding] = []
    lost: list[Finding] = []
    count = 0
    try:
        line = lineage(db, id)
        good, findings = chain(db, line)
        count, lost = _bodies(db, bodies, good)
        if not findings:
            findings = _index(db, id, good) or _folds(db, id, line)
    except sqlite3.DatabaseError as error:
        findings.append(Finding(f"the database file is damaged: {error}", id))
    events = sum(len(tuple(g.events())) for c in good for g in c.groups())
    return Report(id, len(good), events, count, tuple(sorted(findings + lost, key=lambda f: (f.seq, f.body))))


def whole(db: sqlite3.Connection) -> str:
    """SQLite's own check of the file: "" or what it found first."""
    import sqlite3

    try:
        found = [str(row[0]) for row in db.execute("PRAGMA quick_check(5)")]
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if found == ["ok"] else "; ".join(found)
