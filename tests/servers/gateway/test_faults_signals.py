"""A configuration read again, and an end in order, while clients are at work."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
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


@pytest.mark.parametrize("workers", [1, 2])
def test_new_connections_are_refused_at_once_while_streams_end(
    provider: Provider, tmp_path: Path, workers: int
) -> None:
    """The system refuses them: none is taken that nobody would answer."""
    house = House(tmp_path / "house", provider.url, str(tmp_path / "store"), SERVER.format(workers=workers, most=100))
    try:
        with ThreadPoolExecutor(1) as clients:
            stream = clients.submit(house.talk, ["one [hold]"])
            assert provider.held.acquire(timeout=30)
            new = socket.create_connection(("127.0.0.1", house.port), timeout=20)
            house.process.send_signal(signal.SIGTERM)
            wait_until(lambda: len(house.events("draining")) == workers, "it drains")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", house.port), timeout=20)
            with closing(new):
                new.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                told = new.recv(65_536)
            provider.release.set()

            assert told.startswith(b"HTTP/1.1 503")
            assert stream.result().is_acknowledged
        assert 0 == house.process.wait(30)
    finally:
        if house.process.poll() is None:
            house.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_not_ready_comes_before_the_end(provider: Provider, tmp_path: Path, workers: int) -> None:
    """For `drain_delay` requests are served, their connections closed behind them; a second signal ends that."""
    text = "drain_delay = 3000\n" + SERVER.format(workers=workers, most=100)
    house = House(tmp_path / "house", provider.url, str(tmp_path / "store"), text)
    try:
        assert 200 == house.get("/readyz").status
        house.process.send_signal(signal.SIGTERM)
        wait_until(lambda: len(house.events("leaving")) == workers, "it is about to end")
        replies = [house.talk([f"question {number}"]) for number in range(4)]

        assert 503 == house.get("/readyz").status
        assert all(reply.is_acknowledged and reply.headers["connection"] == "close" for reply in replies)
        house.process.send_signal(signal.SIGTERM)
        assert house.process.wait(30) in (0, -signal.SIGKILL)
    finally:
        if house.process.poll() is None:
            house.kill()
