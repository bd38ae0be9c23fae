"""Migrations: a log of an older format is brought up, once, whole or not at all."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.stores.life import DIGESTS, SCOPE, recorded
from tests.stores.samples import chain, fill, put, response_step, user_step
from thinkback.errors import FormatVersionError, StoreError
from thinkback.log.protocol import MAIN, Origin, SessionInfo
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head, Step
from thinkback.stores.migrations import NEWEST, Schema, migrate, statements
from thinkback.stores.rows import COLUMNS, to_rows
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import Connect, connect
from thinkback.stores.store import LogStore

NEXT = "9999_next"
UP = """-- A change as a later format would make it; with a semicolon in a comment;
ALTER TABLE commits ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;
CREATE INDEX commits_by_weight ON commits (weight);
UPDATE commits SET weight = length(payload);
"""
CHECK = "SELECT 'commit ' || arrival || ' has no weight' FROM commits WHERE weight < 1;"


@pytest.fixture
def later(tmp_path: Path) -> Schema:
    """The schema of a later thinkback: today's migrations and one more."""
    directory = tmp_path / "schema"
    shutil.copytree(NEWEST.directory, directory)
    (directory / f"{NEXT}.sql").write_text(UP)
    (directory / f"{NEXT}.check.sql").write_text(CHECK)
    return Schema(directory, (*NEWEST.names, NEXT))


def test_an_older_log_is_migrated_and_reads_the_same(log: Path, later: Schema) -> None:
    """A log written under the older format opens under the newer one with every commit, and goes on."""
    store = open_sqlite(str(log))
    commits = fill(store, "s", [user_step("1"), response_step("2")])
    store.close()
    with _opened(log, later) as newer:
        assert commits == newer.read("s")
        assert [] == list(newer.fsck())
        commits += put(newer, "s", user_step("3"))
    with closing(sqlite3.connect(log)) as db:
        assert [*enumerate(later.names, 1)] == db.execute("SELECT version, name FROM migrations").fetchall()
        assert (len(later.names),) == db.execute("PRAGMA user_version").fetchone()
    with _opened(log, later) as newer:
        assert commits == newer.read("s")


def test_a_log_of_format_1_goes_on(log: Path) -> None:
    """A file as 0.1 wrote it keeps ids, names, settings and commits, and gets branches, forks and a family."""
    commits = older(log, [user_step("1"), response_step("2")], 1)
    with _opened(log, NEWEST) as store:
        head = head_of(commits)
        was = SessionInfo("s", "first", 7, 2_000, 5, head, {"reasoning.effort": "high"}, "main", "s")
        empty = SessionInfo("t", "second", 8, 8, 0, Head(), {}, "main", "t")
        assert [was, empty] == store.list_sessions()
        assert commits == store.read("s")
        assert not store.append("s", "2", commits[1:], head_of(commits[:1]))
        store.refs.create("s", "b", head_of(commits[:1]), "main")
        store.create_session("u", "fork", 9, Origin("s", at=head))
        for session in "stu":
            put(store, session, user_step("3"))
        assert commits == store.read("u")[:-1]
        assert [] == list(store.fsck())
    with closing(sqlite3.connect(log)) as db:
        assert [(1, 5)] == db.execute("SELECT version, unswept FROM migrations WHERE unswept > 0").fetchall()


def test_a_log_of_format_3_is_not_recognised_until_it_was_seen_again(log: Path) -> None:
    """Its sessions go on as they were; what is recorded from then on is found."""
    commits = older(log, [user_step("1"), response_step("2")], 3)
    with _opened(log, NEWEST) as store:
        assert [] == store.recognition.lookup(SCOPE, DIGESTS)
        entry = recorded("3", head_of(commits))
        assert store.recognition.record(entry)
        assert [*commits, *entry.commits] == store.read("s")
        found = store.recognition.lookup(SCOPE, DIGESTS)
        assert {("s", MAIN, head_of(entry.commits))} == {(seen.session, seen.branch, seen.head) for seen in found}
        assert [] == list(store.fsck())


def test_the_older_program_refuses_the_migrated_log(log: Path, later: Schema) -> None:
    """After the upgrade, the thinkback from before says that it is too old."""
    _made(log, later)
    with pytest.raises(FormatVersionError, match=f"has format {len(later.names)}"):
        open_sqlite(str(log))


@pytest.mark.parametrize(
    ("up", "check", "error"),
    [
        (UP, "SELECT 'the weight is wrong';", StoreError),
        (UP + "UPDATE nothing SET at = 'all';", CHECK, StoreError),
    ],
)
def test_a_failed_migration_changes_nothing(
    log: Path, later: Schema, up: str, check: str, error: type[Exception]
) -> None:
    """If a statement or the check fails, the log is as it was and still opens under the older format."""
    _made(log, NEWEST)
    (later.directory / f"{NEXT}.sql").write_text(up)
    (later.directory / f"{NEXT}.check.sql").write_text(check)
    with pytest.raises(error):
        open_sqlite(str(log), schema=later)
    with _opened(log, NEWEST) as store:
        assert 1 == len(store.read("s"))
        assert [] == list(store.fsck())


