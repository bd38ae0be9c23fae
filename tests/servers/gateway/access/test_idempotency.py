"""Idempotency keys: one answer, told again; a failure is tried again; a process that dies blocks nobody for long."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from tests.servers.gateway.harness.offices import Clock, Troubled
from tests.servers.gateway.harness.steps import SECRET
from thinkback.proxy.problems import Refused
from thinkback.proxy.report import Report
from thinkback.servers.gateway.access import idempotency
from thinkback.servers.gateway.access.idempotency import LEASE, Idempotency
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.incoming import ClientGone, Incoming, Notes, Sink
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.wire.writing import Problem


class Client:
    """A sink that keeps what it is sent."""

    def __init__(self) -> None:
        self.notes, self.stop = Notes(), None
        self.status, self.headers, self.body, self.ended = 0, dict[str, str](), b"", False

    stop: Problem | None

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, dict(headers)

    async def write(self, data: bytes) -> None:
        self.body += data

    async def end(self, data: bytes = b"") -> None:
        self.body += data
        self.ended = True


class Engine:
    """Answers with a number of its own, in pieces; ``wait`` holds every answer up."""

    def __init__(self, status: int = 200, failure: str = "", error: BaseException | None = None) -> None:
        self.status, self.failure, self.error = status, failure, error
        self.answered = 0
        self.wait: asyncio.Event | None = None
        self.began = asyncio.Event()

    async def __call__(self, incoming: Incoming, sink: Sink) -> None:
        self.answered += 1
        self.began.set()
        if self.wait is not None:
            await self.wait.wait()
        await sink.start(self.status, {"content-type": "text/event-stream", "thinkback-session": "s"})
        await sink.write(b"answer ")
        if self.error is not None:
            raise self.error
        sink.notes.report = Report(failure=self.failure)
        await sink.end(b"%d" % self.answered)


class Gateway:
    """Idempotency on an office of its own, by a clock that ``pause`` moves."""

    def __init__(self, place: Path, blind: bool = False) -> None:
        self.office, self.clock, self.pauses = cast(Any, Troubled(place)), Clock(), list[float]()
        self.held, self.resumed = asyncio.Event(), asyncio.Event()
        self.resumed.set()
        self.once = Idempotency(
            self.office, Sealer(SECRET), keep_for=3600, blind=blind, now=self.clock.micros, pause=self._pause
        )

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if seconds == LEASE / 3:
            await self.held.wait()
            self.held.clear()
        await self.resumed.wait()
        await asyncio.sleep(0)

    async def ask(self, engine: Engine, sink: Client | None = None, **changes: Any) -> Client:
        """One request with an idempotency key."""
        client = sink or Client()
        await self.once.respond(request(**changes), client, engine)
        return client

    async def refusal(self, engine: Engine, **changes: Any) -> tuple[int, str]:
        """Status and code of its refusal."""
        with pytest.raises(Refused) as caught:
            await self.ask(engine, **changes)
        return caught.value.status, caught.value.code


def request(**changes: Any) -> Incoming:
    """A request with an idempotency key."""
    made = Incoming.of("openai-chat", b'{"model":"m"}', {"idempotency-key": "retry-1"}, Grant("k", "acme"), "req-1")
    own = {name: changes.pop(name) for name in ("grant", "id") if name in changes}
    return made._replace(request=made.request._replace(**changes), **own)


def test_an_answer_is_given_again_as_it_was(tmp_path: Path) -> None:
    """Status, headers and body are the first one's, with a header that says so; the engine is asked once."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine(201)
        first, second = await gateway.ask(engine), await gateway.ask(engine)
        assert (201, b"answer 1", True) == (first.status, first.body, first.ended)
        assert (201, b"answer 1", True) == (second.status, second.body, second.ended)
        assert {**first.headers, "idempotent-replayed": "true"} == second.headers
        assert "idempotent-replayed" not in first.headers
        assert 1 == engine.answered
        assert not any(b"answer 1" in file.read_bytes() for file in tmp_path.iterdir())
        gateway.clock.wait(3601)
        assert b"answer 2" == (await gateway.ask(engine)).body

    asyncio.run(run())


def test_requests_without_a_key_are_answered_each(tmp_path: Path) -> None:
    """Nothing is looked up or kept for them, nor for those of whom nothing may be kept."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        off = Grant("k", "acme", recording="off")
        ways: list[dict[str, Any]] = [{"headers": {}}, {"headers": {}}, {"grant": off}]
        asked = [await gateway.ask(engine, **way) for way in ways]
        assert [b"answer 1", b"answer 2", b"answer 3"] == [client.body for client in asked]
        assert [] == gateway.office.calls

    asyncio.run(run())


def test_a_key_stands_for_one_request_of_one_client(tmp_path: Path) -> None:
    """Another body, dialect or setting with the same key is refused; another client's key is another one."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        await gateway.ask(engine)
        others: list[dict[str, Any]] = [
            {"body": b'{"model":"n"}'},
            {"front": "anthropic"},
            {"model": "other"},
            {"streams": True},
            {"headers": {"idempotency-key": "retry-1", "thinkback-set": "reasoning.effort=high"}},
        ]
        for other in others:
            assert (422, "idempotency_key_reused") == await gateway.refusal(engine, **other)
        for grant in (Grant("other", "acme"), Grant("k", "other")):
            assert b"answer" in (await gateway.ask(engine, grant=grant)).body
        assert 3 == engine.answered
        for name in ("x" * 256, "a\nb"):
            assert (400, "idempotency_key") == await gateway.refusal(engine, headers={"idempotency-key": name})

    asyncio.run(run())


