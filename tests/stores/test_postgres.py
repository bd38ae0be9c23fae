"""A log on a server: addresses, connections that end, what the server refuses, tenants, formats."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors

from tests.stores.life import SCOPE, recorded
from tests.stores.postgres_server import PASSWORD, Server
from tests.stores.samples import asked_step, fill, put, put_on, response_step, user_step
from thinkback.drive.clock import now
from thinkback.errors import CorruptLogError, FormatVersionError, HeadMovedError, NotFoundError, StoreError
from thinkback.log.leases import Owner
from thinkback.log.protocol import MAIN, Origin, Query
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Head
from thinkback.stores import open_store
from thinkback.stores.care import STEPS_KNOWN
from thinkback.stores.migrations import Schema
from thinkback.stores.postgres import connections, open_postgres
from thinkback.stores.postgres import text as columns
from thinkback.stores.postgres.connections import Pool
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.rows import PostgresRows
from thinkback.stores.postgres.schema import NEWEST
from thinkback.stores.rows import from_rows
from thinkback.stores.store import LogStore

EMPTY = Head()
SECRET = "hid" + "den"


@pytest.fixture
def store(database: str) -> Iterator[LogStore]:
    """A log in a database of its own."""
    with closing(open_postgres(database)) as opened:
        yield opened


@contextmanager
def _admin(database: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def _change(database: str, *statements: str) -> None:
    with _admin(database) as db:
        for statement in statements:
            db.execute(statement)


def _wait_for(database: str, event: str, thread: _Thread) -> int:
    """The process id of the server's side of a store's connection, once it waits for something; 0 where ``thread``
    ended before it did.
    """
    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'thinkback' AND wait_event_type || wait_event ~ %s"
    with _admin(database) as db:
        while thread.is_alive():
            row = db.execute(sql, (event,)).fetchone()
            if row is not None:
                return int(row[0])
    return 0


class _Thread(threading.Thread):
    """Runs an append and keeps what became of it."""

    def __init__(self, store: LogStore, commits: list[Commit], head: Head = EMPTY, step: str = "step") -> None:
        super().__init__()
        self._append = (store, commits, head, step)
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        store, commits, head, step = self._append
        try:
            store.append("s", step, commits, head)
        except BaseException as error:
            self.failure = error


# Addresses


@pytest.mark.parametrize(
    ("database", "user", "password", "what"),
    [
        ("postgres", "guarded", "wrong/@", "does not let this user in"),
        ("postgres", "stranger", PASSWORD, "does not let this user in"),
        ("no such", "guarded", PASSWORD, "database that does not exist"),
    ],
)
def test_an_address_that_is_refused_is_named(
    postgres: Server, caplog: pytest.LogCaptureFixture, database: str, user: str, password: str, what: str
) -> None:
    """Who is not let in hears why; the password is in no text of it."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError, match=what) as caught:
        open_store(postgres.url(database, user, password))
    error = caught.value
    shown = f"{error}{error!r}{error.details}{''.join(traceback.format_exception(error))}{caplog.text}"
    assert error.next_actions
    for secret in (password, password.replace("/", "%2F"), password.split("/")[0]):
        assert secret not in shown


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Nobody at the address."""
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        open_store(f"postgresql://me:{SECRET}@/log?host={tmp_path}")
    assert "check the address" in caught.value.next_actions[0]
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "address", ["//u:top/secret@host/db", "//u:top@secret@host/db", "//u:top%secret@host/db", "//host/db?secret=top"]
)
def test_an_address_that_is_none_is_not_repeated(address: str) -> None:
    """A password that is not quoted as in a URL is taken for something else: no part of it is shown."""
    with pytest.raises(StoreError, match="is not one of PostgreSQL") as caught:
        open_store(f"postgresql:{address}")
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + str(caught.value.details)
    assert not [part for part in ("top", "secret") if part in shown]
    assert "%40" in str(caught.value)


def test_a_password_is_shown_nowhere(postgres: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Of a log that is open: not in its representation, and not in what it raises later."""
    caplog.set_level(logging.DEBUG)
    store = open_postgres(postgres.url(user="guarded", password=PASSWORD), tenant="guarded")
    assert isinstance(store.database, Log)
    shown = [repr(store), str(vars(store)), str(vars(store.database)), str(vars(store.database.pool))]
    store.close()
    with pytest.raises(StoreError, match="was closed") as caught:
        store.list_sessions()
    shown += traceback.format_exception(caught.value)
    assert "postgresql://guarded@" in str(caught.value)
    for secret in (PASSWORD, "s3cr3t"):
        assert secret not in "".join(shown) + caplog.text


