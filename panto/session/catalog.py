"""The list of sessions: found, searched, named, deleted, without reading a body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.bodies import AgentSetup
from panto.schema.errors import Missing, UsageError
from panto.schema.events import CwdChanged, ModeChanged, ModelChanged, ReasoningChanged, SetupChanged
from panto.schema.queries import SessionRow
from panto.session import lease
from panto.session.bodies import Bodies, stage
from panto.session.ledger import events
from panto.session.ownership import owned, title
from panto.session.projection import load
from panto.session.read import ENDLESS, commits, lineage

if TYPE_CHECKING:
    import sqlite3

SHORTEST = 4
"""Digits of an id that are shown at least."""

FEW = 32
"""A session with more commits than this was not just opened and left."""

SETTINGS = (ModelChanged, ReasoningChanged, ModeChanged, CwdChanged)

_MATCH = """
WITH RECURSIVE hit(id, seq) AS (
    SELECT segment, min(seq) FROM said WHERE id IN (SELECT rowid FROM words WHERE words MATCH ?) GROUP BY segment
    UNION SELECT segment.id, hit.seq FROM segment JOIN hit ON segment.parent = hit.id AND segment.parent_seq >= hit.seq
) SELECT id FROM hit
"""


def rows(
    db: sqlite3.Connection, *, cwd: str = "", words: str = "", limit: int = 200, all: bool = False,
    under: str | None = None,
) -> tuple[SessionRow, ...]:  # fmt: skip
    """Sessions, newest first; see `Store.list`."""
    where, values = [], []
    if under is not None:
        where.append("s.under = ?")
        values.append(under)
    elif not all:
        where.append("s.under = ''")
        where.append(f"NOT ({UNTOUCHED} AND segment.parent IS NULL)")
    if cwd:
        where.append("s.cwd = ?")
        values.append(cwd)
    if words.strip():
        where.append(f"(s.title LIKE ? ESCAPE '\\' OR s.id IN ({_MATCH}))")
        values += [f"%{_like(words.strip())}%", _query(words)]
    query = (
        "SELECT s.id, s.title, s.cwd, s.time, s.model, s.turns, s.tokens, s.cost, s.prompt, segment.parent, s.lease,"
        " s.broken FROM session s JOIN segment ON segment.id = s.id"
        f" {'WHERE ' + ' AND '.join(where) if where else ''} ORDER BY s.time DESC, s.id LIMIT ?"
    )
    found = db.execute(query, (*values, limit)).fetchall()
    shorts = short_ids(db)
    holders = lease.living(db)
    return tuple(
        SessionRow(
            id=row[0], short=shorts.get(row[0], row[0]), title=row[1], cwd=row[2], time=row[3] / 1000, model=row[4],
            turns=row[5], tokens=row[6], cost=row[7], last_prompt=row[8], forked_from=row[9] or "",
            owner=f"process {holders[row[10]].pid} on {holders[row[10]].host}" if row[10] in holders else "",
            broken=row[11],
        )
        for row in found
    )  # fmt: skip


def short_ids(db: sqlite3.Connection) -> dict[str, str]:
    """The shortest unique prefix of every session's id, at least SHORTEST digits."""
    ids = [id for (id,) in db.execute("SELECT id FROM session ORDER BY id")]
    return {
        id: id[: max(SHORTEST, 1 + max(_common(id, ids[i - 1]) if i else 0, _common(id, ids[i + 1 : i + 2])))]
        for i, id in enumerate(ids)
    }


def _common(id: str, other: str | list[str]) -> int:
    if isinstance(other, list):
        other = other[0] if other else ""
    return next((i for i, (a, b) in enumerate(zip(id, other, strict=False)) if a != b), min(len(id), len(other)))


def _query(words: str) -> str:
    """Words as FTS5 wants them: each must occur, as the beginning of a word."""
    return " ".join('"' + word.replace('"', '""') + '"*' for word in words.split())


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def resolve(db: sqlite3.Connection, prefix: str) -> str:
    """The id of a unique prefix. Raises Missing, or UsageError that lists the candidates."""
    text = prefix.strip().lower()
    found = db.execute(
        "SELECT id, title, prompt FROM session WHERE substr(id, 1, ?) = ? ORDER BY time DESC LIMIT 9",
        (len(text), text),
    ).fetchall()
    if not text or not found:
        raise Missing(f"no session begins with {prefix!r}", "panto session list --all shows what there is")
    if len(found) > 1 and not any(row[0] == text for row in found):
        shorts = short_ids(db)
        lines = [f"  {shorts[row[0]]}  {' '.join((row[1] or row[2]).split())[:60]}".rstrip() for row in found[:8]]
        more = ["  …"] if len(found) > 8 else []
        raise UsageError(f"several sessions begin with {prefix!r}:\n" + "\n".join(lines + more), "give more digits")
    return str(text if any(row[0] == text for row in found) else found[0][0])


