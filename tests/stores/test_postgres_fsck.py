"""``fsck`` of a PostgreSQL log: finds damage, names its place, and never falls over it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.stores.samples import fill, response_step, user_step
from thinkback.errors import CorruptLogError
from thinkback.log.protocol import MAIN, Origin
from thinkback.log.seal import head_of
from thinkback.stores.postgres import open_postgres
from thinkback.stores.store import LogStore

_SIGHT = (
    "INSERT INTO thinkback.sightings (tenant, time, family, segment, position, response, scope, digest) "
    "SELECT tenant, 1, family, 1,"
)
DAMAGE = {
    "a payload": (
        "UPDATE thinkback.commits SET payload = '{}', codec = 0 WHERE position = 2",
        "payload has the digest",
    ),
    "a codec": ("UPDATE thinkback.commits SET codec = 7 WHERE position = 2", "does not unpack"),
    "compressed bytes": (r"UPDATE thinkback.commits SET payload = '\x00' WHERE codec = 4", "does not unpack"),
    "a hash": (r"UPDATE thinkback.commits SET hash = '\x00' WHERE position = 2", "its fields hash to"),
    "a parent": (r"UPDATE thinkback.commits SET parents = '\x00' WHERE position = 2", "its parents are"),
    "a kind": ("UPDATE thinkback.commits SET kind = 'user' WHERE position = 2", "its fields hash to"),
    "a time": ("UPDATE thinkback.commits SET time = time + 1 WHERE position = 2", "its fields hash to"),
    "a block index": ("UPDATE thinkback.commits SET block = 5 WHERE position = 3", "stored are the indexes [0, 5]"),
    "a missing commit": ("DELETE FROM thinkback.commits WHERE position = 2", "position 2 is missing"),
    "a missing end": ("DELETE FROM thinkback.commits WHERE position = 5", "where no commit is"),
    "a branch beyond the end": ("UPDATE thinkback.branches SET position = 99", "where no commit is"),
    "a branch of no segment": ("UPDATE thinkback.branches SET segment = 99", "where no commit is"),
    "a head that is another": (r"UPDATE thinkback.branches SET hash = '\x00'", "not what is there"),
    "a depth that is another": ("UPDATE thinkback.branches SET seq = 7", "not what is there"),
    "segments that are gone": ("DELETE FROM thinkback.segments", "is not a segment of any session"),
    "a wrong base": ("UPDATE thinkback.segments SET base = 3", "does not follow its parent"),
    "a parent that is not there": (
        "UPDATE thinkback.segments SET parent_segment = 9, parent_position = 0 WHERE segment = 1",
        "its parent",
    ),
    "a lost step": ("DELETE FROM thinkback.steps WHERE id = '1'", "begins at 1, the one before it ends at 0"),
    "a step too long": ("UPDATE thinkback.steps SET commits = 9 WHERE id = '3'", "its steps at 14"),
    "sessions that are gone": ("DELETE FROM thinkback.sessions", "of a session that does not exist"),
    "a current branch that is not there": ("UPDATE thinkback.sessions SET branch = 'x'", "its branch x does not exist"),
    "a lost name": ("DELETE FROM thinkback.keys WHERE is_name", "is not found by its name"),
    "a lost id": ("DELETE FROM thinkback.keys WHERE NOT is_name", "is not found by its id"),
    "a name of nothing": ("INSERT INTO thinkback.keys VALUES ('default', 'x', true, 1, 1)", "leads to no session"),
    "a family that is not counted": ("DELETE FROM thinkback.families", "is not counted"),
    "a count too low": ("UPDATE thinkback.families SET segments = 0", "counts 2 sessions and 0 segments"),
    "a sighting of nothing": (f"{_SIGHT} 99, 98, 'scope', 'digest' FROM thinkback.families", "leads to no response"),
    "a sighting of a question": (f"{_SIGHT} 5, 0, 'scope', 'digest' FROM thinkback.families", "leads to no response"),
    "a sighting of no family": (
        f"{_SIGHT} 5, 1, 'scope', 'digest' FROM thinkback.families".replace("family, 1", "family + 1, 1"),
        "leads to no response",
    ),
    "an edited migration": ("UPDATE thinkback.migrations SET checksum = 'x'", "not the one of this thinkback"),
    "a lost migration": ("DELETE FROM thinkback.migrations", "migration 1 is not recorded"),
    "a lost index": ("DROP INDEX thinkback.commits_by_hash", "index commits_by_hash is missing"),
    "a lost table": ("ALTER TABLE thinkback.steps RENAME TO lost", "table steps is missing"),
    "a lost column": ("ALTER TABLE thinkback.branches RENAME seq TO lost", "cannot be read to its end"),
}


@pytest.fixture
def store(database: str) -> Iterator[LogStore]:
    """A log of one session with three steps and six commits, and a fork of it with one."""
    with closing(open_postgres(database)) as opened:
        trunk = fill(opened, "s", [user_step("1"), response_step("2"), user_step("3")])
        opened.create_session("t", "t", 1, Origin("s", MAIN, head_of(trunk[:5])))
        fill(opened, "t", [user_step("4", "elsewhere")])
        yield opened


def _change(database: str, sql: str) -> None:
    with psycopg.connect(database, autocommit=True) as db:
        db.execute(sql)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_named(store: LogStore, database: str, kind: str) -> None:
    """Each kind of damage gives at least one problem that names it."""
    sql, what = DAMAGE[kind]
    assert [] == list(store.fsck())
    _change(database, sql)
    problems = list(store.fsck())
    assert [problem for problem in problems if what in problem.what], problems


def test_a_payload_that_no_version_knows_is_named(store: LogStore, database: str) -> None:
    """A payload that verifies but is not understood is a problem of its commit only."""
    payload = '{"type":"from the future"}'
    digest = hashlib.sha256(payload.encode()).hexdigest()
    _change(
        database,
        f"UPDATE thinkback.commits SET payload = '{payload}', digest = '\\x{digest}', codec = 0 WHERE position = 5",
    )
    found = [problem.what for problem in store.fsck()]
    assert 2 == len(found)
    assert found[0].startswith("its fields hash to")
    assert found[1].startswith("its payload is not understood")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM thinkback.commits WHERE position = 1",
        "UPDATE thinkback.segments SET segment = 9 WHERE segment = 1",
        r"UPDATE thinkback.commits SET payload = '\x00' WHERE position = 1",
        "UPDATE thinkback.branches SET segment = 9",
    ],
)
def test_what_is_missing_or_damaged_is_not_read_as_less(store: LogStore, database: str, damage: str) -> None:
    """A history with a hole is no shorter history."""
    _change(database, damage)
    for session in "st":
        with pytest.raises(CorruptLogError) as caught:
            store.read(session)
        assert "fsck" in caught.value.next_actions[0]


def test_nothing_is_appended_to_a_branch_that_leads_nowhere(store: LogStore, database: str) -> None:
    """A branch that points at no segment takes nothing, and says so."""
    commits = store.read("s")
    _change(database, "UPDATE thinkback.branches SET segment = 9")
    with closing(open_postgres(database)) as other, pytest.raises(CorruptLogError, match="does not exist"):
        fill(other, "s", [user_step("5")])
    _change(database, "UPDATE thinkback.branches SET segment = session")
    assert commits == store.read("s")
