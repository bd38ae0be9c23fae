"""A log of the format before: read as it stands, brought up by the first who writes, whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import tarfile
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.old_logs import sets
from tests.stores.postgres_server import Server
from tests.stores.samples import put, user_step
from thinkback.errors import FormatVersionError, StoreError
from thinkback.log.protocol import Store, Summary
from thinkback.model.commits import Commit
from thinkback.stores import migrations, open_store
from thinkback.stores.postgres import open_postgres
from thinkback.stores.postgres.schema import NEWEST
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import connect

OLD = 4
SETS = sets.names()
COMING = r"is being brought to format \d, which takes about 1 s; earlier versions"


Told = list[tuple[int, int, str]]


class State(NamedTuple):
    """What a reader sees."""

    histories: dict[str, list[Commit]]
    summaries: dict[str, Summary]


class Disk(NamedTuple):
    """What a disk has."""

    free: int


def state(store: Store) -> State:
    """Of the current branches, and of all sessions."""
    histories = {info.id: store.read(info.id, branch=info.branch) for info in store.list_sessions()}
    return State(histories, store.summaries())


@pytest.fixture(params=SETS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log of format 4 that an earlier version wrote."""
    with tarfile.open(sets.HERE / f"{request.param}{sets.ENDING}") as tar:
        tar.extract("library.db", tmp_path, filter="data")
    return tmp_path / "library.db"


