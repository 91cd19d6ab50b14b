"""The tables of sessions.db, and how an older database becomes a newer one.

What was written is never changed: triggers refuse every UPDATE of commits, commands and segments, and every DELETE
except of what the table `removed` lists (whole segments, or their commits after a seq).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.schema.errors import StorageFailed

if TYPE_CHECKING:
    import sqlite3

_TABLES = """
CREATE TABLE segment(
    id TEXT PRIMARY KEY, parent TEXT REFERENCES segment(id), parent_seq INTEGER NOT NULL, parent_digest BLOB,
    created INTEGER NOT NULL, under TEXT NOT NULL, opener TEXT NOT NULL, depth INTEGER NOT NULL, seed BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX segment_parent ON segment(parent) WHERE parent IS NOT NULL;
CREATE TABLE commits(
    segment TEXT NOT NULL REFERENCES segment(id), seq INTEGER NOT NULL, epoch INTEGER NOT NULL, time INTEGER NOT NULL,
    prev BLOB NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY(segment, seq)
) WITHOUT ROWID;
CREATE TABLE command(
    segment TEXT NOT NULL, id BLOB NOT NULL, seq INTEGER NOT NULL, intent BLOB NOT NULL, PRIMARY KEY(segment, id),
    FOREIGN KEY(segment, seq) REFERENCES commits(segment, seq)
) WITHOUT ROWID;
CREATE INDEX command_commit ON command(segment, seq);
CREATE TABLE removed(segment TEXT PRIMARY KEY, after INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE body(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB,
    base INTEGER REFERENCES body(id), depth INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX body_base ON body(base) WHERE base IS NOT NULL;
CREATE TABLE claim(digest BLOB NOT NULL, lease TEXT NOT NULL, PRIMARY KEY(digest, lease)) WITHOUT ROWID;
CREATE TABLE lease(
    id TEXT PRIMARY KEY, pid INTEGER NOT NULL, started TEXT NOT NULL, host TEXT NOT NULL, machine TEXT NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE session(
    id TEXT PRIMARY KEY REFERENCES segment(id), epoch INTEGER NOT NULL, lease TEXT, under TEXT NOT NULL,
    head INTEGER NOT NULL, digest BLOB NOT NULL, count INTEGER NOT NULL, time INTEGER NOT NULL, title TEXT NOT NULL,
    cwd TEXT NOT NULL, model TEXT NOT NULL, turns INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL,
    prompt TEXT NOT NULL, broken TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX session_list ON session(under, time);
CREATE TABLE projection(
    segment TEXT PRIMARY KEY, seq INTEGER NOT NULL, digest BLOB NOT NULL, fold INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE outcome(segment TEXT NOT NULL, effect TEXT NOT NULL, command BLOB NOT NULL, PRIMARY KEY(segment, effect));
CREATE TABLE said(id INTEGER PRIMARY KEY, segment TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL);
CREATE INDEX said_segment ON said(segment, kind, id);
CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'unicode61 remove_diacritics 2');
"""

_TRIGGER = """
CREATE TRIGGER {table}_kept BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, 'what was recorded is never changed'); END;
CREATE TRIGGER {table}_stays BEFORE DELETE ON {table}
    WHEN NOT EXISTS(SELECT 1 FROM removed WHERE segment = OLD.{key}{more})
    BEGIN SELECT RAISE(ABORT, 'what was recorded is only deleted with its session'); END;
"""


def _schema() -> str:
    kept = [("segment", "id", " AND after < 0"), ("commits", "segment", " AND after < OLD.seq")]
    kept.append(("command", "segment", " AND after < OLD.seq"))
    return _TABLES + "".join(_TRIGGER.format(table=table, key=key, more=more) for table, key, more in kept)


MIGRATIONS: dict[int, str] = {0: _schema()}
"""From each version, the statements that lead to the next one. Stored facts are never among what they change."""


def prepare(db: sqlite3.Connection, migrations: dict[int, str] | None = None) -> None:
    """Bring the database to this version's tables, in one transaction. Raises StorageFailed for a newer database."""
    steps = MIGRATIONS if migrations is None else migrations
    newest = max(steps) + 1
    if db.execute("PRAGMA user_version").fetchone()[0] == newest:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        have = db.execute("PRAGMA user_version").fetchone()[0]
        if have > newest:
            raise StorageFailed(
                f"the session store was written by a newer panto (format {have}, this one knows {newest})",
                "update panto, or set PANTO_SESSION_DIR to another folder",
            )
        for version in range(have, newest):
            for statement in _statements(steps[version]):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {newest}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """Split a script at statement ends (executescript would commit by itself)."""
    import sqlite3

    statements, part = [], ""
    for line in script.splitlines():
        part += line + "\n"
        if part.strip() and sqlite3.complete_statement(part):
            statements.append(part)
            part = ""
    return statements