def refresh(db: sqlite3.Connection, id: str) -> None:
    """Set a session's row from its commits: for one that was forked, imported or repaired. Raises Corrupt."""
    line = lineage(db, id)
    live = load(db, id, line)
    settings, view = live.state.settings, live.view
    last = db.execute("SELECT time FROM commits WHERE segment = ? AND seq = ?", (id, live.seq)).fetchone()
    said = ""
    for segment, seq in reversed(line):
        row = db.execute(
            "SELECT words.text FROM said JOIN words ON words.rowid = said.id"
            " WHERE segment = ? AND seq <= ? AND kind = 'prompt' ORDER BY said.id DESC LIMIT 1",
            (segment, seq),
        ).fetchone()
        said = said or (row[0] if row else "")
    db.execute(
        "UPDATE session SET head = ?, digest = ?, count = ?, title = ?, cwd = ?, model = ?, turns = ?, tokens = ?,"
        " cost = ?, prompt = ?, time = coalesce(?, time) WHERE id = ?",
        (
            live.seq, bytes.fromhex(live.digest), live.count, settings.title, settings.cwd, settings.model,
            len(view.turns), view.usage.input + view.usage.output, view.cost, said[:400], last and last[0], id,
        ),
    )  # fmt: skip


class Hit(Struct, frozen=True):
    """A message that was found. `text` is the piece around the words; `seq` its commit; `time` UTC seconds."""

    session: str
    short: str
    title: str
    seq: int
    kind: str
    text: str
    time: float


def search(db: sqlite3.Connection, words: str, limit: int) -> tuple[Hit, ...]:
    """Messages that have all the words, newest first."""
    if not words.strip():
        return ()
    found = db.execute(
        "SELECT said.segment, said.seq, said.kind, snippet(words, 0, '', '', '…', 24), commits.time"
        " FROM words JOIN said ON said.id = words.rowid"
        " JOIN commits ON commits.segment = said.segment AND commits.seq = said.seq"
        " WHERE words MATCH ? ORDER BY said.id DESC LIMIT ?",
        (_query(words), limit),
    ).fetchall()
    shorts = short_ids(db)
    hits = []
    for segment, seq, kind, text, time in found:
        id = segment if segment in shorts else _reached_by(db, segment, seq)
        if id in shorts:
            (title,) = db.execute("SELECT title FROM session WHERE id = ?", (id,)).fetchone()
            hits.append(Hit(id, shorts[id], title, seq, kind, " ".join(text.split()), time / 1000))
    return tuple(hits)


def _reached_by(db: sqlite3.Connection, segment: str, seq: int) -> str:
    """A session that stands on a commit of a segment whose own session is deleted ("" none)."""
    row = db.execute(
        "WITH RECURSIVE above(id) AS (VALUES(?) UNION"
        " SELECT segment.id FROM segment JOIN above ON segment.parent = above.id AND segment.parent_seq >= ?)"
        " SELECT id FROM above JOIN session USING (id) LIMIT 1",
        (segment, seq),
    ).fetchone()
    return row[0] if row else ""


def prompts(db: sqlite3.Connection, cwd: str, limit: int) -> tuple[str, ...]:
    """What people said before, newest first, each text once."""
    query = (
        "SELECT words.text FROM said JOIN words ON words.rowid = said.id JOIN session ON session.id = said.segment"
        " WHERE said.kind = 'prompt' AND (? = '' OR session.cwd = ?) ORDER BY said.id DESC LIMIT ?"
    )
    return tuple(dict.fromkeys(text for (text,) in db.execute(query, (cwd, cwd, limit))))


