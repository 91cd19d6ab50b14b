"""Rows found on the pages of a file are those that SQLite gives, whatever their values and lengths."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from panto.session.carve import carve

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
    st.integers(0, 20_000).map(lambda size: b"\xa5" * size),
)
KEYS = st.tuples(st.text("abc", max_size=9), st.integers(-200, 10**12))


@given(st.dictionaries(KEYS, st.lists(VALUES, min_size=3, max_size=3), max_size=60))
def test_every_row_is_found_of_a_table_with_and_without_a_rowid(rows: dict[tuple[str, int], list[object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "some.db")
        db = sqlite3.connect(file, isolation_level=None)
        db.execute("CREATE TABLE one(a, b, c, d, e, PRIMARY KEY(a, b)) WITHOUT ROWID")
        db.execute("CREATE TABLE two(id INTEGER PRIMARY KEY, a, b, c, d, e)")
        db.execute("BEGIN")
        for key, more in rows.items():
            db.execute("INSERT INTO one VALUES(?, ?, ?, ?, ?)", (*key, *more))
            db.execute("INSERT INTO two(a, b, c, d, e) VALUES(?, ?, ?, ?, ?)", (*key, *more))
        db.execute("COMMIT")
        one = db.execute("SELECT * FROM one").fetchall()
        two = db.execute("SELECT * FROM two").fetchall()
        db.close()
        assert sorted(map(repr, carve(file, 5, rowid=False))) == sorted(map(repr, one))
        assert sorted(map(repr, carve(file, 6, rowid=True))) == sorted(map(repr, two))


@given(st.binary(max_size=4096), st.integers(0, 4095))
def test_pages_of_anything_raise_nothing(garbage: bytes, at: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "some.db")
        page = bytearray(4096)
        page[0] = 0x0A
        page[at : at + len(garbage)] = garbage[: 4096 - at]
        file.write_bytes(page * 3)
        for rowid in (True, False):
            for row in carve(file, 3, rowid=rowid):
                assert len(row) == 3