def test_a_new_log_is_whole_or_not_there(log: Path, later: Schema) -> None:
    """Nobody finds it between two formats: where its last migration fails there is nothing, and no older log."""
    (later.directory / f"{NEXT}.check.sql").write_text("SELECT 'the weight is wrong';")
    with pytest.raises(StoreError, match="the weight is wrong"):
        open_sqlite(str(log), schema=later)
    with closing(sqlite3.connect(log)) as db:
        assert [] == db.execute("SELECT name FROM sqlite_schema").fetchall()


def test_a_migration_that_was_edited_is_found(log: Path, later: Schema) -> None:
    """``fsck`` compares the recorded checksum with the file of the migration."""
    _made(log, later)
    (later.directory / f"{NEXT}.sql").write_text(UP + "-- edited")
    with _opened(log, later) as store:
        (problem,) = store.fsck()
    assert "which is not the one of this thinkback" in problem.what


def test_programs_that_open_a_new_log_at_once_make_it_once(log: Path) -> None:
    """Eight threads open the same new file: each gets a working store, and one migration is recorded."""
    stores: list[LogStore] = []
    threads = [threading.Thread(target=lambda: stores.append(open_sqlite(str(log)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, store in enumerate(stores):
        fill(store, f"s{number}", [user_step("1")])
        store.close()
    with _opened(log, NEWEST) as store:
        assert (8, 8) == (len(stores), len(store.list_sessions()))
        assert [] == list(store.fsck())


@pytest.mark.parametrize("turn", range(4))
def test_a_log_that_another_program_makes_between_two_statements_opens(log: Path, turn: int) -> None:
    """However far this program has come in opening a new file, one that another makes meanwhile is taken as it is."""

    class Interrupted(sqlite3.Connection):
        count = 0

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if not self.in_transaction:
                self.count += 1
                if self.count == turn + 4:  # the first three configure the connection
                    open_sqlite(str(log)).close()
            return super().execute(sql, parameters)

    def interrupted(path: str) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Interrupted)

    with closing(open_sqlite(str(log), connect=interrupted)) as store:
        fill(store, "s", [user_step("1")])
        assert [] == list(store.fsck())


def test_every_migration_has_its_two_files() -> None:
    """The shipped directory holds exactly the files that the list names, numbered without a gap."""
    expected = {f"{name}{end}" for name in NEWEST.names for end in (".sql", ".check.sql")}
    assert expected == {path.name for path in NEWEST.directory.iterdir()}
    assert [f"{number:04}" for number in range(1, len(NEWEST.names) + 1)] == [name[:4] for name in NEWEST.names]


def test_a_script_is_split_into_its_statements() -> None:
    """Semicolons in comments, strings and triggers do not end a statement."""
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT ';';\nEND;\n"
    assert [trigger, "-- one; two\nSELECT 1;\n"] == list(statements(trigger + "-- one; two\nSELECT 1;\n-- the end\n"))


def older(log: Path, steps: list[Step], version: int, connect: Connect = connect) -> list[Commit]:
    """A file of an older format with the session ``s``, which holds ``steps``, and the empty session ``t``."""
    sealed = chain(steps)
    with closing(connect(str(log))) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        migrate(db, str(log), Schema(NEWEST.directory, NEWEST.names[:version]))
        settings = '{"reasoning.effort":"high"}'
        more = ", 'main', NULL, ''" if version > 1 else ""
        db.execute(
            f"INSERT INTO sessions VALUES (1, 's', 'first', 1, 7, ?{more}), (2, 't', 'second', 2, 8, '{{}}'{more})",
            (settings,),
        )
        db.execute("INSERT INTO segments VALUES (1, 1, 0, NULL, NULL), (2, 2, 0, NULL, NULL)")
        at = 0
        for step, commits in zip(steps, sealed, strict=True):
            db.execute("INSERT INTO steps VALUES (1, ?, 1, ?, ?)", (step.id, at, len(commits)))
            for row in to_rows(commits):
                db.execute(f"INSERT INTO commits (segment, {COLUMNS}) VALUES (1{', ?' * 11})", (at, *row))
                at += 1
        db.execute("INSERT INTO branches VALUES (1, 'main', 1, ?), (2, 'main', 2, -1)", (at - 1,))
    return [commit for commits in sealed for commit in commits]


def _made(log: Path, schema: Schema) -> None:
    with _opened(log, schema) as store:
        fill(store, "s", [user_step("1")])


class _opened:
    """A store under ``schema``, closed at the end."""

    def __init__(self, log: Path, schema: Schema) -> None:
        self._store = open_sqlite(str(log), schema=schema)

    def __enter__(self) -> LogStore:
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()