def delete(db: sqlite3.Connection, ids: tuple[str, ...], mine: str) -> None:
    """Delete sessions and those under them, unless a live process (other than lease `mine`) has them. Raises Owned."""
    holders = lease.living(db)
    every = list(ids)
    for id in ids:
        every += [child for (child,) in db.execute("SELECT id FROM session WHERE under = ?", (id,))]
    for id in every:
        row = db.execute("SELECT lease FROM session WHERE id = ?", (id,)).fetchone()
        if row is not None and row[0] in holders and row[0] != mine:
            raise owned(id, holders[row[0]], title(db, id))
    for id in every:
        for table in ("session WHERE id", "projection WHERE segment", "outcome WHERE segment"):
            db.execute(f"DELETE FROM {table} = ?", (id,))
    sweep(db)


UNTOUCHED = "turns = 0 AND prompt = '' AND title = ''"
"""How the row of a session looks in which nothing was ever said."""


def forget_empty(db: sqlite3.Connection, id: str) -> bool:
    """Drop a session that was opened and left again: it holds nothing but settings, and nothing stands on it."""
    query = f"SELECT head, digest FROM session WHERE id = ? AND epoch > 0 AND broken = '' AND {UNTOUCHED}"
    here = db.execute(query, (id,)).fetchone()
    if here is None or here[0] > FEW:
        return False
    needed = "SELECT 1 FROM segment WHERE id = ? AND parent IS NOT NULL OR parent = ? OR under = ?"
    if db.execute(needed, (id, id, id)).fetchone() is not None:
        return False
    plain, last = stage(AgentSetup()).digest, ""
    for commit in commits(db, ((id, ENDLESS),)):
        last = commit.digest
        if not commit.proven():
            return False
        for event in events(commit):
            if not isinstance(event, SETTINGS) and not (isinstance(event, SetupChanged) and event.setup == plain):
                return False
    if last != here[1].hex():
        return False  # its end is gone: there was more
    db.execute("INSERT INTO removed VALUES(?, -1)", (id,))
    for table in ("session WHERE id", "projection WHERE segment", "outcome WHERE segment", "command WHERE segment",
                  "commits WHERE segment", "segment WHERE id", "removed WHERE segment"):  # fmt: skip
        db.execute(f"DELETE FROM {table} = ?", (id,))
    return True


def tidy(db: sqlite3.Connection, bodies: Bodies) -> None:
    """Forget dead processes: their leases, what they had claimed and never came to name, and sessions that they left
    without a word in them."""
    living = lease.living(db)
    for table, column in (("claim", "lease"), ("lease", "id")):
        for (id,) in db.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall():
            if id not in living:
                bodies.release(db, id)
                db.execute("DELETE FROM lease WHERE id = ?", (id,))
    rows = db.execute(f"SELECT id, lease FROM session WHERE {UNTOUCHED}").fetchall()
    for id, holder in rows:
        if holder not in living:
            forget_empty(db, id)


def sweep(db: sqlite3.Connection) -> int:
    """Drop commits that no session reaches: whole segments, or their ends after the last fork. How many."""
    parents = {id: (parent, seq) for id, parent, seq in db.execute("SELECT id, parent, parent_seq FROM segment")}
    kept: dict[str, int] = {}
    for (id,) in db.execute("SELECT id FROM session"):
        current, last = id, 2**63 - 1
        while current is not None and kept.get(current, -2) < last:
            kept[current] = last
            current, last = parents.get(current, (None, -1))
    dropped = 0
    for id in parents:
        after = kept.get(id, -2)
        if after == 2**63 - 1:
            continue
        db.execute("INSERT INTO removed VALUES(?, ?)", (id, max(after, -1)))
        db.execute(
            "DELETE FROM words WHERE rowid IN (SELECT id FROM said WHERE segment = ? AND seq > ?)", (id, after)
        )
        db.execute("DELETE FROM said WHERE segment = ? AND seq > ?", (id, after))
        db.execute("DELETE FROM command WHERE segment = ? AND seq > ?", (id, after))
        dropped += db.execute("DELETE FROM commits WHERE segment = ? AND seq > ?", (id, after)).rowcount
    gone = [id for id in parents if id not in kept]
    while gone:  # a fork before its parent
        leaves = [id for id in gone if all(parents[other][0] != id for other in gone)]
        for id in leaves:
            db.execute("DELETE FROM segment WHERE id = ?", (id,))
        gone = [id for id in gone if id not in leaves]
    db.execute("DELETE FROM removed")
    return dropped