def version(log: Path) -> int:
    """The format of a file."""
    with closing(sqlite3.connect(log)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_looking_leaves_the_format_as_it_is(old: Path) -> None:
    """Reading, listing, searching, checking: not a byte of the file's tables changes, and all is there."""
    with closing(open_store(old)) as store:
        found = state(store)
        assert len(found.histories) > 5
        assert all(each.tally.turns and each.tally.tokens and each.tally.title for each in found.summaries.values())
        assert [] == list(store.fsck())
    assert OLD == version(old)


def test_the_first_write_says_so_and_changes_no_commit(old: Path) -> None:
    """What a reader sees is the same before and after; what is listed is counted for good."""
    told: Told = []
    with closing(open_store(old, progress=lambda *each: told.append(each))) as store:
        before = state(store)
        assert [] == told
        id = next(iter(before.histories))
        with pytest.warns(UserWarning, match=COMING):
            store.write_settings(id, {"reasoning.effort": "low"})
        assert [(done, 8, "steps") for done in (*range(9), 8)] == told
        assert before == state(store)
        put(store, id, user_step("more"))
        assert before.summaries == store.summaries()  # the message is not its first, nor its last
        assert [] == list(store.fsck())
    assert len(migrations.NEWEST.names) == version(old)
    with closing(sqlite3.connect(old)) as db:
        assert [(2,)] == db.execute("SELECT DISTINCT counted FROM summaries").fetchall()


@pytest.mark.filterwarnings("ignore:the log:UserWarning")
def test_a_program_that_is_killed_leaves_a_whole_log(tmp_path: Path) -> None:
    """At each statement of the migration: afterwards the log has the old format or the new one, and goes on."""
    with tarfile.open(sets.HERE / f"{SETS[0]}{sets.ENDING}") as tar:
        tar.extract("library.db", tmp_path, filter="data")
    formats = []
    for turn in count():
        log = tmp_path / f"{turn}.db"
        shutil.copy(tmp_path / "library.db", log)
        if not _killed(log, turn):
            break
        formats.append(version(log))
        with closing(open_store(log)) as store:
            info = store.list_sessions()[0]
            before = store.read(info.id)
            assert [] == list(store.fsck())
            assert [*before, *put(store, info.id, user_step("again"))] == store.read(info.id)
            assert [] == list(store.fsck())
    assert len(formats) > 10
    assert sorted(formats) == formats
    assert {OLD, len(migrations.NEWEST.names)} == {*formats}


def _killed(log: Path, turn: int) -> bool:
    """Whether a process that writes to the log was killed before its statement number ``turn``."""

    class Dying(sqlite3.Connection):
        left = turn

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if self.in_transaction or sql.startswith("BEGIN"):
                self.left -= 1
                if self.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(sql, parameters)

    child = os.fork()
    if not child:
        try:
            store = open_sqlite(
                str(log),
                connect=lambda path: sqlite3.connect(
                    path, isolation_level=None, check_same_thread=False, factory=Dying
                ),
            )
            store.write_settings(store.list_sessions()[0].id, {})
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_a_disk_without_room_leaves_the_log_as_it_is(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how much is wanted; reading goes on."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(free=100_000))
    with closing(open_store(old)) as store:
        before = state(store)
        for write in (
            lambda: store.write_settings(next(iter(before.histories)), {}),
            lambda: put(store, next(iter(before.histories)), user_step("1")),
        ):
            with pytest.raises(StoreError, match="of disk"):
                write()
        assert before == state(store)
    assert OLD == version(old)


@pytest.mark.filterwarnings("ignore:the log:UserWarning")
def test_what_progress_raises_leaves_the_log_as_it_is(old: Path) -> None:
    """The exception comes out, and the next write tries again."""
    told: Told = []

    def stop(done: int, of: int, unit: str) -> None:
        told.append((done, of, unit))
        if 3 == len(told):
            raise ValueError("enough")

    with closing(open_store(old, progress=stop)) as store:
        id = store.list_sessions()[0].id
        with pytest.raises(ValueError, match="enough"):
            store.write_settings(id, {})
        assert [(2, 8, "steps"), (2, 2, "steps")] == told[2:]
        assert OLD == version(old)
        store.write_settings(id, {})
        assert (8, 8, "steps") == told[-1]
    assert len(migrations.NEWEST.names) == version(old)


@pytest.mark.filterwarnings("ignore:the log:UserWarning")
def test_a_program_of_the_older_version_that_runs_is_refused(old: Path) -> None:
    """Its append fails with the reason; nothing of it is stored. One that opens the log is refused by its format."""
    with closing(open_store(old)) as store, closing(connect(str(old))) as other:
        other.execute("SELECT count(*) FROM commits").fetchone()
        store.write_settings(store.list_sessions()[0].id, {})
        with pytest.raises(sqlite3.IntegrityError, match="a newer thinkback has brought this log to format 5"):
            other.execute("INSERT INTO steps (session, id, segment, position, commits) VALUES (1, 'x', 1, 0, 0)")
        assert [] == list(store.fsck())
    older = migrations.NEWEST._replace(names=migrations.NEWEST.names[:OLD])
    with pytest.raises(FormatVersionError, match="has format 5"):
        open_sqlite(str(old), schema=older)


@pytest.mark.filterwarnings("ignore:the log:UserWarning")
def test_programs_that_write_at_once_bring_it_up_once(old: Path) -> None:
    """Each that opened it before goes on."""
    first, second = open_store(old), open_store(old)
    id = first.list_sessions()[0].id
    put(first, id, user_step("1"))
    put(second, id, user_step("2"))
    assert [] == list(first.fsck()) == list(second.fsck())
    first.close()
    second.close()


@pytest.fixture(params=SETS)
def old_database(request: pytest.FixtureRequest, postgres: Server, tmp_path: Path) -> str:
    """The address of a log of schema 2 that an earlier version wrote."""
    with tarfile.open(sets.HERE / f"{request.param}{sets.ENDING}") as tar:
        tar.extract("postgres.sql", tmp_path, filter="data")
    name = f"renewed {secrets.token_hex(4)}"
    url = postgres.make_database(name)
    with postgres.connect(name) as db:
        db.execute((tmp_path / "postgres.sql").read_text().encode())
    return url


def test_a_database_is_read_as_it_is_until_somebody_writes(old_database: str) -> None:
    """As with a file; the sessions of other tenants are as they were."""
    told: Told = []
    opened = open_store(old_database, tenant=sets.LIBRARY, progress=lambda *each: told.append(each))
    with closing(opened) as store, psycopg.connect(old_database) as db:
        db.autocommit = True
        before = state(store)
        assert len(before.histories) > 5
        assert [] == list(store.fsck())
        assert (2,) == db.execute("SELECT max(version) FROM thinkback.migrations").fetchone()
        with pytest.warns(UserWarning, match=COMING):
            put(store, next(iter(before.histories)), user_step("more"))
        total = told[0][1]
        assert total > 10
        assert [(done, total, "steps") for done in (*range(total + 1), total)] == told
        assert (5,) == db.execute("SELECT max(version) FROM thinkback.migrations").fetchone()
        assert before.summaries == store.summaries()
        assert [] == list(store.fsck())
        with pytest.raises(psycopg.errors.NotNullViolation, match="written_by_format_5_or_later"):
            db.execute("INSERT INTO thinkback.steps VALUES ('library', 1, 1, 1, 0, 0, DEFAULT, 'x')")
    with closing(open_store(old_database)) as other:
        assert [] == list(other.fsck())
    older = NEWEST._replace(names=NEWEST.names[:2])
    with pytest.raises(FormatVersionError, match="has format 5"):
        open_postgres(old_database, schema=older)
