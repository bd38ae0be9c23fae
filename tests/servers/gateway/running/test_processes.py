"""A gateway as processes: signals, a configuration that changes, workers that die."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command import SOURCES
from tests.servers.gateway.harness.standin import KEY
from thinkback.servers.gateway.running.workers import send_signal


class Served:
    """A process of ``tests.servers.gateway.harness.served``, its lines as they come."""

    def __init__(self, place: Path, text: str) -> None:
        self.file = place / "gateway.toml"
        self.write(text)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.gateway.harness.served", str(self.file)],
            env={**os.environ, "PYTHONPATH": f"{SOURCES}:{SOURCES.parent}", "THINKBACK_CONFIG_DIR": str(place)},
            cwd=SOURCES.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, object]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.process.stdout is not None
        url = self.process.stdout.readline().strip()
        self.port = int(url.rpartition(":")[2] or 0)

    def write(self, text: str) -> None:
        """Another configuration."""
        self.file.write_text(f'[logs]\nformat = "json"\nlevel = "debug"\n{text}')

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                row = json.loads(line)
            except ValueError:
                row = {"event": "noise", "line": line}
            with self._changed:
                self.lines.append(row)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, event: str, count: int = 1, seconds: float = 30) -> list[dict[str, object]]:
        """The lines of ``event`` once there are ``count``."""

        def found() -> list[dict[str, object]]:
            return [row for row in self.lines if row["event"] == event]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, seconds), self.lines
        return found()

    def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """One request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, data, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """The exit code."""
        code = self.process.wait(30)
        self._reader.join(30)
        return code


Serve = Callable[[str], Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts gateways, and ends what a test left running."""
    started: list[Served] = []

    def start(text: str = "") -> Served:
        started.append(Served(tmp_path, text))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.wait()
        assert each.process.stdout is not None
        assert each.process.stderr is not None
        each.process.stdout.close()
        each.process.stderr.close()


ONE = "[server]\nport = 0\n"
TWO = "[server]\nport = 0\nworkers = 2\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("text", [ONE, TWO], ids=["one", "two"])
def test_a_signal_ends_it_in_order(serve: Serve, text: str, number: int) -> None:
    """Exit code 0, everything closed, nothing complained of."""
    served = serve(text)

    assert 200 == served.ask("/v1/chat/completions", {})[0]
    assert 0 == served.end(number)
    assert [] == [row for row in served.lines if row.get("level") == "error" or row["event"] == "noise"]
    assert served.wait_for("ended", 1 if text == ONE else 2)


@pytest.mark.parametrize("text", [ONE, TWO], ids=["one", "two"])
def test_a_new_configuration_is_taken_without_dropping_anybody(serve: Serve, text: str) -> None:
    """A connection that is open goes on, and its next request is by the new one; a wrong one is told, and not taken."""
    many = 1 if text == ONE else 2
    served = serve(text + "max_body = 2000\n")
    kept = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}

    def status() -> int:
        kept.request("POST", "/v1/chat/completions", b'{"a": "' + b"b" * 3000 + b'"}', headers)
        response = kept.getresponse()
        response.read()
        return response.status

    def small() -> int:
        kept.request("POST", "/v1/chat/completions", b"{}", headers)
        response = kept.getresponse()
        response.read()
        return response.status

    assert 200 == small()
    served.write(text + 'max_body = "much"\n')
    served.process.send_signal(signal.SIGHUP)
    told = served.wait_for("not_reloaded")
    assert 200 == small()
    served.write(text.replace("port = 0", "port = 1") + "max_body = 1000000\n")
    served.process.send_signal(signal.SIGHUP)
    done = served.wait_for("reloaded", many)
    assert 200 == status()
    kept.close()

    assert "server.max_body" in str(told[0]["reason"])
    assert "server.port" == done[0]["needs_restart"]
    assert 0 == served.end()


def test_what_the_engine_refuses_of_a_configuration_is_not_taken(serve: Serve) -> None:
    """Both or neither."""
    served = serve(ONE)
    served.write(ONE + '[models.refused]\ntargets = [{upstream = "openai", model = "m"}]\n')
    served.process.send_signal(signal.SIGHUP)

    assert "models.refused" in str(served.wait_for("not_reloaded")[0]["reason"])
    assert 200 == served.ask("/v1/chat/completions", {})[0]


def pids(served: Served) -> list[int]:
    """The workers that listen."""
    return [int(str(row["pid"])) for row in served.wait_for("listening", 2)]


def test_a_worker_that_dies_is_started_again(serve: Serve) -> None:
    """While it is away the other one serves."""
    served = serve(TWO)
    first = pids(served)[0]
    os.kill(first, signal.SIGKILL)

    assert -signal.SIGKILL == served.wait_for("worker_died")[0]["code"]
    assert 200 == served.ask("/v1/chat/completions", {})[0]
    served.wait_for("listening", 3)
    assert 0 == served.end()


def test_workers_end_when_nobody_watches_them(serve: Serve) -> None:
    """Killed outright, the one who watches leaves no worker behind."""
    served = serve(TWO)
    served.process.kill()

    assert served.wait_for("ended", 2)


def test_a_worker_that_cannot_start_ends_all(serve: Serve) -> None:
    """What keeps one from starting is told once, with a code."""
    served = serve(TWO + '[models.unopened]\ntargets = [{upstream = "openai", model = "m"}]\n')

    assert 2 == served.wait()
    assert 0 == served.port


def test_a_signal_to_a_worker_that_just_ended_is_no_failure() -> None:
    """Nor for who watches, while the loop has not heard of the end."""

    async def ended() -> int | None:
        worker = await asyncio.create_subprocess_exec(sys.executable, "-c", "", stdout=subprocess.DEVNULL)
        with suppress(ChildProcessError):  # asyncio's own thread was first
            os.waitpid(worker.pid, 0)  # the loop does not run meanwhile
        heard = worker.returncode
        send_signal(worker, signal.SIGTERM)
        await worker.wait()
        return heard

    assert asyncio.run(ended()) is None


def test_measures_are_those_of_all_workers(serve: Serve) -> None:
    """Whichever worker is asked."""
    served = serve(TWO)
    for _ in range(8):
        served.ask("/v1/chat/completions", {})
    page = served.ask("/metrics")[1].decode()
    rows = [row for row in page.splitlines() if row.startswith("thinkback_requests_total")]

    assert 8 == sum(int(row.rpartition(" ")[2]) for row in rows)
    assert {'worker="0"', 'worker="1"'} == {
        word for row in page.splitlines() for word in ('worker="0"', 'worker="1"') if word in row
    }
    assert 1 == page.count("# TYPE thinkback_requests_total counter")


def test_two_gateways_cannot_have_one_port(serve: Serve) -> None:
    """The second one says why."""
    first = serve(ONE)
    second = serve(f"[server]\nport = {first.port}\n")

    assert 1 == second.wait()
    assert "cannot listen" in "".join(str(row.get("line", "")) for row in second.lines)