def test_who_asks_meanwhile_gets_the_same_answer(tmp_path: Path) -> None:
    """Ten at once, on two processes: one is answered, the others wait for it."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        other = Gateway(tmp_path)
        engine.wait = asyncio.Event()
        first = asyncio.ensure_future(gateway.ask(engine))
        await engine.began.wait()
        for each in (gateway, other):
            each.resumed.clear()
        others = [asyncio.ensure_future(each.ask(engine)) for each in (gateway, other) for _ in range(4)]
        while len(gateway.pauses) + len(other.pauses) < len(others):
            await asyncio.sleep(0)
        engine.wait.set()
        answered = await first
        for each in (gateway, other):
            each.resumed.set()
        assert {b"answer 1"} == {client.body for client in [answered, *await asyncio.gather(*others)]}
        assert 1 == engine.answered

    asyncio.run(run())


def test_who_has_waited_long_enough_is_told_to_come_again(tmp_path: Path) -> None:
    """A 409 that says when."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        engine.wait = asyncio.Event()
        first = asyncio.ensure_future(gateway.ask(engine))
        await engine.began.wait()
        assert (409, "idempotency_under_way") == await gateway.refusal(engine)
        assert idempotency.WAIT <= sum(gateway.pauses[1:]) <= idempotency.WAIT + 1
        engine.wait.set()
        await first

    asyncio.run(run())


@pytest.mark.parametrize(
    "failed",
    [
        {"status": 500},
        {"status": 429},
        {"status": 400},
        {"failure": "network"},
        {"error": ValueError("of the engine")},
        {"error": ClientGone()},
        {"error": asyncio.CancelledError()},
    ],
)
def test_a_failure_is_tried_again(tmp_path: Path, failed: dict[str, Any]) -> None:
    """An error, a stream that broke off, a client that left: nothing is kept, and the next request is answered."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine(**failed)
        with suppress(ValueError, ClientGone, asyncio.CancelledError):
            await gateway.ask(engine)
        assert b"answer 1" == (await gateway.ask(Engine())).body

    asyncio.run(run())


def test_a_client_that_leaves_gives_the_claim_up(tmp_path: Path) -> None:
    """The task is cancelled in the middle, and the next request need not wait."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        engine.wait = asyncio.Event()
        task = asyncio.ensure_future(gateway.ask(engine))
        await engine.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gateway.pauses.clear()
        assert b"answer 1" == (await gateway.ask(Engine())).body
        assert [LEASE / 3] == gateway.pauses

    asyncio.run(run())


def test_a_claim_is_renewed_while_it_is_answered_and_ends_with_its_process(tmp_path: Path) -> None:
    """A long answer keeps its claim; after the process has died, another one takes over when the lease is over."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        engine.wait = asyncio.Event()
        first = asyncio.ensure_future(gateway.ask(engine))
        await engine.began.wait()
        for count in range(4):
            gateway.clock.wait(LEASE / 3)
            gateway.held.set()
            while gateway.pauses.count(LEASE / 3) < count + 2:
                await asyncio.sleep(0)
        assert (409, "idempotency_under_way") == await gateway.refusal(Engine())
        gateway.clock.wait(LEASE + 1)  # as if it had died
        assert b"answer 1" == (await gateway.ask(Engine())).body
        engine.wait.set()
        late = await first
        assert b"answer 1" == late.body
        assert "true" == (await gateway.ask(Engine())).headers["idempotent-replayed"]

    asyncio.run(run())


def test_an_answer_is_kept_before_its_end_goes_out(tmp_path: Path) -> None:
    """A client that has read the end can never be answered anew."""

    async def run() -> None:
        gateway = Gateway(tmp_path)

        class Reading(Client):
            async def end(self, data: bytes = b"") -> None:
                again = await gateway.ask(Engine())
                assert "true" == again.headers["idempotent-replayed"]
                await super().end(data)

        assert (await gateway.ask(Engine(), Reading())).ended

    asyncio.run(run())


def test_an_answer_that_is_too_large_is_not_kept_and_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes out whole, once; who asks again is told."""

    async def run() -> None:
        monkeypatch.setattr(idempotency, "LARGEST", 7)
        gateway, engine = Gateway(tmp_path), Engine()
        assert b"answer 1" == (await gateway.ask(engine)).body
        assert (409, "idempotency_too_large") == await gateway.refusal(engine)
        assert 1 == engine.answered

    asyncio.run(run())


def test_an_answer_whose_secret_is_gone_is_not_made_twice(tmp_path: Path) -> None:
    """It cannot be read any more, and is not made again either."""

    async def run() -> None:
        gateway = Gateway(tmp_path)
        await gateway.ask(Engine())
        gateway.once = Idempotency(gateway.office, Sealer(b"another secret that is long enough, too"))
        assert (409, "idempotency_lost") == await gateway.refusal(Engine())

    asyncio.run(run())


def test_a_database_in_trouble_refuses_or_passes_as_configured(tmp_path: Path) -> None:
    """By itself a 503; where it may pass, the request is answered, and that it was not kept is noted."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        gateway.office.trouble = True
        assert (503, "store_unavailable") == await gateway.refusal(engine)
        passing = Gateway(tmp_path, blind=True)
        passing.office.trouble = True
        client = await passing.ask(engine)
        assert ("store", b"answer 1") == (client.notes.degraded, client.body)

    asyncio.run(run())


def test_an_answer_goes_out_though_it_cannot_be_kept(tmp_path: Path) -> None:
    """The database goes away while it is made."""

    async def run() -> None:
        gateway, engine = Gateway(tmp_path), Engine()
        engine.wait = asyncio.Event()
        asked = asyncio.ensure_future(gateway.ask(engine))
        await engine.began.wait()
        gateway.office.trouble = True
        engine.wait.set()
        client = await asked
        assert ("store", b"answer 1", True) == (client.notes.degraded, client.body, client.ended)

    asyncio.run(run())
