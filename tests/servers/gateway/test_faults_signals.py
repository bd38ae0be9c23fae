"""A configuration read again, and an end in order, while clients are at work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers.gateway.harness.house import House, Provider, Reply, found, thought, wait_until

SERVER = "no_auth = true\nworkers = {workers}\n[limits]\nmax_messages = {most}\n"


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An upstream."""
    with Provider() as running:
        yield running


@pytest.mark.parametrize("workers", [1, 2])
def test_reload_fails_no_request(provider: Provider, tmp_path: Path, workers: int) -> None:
    """Read again and again under load: every request is answered, and at the end by the last configuration."""
    store, over = str(tmp_path / "store"), threading.Event()
    house = House(tmp_path / "house", provider.url, store, SERVER.format(workers=workers, most=100))
    replies: list[Reply] = []

    def client(number: int) -> None:
        count = 0
        while not over.is_set():
            replies.append(house.talk([f"client {number} asks {count}"]))
            count += 1

    try:
        with ThreadPoolExecutor(3) as clients:
            running = [clients.submit(client, number) for number in range(3)]
            try:
                for time in range(1, 5):
                    house.configure(SERVER.format(workers=workers, most=5 - time))
                    house.process.send_signal(signal.SIGHUP)
                    wait_until(lambda: len(house.events("reloaded")) >= time * workers, "it is read again")  # noqa: B023
            finally:
                over.set()
            for each in running:
                each.result()
        refused = house.talk(["a", "b"], ["said"])

        assert [] == [reply for reply in replies if not reply.is_acknowledged]
        assert 400 == refused.status
        assert 0 == house.stop()
    finally:
        if house.process.poll() is None:
            house.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_end_in_order_lets_streams_end(provider: Provider, tmp_path: Path, workers: int) -> None:
    """What is open goes on to its last event and is stored; exit code 0."""
    store = str(tmp_path / "store")
    house = House(tmp_path / "house", provider.url, store, SERVER.format(workers=workers, most=100))
    held = [f"{number} [hold]" for number in range(6)]
    try:
        with ThreadPoolExecutor(6) as clients:
            replies = [clients.submit(house.talk, [question]) for question in held]
            for _ in held:
                assert provider.held.acquire(timeout=30)
            house.process.send_signal(signal.SIGTERM)
            wait_until(lambda: len(house.events("draining")) == workers, "it drains")
            provider.release.set()
            read = [reply.result() for reply in replies]

        assert [True] * 6 == [reply.is_acknowledged for reply in read]
        assert 0 == house.process.wait(30)
        log = found(store)
        assert ({thought(question): 1 for question in held}, []) == (dict(log.thoughts), log.problems)
    finally:
        if house.process.poll() is None:
            house.kill()
