"""The SQLite file itself: who may read it, and what is said when it cannot be used."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from tests.stores.samples import fill, put, response_step, user_step
from thinkback.errors import CorruptLogError, FormatVersionError, StoreError
from thinkback.log.protocol import AppendRequest
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Head
from thinkback.stores import open_store
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_append import Appends
from thinkback.stores.sqlite_open import connect


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The usual umask, and the one from before it when the test ends."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_all_files_are_private(log: Path, open_umask: None) -> None:
    """The database, its write-ahead log and its shared memory have mode 0600 whatever the umask allows."""
    store = open_store(log)
    fill(store, "s", [response_step("1")])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in log.parent.iterdir()}
    store.close()
    assert {"log.db": 0o600, "log.db-wal": 0o600, "log.db-shm": 0o600} == modes


def test_a_closed_log_is_one_file(log: Path) -> None:
    """Closing moves everything into the database, so that it may be copied as one file."""
    store = open_store(log)
    commits = fill(store, "s", [response_step("1")])
    store.close()
    assert [log] == list(log.parent.iterdir())
    again = open_store(log)
    assert commits == again.read("s")
    again.close()


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_sets_what_is_synced(log: Path, durability: str, level: int) -> None:
    """``full`` is synchronous=FULL, ``normal`` is NORMAL, both on a write-ahead log."""
    opened: list[sqlite3.Connection] = []

    def remembered(path: str) -> sqlite3.Connection:
        opened.append(connect(path))
        return opened[-1]

    store = open_sqlite(str(log), "full" if durability == "full" else "normal", remembered)
    assert (level,) == opened[0].execute("PRAGMA synchronous").fetchone()
    assert ("wal",) == opened[0].execute("PRAGMA journal_mode").fetchone()
    store.close()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """A log is not made where its directory is not."""
    with pytest.raises(StoreError, match="No such file") as caught:
        open_store(tmp_path / "nowhere" / "log.db")
    assert "directory" in caught.value.next_actions[0]


def test_a_directory_is_no_log(tmp_path: Path) -> None:
    """A path that cannot be opened as a file is refused with advice."""
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        open_store(tmp_path)
    assert caught.value.next_actions


def test_a_text_file_is_no_log(log: Path) -> None:
    """A file that is not SQLite's is named as that, and left as it is."""
    log.write_text("dear diary, " * 100)
    with pytest.raises(CorruptLogError, match="is not a SQLite file"):
        open_store(log)
    assert "dear diary, " * 100 == log.read_text()


def test_another_programs_database_is_no_log(log: Path) -> None:
    """A database with tables of its own is refused and gets none of ours."""
    with _closing(log) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="another program"):
        open_store(log)
    with _closing(log) as db:
        assert [("bookmarks",)] == db.execute("SELECT name FROM sqlite_schema").fetchall()


def test_an_empty_file_becomes_a_log(log: Path) -> None:
    """A file of no bytes, as ``mktemp`` leaves it, is a new log."""
    log.touch()
    store = open_store(log)
    assert [] == store.list_sessions()
    store.close()


def test_a_newer_format_is_refused(log: Path) -> None:
    """A file of a later format is not touched; the error says to upgrade."""
    open_store(log).close()
    with _closing(log) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(FormatVersionError, match="has format 99") as caught:
        open_store(log)
    assert "upgrade thinkback" in caught.value.next_actions


def test_a_log_that_another_process_holds_is_named(log: Path) -> None:
    """When the lock is not given up in time, nothing is stored, and the same append succeeds later."""
    open_store(log).close()
    store = open_sqlite(str(log), connect=_impatient)
    fill(store, "s", [user_step("1")])
    with _closing(log) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked") as caught:
            put(store, "s", user_step("2"))
        assert "try again" in caught.value.next_actions[0]
        other.execute("ROLLBACK")
    put(store, "s", user_step("2"))
    assert 2 == len(store.read("s"))
    store.close()


def test_a_full_disk_takes_the_step_and_nothing_else(log: Path) -> None:
    """A step that does not fit is refused whole; what was there stays, and a smaller one still goes in."""
    store = open_sqlite(str(log), connect=_small)
    commits = fill(store, "s", [response_step("1")])
    noise = random.Random(1).randbytes(500_000).hex()
    with pytest.raises(StoreError, match="does not fit") as caught:
        put(store, "s", response_step("2", noise))
    assert "free some space" in caught.value.next_actions[0]
    commits += put(store, "s", user_step("3"))
    assert commits == store.read("s")
    assert [] == list(store.fsck())
    store.close()


