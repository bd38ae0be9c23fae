"""What operations on a SQLite log cost: in steps of SQLite's machine the same at any depth, and few statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from tests.stores.samples import asked_step, fill, user_step
from thinkback.log.protocol import MAIN, About, AppendRequest, Origin, Sighting
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Draft, Head, Message, Step
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import connect
from thinkback.stores.store import LogStore


def test_branches_and_forks_cost_the_same_at_any_depth(log: Path) -> None:
    """A branch, a fork, a reset, appends and what is recorded take as many steps beside 20 commits and one session as
    beside 2,000 and 100.
    """
    small, large = _costs(log, 20), _costs(log, 2_000)
    assert small == large
    assert max(small.values()) < 500


def _costs(log: Path, length: int) -> dict[str, int]:
    writers: list[sqlite3.Connection] = []

    def remembered(path: str) -> sqlite3.Connection:
        writers.append(connect(path))
        return writers[-1]

    store = open_sqlite(str(log.with_name(f"{length}.db")), "normal", remembered)
    for number in range(length // 20):
        store.create_session(f"session {number}", f"{number}", 1)
    trunk = fill(store, "s", [Step("all", (Draft("user", Message("x")),) * length, 1)])
    middle, end = head_of(trunk[: length // 2]), head_of(trunk)
    on = seal(user_step("on"), middle)
    begun = seal(user_step("f"), Head())
    further = seal(user_step("n"), head_of(begun))
    calls: dict[str, Callable[[], object]] = {
        "branch": lambda: store.refs.create("s", "b", middle, MAIN),
        "fork": lambda: store.create_session("f", "f", 1, Origin("s", at=middle)),
        "append": lambda: store.append("s", "more", seal(user_step("more"), end), end),
        "append to a branch": lambda: store.append("s", "on", on, middle, "b"),
        "append to a fork": lambda: store.append("f", "on", on, middle),
        "reset": lambda: store.refs.move("s", "b", head_of(on), middle, "b"),
        "first step": lambda: store.recognition.record(AppendRequest("t", "t", 7, "f", begun, Head())),
        "next step": lambda: store.recognition.record(AppendRequest("t", "t", 7, "n", further, head_of(begun))),
    }
    costs = {name: _steps(writers[0], call) for name, call in calls.items()}
    store.close()
    return costs


def _steps(writer: sqlite3.Connection, call: Callable[[], object]) -> int:
    steps = count()
    writer.set_progress_handler(lambda: next(steps) < 0, 1)
    call()
    writer.set_progress_handler(None, 1)
    return next(steps)


class _Counted(sqlite3.Connection):
    """Counts what it is asked to execute."""

    executed = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self.executed += 1
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        self.executed += 1
        return super().executemany(sql, parameters)


def test_a_recorded_step_takes_few_statements(log: Path) -> None:
    """With the session that it begins, and behind it, with the transaction around each."""
    writers: list[_Counted] = []

    def counted(path: str) -> sqlite3.Connection:
        connect(path).close()
        writers.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=_Counted))
        return writers[-1]

    store = open_sqlite(str(log), "normal", counted)
    first = _entry("1", Head())
    second = _entry("2", head_of(first.commits))
    executed = []
    for entry in (first, second):
        writers[0].executed = 0
        assert store.recognition.record(entry)
        executed.append(writers[0].executed)
    store.close()
    assert [10, 9] == executed


def test_a_session_begun_with_its_first_step_has_the_rows_of_one_made_before(log: Path) -> None:
    """In each table, whichever way they came there."""
    entry = _entry("1", Head())
    at_once, before = (open_sqlite(str(log.with_name(name)), "normal") for name in ("at once", "before"))
    before.create_session(entry.session, entry.name, entry.created, about=entry.about)
    assert _rows(at_once, log.with_name("at once"), entry) == _rows(before, log.with_name("before"), entry)


def _entry(id: str, expected: Head) -> AppendRequest:
    commits = seal(asked_step(id, "hm", "So.", 2_000), expected)
    seen = (Sighting(b"a scope 16 bytes", id.encode() * 16, f"response of {id}"),)
    about = About("codex", "shop", "/shop")
    return AppendRequest("s", "name of s", 7, id, commits, expected, sightings=seen, about=about)


def _rows(store: LogStore, file: Path, entry: AppendRequest) -> dict[str, list[Any]]:
    """What the tables have once ``entry`` is recorded."""
    assert store.recognition.record(entry)
    store.close()
    names = ("sessions", "segments", "branches", "commits", "steps", "summaries", "bases", "sightings")
    with closing(sqlite3.connect(file)) as db:
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names}
