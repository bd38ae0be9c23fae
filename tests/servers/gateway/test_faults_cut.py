"""An upstream that breaks off: whole events, then an error of the client's dialect, and what came is in the log."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from tests.servers.gateway.harness.cuts import MODELS, PLACES, STREAMS, TEXT, asked, read, whole_events
from tests.servers.gateway.harness.engines import KEY, Kept, Plays, ask, engine
from thinkback.errors import NetworkError, StoreError
from thinkback.log.protocol import AppendRequest
from thinkback.model.blocks import Text
from thinkback.model.commits import Response
from thinkback.servers.gateway.config.schema import Config, Routing
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.stores import open_store

FRONTS: tuple[str, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
PATIENT = Config(routing=Routing(breaker_failures=1_000_000))
GONE = NetworkError("gone", details={"phase": "network", "permanent": True})


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)


class Cut:
    """An engine before an upstream whose stream ends where a test says."""

    def __init__(self, upstream: str, log: Any = None) -> None:
        self.pieces: list[bytes | Exception] = []
        self.transport = Plays(lambda body: (200, "text/event-stream", self.pieces))
        self.engine: Engine = engine(self.transport, PLACES, log, config=PATIENT)
        self.upstream = upstream

    def ask(self, front: str, at: int, *ending: Exception) -> Kept:
        """One request, answered with the first ``at`` bytes and ``ending``."""
        self.pieces = [STREAMS[self.upstream][:at], *ending]
        body, model = asked(front, MODELS[self.upstream], f"What is it, after {at}?")
        return ask(self.engine, front, body, model=model, streams=True if model else None)


def check(cut: Cut, front: str, at: int, *ending: Exception) -> Kept:
    """What must hold wherever a stream ends; the response."""
    sent = len(cut.transport.sent)
    kept = cut.ask(front, at, *ending)
    found = read(front, kept)
    history = cut.engine.logs.of("default").read(kept.headers["thinkback-session"])
    headers = [commit.value for commit in history if isinstance(commit.value, Response)]
    stored = "".join(commit.value.text for commit in history if isinstance(commit.value, Text) and commit.response)

    assert kept.ended
    assert sent + 1 == len(cut.transport.sent)
    if kept.status == 200:
        assert whole_events(kept.body)
    assert found.whole != bool(found.error), (found, kept.body)
    assert TEXT.startswith("".join(found.texts))
    assert stored.startswith("".join(found.texts))
    assert 1 == sum(commit.kind == "user" for commit in history)
    assert [found.whole] * len(headers) == [header.complete for header in headers]
    if found.whole:
        assert ([TEXT], TEXT) == (["".join(found.texts)], stored)
    return kept


def places(upstream: str) -> Sequence[int]:
    """Some in every event, and each about the last two, where a response becomes whole."""
    stream = STREAMS[upstream]
    last = stream.rindex(b"\n\n", 0, -2)
    around = [at for at in range(last - 40, len(stream)) if at - last < 40 or len(stream) - at < 40]
    return [*range(1, last - 40, 37), *around]


@pytest.mark.parametrize("ending", [(GONE,), ()], ids=["broken", "ended"])
@pytest.mark.parametrize("front", FRONTS)
def test_cut_of_a_stream(front: str, ending: Sequence[Exception]) -> None:
    """In the client's own dialect: by an error of the network, and by an end that comes too soon."""
    cut = Cut(front)
    for at in places(front):
        check(cut, front, at, *ending)
    assert 200 == check(cut, front, len(STREAMS[front])).status


@pytest.mark.parametrize(("front", "upstream"), list(itertools.permutations(FRONTS, 2)))
def test_cut_of_a_translated_stream(front: str, upstream: str) -> None:
    """Where every event is written anew."""
    cut = Cut(upstream)
    for at in range(1 + FRONTS.index(front), len(STREAMS[upstream]), 29):
        check(cut, front, at, GONE)
    assert 200 == check(cut, front, len(STREAMS[upstream])).status


@pytest.mark.soak
@pytest.mark.parametrize("ending", [(GONE,), ()], ids=["broken", "ended"])
@pytest.mark.parametrize(("front", "upstream"), list(itertools.product(FRONTS, FRONTS)))
def test_cut_at_every_byte(front: str, upstream: str, ending: Sequence[Exception]) -> None:
    """All of them."""
    cut = Cut(upstream)
    for at in range(1, len(STREAMS[upstream])):
        check(cut, front, at, *ending)


class Full:
    """A log that can be read, and not be written."""

    def __init__(self) -> None:
        self._log = open_store(":memory:")

    def __getattr__(self, name: str) -> Any:
        return self if name == "recognition" else getattr(self._log, name)

    def record(self, entry: AppendRequest) -> bool:
        raise StoreError("the disk is full")


@pytest.mark.parametrize(("front", "upstream"), list(itertools.product(FRONTS, FRONTS)))
def test_response_that_cannot_be_stored_is_not_whole(front: str, upstream: str) -> None:
    """Its client has read all of its text, and then an error in the place of the last event."""
    cut = Cut(upstream, Full())
    found = read(front, cut.ask(front, len(STREAMS[upstream])))

    assert (TEXT, False, True) == ("".join(found.texts), found.whole, "store" in found.error)
