"""Who runs a gateway is told: faults show, a full disk and an end are orderly, lost reasoning is no success."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Inside
from tests.servers.gateway.harness.house import House, chat
from tests.servers.gateway.harness.running import Reply, Running
from tests.world.gateway import gateway
from tests.world.mind import Json, Mood
from tests.world.server import PLACES, World

ROOT = Path(__file__).parents[2]
_FAMILY = re.compile(r"\bthinkback_\w+")


def body(provider: str, *said: str) -> Json:
    """A request of a client that keeps texts alone: questions and answers in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
    return {"model": f"{provider}/{PLACES[provider].model}", "messages": messages}


def ask(house: Running, request: Json) -> Reply:
    """A request of a client without a key."""
    return house.ask("/v1/chat/completions", request, key=None)


def families(metrics: str) -> set[str]:
    """The families of a page of metrics."""
    return set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))


def alerts() -> str:
    """The expressions that are to alert: those of rule files, or else those of the page."""
    files = [text for path in (ROOT / "deploy").rglob("*.y*ml") if "alert:" in (text := path.read_text())]
    if files:
        lines = [line for text in files for line in text.splitlines()]
        return "\n".join(line for line in lines if not re.match(r"\s*(- )?(alert|name|#)", line))
    page = (ROOT / "docs" / "operating.md").read_text()
    return page.partition("Alert on these:")[2].partition("**7.")[0]


# -- what is measured --------------------------------------------------------------------------------------------------


def test_what_alerts_name_is_measured_by_default(world: World, tmp_path: Path) -> None:
    """States from the start of a gateway as it is installed, counts once there was something to count."""
    said = alerts()
    named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in _FAMILY.findall(said)}
    with gateway(world, tmp_path) as house:
        first = families(house.ask("/metrics", key=None).body.decode())
        ask(house, body("kimi", "Why?"))
        world.mood = Mood(status=500)
        ask(house, body("kimi", "Why?"))
        world.mood = Mood()
        leave(house, world)
        assert _holds(lambda: named <= families(house.ask("/metrics", key=None).body.decode())), named
    counted = {name for name in named if name.endswith(("_total", "_seconds")) and "started" not in name}

    assert named - counted <= first
    assert "rises" not in said


def leave(house: Running, world: World) -> None:
    """A client that goes away before the first byte of its answer."""
    data = json.dumps({**body("kimi", "Why?"), "stream": True}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    world.gate.clear()
    while world.arrived.acquire(blocking=False):
        continue
    with house.connect() as connection:
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        assert world.arrived.acquire(timeout=20)
    world.gate.set()


def test_an_upstream_that_fails_moves_a_measure_that_alerts_name(world: World, tmp_path: Path) -> None:
    """Three of four providers answer 500: the measure says which."""
    said = set(_FAMILY.findall(alerts()))
    with gateway(world, tmp_path) as house:
        ask(house, body("kimi", "Why?"))
        before = house.ask("/metrics", key=None).body.decode().splitlines()
        world.mood = Mood(status=500)
        for _ in range(6):
            assert ask(house, body("deepseek", "Why?")).status >= 500
        after = house.ask("/metrics", key=None).body.decode().splitlines()
    moved = [line for line in after if line not in before and "deepseek" in line]

    assert [line for line in moved if _FAMILY.match(line) and _FAMILY.findall(line)[0] in said], moved


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 160 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("no disk may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_known_before_the_provider_is_asked(world: World, small_disk: Path, cli: Inside) -> None:
    """Not ready; requests are refused, and nobody pays for them; an erasure works; with room all is well again."""
    ballast = small_disk / "ballast"
    with gateway(world, small_disk / "store") as house:
        assert 200 == ask(house, body("kimi", "Why?")).status
        assert 200 == house.ask("/readyz", key=None).status
        _fill(ballast, shutil.disk_usage(small_disk).free - 300_000)
        assert _becomes(house, 503), house.ask("/readyz", key=None).body
        asked = len(world.exchanges)
        replies = [ask(house, body("kimi", f"{'Why? ' * 20_000} {n}")) for n in range(5)]
        assert [503] * 5 == [reply.status for reply in replies]
        assert asked == len(world.exchanges)
        done = cli("purge", "--before", "2099-01-01", "--yes", "--db", str(small_disk / "store" / "default.db"))
        assert 0 == done.code, done.err
        assert re.search(r"^thinkback_\w*disk\w*.* \d", house.ask("/metrics", key=None).body.decode(), re.MULTILINE)
        ballast.unlink()
        assert _becomes(house, 200), house.ask("/readyz", key=None).body
        assert 200 == ask(house, body("kimi", "And now?")).status


def _fill(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(b"\0" * size)


def _becomes(house: Running, status: int) -> bool:
    """Whether ``/readyz`` comes to answer that."""
    return _holds(lambda: house.ask("/readyz", key=None).status == status)


def _holds(claim: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it comes to hold."""
    end, turn = time.monotonic() + seconds, threading.Event()
    while not claim():
        if time.monotonic() > end:
            return False
        turn.wait(0.1)
    return True


# -- lost reasoning ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "anthropic", "bedrock"])
def test_reasoning_that_the_provider_refused_is_not_reported_as_complete(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """The provider's key is one of another account: the answer comes without the earlier reasoning, and it is said."""
    with gateway(world, tmp_path) as house:
        first = ask(house, body(provider, "Why?"))
    said = first.json["choices"][0]["message"]["content"]
    monkeypatch.setenv("WORLD_KEY", "sk-of-another-account")
    with gateway(world, tmp_path) as house:
        second = ask(house, body(provider, "Why?", said, "And why that?"))
        metrics = house.ask("/metrics", key=None).body.decode()
    sent = world.of(provider)

    assert (200, 200) == (first.status, second.status)
    assert [] == sent[-1].carried or "drop_block" in str(sent[-1].body)
    assert not second.headers["thinkback-reattach"].startswith("complete"), second.headers["thinkback-reattach"]
    assert not re.search(r"^thinkback_reattach_total.*complete.* [1-9]", metrics, re.MULTILINE)


# -- the end -----------------------------------------------------------------------------------------------------------


def test_a_gateway_of_two_workers_ends_without_a_connection_that_hangs(world: World, tmp_path: Path) -> None:
    """While an answer is open: who comes anew is served, told to go elsewhere, or refused at once."""
    text = "workers = 2\nno_auth = true\ndrain_timeout = 20\n"
    house = House(tmp_path / "house", world.url("deepseek"), str(tmp_path / "store"), text)
    try:
        world.gate.clear()
        replies: list[Any] = []
        open_one = threading.Thread(target=lambda: replies.append(house.ask(chat(["Why?"], stream=False))))
        open_one.start()
        assert world.arrived.acquire(timeout=20)
        house.process.terminate()
        outcomes, turn = [], threading.Event()
        for _ in range(30):
            outcomes.append(_outcome(house.port))
            if outcomes[-1] == "hangs":
                break
            turn.wait(0.1)
        world.gate.set()
        open_one.join(30)

        assert {"served", "503", "refused"} >= set(outcomes), outcomes
        assert "refused" == outcomes[-1]
        assert [200] == [reply.status for reply in replies]
        assert 0 == house.process.wait(30)
    finally:
        world.gate.set()
        if house.process.poll() is None:
            house.kill()


def _outcome(port: int) -> str:
    """What becomes of a new connection that asks for ``/readyz``."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
        return "served" if status == 200 else str(status)
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "hangs"
    except (ConnectionError, http.client.HTTPException):
        return "reset"
    finally:
        connection.close()