def test_a_read_only_log_is_read_and_not_written(log: Path) -> None:
    """Without write permission a log can be read; an append says what is missing."""
    store = open_store(log)
    commits = fill(store, "s", [response_step("1")])
    store.close()
    reader = open_sqlite(str(log), connect=_read_only)
    assert commits == reader.read("s")
    with pytest.raises(StoreError, match="may only be read") as caught:
        put(reader, "s", user_step("2"))
    assert "permission" in caught.value.next_actions[0]
    reader.close()


def test_a_payload_that_does_not_unpack_is_damage(log: Path) -> None:
    """Reading damaged bytes raises ``CorruptLogError`` with the commit and the way on."""
    store = open_store(log)
    commits = fill(store, "s", [response_step("1")])
    _change(log, "UPDATE commits SET payload = x'00112233' WHERE position = 1")
    with pytest.raises(CorruptLogError, match=commits[1].hash) as caught:
        store.read("s")
    assert "fsck" in caught.value.next_actions[0]
    store.close()


@pytest.mark.parametrize(
    "damage", ["DELETE FROM commits WHERE position = 1", "DELETE FROM commits", "UPDATE segments SET segment = 9"]
)
def test_missing_commits_are_damage(log: Path, damage: str) -> None:
    """A run of commits with a hole is not read as a shorter history."""
    store = open_store(log)
    fill(store, "s", [response_step("1")])
    _change(log, damage)
    with pytest.raises(CorruptLogError):
        store.read("s")
    store.close()


def test_a_place_that_is_taken_is_damage(log: Path) -> None:
    """A step that would go where a commit stands is refused whole, and nothing is overwritten."""
    store = open_store(log)
    commits = fill(store, "s", [user_step("1"), user_step("2")])
    _change(log, "UPDATE commits SET position = 3 WHERE position = 1")
    _change(log, "UPDATE branches SET position = 0")
    with pytest.raises(CorruptLogError, match="something else"):
        put(store, "s", response_step("3"))
    _change(log, "UPDATE commits SET position = 1 WHERE position = 3")
    _change(log, "UPDATE branches SET position = 1")
    assert commits == store.read("s")
    store.close()


def test_reading_goes_on_while_a_writer_holds_the_lock(log: Path) -> None:
    """Readers do not wait for writers."""
    store = open_store(log)
    commits = fill(store, "s", [response_step("1")])
    with _closing(log) as other:
        other.execute("BEGIN IMMEDIATE")
        assert commits == store.read("s")
        other.execute("ROLLBACK")
    store.close()


class _closing:
    """A plain connection to the file, closed at the end."""

    def __init__(self, log: Path) -> None:
        self._db = sqlite3.connect(log, isolation_level=None)

    def __enter__(self) -> sqlite3.Connection:
        return self._db

    def __exit__(self, *_: object) -> None:
        self._db.close()


def _change(log: Path, sql: str) -> None:
    with _closing(log) as db:
        db.execute(sql)


def _impatient(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0.01, isolation_level=None, check_same_thread=False)


def _small(path: str) -> sqlite3.Connection:
    """A connection to a disk of 100 pages."""
    db = connect(path)
    db.execute("PRAGMA max_page_count = 100")
    return db


def _read_only(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)


@pytest.mark.parametrize("how", ["removed", "replaced by another", "moved"])
def test_nothing_is_stored_in_a_file_that_lost_its_name(log: Path, how: str) -> None:
    """Each write says so, and to each of those who write at once; where the file is back, all is well."""
    store = open_sqlite(str(log))
    commits = fill(store, "s", [user_step("1")])
    aside = log.with_name("aside.db")
    os.rename(log, aside) if how == "moved" else log.unlink()
    if how == "replaced by another":
        open_store(log).close()
    step = seal(user_step("2"), head_of(commits))
    for work in (
        lambda: store.append("s", "2", step, head_of(commits)),
        lambda: store.create_session("t", "t", 1),
        lambda: store.care.delete_session("s"),
    ):
        with pytest.raises(StoreError, match="was deleted or replaced while it was open"):
            work()
    entries = [AppendRequest(f"e{n}", f"e{n}", 1, f"{n}", seal(user_step(f"{n}"), Head()), Head()) for n in range(2)]
    outcomes = cast(Appends, store.recognition).record_all(entries)
    assert [StoreError, StoreError] == [type(outcome) for outcome in outcomes]
    if how == "moved":
        os.rename(aside, log)
        store.create_session("u", "u", 1)
    store.close()
    if how == "replaced by another":
        with closing(open_store(log)) as other:
            assert [] == other.list_sessions()
