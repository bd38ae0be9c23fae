"""``fsck`` of a SQLite log: finds damage, names its place, and never falls over it."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.samples import asked_step, fill, response_step, user_step
from thinkback.errors import ThinkbackError
from thinkback.model.commits import Commit
from thinkback.stores import open_store

DAMAGE = {
    "a payload": ("UPDATE commits SET payload = x'7b7d', codec = 0 WHERE position = 2", "its payload has the digest"),
    "a tombstone": (
        "UPDATE commits SET codec = 2, payload = CAST("
        """'{"type":"erased","reason":"asked","time":1,"remainder":"{"}' AS BLOB) WHERE position = 2""",
        "its payload is not understood",
    ),
    "a codec": ("UPDATE commits SET codec = 7 WHERE position = 2", "does not unpack"),
    "compressed bytes": ("UPDATE commits SET payload = x'00' WHERE codec = 4", "does not unpack"),
    "a hash": ("UPDATE commits SET hash = zeroblob(32) WHERE position = 2", "its fields hash to"),
    "a short hash": ("UPDATE commits SET hash = x'00' WHERE position = 2", "its fields hash to"),
    "a digest": ("UPDATE commits SET digest = zeroblob(32) WHERE position = 2", "its payload has the digest"),
    "a parent": ("UPDATE commits SET parents = zeroblob(32) WHERE position = 2", "its parents are"),
    "a lost parent": ("UPDATE commits SET parents = x'' WHERE position = 2", "its parents are"),
    "a kind": ("UPDATE commits SET kind = 'user' WHERE position = 2", "its fields hash to"),
    "text that is not UTF-8": ("UPDATE commits SET kind = CAST(x'ff' AS TEXT) WHERE position = 2", "not valid Unicode"),
    "a time": ("UPDATE commits SET time = time + 1 WHERE position = 2", "its fields hash to"),
    "a block index": ("UPDATE commits SET block = 5 WHERE position = 3", "stored are the indexes [0, 5]"),
    "a response id": ("UPDATE commits SET response = 'x' WHERE position = 2", "which does not come before it"),
    "a missing commit": ("DELETE FROM commits WHERE position = 2", "position 2 is missing"),
    "a missing end": ("DELETE FROM commits WHERE position = 5", "where no commit is"),
    "a branch beyond the end": ("UPDATE branches SET position = 99", "where no commit is"),
    "a branch of no segment": ("UPDATE branches SET segment = 99", "where no commit is"),
    "a current branch that is not there": ("UPDATE sessions SET branch = 'gone'", "which is not there"),
    "a branch in another family": (
        "INSERT INTO sessions VALUES (9, 't', 't', 9, 1, '{}', 'main', NULL, ''); "
        "INSERT INTO branches VALUES (9, 'main', 1, 0)",
        "stands on another family's: segment 1",
    ),
    "a parent session in another family": (
        "INSERT INTO sessions VALUES (9, 't', 't', 9, 1, '{}', 'main', 1, '')",
        "stands on another family's: its parent",
    ),
    "a family that is not its root's": (
        "INSERT INTO sessions VALUES (8, 'u', 'u', 1, 1, '{}', 'main', 1, ''); "
        "INSERT INTO sessions VALUES (9, 't', 't', 8, 1, '{}', 'main', 1, '')",
        "stands on another family's: the root",
    ),
    "a segment on another family's": (
        "INSERT INTO sessions VALUES (9, 't', 't', 9, 1, '{}', 'main', NULL, ''); "
        "INSERT INTO segments VALUES (9, 9, 3, 1, 2)",
        "stands on another family's: its parent",
    ),
    "a segment that is gone": ("DELETE FROM segments", "not a segment of any session"),
    "a wrong base": ("UPDATE segments SET base = 3", "begins at seq 3"),
    "a parent segment that is not there": ("UPDATE segments SET parent_segment = 9, parent_position = 0", "its parent"),
    "a lost step": ("DELETE FROM steps WHERE id = '1'", "begins at 1, the one before it ends at 0"),
    "a step too long": ("UPDATE steps SET commits = 9 WHERE id = '3'", "its steps at 14"),
    "a session that is gone": ("DELETE FROM sessions", "names a row that does not exist"),
    "a sighting of nothing": ("INSERT INTO sightings VALUES (x'00', x'01', 99, 98)", "leads to no response"),
    "a sighting of a question": ("INSERT INTO sightings VALUES (x'00', x'01', 5, 1)", "leads to no response"),
    "a sighting behind its step": ("INSERT INTO sightings VALUES (x'00', x'01', 1, 2)", "leads to no response"),
    "a title of nobody's": ("UPDATE summaries SET title = 'x'", "its title is not of its messages"),
    "a wrong sum": ("UPDATE summaries SET turns = 3", "its turns are 3, of its commits 0"),
    "a wrong time": ("UPDATE summaries SET last = 3", "its last are 3, of its commits 2000"),
    "a lost basis": ("DELETE FROM bases", "is used and not there"),
    "a basis that nobody uses": ("UPDATE bases SET uses = 2", "says that 2 requests use it, there are 1"),
    "another basis": ("UPDATE bases SET codec = 0, text = x'227822'", "has the digest"),
    "a lost summary": ("DELETE FROM summaries", "session s has no summary"),
    "a lost trigger": ("DROP TRIGGER older_programs", "trigger older_programs is missing"),
    "an edited migration": ("UPDATE migrations SET checksum = 'x'", "not the one of this thinkback"),
    "a lost migration": ("DELETE FROM migrations", "migration 1 is not recorded"),
    "a migration too many": ("INSERT INTO migrations VALUES (9, 'later', 'x', 0)", "recorded but not known"),
    "a lost index": ("DROP INDEX commits_by_arrival", "index commits_by_arrival is missing"),
    "a lost index of format 2": ("DROP INDEX merges_by_segment", "index merges_by_segment is missing"),
    "a lost index of format 4": ("DROP INDEX sightings_by_head", "index sightings_by_head is missing"),
    "a lost column": ("ALTER TABLE migrations DROP COLUMN unswept", "column migrations.unswept is missing"),
    "a lost table": ("DROP TABLE steps", "table steps is missing"),
    "a wrong user_version": ("PRAGMA user_version = 7", "user_version is 7"),
}


@pytest.fixture
def commits(log: Path) -> list[Commit]:
    """A log of one session with three steps and six commits, closed."""
    store = open_store(log)
    made = fill(store, "s", [user_step("1"), response_step("2"), user_step("3")])
    store.close()
    return made


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_named(log: Path, commits: list[Commit], kind: str) -> None:
    """Each kind of damage gives at least one problem that names it."""
    sql, what = DAMAGE[kind]
    store = open_store(log)
    fill(store, "r", [asked_step("1", "hm", "So.", 1)])
    assert [] == list(store.fsck())
    with closing(sqlite3.connect(log, isolation_level=None)) as db:
        db.executescript(sql)
    problems = list(store.fsck())
    store.close()
    assert [problem for problem in problems if what in problem.what], problems


@pytest.mark.parametrize("table", ["bases", "branches", "commits", "leases", "search_words", "sightings", "summaries"])
def test_a_table_that_is_not_there_is_named(log: Path, commits: list[Commit], table: str) -> None:
    """So is a log of a state between two formats, which has the number of a format and not its tables."""
    store = open_store(log)
    fill(store, "r", [asked_step("1", "hm", "So.", 1)])
    with closing(sqlite3.connect(log, isolation_level=None)) as db:
        db.execute("UPDATE migrations SET checksum = 'x' WHERE version = 5")
        db.execute(f"DROP TABLE {table}")
    problems = [problem.what for problem in store.fsck(lambda done, total, unit: None)]
    store.close()
    assert [what for what in problems if what.startswith("migration 5 is recorded as 0005_sessions x")]
    assert [what for what in problems if table in what], problems


def test_a_title_that_was_counted_earlier_is_no_damage(log: Path) -> None:
    """What a program wrote before the words of a person was one."""
    store = open_store(log)
    fill(store, "s", [user_step("1", "<session_context>a</session_context>\nWhy?")])
    with closing(sqlite3.connect(log, isolation_level=None)) as db:
        db.execute("UPDATE summaries SET title = '<session_context>a</session_context>'")
    assert [] == list(store.fsck())
    store.close()


def test_a_payload_that_no_version_knows_is_named(log: Path, commits: list[Commit]) -> None:
    """A payload that verifies but is not understood is a problem of its commit only."""
    payload = b'{"type":"from the future"}'
    digest = hashlib.sha256(payload).digest()
    store = open_store(log)
    with closing(sqlite3.connect(log, isolation_level=None)) as db:
        db.execute("UPDATE commits SET payload = ?, digest = ?, codec = 0 WHERE position = 5", (payload, digest))
    found = [problem.what for problem in store.fsck()]
    store.close()
    assert 2 == len(found)
    assert found[0].startswith("its fields hash to")
    assert found[1].startswith("its payload is not understood")


def test_fsck_may_be_left_early(log: Path, commits: list[Commit]) -> None:
    """Whoever reads only the first problem leaves a store that works and closes."""
    store = open_store(log)
    with closing(sqlite3.connect(log, isolation_level=None)) as db:
        db.execute("UPDATE commits SET digest = zeroblob(32)")
    problems = store.fsck()
    next(problems)
    del problems
    assert commits[0].hash == store.read("s")[0].hash
    store.close()


@pytest.mark.parametrize("seed", range(60))
def test_flipped_bits_are_found_or_harmless(log: Path, commits: list[Commit], seed: int) -> None:
    """After any bit of the file flips: opening says so, or fsck finds it, or what is read is what was written."""
    chance = random.Random(seed)
    data = bytearray(log.read_bytes())
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8)
    log.write_bytes(data)
    try:
        store = open_store(log)
    except ThinkbackError:
        return
    problems = list(store.fsck())
    if not problems:
        assert commits == next(_histories(log)), f"seed {seed}, byte {at}"
    store.close()


def _histories(log: Path) -> Iterator[list[Commit]]:
    store = open_store(log)
    try:
        for info in store.list_sessions():
            yield store.read(info.id)
    finally:
        store.close()
