"""What operations on a SQLite log cost, in steps of SQLite's machine: the same at any depth."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.stores.samples import fill, user_step
from thinkback.log.protocol import MAIN, Origin
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Draft, Message, Step
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import connect


def test_branches_and_forks_cost_the_same_at_any_depth(log: Path) -> None:
    """A branch, a fork, a reset, and appends to them take as many steps in 20 commits as in 2,000."""
    small, large = _costs(log, 20), _costs(log, 2_000)
    assert small == large
    assert max(small.values()) < 500


def _costs(log: Path, length: int) -> dict[str, int]:
    writers: list[sqlite3.Connection] = []

    def remembered(path: str) -> sqlite3.Connection:
        writers.append(connect(path))
        return writers[-1]

    store = open_sqlite(str(log.with_name(f"{length}.db")), "normal", remembered)
    trunk = fill(store, "s", [Step("all", (Draft("user", Message("x")),) * length, 1)])
    middle, end = head_of(trunk[: length // 2]), head_of(trunk)
    on = seal(user_step("on"), middle)
    calls: dict[str, Callable[[], object]] = {
        "branch": lambda: store.refs.create("s", "b", middle, MAIN),
        "fork": lambda: store.create_session("f", "f", 1, Origin("s", at=middle)),
        "append": lambda: store.append("s", "more", seal(user_step("more"), end), end),
        "append to a branch": lambda: store.append("s", "on", on, middle, "b"),
        "append to a fork": lambda: store.append("f", "on", on, middle),
        "reset": lambda: store.refs.move("s", "b", head_of(on), middle, "b"),
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
