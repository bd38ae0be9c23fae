"""A database in trouble: requests pass where the operator allows it, and nothing of them is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import KEY, Plays, ask, commits, engine
from tests.servers.gateway.harness.offices import Clock
from tests.servers.gateway.harness.steps import SECRET
from thinkback.errors import StoreError
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing.failover import REST, Storing
from thinkback.servers.gateway.storing.spool import Drained, Spool
from thinkback.stores import open_store

MODEL = "deepseek/deepseek-v4-pro"
FIRST = [{"role": "user", "content": "Why is the sky blue?"}]
SECOND = [*FIRST, {"role": "assistant", "content": "Rayleigh."}, {"role": "user", "content": "And at night?"}]


class Failing:
    """A log in memory that fails while ``trouble`` is set."""

    def __init__(self) -> None:
        self._log = open_store(":memory:")
        self.trouble = False

    def __getattr__(self, name: str) -> Any:
        if self.trouble and name != "close":
            raise StoreError("the database is in trouble")
        return getattr(self._log, name)


class Place:
    """A gateway on such a log; ``spool``: it may do without."""

    def __init__(self, directory: Path | None) -> None:
        message = {"role": "assistant", "content": "Rayleigh.", "reasoning_content": "Short waves scatter."}
        body = {"id": "1", "model": "served", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        self.log, self.clock = Failing(), Clock()
        self.upstream = Plays(lambda sent: (200, "application/json", [json.dumps(body).encode()]))
        self.engine: Engine = engine(self.upstream, {"deepseek": "http://deepseek.test/v1"}, self.log)
        if directory is not None:
            spool = Spool(directory, Sealer(SECRET))
            self.engine.storing = Storing(self.engine.storing._record, spool, self.clock.seconds)

    def ask(self, messages: list[dict[str, str]]) -> Any:
        """One request."""
        return ask(self.engine, "openai-chat", {"model": MODEL, "messages": messages})


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)


def test_requests_pass_and_are_stored_later(tmp_path: Path) -> None:
    """The answer says what is degraded; later the log has the conversation, and it is recognised as any other."""
    place = Place(tmp_path)
    place.log.trouble = True
    kept = place.ask(FIRST)
    assert (200, "store") == (kept.status, kept.notes.degraded)
    assert "Rayleigh." == kept.json["choices"][0]["message"]["content"]
    second = place.ask(SECOND)
    assert (200, "store", "unavailable") == (second.status, second.notes.degraded, second.notes.report.reattach)
    place.log.trouble = False
    assert Drained(2, 0, 0) == place.engine.storing.drain()
    place.clock.wait(REST)
    third = place.ask(SECOND)
    assert (200, "", "complete") == (third.status, third.notes.degraded, third.notes.report.reattach)
    assert 3 == _said(place.engine).count("reasoning")
    asyncio.run(place.engine.close())


@pytest.mark.parametrize("answers", [True, False], ids=["the log answers again", "the log does not answer"])
def test_an_answer_that_waits_to_be_stored_is_missing(tmp_path: Path, answers: bool) -> None:
    """It is a model's, and its reasoning does not go back: also told once all is stored, for as long as it is there."""
    place = Place(tmp_path)
    place.log.trouble = True
    place.ask(FIRST)
    place.log.trouble = not answers
    place.clock.wait(REST)
    second = place.ask(SECOND)
    assert ("none; missing=1" if answers else "unavailable") == second.notes.report.reattach

    place.log.trouble = False
    place.engine.storing.drain()
    place.clock.wait(REST)
    third = [*SECOND, {"role": "assistant", "content": "Rayleigh."}, {"role": "user", "content": "And on Mars?"}]
    assert "partial; missing=1" == place.ask(third).notes.report.reattach
    asyncio.run(place.engine.close())


def test_a_database_that_goes_away_before_the_answer_is_stored(tmp_path: Path) -> None:
    """It was there to look the history up, and is not there to store what came of it."""
    place = Place(tmp_path)
    place.ask(FIRST)
    real, lost = place.engine.storing._record, list[str]()

    def failing(tenant: str, entry: Any) -> object:
        if lost:
            return real(tenant, entry)
        lost.append(entry.step)
        raise StoreError("the database went away")

    place.engine.storing._record = failing
    kept = place.ask(SECOND)
    assert (200, "store", "complete") == (kept.status, kept.notes.degraded, kept.notes.report.reattach)
    assert Drained(1, 0, 0) == place.engine.storing.drain()
    assert 2 * ["user", "reasoning", "assistant"] == _said(place.engine)
    asyncio.run(place.engine.close())


def test_without_leave_a_request_is_refused_until_the_database_is_back() -> None:
    """A 503 that says when to come again."""
    place = Place(None)
    place.log.trouble = True
    for messages in (FIRST, SECOND):
        kept = place.ask(messages)
        assert (503, True) == (kept.status, "retry-after" in kept.headers)
    place.log.trouble = False
    assert 200 == place.ask(SECOND).status
    asyncio.run(place.engine.close())


def _said(made: Engine) -> list[str]:
    """What kinds of things were said in all sessions of the log, the one that was stored last first."""
    sessions = made.logs.of("default").list_sessions()
    kinds = [commit.kind for info in sessions for commit in commits(made, info.id)]
    return [kind for kind in kinds if kind in ("user", "reasoning", "assistant")]
