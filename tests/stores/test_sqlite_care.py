"""Care of a SQLite file: erased bytes are in no file, copies are whole and private, collecting lets others work."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.samples import fill, put, response_step, user_step
from tests.stores.test_migrations import older
from thinkback.errors import StoreError
from thinkback.log.protocol import MAIN, Origin
from thinkback.log.seal import head_of
from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased
from thinkback.stores import open_store
from thinkback.stores.rows import pack
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import connect

TOMB = canonical.encode(Erased("asked to", 9_000))
FOREVER = 10**9


def _careless(path: str) -> sqlite3.Connection:
    """A connection of a SQLite that was built without ``SECURE_DELETE``."""
    db = connect(path)
    db.execute("PRAGMA secure_delete = OFF")
    return db


def _impatient(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0.05, isolation_level=None, check_same_thread=False)


def _raw(log: Path) -> bytes:
    """The bytes of every file of the log."""
    return b"".join(path.read_bytes() for path in sorted(log.parent.iterdir()) if path.name.startswith(log.name))


def _traces(commit: Commit) -> list[bytes]:
    """What of a payload would be seen in a file, stored as it is or compressed: three pieces of it."""
    stored = pack(commit.payload)[1]
    return [stored[at : at + 24] for at in (len(stored) // 4, len(stored) // 2, len(stored) * 3 // 4 - 24)]


def _secret(number: int, length: int) -> str:
    """Text that is in the file once, and does not get much smaller."""
    return random.Random(number).randbytes(length).hex()


@pytest.mark.parametrize("length", [20, 300, 3_000, 40_000])
def test_an_erased_payload_is_in_no_file(log: Path, length: int) -> None:
    """Neither the database nor its write-ahead log has a piece of it, wherever in the log it stood."""
    store = open_sqlite(str(log), connect=_careless)
    commits = fill(store, "s", [user_step(f"{n}", _secret(n, length), n) for n in range(40)])
    gone = [commits[at] for at in (0, 1, 20, 39)]
    assert all(trace in _raw(log) for commit in commits for trace in _traces(commit))
    store.care.erase("s", {commit.hash: TOMB for commit in gone})
    left = _raw(log)
    assert [] == [commit.seq for commit in gone if any(trace in left for trace in _traces(commit))]
    assert all(trace in left for commit in commits if commit not in gone for trace in _traces(commit))
    assert [] == list(store.fsck())
    store.close()


def test_a_deleted_session_is_in_no_file(log: Path) -> None:
    """Payloads, name, purpose and settings are gone; what a fork stands on is there."""
    store = open_sqlite(str(log))
    fill(store, "x", [user_step("x", _secret(99, 500))])
    commits = fill(store, "s", [user_step(f"{n}", _secret(n, 500), n) for n in range(20)])
    store.create_session("named", "a name that tells", 1, Origin("s", at=head_of(commits[:5]), purpose="a purpose"))
    store.write_settings("named", {"reasoning.effort": "a setting that tells"})
    store.create_session("t", "t", 1, Origin("named", at=head_of(commits[:5])))
    store.care.delete_session("named")
    store.care.delete_session("s")
    left = _raw(log)
    assert [] == [commit.seq for commit in commits[5:] if any(trace in left for trace in _traces(commit))]
    for text in (b"a name that tells", b"name of s", b"a purpose", b"a setting that tells"):
        assert text not in left
    assert commits[:5] == store.read("t")
    store.close()


@pytest.mark.parametrize("seed", range(8))
def test_no_history_of_changes_leaves_a_copy(log: Path, seed: int) -> None:
    """Sessions grow, are reset, collected, erased and deleted in any order: what went is in no file at the end."""
    chance = random.Random(seed)
    store = open_sqlite(str(log), "normal", connect=_careless)
    stored: list[Commit] = []
    gone: list[Commit] = []
    for number in range(60):
        name = chance.choice("abc")
        match chance.choice(["append", "append", "append", "erase", "reset", "delete"]):
            case "append":
                text = _secret(number, chance.choice([50, 600, 5_000]))
                stored += fill(store, name, [user_step(f"{number}", text, number)])
            case "erase" if info := store.find_session(name):
                found = [commit for commit in store.read(info.id) if commit in stored]
                if found:
                    commit = chance.choice(found)
                    store.care.erase(name, {commit.hash: TOMB})
                    gone.append(commit)
            case "reset" if (info := store.find_session(name)) and info.commits:
                head = head_of(store.read(name)[: chance.randrange(info.commits)])
                store.refs.move(name, MAIN, info.head, head, MAIN)
                store.care.gc(FOREVER)
            case "delete" if info := store.find_session(name):
                gone += [commit for commit in store.read(info.id) if commit in stored]
                store.care.delete_session(name)
            case _:
                pass
        stored = [commit for commit in stored if commit not in gone]
    if store.find_session("a"):
        store.care.delete_session("a")
    left = _raw(log)
    assert [] == [commit.seq for commit in gone if any(trace in left for trace in _traces(commit))]
    assert [] == list(store.fsck())
    store.close()


def test_an_old_file_is_swept_once(log: Path) -> None:
    """A file whose first commits were written without overwriting is rewritten by its first erasure."""
    steps = [user_step(f"{n}", _secret(n, 60), n) for n in range(40)]
    commits = older(log, steps, 1, _careless)
    store = open_sqlite(str(log))
    for expected in (b"\x01", b"\x02"):
        number = expected[0]
        store.care.erase("s", {commits[number].hash: TOMB})
        left = _raw(log)
        assert [] == [trace for commit in commits[number : number + 1] for trace in _traces(commit) if trace in left]
        with closing(sqlite3.connect(log)) as db:
            assert {(0,)} == set(db.execute("SELECT unswept FROM migrations").fetchall())
    assert 40 == len(store.read("s"))
    assert [] == list(store.fsck())
    store.close()


def test_a_reader_in_the_way_is_named(log: Path) -> None:
    """While another program reads an older state, the old bytes stay in the write-ahead log, and that is said."""
    store = open_sqlite(str(log), connect=_impatient)
    commits = fill(store, "s", [user_step("1", _secret(1, 300)), user_step("2", _secret(2, 300))])
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM commits").fetchone()
        with pytest.raises(StoreError, match="another program is reading") as caught:
            store.care.erase("s", {commits[0].hash: TOMB})
        assert "next erasure" in caught.value.next_actions[0]
        assert isinstance(store.read("s")[0].value, Erased)
        other.execute("ROLLBACK")
    store.care.erase("s", {commits[0].hash: TOMB})
    assert [] == [trace for trace in _traces(commits[0]) if trace in _raw(log)]
    store.close()


def test_a_full_disk_erases_nothing(log: Path) -> None:
    """A tombstone that does not fit is refused whole."""

    def small(path: str) -> sqlite3.Connection:
        db = connect(path)
        db.execute("PRAGMA max_page_count = 60")
        return db

    store = open_sqlite(str(log), connect=small)
    commits = fill(store, "s", [user_step("1"), user_step("2")])
    large = canonical.encode(Erased("too much is left", 1, _secret(1, 200_000)))
    with pytest.raises(StoreError, match="does not fit"):
        store.care.erase("s", {commits[0].hash: TOMB, commits[1].hash: large})
    assert commits == store.read("s")
    assert [] == list(store.fsck())
    store.close()


def test_others_write_while_a_log_is_collected(log: Path) -> None:
    """Appends, branches and resets of another thread go on through many collections, and nothing reached is lost."""
    store, other = open_sqlite(str(log), "normal"), open_sqlite(str(log), "normal")
    store.create_session("s", "s", 1)
    done = threading.Event()

    def collect() -> None:
        while not done.is_set():
            other.care.gc(FOREVER)

    thread = threading.Thread(target=collect)
    thread.start()
    kept: list[Commit] = []
    for number in range(60):
        kept += put(store, "s", user_step(f"{number}", f"text {number}", number))
        if number % 7 == 3:
            store.refs.move("s", MAIN, head_of(kept), head_of(kept[:-2]), MAIN)
            kept = kept[:-2]
        if number % 10 == 5:
            store.refs.create("s", f"b{number}", head_of(kept[:-1]), MAIN)
    done.set()
    thread.join()
    assert kept == store.read("s")
    other.care.gc(FOREVER)
    for branch in store.refs.list("s"):
        assert branch.head == head_of(store.read("s", branch=branch.name))
    assert [] == list(store.fsck())
    other.close()
    store.close()


def test_a_backup_is_the_log(log: Path, tmp_path: Path) -> None:
    """It opens, verifies and reads as the log did; it is as private, and the log is not changed by it."""
    store = open_store(log)
    commits = fill(store, "s", [user_step("1"), response_step("2")])
    store.create_session("t", "t", 1, Origin("s", at=head_of(commits[:1])))
    copy = tmp_path / "copy.db"
    before = os.umask(0o022)
    store.care.backup(str(copy))
    os.umask(before)
    later = put(store, "s", user_step("3"))
    assert 0o600 == stat.S_IMODE(copy.stat().st_mode)
    assert ["copy.db"] == [path.name for path in tmp_path.iterdir() if path.name.startswith("copy")]
    with closing(open_store(copy)) as copied:
        assert (commits, commits[:1]) == (copied.read("s"), copied.read("t"))
        assert [] == list(copied.fsck())
        assert later == put(copied, "s", user_step("3"))
    store.close()


def test_a_backup_overwrites_nothing(log: Path, tmp_path: Path) -> None:
    """A path that exists is refused, be it the log itself; a directory that is not there is named."""
    store = open_store(log)
    commits = fill(store, "s", [user_step("1")])
    other = tmp_path / "other"
    other.write_text("mine")
    for path in (log, other, tmp_path):
        with pytest.raises(StoreError, match="exists already"):
            store.care.backup(str(path))
    with pytest.raises(StoreError, match="cannot be made"):
        store.care.backup(str(tmp_path / "nowhere" / "copy.db"))
    assert ("mine", commits) == (other.read_text(), store.read("s"))
    store.close()


def test_a_backup_that_fails_leaves_no_file(log: Path, tmp_path: Path) -> None:
    """Where the copy does not fit, the error says so, nothing is left of it, and the log goes on."""
    store = open_store(log)
    commits = fill(store, "s", [response_step(f"{n}", _secret(n, 20_000)) for n in range(9)])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"copy\.db"):
            store.care.backup(str(tmp_path / "copy.db"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [] == [path.name for path in tmp_path.iterdir() if path.name.startswith("copy")]
    assert commits + put(store, "s", user_step("more")) == store.read("s")
    store.close()


def test_a_log_in_memory_has_no_file_to_copy(tmp_path: Path) -> None:
    """The error says what to do instead."""
    store = open_store(":memory:")
    with pytest.raises(StoreError, match="in memory") as caught:
        store.care.backup(str(tmp_path / "copy.db"))
    assert "export" in caught.value.next_actions[0]
