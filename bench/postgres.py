"""Durable append to PostgreSQL: one response, one transaction, kept by the server when the call returns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from time import perf_counter

import psycopg

from bench.append import later, steps
from bench.conversation import sealed
from bench.measure import Case, Figure, Group, interleaved
from tests.stores.postgres_server import Server
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Head, Step
from thinkback.stores import Durability, open_store

# Responses in a sample: few, so that what else the disk does meanwhile meets all cases alike.
BLOCKS: dict[Durability, int] = {"full": 30, "normal": 100}


def ours(url: str, durability: Durability, steps: Iterator[Step], closing: ExitStack) -> Case:
    """The subject: responses sealed and appended, with hashes, indexes, ref, step id and compression."""
    store = open_store(url, durability)
    closing.callback(store.close)
    session = store.create_session("bench", "bench", 0).id
    head = Head()

    def case() -> float:
        nonlocal head
        given = [next(steps) for _ in range(BLOCKS[durability])]
        start = perf_counter()
        for step in given:
            commits = seal(step, head)
            store.append(session, step.id, commits, head)
            head = head_of(commits)
        return perf_counter() - start

    return case


def plain(url: str, durability: Durability, steps: Iterator[Step], closing: ExitStack, *, joined: bool) -> Case:
    """The limit: the same payload bytes into one plain table as psycopg's manual does it, a transaction per response.

    The bytes are made beforehand; a row for each commit, or all of a response joined in one row.
    """
    db = closing.enter_context(psycopg.connect(url, autocommit=True))
    db.execute(f"SET synchronous_commit = {'on' if durability == 'full' else 'off'}")
    table = "joined" if joined else "plain"
    db.execute(f"CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea NOT NULL)")
    insert = f"INSERT INTO {table} (payload) VALUES (%s)"

    def case() -> float:
        given = [[(commit.payload,) for commit in seal(next(steps), Head())] for _ in range(BLOCKS[durability])]
        if joined:
            given = [[(b"".join(payload for (payload,) in rows),)] for rows in given]
        start = perf_counter()
        for rows in given:
            with db.transaction(), db.cursor() as cursor:
                cursor.executemany(insert, rows)
        return perf_counter() - start

    return case


def _rate(durability: Durability, quick: bool) -> Figure:
    payload = sum(len(commit.payload) for commit in sealed(list(later(steps()).drafts), Head(), 0))
    with Server(durable=True) as server, ExitStack() as closing:
        url = server.make_database("bench")
        cases = {
            "thinkback": ours(url, durability, steps(), closing),
            "rows": plain(url, durability, steps(), closing, joined=False),
            "joined": plain(url, durability, steps(), closing, joined=True),
        }
        samples = interleaved(cases, rounds=15 if quick else 60, warm_up=3)
    rate, joined = samples.ratio("rows", "thinkback"), samples.ratio("joined", "thinkback")
    aim = durability == "full"
    return Figure(
        f"postgres.{durability}",
        BLOCKS[durability] / samples.median("thinkback"),
        "responses/s",
        rate.value,
        {"one row a response, joined": joined.value},
        ">= 0.6x the rate of one plain table" if aim else "",
        rate.value >= 0.6 if aim else None,
        rate.noise,
        f"6 commits, {payload} B of payload a response, over a unix socket; plain table: a row a commit, "
        f"{BLOCKS[durability] / samples.median('rows'):.0f}/s",
    )


GROUP = Group("postgres", (partial(_rate, "full"), partial(_rate, "normal")))