def test_without_psycopg_an_error_says_what_to_install() -> None:
    """The extra is named; nothing else of thinkback needs psycopg."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from thinkback.errors import StoreError\nfrom thinkback.stores import open_store\n"
        "open_store(':memory:').close()\n"
        "try: open_store('postgresql://host/db')\n"
        "except StoreError as error: print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment, check=True)
    assert "'.[postgres]'" in done.stdout


def test_a_database_that_cannot_hold_any_text_is_refused(postgres: Server) -> None:
    """Only UTF-8 holds what models say."""
    with postgres.connect() as db:
        db.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="encoding is LATIN1"):
        open_store(postgres.url("latin"))


# Connections


def test_a_connection_lost_in_an_append_is_named(store: LogStore, database: str) -> None:
    """Before it was stored: the error says to append again, and that stores the step."""
    store.create_session("s", "s", 1)
    commits = seal(response_step("step"), EMPTY)
    with _admin(database) as db, _admin(database) as holder:
        holder.execute("BEGIN")
        holder.execute("LOCK TABLE thinkback.steps IN EXCLUSIVE MODE")
        thread = _Thread(store, commits)
        db.execute("SELECT pg_terminate_backend(%s)", (_wait_for(database, "^Lock", thread),))
        thread.join()
    assert isinstance(thread.failure, StoreError)
    assert "lost its connection" in str(thread.failure)
    assert "append the same step again" in thread.failure.next_actions[0]
    assert store.append("s", "step", commits, EMPTY)
    assert commits == store.read("s")
    assert [] == list(store.fsck())


def test_an_append_whose_answer_is_lost_may_be_repeated(store: LogStore, database: str) -> None:
    """After it was stored, before the server said so: the step is there once."""
    store.create_session("s", "s", 1)
    stored: list[Commit] = []
    with _admin(database) as db:
        try:
            # Commits now wait, done but unanswered, for a copy of the server that does not come. The processes of the
            # server learn of it one after the other: what is appended before is just stored.
            db.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            db.execute("SELECT pg_reload_conf()")
            while True:
                head, step = head_of(stored), f"step {len(stored)}"
                commits = seal(response_step(step), head)
                thread = _Thread(store, commits, head, step)
                stored += commits
                waits = _wait_for(database, "SyncRep", thread)
                if waits:
                    break
            db.execute("SELECT pg_terminate_backend(%s)", (waits,))
            thread.join()
        finally:
            db.execute("ALTER SYSTEM RESET synchronous_standby_names")
            db.execute("SELECT pg_reload_conf()")
    assert isinstance(thread.failure, StoreError)
    assert not store.append("s", step, commits, head)
    assert stored == store.read("s")


def test_connections_that_ended_while_idle_are_not_used(store: LogStore, database: str) -> None:
    """After the server ended them, the next call makes a new one and nobody notices."""
    commits = fill(store, "s", [response_step("1")])
    sql = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'thinkback'"
    with _admin(database) as db:
        assert (True,) in db.execute(sql).fetchall()
    assert commits == store.read("s")
    commits += put(store, "s", user_step("2"))
    assert commits == store.read("s")


def test_no_more_connections_than_configured(database: str) -> None:
    """Eight threads share two."""
    store = open_postgres(database, connections=2)
    seen: list[int] = []
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'thinkback'"

    def work(worker: int) -> None:
        with _admin(database) as db:
            for n in range(5):
                fill(store, f"{worker}", [user_step(f"{n}")])
                seen.extend(row[0] for row in db.execute(sql))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert 40 == len(seen)
    assert max(seen) <= 2


def test_a_caller_that_gets_no_connection_is_told(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only connection is reading problems: after a while the error says so, instead of waiting for ever."""
    store = open_postgres(database, connections=1)
    fill(store, "s", [user_step("1")])
    _change(database, "UPDATE thinkback.commits SET time = 7")
    problems = store.fsck()
    assert isinstance(problems, Generator)
    next(problems)
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0.01)
    with pytest.raises(StoreError, match="all 1 connections"):
        store.read("s")
    problems.close()
    assert 1 == len(store.read("s"))
    store.close()


