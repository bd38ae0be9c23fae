"""A SQLite file that cannot be used as it should: each call says what is wrong and what to do, and changes nothing."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count, repeat
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.stores.life import TOMB, Looks, looks, recorded
from tests.stores.samples import fill, put_on, response_step, user_step
from thinkback.errors import CorruptLogError, StoreError, ThinkbackError
from thinkback.log.protocol import MAIN, Arrival, Origin, Store, Tail
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Head
from thinkback.stores import open_store
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import connect

Call: TypeAlias = Callable[[Store, list[Commit]], object]

PAGE = 4096
WRITES: dict[str, Call] = {
    "append": lambda store, trunk: store.append("s", "9", seal(user_step("9"), head_of(trunk)), head_of(trunk)),
    "append to a branch": lambda store, trunk: put_on(store, "s", "b", user_step("9")),
    "create a session": lambda store, trunk: store.create_session("x", "x", 1),
    "fork": lambda store, trunk: store.create_session("x", "x", 1, Origin("s", at=head_of(trunk[:3]))),
    "settings": lambda store, trunk: store.write_settings("s", {"reasoning.effort": "high"}),
    "branch": lambda store, trunk: store.refs.create("s", "c", head_of(trunk[:3]), MAIN),
    "branch at nothing": lambda store, trunk: store.refs.create("s", "c", Head()),
    "move": lambda store, trunk: store.refs.move("s", MAIN, head_of(trunk), head_of(trunk[:3]), MAIN),
    "drop": lambda store, trunk: store.refs.delete("s", "b", head_of(trunk[:5])),
    "switch": lambda store, trunk: store.refs.switch("s", "b"),
    "erase": lambda store, trunk: store.care.erase("s", {trunk[2].hash: TOMB}),
    "delete": lambda store, trunk: store.care.delete_session("s"),
    "gc": lambda store, trunk: store.care.gc(10**9),
    "fill the index": lambda store, trunk: store.search.fill(),
    "record": lambda store, trunk: store.recognition.record(recorded("9", Head(), session="x", name="x")),
    "arrive": lambda store, trunk: store.arrive(arrival(trunk)),
    "record on a branch": lambda store, trunk: store.recognition.record(recorded("9", head_of(trunk))),
}


def arrival(trunk: list[Commit]) -> Arrival:
    """The end of a branch made anew, and a branch beside it, which is opened."""
    whole, beside = (seal(user_step(name), head_of(trunk[:5])) for name in ("9", "10"))
    tails = Tail("9", whole, head_of(trunk[:5]), MAIN, head_of(trunk)), Tail("10", beside, head_of(trunk[:5]), "c")
    return Arrival("s", "s", 1, tails, "c")


@pytest.fixture
def trunk(log: Path) -> list[Commit]:
    """A closed log: ``s`` with two turns and a branch ``b``, a fork ``t``, and commits that nothing reaches."""
    store = open_store(log)
    made = fill(store, "s", [user_step("1"), response_step("2"), user_step("3")])
    last = recorded("4", head_of(made), thought="y" * 9_000)
    store.recognition.record(last)
    made += last.commits
    store.refs.create("s", "b", head_of(made[:5]), MAIN)
    store.create_session("t", "t", 1, Origin("s", at=head_of(made[:3])))
    lost = fill(store, "t", [response_step("5")])
    store.refs.move("t", MAIN, head_of(lost), head_of(made[:3]), "")
    store.close()
    return made


@pytest.fixture
def before(log: Path, trunk: list[Commit]) -> Looks:
    """What the log looks like."""
    with closing(open_store(log)) as store:
        return looks(store)


def _impatient(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0.01, isolation_level=None, check_same_thread=False)


def _read_only(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)


@pytest.mark.parametrize("call", WRITES)
def test_a_locked_log_is_named(log: Path, trunk: list[Commit], before: Looks, call: str) -> None:
    """While another program holds the lock every writing call says so; readers see the log, and later it goes on."""
    store = open_sqlite(str(log), connect=_impatient)
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked") as caught:
            WRITES[call](store, trunk)
        assert "try again" in caught.value.next_actions[0]
        assert before == looks(store)
        other.execute("ROLLBACK")
    WRITES[call](store, trunk)
    assert [] == list(store.fsck())
    store.close()


@pytest.mark.parametrize("call", WRITES)
def test_a_read_only_log_is_named(log: Path, trunk: list[Commit], before: Looks, call: str) -> None:
    """Without permission to write, every writing call says what is missing, and the log can be read."""
    store = open_sqlite(str(log), connect=_read_only)
    with pytest.raises(StoreError, match="may only be read") as caught:
        WRITES[call](store, trunk)
    assert "permission" in caught.value.next_actions[0]
    assert before == looks(store)
    store.close()


def test_a_full_disk_is_named(log: Path, trunk: list[Commit], before: Looks) -> None:
    """Where there is no room for another page, calls that need one say so, and nothing of them is there."""

    def full(path: str) -> sqlite3.Connection:
        db = connect(path)
        db.execute("PRAGMA max_page_count = 1")  # no less than it has
        return db

    noise = random.Random(1).randbytes(40_000).hex()
    large: dict[str, Call] = {
        "append": lambda store, trunk: put_on(store, "s", "b", user_step("9", noise)),
        "settings": lambda store, trunk: store.write_settings("s", {"reasoning.effort": noise}),
        "branch": lambda store, trunk: store.refs.create("s", noise, head_of(trunk[:3]), MAIN),
        "fork": lambda store, trunk: store.create_session("x", noise, 1, Origin("s", at=head_of(trunk[:3]))),
        "erase": lambda store, trunk: store.care.erase("s", {trunk[2].hash: canonical.encode(Erased(noise, 1))}),
    }
    store = open_sqlite(str(log), connect=full)
    for call in large.values():
        with pytest.raises(StoreError, match="does not fit"):
            call(store, trunk)
        assert before == looks(store)
    assert [] == list(store.fsck())
    store.close()


def test_an_arrival_that_is_interrupted_leaves_nothing(log: Path, trunk: list[Commit], before: Looks) -> None:
    """Ctrl-C at any statement, as often as it takes: nothing of it is there, and the next one stores all of it."""
    left = count()

    def interrupted(path: str) -> sqlite3.Connection:
        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
                if next(budget) == 0:
                    raise KeyboardInterrupt
                return super().execute(sql, *values)  # type: ignore[arg-type]

        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)

    budget = repeat(1)
    store = open_sqlite(str(log), connect=interrupted)
    for statements in left:
        budget = iter(range(statements, -1000, -1))  # type: ignore[assignment]
        try:
            store.arrive(arrival(trunk))
        except KeyboardInterrupt:
            budget = repeat(1)
            assert before == looks(store)
        else:
            budget = repeat(1)
            break
    assert statements > 15
    assert before != looks(store)
    assert [] == list(store.fsck())
    store.close()


@pytest.mark.parametrize("size", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_named(log: Path, trunk: list[Commit], before: Looks, size: float) -> None:
    """A file that lost its end is said to be damaged, by opening, by reading or by fsck, and is left as it is."""
    whole = log.read_bytes()
    log.write_bytes(whole[: int(len(whole) * size)])
    if not log.read_bytes():
        return  # an empty file is a new log
    with pytest.raises(CorruptLogError) as caught:
        _use(log, before)
    assert "copy" in caught.value.next_actions[0]


def _use(log: Path, before: Looks) -> None:
    """Open, verify and read a log. Raises ``CorruptLogError`` if fsck finds something or something else is read."""
    with closing(open_store(log)) as store:
        problems = list(store.fsck())
        if problems:
            raise CorruptLogError(problems[0].what, next_actions=("restore it from a copy",))
        assert before == looks(store)


@pytest.mark.parametrize("fault", ["zeros", "noise", "another page"])
def test_any_damaged_page_is_named(log: Path, tmp_path: Path, trunk: list[Commit], before: Looks, fault: str) -> None:
    """Whatever page of the file is lost or in another's place, fsck finds it; no call stumbles over a lost one."""
    whole, chance = log.read_bytes(), random.Random(fault)
    pages = [whole[at : at + PAGE] for at in range(0, len(whole), PAGE)]
    for page, was in enumerate(pages):
        other = chance.choice([other for other in pages if other != was])
        content = {"zeros": bytes(PAGE), "noise": chance.randbytes(PAGE), "another page": other}[fault]
        damaged = tmp_path / f"{page}.db"
        damaged.write_bytes(whole[: page * PAGE] + content + whole[(page + 1) * PAGE :])
        with pytest.raises(ThinkbackError):
            _use(damaged, before)
        for call in chance.sample(list(WRITES.values()), 0 if fault == "another page" else 6):
            copy = tmp_path / "copy.db"
            shutil.copy(damaged, copy)
            with contextlib.suppress(ThinkbackError), closing(open_store(copy)) as store:
                call(store, trunk)
            copy.unlink()
