"""Steps that come together share a transaction; what happens to one does not happen to the others."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.stores.samples import chain, response_step, user_step
from thinkback.errors import CorruptLogError, HeadMovedError, NotFoundError, StoreError
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Head, Step
from thinkback.stores.grouping import Group
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_append import Appends
from thinkback.stores.sqlite_open import connect
from thinkback.stores.store import LogStore


class _Held(sqlite3.Connection):
    """Counts transactions, and holds the first after ``hold`` was set until ``ready`` says true."""

    begun = 0
    held = threading.Event()
    ready: Callable[[], bool] | None = None

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> sqlite3.Cursor:  # type: ignore[override]
        if sql == "BEGIN IMMEDIATE":
            self.begun += 1
            if (ready := self.ready) is not None:
                self.ready = None
                self.held.set()
                while not ready():
                    pass
        return super().execute(sql, parameters)


def _waiting(store: LogStore) -> int:
    """How many appends wait for the one that is under way."""
    appends = store._appends
    assert isinstance(appends, Appends)
    return len(appends._group._waiting)


class _Appends:
    """Appends from threads that are sure to come while the first one is in its transaction."""

    def __init__(self, log: Path) -> None:
        self.writer: _Held | None = None
        self.store = open_sqlite(str(log), "normal", self._connect)
        self.outcomes: dict[str, bool | BaseException] = {}

    def _connect(self, path: str) -> sqlite3.Connection:
        connect(path).close()
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=_Held)
        self.writer = self.writer or db
        return db

    def run(self, first: tuple[str, str, list[Commit], Head], *others: tuple[str, str, list[Commit], Head]) -> int:
        """Append ``first`` alone and then all ``others`` at once; return the number of transactions."""
        assert self.writer is not None
        self.writer.held.clear()
        self.writer.ready = lambda: _waiting(self.store) == len(others)
        before = self.writer.begun
        threads = [threading.Thread(target=self._append, args=job) for job in (first, *others)]
        threads[0].start()
        self.writer.held.wait()
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
        return self.writer.begun - before

    def _append(self, session: str, step: str, commits: list[Commit], expected: Head) -> None:
        try:
            self.outcomes[step] = self.store.append(session, step, commits, expected)
        except BaseException as error:
            self.outcomes[step] = error


@pytest.fixture
def appends(log: Path) -> Any:
    """A store with the sessions a, b, c and d."""
    made = _Appends(log)
    for session in "abcd":
        made.store.create_session(session, session, 1)
    yield made
    made.store.close()


def _job(session: str, step: Step, head: Head | None = None) -> tuple[str, str, list[Commit], Head]:
    head = head or Head()
    return session, step.id, seal(step, head), head


def test_steps_that_wait_share_one_transaction(appends: _Appends) -> None:
    """Three steps that come during the transaction of a fourth are stored in one more."""
    jobs = [_job(session, response_step(session)) for session in "abcd"]
    assert 2 == appends.run(*jobs)
    assert dict.fromkeys("abcd", True) == appends.outcomes
    assert [4] * 4 == [len(appends.store.read(session)) for session in "abcd"]


def test_a_failing_step_takes_no_other_with_it(appends: _Appends) -> None:
    """In one transaction: a moved head, an unknown session and a time too large fail; the steps around them stay."""
    stale = _job("a", user_step("stale", "late"))
    nobody = _job("nobody", user_step("nobody"))
    huge = _job("c", user_step("huge", time=2**63))
    good = [_job("b", response_step("good b")), _job("d", response_step("good d"))]
    assert 2 == appends.run(_job("a", user_step("first")), good[0], stale, nobody, huge, good[1])
    kinds = {step: type(outcome) for step, outcome in appends.outcomes.items() if outcome is not True}
    assert {"stale": HeadMovedError, "nobody": NotFoundError, "huge": OverflowError} == kinds
    assert [1, 4, 0, 4] == [len(appends.store.read(session)) for session in "abcd"]
    assert [] == list(appends.store.fsck())


def test_a_step_that_fails_half_way_is_undone_alone(appends: _Appends, log: Path) -> None:
    """A step whose rows clash with the file is undone to its beginning while its group is stored."""
    store = appends.store
    one, two, three = chain([user_step("1"), user_step("2"), response_step("3")])
    store.append("a", "1", one, Head())
    store.append("a", "2", two, head_of(one))
    db = sqlite3.connect(log, isolation_level=None)
    db.execute(
        "INSERT INTO commits SELECT 99, segment, 3, hash, parents, kind, digest, time, response, block, edit, "
        "codec, payload FROM commits WHERE position = 1"
    )
    db.close()
    clash = ("a", "3", three, head_of(two))
    appends.run(_job("b", user_step("b")), clash, _job("c", response_step("c")))
    assert (True, True) == (appends.outcomes["b"], appends.outcomes["c"])
    assert isinstance(appends.outcomes["3"], CorruptLogError)
    db = sqlite3.connect(log, isolation_level=None)
    db.execute("DELETE FROM commits WHERE arrival = 99")
    db.close()
    assert [] == list(store.fsck())
    assert one + two == store.read("a")


def test_a_step_twice_in_a_group_is_stored_once(appends: _Appends) -> None:
    """Of two appends of the same step in one transaction, one is told that it was there."""
    job = _job("b", response_step("twice"))
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(appends.store.append(*job))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [False] * 5 + [True] == sorted(answers)
    assert 4 == len(appends.store.read("b"))


def test_a_transaction_that_cannot_begin_fails_all_of_it(appends: _Appends, log: Path) -> None:
    """When the file is locked, every waiting step gets an error of its own."""
    assert appends.writer is not None
    sqlite3.Connection.execute(appends.writer, "PRAGMA busy_timeout = 1")
    other = sqlite3.connect(log, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    appends.run(*[_job(session, user_step(session)) for session in "abcd"])
    other.close()
    assert [StoreError] * 4 == [type(outcome) for outcome in appends.outcomes.values()]
    assert 4 == len({id(outcome) for outcome in appends.outcomes.values()})
    assert [0] * 4 == [len(appends.store.read(session)) for session in "abcd"]


def test_an_interrupt_undoes_the_transaction_and_keeps_the_store_working(appends: _Appends) -> None:
    """A ``KeyboardInterrupt`` in the leader's transaction reaches it; those behind it are served."""
    assert appends.writer is not None

    def interrupted() -> bool:
        if _waiting(appends.store) < 2:
            return False
        raise KeyboardInterrupt

    writer = appends.writer
    writer.held.clear()
    writer.ready = interrupted
    jobs = [_job(session, user_step(session)) for session in "abc"]
    threads = [threading.Thread(target=appends._append, args=job) for job in jobs]
    threads[0].start()
    writer.held.wait()
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert isinstance(appends.outcomes["a"], KeyboardInterrupt)
    assert (True, True) == (appends.outcomes["b"], appends.outcomes["c"])
    assert appends.store.append(*jobs[0])


def test_followers_of_an_interrupted_leader_are_told() -> None:
    """Work that ends in an exception still releases everyone it was done for, and the next caller leads."""
    calls: list[list[str]] = []

    def work(items: list[str]) -> None:
        calls.append(items)
        if len(calls) == 1:
            while len(group._waiting) < 3:
                pass
        if len(calls) == 2:
            raise KeyboardInterrupt

    group: Group[str] = Group(work)
    raised: list[BaseException] = []
    returned: list[str] = []

    def run(item: str) -> None:
        try:
            group.run(item)
            returned.append(item)
        except KeyboardInterrupt as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(item,)) for item in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (1, 3) == (len(raised), len(returned))
    assert [1, 3] == [len(items) for items in calls]
    group.run("e")
    assert ["e"] == calls[-1]