def test_what_the_server_asks_to_repeat_is_repeated(database: str) -> None:
    """Deadlocks and serialization failures are not the caller's business, unless they do not end."""
    pool = Pool(database, "full", 1)
    left = ["serialization_failure", "deadlock_detected"]

    def work(db: connections.Connection, for_ever: bool = False) -> str:
        if left or for_ever:
            with connections.transaction(db):
                db.execute(f"DO $$ BEGIN RAISE {left.pop() if left else 'deadlock_detected'}; END $$")
        return "done"

    assert "done" == pool.run(work)
    with pytest.raises(StoreError, match="too many at once"):
        pool.run(lambda db: work(db, for_ever=True))
    assert "done" == pool.run(work)
    pool.close()


def test_a_forked_process_is_told_to_open_its_own(database: str) -> None:
    """Two processes on one connection would read each other's answers."""
    code = (
        "import os, sys\nfrom thinkback.errors import StoreError\nfrom thinkback.stores import open_store\n"
        "store = open_store(sys.argv[1])\nstore.list_sessions()\n"
        "child = os.fork()\n"
        "try: store.list_sessions()\n"
        "except StoreError as error: os._exit('forked' in str(error))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), store.list_sessions())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, database]
    assert b"1 []\n" == subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True).stdout


@pytest.mark.parametrize(("default", "durability", "expected"), [("off", "full", "on"), ("on", "normal", "off")])
def test_durability_is_the_servers_synchronous_commit(
    database: str, default: str, durability: Any, expected: str
) -> None:
    """Whatever the database's own setting is."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    _change(database, f'ALTER DATABASE "{name}" SET synchronous_commit = {default}')
    pool = Pool(database, durability, 1)
    assert (expected,) == pool.run(lambda db: db.execute("SHOW synchronous_commit").fetchone())
    pool.close()


# What the server refuses


@pytest.mark.parametrize(
    ("code", "cls", "what"),
    [
        ("53100", StoreError, "does not fit on the server's disk"),
        ("53200", StoreError, "ran out of memory"),
        ("54000", StoreError, "payload that large"),
        ("57014", StoreError, "too slow"),
        ("42501", StoreError, "does not give this user the right"),
        ("XX001", CorruptLogError, "is damaged"),
        ("99999", StoreError, "could not be used"),
    ],
)
def test_what_the_server_refuses_is_named(
    store: LogStore, database: str, code: str, cls: type[StoreError], what: str
) -> None:
    """The step is not stored, what was there stays, and the same append succeeds afterwards."""
    commits = fill(store, "s", [response_step("1")])
    _change(
        database,
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON thinkback.commits EXECUTE FUNCTION refuse()",
    )
    with pytest.raises(StoreError, match=what) as caught:
        put(store, "s", user_step("2"))
    assert (cls, code) == (type(caught.value), caught.value.details["code"])
    assert caught.value.next_actions
    _change(database, "DROP TRIGGER refuse ON thinkback.commits")
    assert commits == store.read("s")
    commits += put(store, "s", user_step("2"))
    assert commits == store.read("s")


def test_a_locked_table_is_named(store: LogStore, database: str) -> None:
    """Whoever waits too long hears that; the address may say how long that is."""
    fill(store, "s", [user_step("1")])
    with closing(open_postgres(f"{database}&options=-c%20lock_timeout%3D20")) as impatient, _admin(database) as holder:
        holder.execute("BEGIN")
        holder.execute("LOCK TABLE thinkback.commits IN EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="is locked by another process"):
            put(impatient, "s", user_step("2"))
        holder.execute("ROLLBACK")
        put(impatient, "s", user_step("2"))
    assert 2 == len(store.read("s"))


def test_a_log_that_may_only_be_read(store: LogStore, database: str) -> None:
    """On a standby: reading goes on, an append says what is the matter."""
    commits = fill(store, "s", [user_step("1")])
    address = f"{database}&options=-c%20default_transaction_read_only%3Don"
    with closing(open_postgres(address)) as reader:
        assert commits == reader.read("s")
        with pytest.raises(StoreError, match="may only be read"):
            put(reader, "s", user_step("2"))


def test_a_user_without_rights_is_told(store: LogStore, database: str, postgres: Server) -> None:
    """A role that nothing was granted to."""
    _change(database, "DROP ROLE IF EXISTS bare", "CREATE ROLE bare LOGIN")
    with pytest.raises(StoreError, match="does not give this user the right"):
        open_postgres(database.replace("keeper@", "bare@"))


def test_who_was_given_rights_may_do_all_but_make_the_tables(store: LogStore, database: str) -> None:
    """What docs/scale.md says to grant is enough."""
    _change(
        database,
        "DROP ROLE IF EXISTS colleague",
        "CREATE ROLE colleague LOGIN",
        "GRANT USAGE ON SCHEMA thinkback TO colleague",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA thinkback TO colleague",
    )
    with closing(open_postgres(database.replace("keeper@", "colleague@"))) as theirs:
        commits = fill(theirs, "s", [user_step("1"), response_step("2")])
        assert 5 == theirs.search.fill()
        theirs.refs.move("s", MAIN, head_of(commits), EMPTY)
        assert 5 == theirs.care.gc(10**9).commits
        assert [] == list(theirs.fsck())
        assert 0 == theirs.care.delete_session("s")
    _change(database, "DROP OWNED BY colleague", "DROP ROLE colleague")


def test_a_server_that_takes_no_long_statements_gets_short_ones(store: LogStore, database: str) -> None:
    """As Citus refuses statements that write several tables, so does a table with a conditional rule."""
    commits = fill(store, "s", [user_step("1")])
    _change(database, "CREATE RULE refuse AS ON INSERT TO thinkback.steps WHERE false DO INSTEAD NOTHING")
    with _admin(database) as db, pytest.raises(errors.FeatureNotSupported):
        db.execute(
            "WITH step AS (INSERT INTO thinkback.steps VALUES ('t', 1, 1, 1, 1, 1, now(), 'x') RETURNING 1) TABLE step"
        )
    for n in range(2, 5):
        commits += put(store, "s", response_step(f"{n}"))
    assert not store.append("s", "4", commits[-4:], head_of(commits[:-4]))
    late = seal(user_step("late"), EMPTY)
    with pytest.raises(HeadMovedError):
        store.append("s", "late", late, EMPTY)
    assert store.append("s", "empty", [], head_of(commits))
    seen = recorded("seen", head_of(commits))
    new = recorded("new", EMPTY, "t")
    fork = recorded("fork", head_of(commits[:3]), "s", "fork", MAIN)
    for entry in (seen, new, fork):
        assert [True, False] == [store.recognition.record(entry), store.recognition.record(entry)]
        digest = entry.sightings[0].digest
        assert entry.sightings[0].response in [each.response for each in store.recognition.lookup(SCOPE, [digest])]
    assert [*commits, *seen.commits] == store.read("s")
    assert [] == list(store.fsck())


def test_a_server_that_joins_no_shards_is_cared_for(store: LogStore, database: str) -> None:
    """Where it refuses to ask all families at once, they are asked one by one, and a check that needs that is left."""
    commits = fill(store, "s", [user_step("1"), response_step("2")])
    fill(store, "t", [user_step("1")])
    _change(
        database,
        "DROP ROLE IF EXISTS sharded",
        "CREATE ROLE sharded LOGIN",
        "GRANT ALL ON SCHEMA thinkback TO sharded",
        "GRANT ALL ON ALL TABLES IN SCHEMA thinkback TO sharded",
        """
        CREATE FUNCTION thinkback.is_local() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
            IF current_query() ~ 'greatest|CASE WHEN k.is_name' THEN
                RAISE EXCEPTION 'of one shard only' USING ERRCODE = 'feature_not_supported';
            END IF;
            RETURN true;
        END $$
        """,
        *(
            sql
            for table in ("keys", "segments")
            for sql in (
                f"ALTER TABLE thinkback.{table} ENABLE ROW LEVEL SECURITY",
                f"CREATE POLICY local ON thinkback.{table} USING (thinkback.is_local())",
            )
        ),
    )
    with closing(open_postgres(database.replace("keeper@", "sharded@"))) as sharded:
        sharded.refs.move("s", MAIN, head_of(commits), head_of(commits[:1]))
        assert 4 == sharded.care.gc(10**9, dry_run=True).commits
        assert 4 == sharded.care.gc(10**9).commits
        assert [] == list(sharded.fsck())
        _change(database, "INSERT INTO thinkback.keys VALUES ('default', 'astray', true, 1, 1)")
        assert ([], 1) == (list(sharded.fsck()), len(list(store.fsck())))
    _change(database, "DROP OWNED BY sharded", "DROP ROLE sharded")


# Search


def test_an_index_of_another_form_is_made_again(store: LogStore, database: str) -> None:
    """Nothing is found in it until it is filled, and then everything."""
    fill(store, "s", [user_step("1", "blue"), user_step("2", "blue")])
    assert (2, 0) == (store.search.fill(), store.search.fill())
    _change(database, "UPDATE thinkback.searched SET form = 0")
    assert [] == store.search.find(Query("blue"))
    assert (2, 2) == (store.search.fill(), len(store.search.find(Query("blue"))))


def test_more_words_than_the_index_takes_are_found(store: LogStore) -> None:
    """A text of a megabyte of different words is looked through for what it may have."""
    words = [f"word{n:06}" for n in range(100_000)]
    (commit, *_) = fill(store, "s", [user_step("1", " ".join(words)), user_step("2", "word000001 alone")])
    store.search.fill()
    for text in (words[99_999], f'"{words[5]} {words[6]}"', f"{words[7]} {words[70_000]}"):
        assert [commit.hash] == [hit.hash for hit in store.search.find(Query(text))]
    assert 2 == len(store.search.find(Query(words[1])))
    assert [] == store.search.find(Query("nowhere"))


# Tenants


def test_tenants_see_nothing_of_each_other(database: str) -> None:
    """The same ids and names are two sessions; nothing of the one is found, counted or removed through the other."""
    with closing(open_postgres(database, tenant="a")) as a, closing(open_postgres(database, tenant="b")) as b:
        ours = fill(a, "s", [user_step("1"), response_step("2")])
        assert ([], None) == (b.list_sessions(), b.find_session("s"))
        theirs = fill(b, "s", [user_step("1")])
        for hash in (ours[0].hash, ours[4].hash):
            assert "s" == a.find_commit(hash)[0]
        with pytest.raises(NotFoundError, match="no commit"):
            b.find_commit(ours[4].hash)
        b.care.erase("s", {theirs[0].hash: canonical.encode(Erased("asked to", 1))})
        b.refs.move("s", MAIN, head_of(theirs), EMPTY)
        assert 1 == b.care.gc(10**9).commits
        assert 0 == b.care.delete_session("s")
        assert ours == a.read("s")
        assert [] == list(a.fsck()) == list(b.fsck())


def test_a_file_has_no_tenants(log: Path) -> None:
    """A file is one tenant: to name another is refused, not ignored."""
    with pytest.raises(StoreError, match="is a file, and a file is one tenant"):
        open_store(log, tenant="b")
    assert not log.exists()


@pytest.mark.parametrize("tenant", ["", "a\0b", "x" * 201, "\ud83d"])
def test_a_tenant_has_a_name(database: str, tenant: str) -> None:
    """What cannot be a key is refused."""
    with pytest.raises(StoreError):
        open_store(database, tenant=tenant)


@given(st.text(st.sampled_from("\\0\x00a")))
def test_any_text_survives_its_column(text: str) -> None:
    """PostgreSQL's text has no NUL; what stands for it is told from the same characters in the text."""
    assert text == columns.given(columns.stored(text))
    assert "\0" not in columns.stored(text)


