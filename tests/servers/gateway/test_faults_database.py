"""A PostgreSQL that goes away and comes back while gateways work on it."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.servers.gateway.harness.house import House, Provider, Reply, found, thought, wait_until
from tests.stores.postgres_server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL that only these tests use, and whose files are synced."""
    with Server(durable=True) as running:
        yield running


@pytest.fixture
def place(server: Server) -> str:
    """The address of a new database on it."""
    return server.make_database(f"faults-{secrets.token_hex(4)}")


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An upstream."""
    with Provider() as running:
        yield running


class Load:
    """Clients that ask, each one question after the other, and what they read. Every answer is looked at."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.replies: list[tuple[str, Reply]] = []
        self.over = threading.Event()

    def ask(self, number: int) -> None:
        """One client."""
        count = 0
        while not self.over.is_set():
            question = f"client {number} asks {count}"
            self.replies.append((question, self.house.talk([question])))
            count += 1

    def wait(self, holds: Callable[[Reply], object], count: int, what: str) -> None:
        """Until so many replies of a kind have come from now on."""
        begun = len(self.replies)
        wait_until(lambda: sum(1 for _, reply in self.replies[begun:] if holds(reply)) >= count, what)

    @property
    def acknowledged(self) -> list[str]:
        """The questions whose answer was read to its end."""
        return [question for question, reply in self.replies if reply.is_acknowledged]


@contextmanager
def load(house: House, clients: int = 2) -> Iterator[Load]:
    """Clients at work."""
    made = Load(house)
    with ThreadPoolExecutor(clients) as executor:
        running = [executor.submit(made.ask, number) for number in range(clients)]
        try:
            yield made
        finally:
            made.over.set()
        for each in running:
            each.result()


def well(reply: Reply) -> bool:
    """Whether it was answered, and stored at once."""
    return reply.is_acknowledged and "thinkback-degraded" not in reply.headers


def check_error(reply: Reply) -> None:
    """A 503 of the gateway, or a stream that ends in one: in the dialect, with when to come again."""
    if reply.status == 200:
        line = next(line for line in reply.body.splitlines() if b'"error"' in line)
        said = json.loads(line.removeprefix(b"data: "))
    else:
        assert (503, True) == (reply.status, int(reply.headers["retry-after"]) > 0), reply
        said = json.loads(reply.body)
    assert isinstance(said["error"]["message"], str)


@pytest.mark.parametrize("degraded", ["refuse", "pass"])
def test_database_restarted_under_load(
    server: Server, place: str, provider: Provider, tmp_path: Path, degraded: str
) -> None:
    """Restarted in order, and at once, and away until clients notice: afterwards the log has what was acknowledged."""
    text = f'no_auth = true\n[store]\nurl = "{place}"\ndegraded = "{degraded}"\nspool = "{tmp_path / "spool"}"\n'
    house = House(tmp_path / "house", provider.url, place, text)
    try:
        with load(house) as clients:
            clients.wait(well, 5, "requests are answered")
            for mode in ("fast", "immediate"):
                server.restart(mode)
                clients.wait(well, 5, f"requests are answered after a restart: {mode}")
            server.crash()
            try:
                clients.wait(lambda reply: not well(reply), 4, "clients notice that the database is away")
            finally:
                server.start()
            clients.wait(well, 5, "requests are answered after the database is back")
        others = [reply for _, reply in clients.replies if not reply.is_acknowledged]
        if degraded == "pass":
            assert [] == others
            wait_until(lambda: spooled(tmp_path / "spool") == 0, "what was spooled is stored")
        for reply in others:
            check_error(reply)
        log = found(place)
        assert dict.fromkeys(clients.acknowledged, 1) == {
            each: log.thoughts[thought(each)] for each in clients.acknowledged
        }
        assert ({1}, []) == (set(log.thoughts.values()), log.problems)
        assert 0 == house.stop()
    finally:
        if house.process.poll() is None:
            house.kill()


def test_gateway_killed_while_steps_wait_in_its_spool(
    server: Server, place: str, provider: Provider, tmp_path: Path
) -> None:
    """Started again, it stores them, each once; the conversation goes on with its reasoning."""
    text = f'no_auth = true\n[store]\nurl = "{place}"\ndegraded = "pass"\nspool = "{tmp_path / "spool"}"\n'
    house = House(tmp_path / "house", provider.url, place, text)
    try:
        assert well(house.talk(["before"]))
        server.crash()
        try:
            with load(house) as clients:
                clients.wait(lambda reply: reply.headers.get("thinkback-degraded") == "store", 4, "requests pass")
            waiting = spooled(tmp_path / "spool")
            house.kill()
        finally:
            server.start()
        house.start()
        wait_until(lambda: spooled(tmp_path / "spool") == 0, "what was spooled is stored")
        log = found(place)

        assert waiting > 0
        assert [] == [reply for _, reply in clients.replies if not reply.is_acknowledged]
        assert {thought(each): 1 for each in ["before", *clients.acknowledged]} == dict(log.thoughts)
        assert [] == log.problems
        assert 0 == house.stop()
    finally:
        if house.process.poll() is None:
            house.kill()


def spooled(place: Path) -> int:
    """Bytes that wait; a file may go while they are counted."""
    waiting = 0
    for each in place.glob("*.spool"):
        with suppress(FileNotFoundError):
            waiting += each.stat().st_size
    return waiting
