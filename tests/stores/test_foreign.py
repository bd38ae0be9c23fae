"""SQLite files of other programs: read as they are at one moment, and never written to or obeyed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thinkback.errors import StoreError
from thinkback.stores import foreign


def test_a_live_database_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    """With what stands in its write-ahead log, while its program has it open; nothing is made or changed beside it."""
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE message (id TEXT, data TEXT)")
        writer.execute("INSERT INTO message VALUES ('m1', 'x'), (CAST(x'ff' AS TEXT), NULL)")
        before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.iterdir()}
        found = foreign.tables(str(path), ("message", "gone"))
        assert {"message": [{"id": "m1", "data": "x"}, {"id": "\ufffd", "data": None}]} == found
        assert before == {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.iterdir()}


def test_nothing_that_a_file_says_runs(tmp_path: Path) -> None:
    """A view under the name of a table is none, and a column that is computed is left out."""
    path = tmp_path / "evil.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        writer.execute(f"CREATE VIEW message AS {endless}")
        writer.execute("CREATE TABLE part (id TEXT, big TEXT AS (hex(zeroblob(1000000))))")
        writer.execute("INSERT INTO part (id) VALUES ('p1')")
    assert {"part": [{"id": "p1"}]} == foreign.tables(str(path), ("message", "part"))


def test_what_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    """A damaged file as well; one that is not there is an ``OSError``."""
    path = tmp_path / "damaged.db"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(StoreError, match="cannot be read as a database"):
        foreign.tables(str(path), ("message",))
    with pytest.raises(FileNotFoundError):
        foreign.tables(str(tmp_path / "gone.db"), ("message",))