# What one process remembers


def test_what_a_process_remembers_is_checked(database: str) -> None:
    """A branch that another process moved, collected and grew again to the same length is not taken for the old one."""
    with closing(open_postgres(database)) as one, closing(open_postgres(database)) as other:
        old = fill(one, "s", [user_step("1"), user_step("2")])
        other.refs.move("s", MAIN, head_of(old), head_of(old[:1]))
        assert 1 == other.care.gc(10**9).commits
        new = old[:1] + put(other, "s", user_step("3", "instead"))
        with pytest.raises(HeadMovedError):
            one.append("s", "4", seal(user_step("4"), head_of(old)), head_of(old))
        assert new == one.read("s")
        new += put(one, "s", user_step("5"))
        assert new == other.read("s")


def test_a_session_that_was_made_again_is_found(database: str) -> None:
    """Another process deleted it and gave its id away: the id leads to the new one."""
    with closing(open_postgres(database)) as one, closing(open_postgres(database)) as other:
        fill(one, "s", [user_step("1")])
        fill(one, "t", [user_step("1")])
        other.care.delete_session("t")
        with pytest.raises(NotFoundError, match="no session"):
            one.append("t", "2", seal(user_step("2"), EMPTY), EMPTY)
        other.create_session("t", "new", 5, Origin("s"))
        new = put(one, "t", user_step("3"))
        assert new == one.read("t") == other.read("t")


