"""What is behind the server, put together: keys, budgets, reloading, and the audit log of all that."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from thinkback.errors import StoreError
from thinkback.proxy.problems import Refused
from thinkback.proxy.report import Report
from thinkback.servers.gateway.access.keys import Terms, grant_of, new_key
from thinkback.servers.gateway.config.schema import Config, Logs, Records, Secrets, Server, Store
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import OPEN, Budget, Grant
from thinkback.servers.gateway.incoming import Incoming, Notes, Sink
from thinkback.servers.gateway.running import wiring
from thinkback.servers.gateway.running.upkeep import FIRST_PAUSE
from thinkback.servers.gateway.running.wiring import Wired, open_behind
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import Metrics
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.records import Use
from thinkback.wire.writing import Problem

TERMS = Terms(budget=Budget("total", reasoning=10))


class Client:
    """A sink of which only the notes are looked at."""

    stop: Problem | None = None

    def __init__(self) -> None:
        self.notes = Notes()
        self.headers: Mapping[str, str] = {}

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.headers = headers

    async def write(self, data: bytes) -> None: ...

    async def end(self, data: bytes = b"") -> None: ...


def config(place: Path, **changes: object) -> Config:
    """A configuration with its state and its audit log in ``place``."""
    store = Store(path=str(place / "store"), degraded="pass")
    made = Config(store=store, logs=Logs(audit=str(place / "audit.jsonl")))
    return msgspec.structs.replace(made, **changes)


async def opened(place: Path, **changes: object) -> Wired:
    """What is behind a server with this configuration."""
    return await open_behind(config(place, **changes), Log(Logs(), lambda line: None), Metrics())


async def answers(engine: Engine, incoming: Incoming, sink: Sink) -> None:
    """In place of the engine: answers with 30 tokens, 10 of them reasoning."""
    sink.notes.report = Report(input_tokens=10, output_tokens=20, reasoning_tokens=10)
    await sink.start(200, {})
    await sink.end(b"{}")


def test_a_key_is_let_in_until_its_budget_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What requests use is counted, also over a restart; the same idempotency key is answered once."""

    async def run() -> None:
        behind = await opened(tmp_path)
        office = open_gateway_state(tmp_path / "store")
        secret, row = new_key(TERMS, 1, name="laptop")
        office.keys.create(row)
        with pytest.raises(Refused):
            await behind.admit("tb-wrong", "10.0.0.9")
        grant = await behind.admit(secret, "10.0.0.9")
        assert grant_of(row) == grant
        monkeypatch.setattr(wiring, "respond", answers)
        incoming, clients = (
            Incoming.of("openai-chat", b"{}", {"idempotency-key": "1"}, grant, "r"),
            [Client(), Client()],
        )
        for client in clients:
            async with behind.entered(grant):
                await behind.respond(incoming, client)
        assert ["", "true"] == [client.headers.get("idempotent-replayed", "") for client in clients]
        with pytest.raises(Refused, match=r"10 reasoning tokens in all is spent \(10 used\)"):
            await behind.admit(secret, "10.0.0.9")
        await behind.close()
        assert (2, 10, 20, 10) == office.spending.read(row.id)["total"]
        behind = await opened(tmp_path)
        with pytest.raises(Refused, match="is spent"):
            await behind.admit(secret, "10.0.0.9")
        await behind.close()
        office.close()

    asyncio.run(run())


