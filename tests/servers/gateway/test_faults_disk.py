"""A disk that fills while a gateway writes its log and its spool, and has room again later."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.gateway.harness.house import (
    REPLAYS,
    House,
    Provider,
    Reply,
    answer,
    chat,
    found,
    thought,
    wait_until,
)

LARGE = 60_000
"""Letters of a question; none of it can be made smaller."""
ROOM = 1_500_000
"""Bytes that a file of the gateway may have: the log's, its journal's and the spool's."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An upstream."""
    with Provider() as running:
        yield running


def question(number: int) -> str:
    """A large one."""
    return f"{number} {base64.b85encode(random.Random(number).randbytes(LARGE)).decode()}"


def asked_until(house: House, kind: str, start: int = 0) -> tuple[list[str], list[Reply]]:
    """The questions that were answered whole, and the replies, until three in a row are of ``kind``."""
    questions, replies = list[str](), list[Reply]()
    for number in range(start, start + 300):
        reply = house.talk([question(number)])
        replies.append(reply)
        if reply.is_acknowledged:
            questions.append(question(number))
        if len(replies) >= 3 and all(kind == kind_of(each) for each in replies[-3:]):
            return questions, replies
    raise AssertionError(f"no three replies are {kind}: {[kind_of(each) for each in replies]}")


def kind_of(reply: Reply) -> str:
    """``stored``, ``degraded`` or ``refused``; anything else is a fault."""
    if reply.is_acknowledged:
        return reply.headers.get("thinkback-degraded", "stored")
    assert reply.status in (200, 503), reply
    assert b'"error"' in reply.body
    assert "internal" not in reply.body.decode()
    return "refused"


@pytest.mark.parametrize("degraded", ["refuse", "pass"])
def test_disk_that_fills(provider: Provider, tmp_path: Path, degraded: str) -> None:
    """What was acknowledged is in the log once there is room again; what did not fit was refused in the dialect."""
    store = str(tmp_path / "store")
    text = f'no_auth = true\n[store]\npath = "{store}"\ndegraded = "{degraded}"\n'
    house = House(tmp_path / "house", provider.url, store, text, file_limit=ROOM)
    try:
        questions, replies = asked_until(house, "refused")
        assert ("pass" == degraded) == ("store" in {kind_of(each) for each in replies})
        assert 503 == house.ask(chat([question(999)], stream=False)).status
        refused, asked = 20, len(provider.asked)
        assert {503} == {house.talk([question(1000 + number)]).status for number in range(refused)}
        # one may find out, each time that a trial of the disk succeeded
        assert len(provider.asked) - asked < refused
        house.kill()
        house.file_limit = 0
        house.start()
        wait_until(lambda: not list(Path(store).glob("spool/*.spool")), "what was spooled is stored")
        first, later = questions[0], "And then?"
        reply = house.talk([first, later], [answer(first)], **REPLAYS)
        log = found(store)

        assert (200, "complete") == (reply.status, reply.headers["thinkback-reattach"])
        assert [1] * len(questions) == [log.thoughts[thought(each)] for each in questions]
        assert ({1}, []) == (set(log.thoughts.values()), log.problems)
        assert 0 == house.stop()
    finally:
        if house.process.poll() is None:
            house.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_disk_without_room_refuses_before_the_provider_is_asked(
    provider: Provider, tmp_path: Path, workers: int
) -> None:
    """Not ready, with the part named; each request gets a 503, none costs anything; measures say so."""
    store = str(tmp_path / "store")
    text = f'no_auth = true\nworkers = {workers}\n[store]\npath = "{store}"\nmin_free = {2**52}\n'
    house = House(tmp_path / "house", provider.url, store, text)
    try:
        replies = [house.talk([f"question {number}"]) for number in range(3)]
        ready, measures = house.get("/readyz"), house.get("/metrics").body.decode()

        assert [503] * 3 == [reply.status for reply in replies]
        assert all(b"disk_full" in reply.body and "retry-after" in reply.headers for reply in replies)
        assert [] == provider.asked
        assert 503 == ready.status
        assert "MB are free" in json.loads(ready.body)["parts"]["disk of the store"]
        assert re.search(r'thinkback_disk_full\{disk="store"(,worker="0")?\} 1', measures)
        assert 0 == house.stop()
    finally:
        if house.process.poll() is None:
            house.kill()