# Formats


def test_many_may_open_a_new_log_at_once(database: str) -> None:
    """Sixteen threads: one makes the tables, all of them work."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with closing(open_postgres(database, connections=1)) as store:
                store.list_sessions()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures


def test_a_newer_format_is_refused(store: LogStore, database: str) -> None:
    """It is not touched; the error says to upgrade."""
    _change(database, "INSERT INTO thinkback.migrations VALUES (99, '0099_later', 'x')")
    with pytest.raises(FormatVersionError, match="has format 99") as caught:
        open_postgres(database)
    assert "upgrade thinkback" in caught.value.next_actions


def _with_next(tmp_path: Path, sql: str, check: str) -> Schema:
    """The newest schema and one migration more."""
    for name in NEWEST.names:
        for end in (".sql", ".check.sql"):
            (tmp_path / f"{name}{end}").write_bytes((NEWEST.directory / f"{name}{end}").read_bytes())
    (tmp_path / "9999_next.sql").write_text(sql)
    (tmp_path / "9999_next.check.sql").write_text(check)
    return Schema(tmp_path, (*NEWEST.names, "9999_next"))


def test_a_log_is_brought_to_the_next_format(store: LogStore, database: str, tmp_path: Path) -> None:
    """With what is in it; whoever knows only the old one is told."""
    commits = fill(store, "s", [user_step("1")])
    schema = _with_next(tmp_path, "CREATE TABLE thinkback.more (a integer);", "SELECT 'x' WHERE false;")
    for _ in range(2):
        with closing(open_postgres(database, schema=schema)) as newer:
            assert commits == newer.read("s")
            assert [] == list(newer.fsck())
    with pytest.raises(FormatVersionError):
        open_postgres(database)


@pytest.mark.parametrize(
    ("sql", "check", "what"),
    [
        ("CREATE TABLE thinkback.more (a integer);", "SELECT 'one'; SELECT 'two is missing';", "two is missing"),
        ("CREATE TABLE thinkback.more (a integer); SELECT nonsense;", "SELECT 1;", "could not be used"),
    ],
)
def test_a_migration_that_fails_leaves_the_log_as_it_was(
    store: LogStore, database: str, tmp_path: Path, sql: str, check: str, what: str
) -> None:
    """Statements and record go with the transaction."""
    with pytest.raises(StoreError, match=what):
        open_postgres(database, schema=_with_next(tmp_path, sql, check))
    with closing(open_postgres(database)) as again, _admin(database) as db:
        assert [] == list(again.fsck())
        assert (None,) == db.execute("SELECT to_regclass('thinkback.more')").fetchone()


def test_a_new_log_is_whole_or_not_there(database: str, tmp_path: Path) -> None:
    """Nobody finds it between two formats, and is told that it is an older one."""
    with pytest.raises(StoreError, match="two is missing"):
        open_postgres(database, schema=_with_next(tmp_path, "SELECT 1;", "SELECT 'two is missing';"))
    with _admin(database) as db:
        assert (None,) == db.execute("SELECT to_regclass('thinkback.migrations')").fetchone()


# Copies


def test_a_copy_is_a_log_in_a_file(store: LogStore, tmp_path: Path) -> None:
    """Sessions, forks, branches, settings, tombstones, and which steps were stored: all of it, at any place."""
    trunk = fill(store, "s", [user_step("1"), response_step("2"), user_step("3\0\\")])
    store.create_session("t", "t\0\\", 2, Origin("s", MAIN, head_of(trunk[:5]), "try"))
    fill(store, "t", [user_step("4", "elsewhere")])
    store.create_session("u", "u", 3, Origin("t"))
    store.refs.create("s", "b", head_of(trunk[:1]))
    store.refs.switch("s", "b")
    store.write_settings("s", {"a": "\ud83d"})
    store.append("u", "empty", [], EMPTY)
    store.care.erase("s", {trunk[2].hash: canonical.encode(Erased("asked to", 1))})
    store.care.delete_session("s")
    fill(store, "x", [response_step("1")])
    file = tmp_path / "copy.db"
    store.care.backup(str(file))
    with closing(open_store(file)) as copy:
        assert [] == list(copy.fsck())
        assert store.list_sessions() == copy.list_sessions()
        for info in store.list_sessions():
            assert store.refs.list(info.id) == copy.refs.list(info.id)
            for branch in store.refs.list(info.id):
                assert store.read(info.id, branch=branch.name) == copy.read(info.id, branch=branch.name)
        assert not copy.append("u", "empty", [], EMPTY)
        assert not copy.append("x", "1", seal(response_step("1"), EMPTY), EMPTY)
        put(copy, "t", user_step("5"))
    with pytest.raises(StoreError, match="exists already"):
        store.care.backup(str(file))


def test_a_copy_that_fails_leaves_no_file(store: LogStore, database: str, tmp_path: Path) -> None:
    """A place that is not there, or a log that breaks off."""
    fill(store, "s", [user_step("1")])
    with pytest.raises(StoreError, match="cannot be made"):
        store.care.backup(str(tmp_path / "nowhere" / "copy.db"))
    _change(database, "ALTER TABLE thinkback.steps RENAME TO lost")
    with pytest.raises(CorruptLogError, match="lacks a table"):
        store.care.backup(str(tmp_path / "copy.db"))
    assert [] == list(tmp_path.iterdir())


class _Counted(psycopg.Cursor[tuple[Any, ...]]):
    """Counts the statements of its connection."""

    statements: ClassVar[list[str]] = []

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        self.statements.append(str(query))
        return super().execute(query, *args, **kwargs)


def test_what_the_requests_of_a_page_share_is_read_at_once(store: LogStore, database: str) -> None:
    """Twenty requests of a line with two bases: one statement for its rows, and one for the bases."""
    steps = [asked_step(str(at), "hm", "So." + " ." * (at % 2), at) for at in range(20)]
    commits = fill(store, "s", steps)
    with psycopg.connect(database, autocommit=True, cursor_factory=_Counted) as db:
        rows = PostgresRows(db, "default", {})
        of = rows.key("s")
        assert of is not None
        (tip,) = [branch.tip for branch in rows.branches(of)]
        ranges = rows.ranges(of[:2], tip.place, -1)
        _Counted.statements.clear()
        (page,) = rows.commits(of[:2], ranges)
        assert [commit.payload for commit in commits] == [commit.payload for commit in from_rows(page, 0)]
        assert 2 == len(_Counted.statements)


def test_a_lease_is_taken_by_three_statements(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not wait for the disk, it is looked up with the clock, it is put; where the session is, is known."""
    fill(store, "s", [user_step("1")])
    statements: list[str] = []
    execute = psycopg.Connection.execute

    def counted(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        statements.append(str(query))
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    assert "me" == store.leases.take("s", MAIN, Owner("me", 1, "", "", ""), 1_000, 0).owner.id
    assert 3 == len([each for each in statements if not each.startswith(("BEGIN", "COMMIT"))])


@pytest.mark.parametrize(
    "said",
    [
        "the database system is in recovery mode",
        "the database system is starting up",
        "the database system is shutting down",
        "the database system is not yet accepting connections",
        'database "logs" is not currently accepting connections',
    ],
)
def test_a_server_that_recovers_is_not_said_to_lack_the_database(said: str) -> None:
    """While nobody is let in it is not known whether the database is there."""
    fields = b"".join(name + text.encode() + b"\0" for name, text in ((b"S", "FATAL"), (b"C", "57P03"), (b"M", said)))
    refusal = b"E" + (len(fields) + 5).to_bytes(4) + fields + b"\0"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(refusal)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        port = server.getsockname()[1]
        with pytest.raises(StoreError, match="is on a server that starts up, recovers or shuts down") as caught:
            open_store(f"postgresql://somebody@127.0.0.1:{port}/logs?sslmode=disable&gssencmode=disable")
        refusing.join()
    assert "does not exist" not in str(caught.value)


def test_old_steps_are_joined(postgres: Server) -> None:
    """By ``gc``, those side by side and old enough; the log verifies, the index is built again, and later steps, and
    branches that stand in between, are as they were.
    """
    tenant = secrets.token_hex(8)
    with closing(open_store(postgres.url(), tenant=tenant)) as store:
        trunk = fill(store, "s", [user_step("1"), response_step("2"), user_step("3"), response_step("4")])
        store.refs.create("s", "b", head_of(trunk[:6]), "main")
        put_on(store, "s", "b", user_step("5"))
        while store.search.fill(100):
            pass

        def steps() -> list[tuple[int, int, int]]:
            with postgres.connect() as db:
                sql = "SELECT segment, position, commits FROM thinkback.steps WHERE tenant = %s ORDER BY 1, 2"
                return db.execute(sql, (tenant,)).fetchall()

        before = steps()
        store.care.gc(now() - 1)
        assert before == steps()
        store.care.gc(now() + STEPS_KNOWN + 1_000_000)
        assert [(1, 0, len(trunk)), (2, 0, 1)] == steps()
        assert [] == list(store.fsck())
        head = head_of(trunk)
        with pytest.raises(HeadMovedError):
            store.append("s", "2", trunk[1:5], head_of(trunk[:1]))
        more = put(store, "s", user_step("6", "Is the sea blue?"))
        assert head.seq + 1 == more[0].seq
        store.search.rebuild()
        while store.search.fill(100):
            pass
        assert 4 == len(store.search.find(Query("blue")))
        assert [*trunk, *more] == store.read("s")
        assert [] == list(store.fsck())