def test_a_configuration_that_is_read_again_holds_for_the_next_request(tmp_path: Path) -> None:
    """Recording and whether keys are asked for; the audit log has that, the start and the stop."""

    async def run() -> None:
        behind = await opened(tmp_path)
        office = open_gateway_state(tmp_path / "store")
        secret, row = new_key(Terms(), 1)
        office.keys.create(row)
        office.close()
        assert "full" == (await behind.admit(secret, "")).recording
        await behind.configure(config(tmp_path, recording=Records("metadata")))
        assert "metadata" == (await behind.admit(secret, "")).recording
        await behind.configure(config(tmp_path, server=Server(no_auth=True)))
        assert OPEN == await behind.admit("", "")
        await behind.close()
        acts = [json.loads(line)["act"] for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
        assert ["start", "configuration.reloaded", "configuration.reloaded", "stop"] == acts

    asyncio.run(run())


def test_who_is_let_in_without_a_key_has_a_grant_too(tmp_path: Path) -> None:
    """On a gateway that asks for none."""

    async def run() -> None:
        behind = await opened(tmp_path, server=Server(no_auth=True), recording=Records("off"))
        grant: Grant = await behind.admit("", "127.0.0.1")
        assert ("open", "off") == (grant.key, grant.recording)
        assert (await behind.health()).ready
        await behind.close()

    asyncio.run(run())


def test_task_that_fails_is_in_the_body_of_readiness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One key's spending cannot be stored: the gateway stays ready, says so, and goes on with the others."""

    async def run() -> None:
        behind = await opened(tmp_path)
        monkeypatch.setattr(wiring, "respond", answers)
        for key in ("bad\ud800", "good"):
            await behind.respond(Incoming.of("openai-chat", b"{}", {}, Grant(key), "r"), Client())
        async with asyncio.timeout(30):
            while "spending" not in (await behind.health()).parts:
                await asyncio.sleep(0.02)
        found = await behind.health()
        await behind.close()
        office = open_gateway_state(tmp_path / "store")
        assert (True, "fails: UnicodeEncodeError") == (found.ready, found.parts["spending"])
        assert Use(1, 10, 20, 10) == office.spending.read("good")["total"]
        office.close()

    asyncio.run(run())


def test_hundred_requests_at_once_overspend_a_budget_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a budget of one token one request is served; the others are told that it is reserved, and may come again."""

    async def run() -> None:
        behind = await opened(tmp_path)
        office = open_gateway_state(tmp_path / "store")
        secret, row = new_key(Terms(budget=Budget("total", tokens=1)), 1)
        office.keys.create(row)
        ends = asyncio.Event()

        async def waits(engine: Engine, incoming: Incoming, sink: Sink) -> None:
            await ends.wait()
            await answers(engine, incoming, sink)

        async def ask() -> str:
            grant = await behind.admit(secret, "")
            try:
                await behind.respond(Incoming.of("openai-chat", b"{}", {}, grant, "r"), Client())
            except Refused as refused:
                return refused.code
            return "served"

        monkeypatch.setattr(wiring, "respond", waits)
        asked = [asyncio.ensure_future(ask()) for _ in range(100)]
        async with asyncio.timeout(60):
            while sum(each.done() for each in asked) < 99:
                await asyncio.sleep(0.01)
        ends.set()
        outcomes = [await each for each in asked]
        with pytest.raises(Refused, match="is spent"):
            await behind.admit(secret, "")
        await behind.close()
        office.close()
        assert {"served": 1, "budget_reserved": 99} == Counter(outcomes)

    asyncio.run(run())


def test_a_server_that_recovers_is_waited_for(tmp_path: Path) -> None:
    """A worker that starts meanwhile does not end; what is wrong for good is said at once."""
    said = [("57P03", "the database system is starting up"), ("57P03", "the database system is in recovery mode")]
    said.append(("3D000", 'database "logs" does not exist'))
    pauses, lines = list[float](), list[bytes]()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    def refuse(server: socket.socket) -> None:
        for code, text in said:
            fields = b"".join(
                name + value.encode() + b"\0" for name, value in ((b"S", "FATAL"), (b"C", code), (b"M", text))
            )
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"E" + (len(fields) + 5).to_bytes(4) + fields + b"\0")

    with socket.create_server(("127.0.0.1", 0)) as server:
        refusing = threading.Thread(target=refuse, args=(server,))
        refusing.start()
        url = f"postgresql://somebody@127.0.0.1:{server.getsockname()[1]}/logs?sslmode=disable&gssencmode=disable"
        made = Config(store=Store(url=url), secrets=Secrets(current="env:THINKBACK_SECRET"))
        with pytest.raises(StoreError, match="does not exist"):
            asyncio.run(open_behind(made, Log(Logs(format="json"), lines.append), Metrics(), pause))
        refusing.join()
    assert [FIRST_PAUSE, 2 * FIRST_PAUSE] == pauses
    assert ["store_recovers"] * 2 == [json.loads(line)["event"] for line in lines]
