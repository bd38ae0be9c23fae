"""Durable append: one response, one transaction, on the disk when the call returns."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.conversation import place, sealed, turns
from bench.measure import Case, Figure, Group, interleaved
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Head, Step
from thinkback.stores import Durability, open_store

# Responses in a sample: enough that one file's syncs do not slow the next one's down, and that each sample has its
# share of checkpoints.
BLOCKS: dict[Durability, int] = {"full": 150, "normal": 600}


def ours(path: Path, durability: Durability, steps: Iterator[Step], closing: ExitStack, responses: int) -> Case:
    """The subject: responses sealed (encoded, hashed, chained) and appended, with index, ref, step id, compression."""
    store = open_store(path, durability)
    closing.callback(store.close)
    session = store.create_session("bench", "bench", 0).id
    head = Head()

    def case() -> float:
        nonlocal head
        given = [next(steps) for _ in range(responses)]
        start = perf_counter()
        for step in given:
            commits = seal(step, head)
            store.append(session, step.id, commits, head)
            head = head_of(commits)
        return perf_counter() - start

    return case


def plain(path: Path, durability: Durability, steps: Iterator[Step], closing: ExitStack, *, joined: bool) -> Case:
    """The limit: the same payload bytes into one plain table, same pragmas, a transaction per response.

    The bytes are made beforehand; a row for each commit, or all of a response joined in one row.
    """
    db = sqlite3.connect(path, isolation_level=None)
    closing.callback(db.close)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute(f"PRAGMA synchronous = {durability.upper()}")
    db.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")

    def case() -> float:
        given = [[(commit.payload,) for commit in seal(next(steps), Head())] for _ in range(BLOCKS[durability])]
        if joined:
            given = [[(b"".join(payload for (payload,) in rows),)] for rows in given]
        start = perf_counter()
        for rows in given:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO plain (payload) VALUES (?)", rows)
            db.execute("COMMIT")
        return perf_counter() - start

    return case


def steps() -> Iterator[Step]:
    for number, turn in zip(count(), turns(place("deepseek", "deepseek-reasoner")), strict=False):
        yield Step(f"step-{number}", turn.answer, number)


def later(steps: Iterator[Step]) -> Step:
    """The second: the first has what only the first request's record tells."""
    next(steps)
    return next(steps)


def _sync_seconds(directory: Path) -> float:
    """Median of a 4 KiB overwrite and fdatasync: what the disk itself costs."""
    taken: list[float] = []
    with open(directory / "sync", "wb", buffering=0) as file:
        for _ in range(60):
            start = perf_counter()
            os.pwrite(file.fileno(), b"x" * 4096, 0)
            os.fdatasync(file.fileno())
            taken.append(perf_counter() - start)
    return median(taken)


def _rate(durability: Durability, quick: bool) -> Figure:
    payload = sum(len(commit.payload) for commit in sealed(list(later(steps()).drafts), Head(), 0))
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as name, ExitStack() as closing:
        directory = Path(name)
        cases = {
            "thinkback": ours(directory / "thinkback.db", durability, steps(), closing, BLOCKS[durability]),
            "rows": plain(directory / "rows.db", durability, steps(), closing, joined=False),
            "joined": plain(directory / "joined.db", durability, steps(), closing, joined=True),
        }
        samples = interleaved(cases, rounds=5 if quick else 15)
        sync = _sync_seconds(directory)
    rate, joined = samples.ratio("rows", "thinkback"), samples.ratio("joined", "thinkback")
    aim = durability == "full"
    return Figure(
        f"append.{durability}",
        BLOCKS[durability] / samples.median("thinkback"),
        "responses/s",
        rate.value,
        {"one row a response, joined": joined.value},
        ">= 0.5x the rate of one plain table" if aim else "",
        rate.value >= 0.5 if aim else None,
        rate.noise,
        f"6 commits, {payload} B of payload a response; plain table: a row a commit, "
        f"{BLOCKS[durability] / samples.median('rows'):.0f}/s; fdatasync {sync * 1e6:.0f} us",
    )


# NORMAL is there for comparison.
GROUP = Group("append", (partial(_rate, "full"), partial(_rate, "normal")))
