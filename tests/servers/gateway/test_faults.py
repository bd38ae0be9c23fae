"""Processes that are killed, gateways that share a database: no acknowledged step is lost, none is there twice."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.effort import Effort
from tests.servers.gateway.harness.house import REPLAYS, House, Provider, Reply, answer, found, thought, wait_until
from thinkback.servers.gateway.access.keys import LIFE

Houses = Callable[..., House]
TWO = "workers = 2\nno_auth = true\n"


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An upstream."""
    with Provider() as running:
        yield running


@pytest.fixture
def houses(tmp_path: Path, provider: Provider) -> Iterator[Houses]:
    """Starts gateways, and ends what a test left running."""
    open_now: list[House] = []

    def start(store: str, text: str) -> House:
        open_now.append(House(tmp_path / f"house-{len(open_now)}", provider.url, store, text))
        return open_now[-1]

    yield start
    for house in open_now:
        if house.process.poll() is None:
            house.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where conversations are kept."""
    return str(tmp_path / "store") if request.param == "sqlite" else str(request.getfixturevalue("database"))


def tried(house: House, question: str) -> Reply | None:
    """What a client reads; ``None`` where its connection broke before anything came."""
    with suppress(OSError, HTTPException):
        return house.talk([question])
    return None


def check_acknowledged(house: House, provider: Provider, store: str, questions: list[str]) -> None:
    """Each is known to whoever is asked next, and in the log once."""
    for question in questions:
        later = f"And behind {question}?"
        reply = house.talk([question, later], [answer(question)], **REPLAYS)
        sent = next(body for body in provider.asked if body["messages"][-1]["content"] == later)
        assert (200, "complete") == (reply.status, reply.headers["thinkback-reattach"])
        assert thought(question) == sent["messages"][1]["reasoning_content"]
    log = found(store)
    assert dict.fromkeys(questions, 1) == {each: log.thoughts[thought(each)] for each in questions}
    assert {1} == set(log.thoughts.values())
    assert [] == log.problems


def holds_more(kept: list[str], count: int) -> bool:
    """Whether there are so many."""
    return len(kept) >= count


def serve(house: House, count: int) -> bool:
    """Whether so many workers have begun to serve."""
    return len(workers(house)) == count


def workers(house: House) -> list[int]:
    """The processes that serve, the last that began last."""
    return [int(row["pid"]) for row in house.events("listening")]


def test_worker_killed_in_the_middle_of_streams(houses: Houses, provider: Provider, store: str) -> None:
    """What its clients had read whole stays; those of the other worker read on; another one takes its place."""
    house = houses(store, TWO)
    first = [f"first {n}" for n in range(4)]
    assert all(reply is not None and reply.is_acknowledged for reply in (tried(house, each) for each in first))
    held = [f"second {n} [hold]" for n in range(8)]
    with ThreadPoolExecutor(8) as clients:
        replies = [clients.submit(tried, house, question) for question in held]
        for _ in held:
            assert provider.held.acquire(timeout=30)
        os.kill(workers(house)[0], signal.SIGKILL)
        wait_until(lambda: house.events("worker_died"), "the worker is missed")
        provider.release.set()
        read = {q: reply.result() for q, reply in zip(held, replies, strict=True)}
    wait_until(lambda: len(workers(house)) == 3, "another worker serves")
    whole = [question for question, reply in read.items() if reply is not None and reply.is_acknowledged]

    assert all(
        answer(question) == (reply.text if reply else "") for question, reply in read.items() if question in whole
    )
    check_acknowledged(house, provider, store, first + whole)
    assert 0 == house.stop()


def test_workers_killed_under_load(houses: Houses, provider: Provider, store: str, effort: Effort) -> None:
    """Wherever a worker is in a request: before it, in its stream, between its end and its record."""
    house = houses(store, TWO)
    over, lock = threading.Event(), threading.Lock()
    acknowledged: list[str] = []

    def client(number: int) -> None:
        count = 0
        while not over.is_set():
            question = f"client {number} asks {count}"
            reply = tried(house, question)
            if reply is not None and reply.is_acknowledged:
                with lock:
                    acknowledged.append(question)
            count += 1

    with ThreadPoolExecutor(3) as clients:
        running = [clients.submit(client, number) for number in range(3)]
        try:
            for kill in range(effort.rounds(1, 6)):
                enough, workers_then = len(acknowledged) + 20, 3 + kill
                wait_until(partial(holds_more, acknowledged, enough), "requests are answered")
                os.kill(workers(house)[kill], signal.SIGKILL)
                wait_until(partial(serve, house, workers_then), "another worker serves")
        finally:
            over.set()
        for each in running:
            each.result()

    log = found(store)
    assert [] == [question for question in acknowledged if log.thoughts[thought(question)] != 1]
    check_acknowledged(house, provider, store, acknowledged[-3:])
    assert 0 == house.stop()


def test_gateways_that_share_a_database(houses: Houses, provider: Provider, database: str) -> None:
    """Whichever is asked: the conversation goes on, keys are known and revoked, a repeated request is answered once."""
    both = [houses(database, ""), houses(database, "")]
    key = json.loads(both[0].keys("create", "shared", "--json"))
    bearer = {"authorization": f"Bearer {key['secret']}"}
    questions = [f"question {n}" for n in range(5)]
    said = [answer(question) for question in questions]
    for n in range(5):
        reply = both[n % 2].talk(questions[: n + 1], said[:n], **REPLAYS, **bearer)
        assert (200, "complete" if n else "not-needed") == (reply.status, reply.headers["thinkback-reattach"])
    sent = [message.get("reasoning_content") for message in provider.asked[-1]["messages"]]
    assert [thought(question) for question in questions[:4]] == sent[1::2]

    before = len(provider.asked)
    once = {**bearer, "idempotency_key": "the same"}
    with ThreadPoolExecutor(2) as clients:
        twice = [clients.submit(house.talk, ["once [hold]"], **once) for house in both]
        assert provider.held.acquire(timeout=30)
        provider.release.set()
        replies = [each.result() for each in twice]
    assert (1, 1) == (len(provider.asked) - before, len({(reply.status, reply.body) for reply in replies}))
    assert replies[0].is_acknowledged

    both[1].keys("revoke", key["id"])
    revoked = time.monotonic()
    wait_until(lambda: {401} == {house.talk(["?"], **bearer).status for house in both}, "the key is revoked")
    assert time.monotonic() - revoked < LIFE + 5
    assert [] == found(database).problems
