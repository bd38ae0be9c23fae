"""The usage log of sessions: a line for each request, with numbers and without text."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.session.chats import KEY, get_weather, open_session
from thinkback.errors import ProviderError, ThinkbackError
from thinkback.observe.usage_log import UsageLog, Watch
from thinkback.session.store import SessionStore
from thinkback_referee import CutAfterBytes, HttpError, Referee, Stall, Step

SECRETS = ("the secret question", "a secret answer", "a secret thought")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "usage.jsonl"


@pytest.fixture
def logged(path: Path) -> Iterator[SessionStore]:
    """A store whose requests are logged."""
    with thinkback.open(":memory:", usage_log=path) as store:
        yield store


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_request_leaves_a_line(logged: SessionStore, referee: Referee, path: Path) -> None:
    """REQ: model, tokens with reasoning and cache, effort asked and sent, both latencies, and the seed's own words."""
    referee.push(Step(reasoning=SECRETS[2], text=SECRETS[1], pace=0.002))
    session = open_session(logged, referee)
    before = time.time()
    reply = session.chat(SECRETS[0], settings={"reasoning.effort": "medium"})
    (row,) = rows(path)
    assert reply.usage is not None
    expected = {
        "session": "chat",
        "message": "Processing responses API query",
        "endpoint": "deepseek",
        "model": "deepseek-v4-pro",
        "effort": "medium",
        "effort_sent": "high",
        "status": 200,
        "outcome": "answered",
        "error": None,
        "attempt": 1,
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.output,
        "reasoning_tokens": reply.usage.reasoning,
        "cost_usd": None,
    }
    assert expected == {key: row[key] for key in expected}
    assert reply.steps[0].commits[0].response == row["request"]
    assert 0 < row["first_reasoning_ms"] <= row["first_answer_ms"] <= row["total_ms"] < 60_000
    assert time.strftime("%Y-%m-%dT%H:%M", time.gmtime(before)) <= row["time"] < "3"


def test_no_text_and_no_key_is_in_it(logged: SessionStore, referee: Referee, path: Path) -> None:
    """Content is off unless a person wants it; a key is in no line either way."""
    referee.push(Step(reasoning=SECRETS[2], text=f"{SECRETS[1]} {KEY}"))
    session = open_session(logged, referee)
    session.chat(SECRETS[0], system="a secret system")
    text = path.read_text()
    assert not any(word in text for word in (*SECRETS, "a secret system", KEY))
    session.set("usage.logContent", True)
    referee.push(Step(reasoning=SECRETS[2], text=f"{SECRETS[1]} {KEY}"))
    session.chat(f"{SECRETS[0]} {KEY}")
    row = rows(path)[-1]
    assert ("the secret question ***", "a secret answer ***") == (row["prompt"], row["answer"])
    assert KEY not in path.read_text()


def test_it_is_off_unless_asked_for(store: SessionStore, logged: SessionStore, referee: Referee, path: Path) -> None:
    """A library writes nothing that nobody asked for, and the setting silences one that does."""
    open_session(store, referee).chat("Hello?")
    open_session(logged, referee).chat("Hello?", settings={"usage.log": False})
    assert not path.exists()


def test_each_request_of_a_turn_has_its_own_line(logged: SessionStore, referee: Referee, path: Path) -> None:
    """A turn with a tool asks twice; the first response has no answer, so no time of one."""
    open_session(logged, referee).chat("What is the weather in Oslo?", tools=[get_weather])
    first, second = rows(path)
    assert ("tool_calls", "answered") == (first["outcome"], second["outcome"])
    assert first["first_answer_ms"] is None
    assert second["first_answer_ms"] > 0
    assert (1, 1) == (first["attempt"], second["attempt"])


def test_attempts_that_failed_are_in_it(logged: SessionStore, referee: Referee, path: Path) -> None:
    """A refusal that is tried again, one that is final, and a stream that breaks."""
    referee.push(
        Step(fault=HttpError(503, "busy", {"retry-after": "0"})),
        Step(text="Yes."),
        Step(fault=HttpError(403, {"error": {"message": SECRETS[0]}})),
        Step(reasoning="one two three four", text="five six", fault=CutAfterBytes(400)),
    )
    session = open_session(logged, referee)
    session.chat("One?")
    with pytest.raises(ProviderError):
        session.chat("Two?")
    with pytest.raises(ThinkbackError):
        session.chat("Three?")
    assert [(503, 1), (200, 2), (403, 1), (200, 1)] == [(row["status"], row["attempt"]) for row in rows(path)]
    assert [None, "answered", None, "cut"] == [row["outcome"] for row in rows(path)]
    assert all(row["total_ms"] is not None for row in rows(path))
    assert SECRETS[0] not in path.read_text()


def test_an_interrupted_request_leaves_a_line(logged: SessionStore, referee: Referee, path: Path) -> None:
    """What had arrived by then is told."""
    referee.push(Step(reasoning="one two three", fault=Stall(60.0)))
    with open_session(logged, referee).stream("Hello?") as stream:
        next(delta for delta in stream if type(delta).__name__ == "ReasoningDelta")
    (row,) = rows(path)
    assert ("cut", "interrupted", None) == (row["outcome"], row["error"], row["first_answer_ms"])
    assert row["first_reasoning_ms"] > 0


def test_asyncio_leaves_the_same_lines(logged: SessionStore, referee: Referee, path: Path) -> None:
    """Both drivers tell the same."""
    session = open_session(logged, referee)
    session.chat("Hello?")
    asyncio.run(session.aio.chat("Hello?"))
    first, second = rows(path)
    assert list(first) == list(second)
    assert first["status"] == second["status"] == 200


def test_a_summary_that_a_model_writes_leaves_a_line(logged: SessionStore, referee: Referee, path: Path) -> None:
    """It is a request too, and costs."""
    session = open_session(logged, referee)
    for at in range(4):
        referee.push(Step(text="Noted. " + "word " * 200))
        session.chat(f"{at}: " + "word " * 200)
    referee.push(Step(text="no summary"))
    with contextlib.suppress(ThinkbackError), pytest.warns(UserWarning, match="the summary is from the log alone"):
        session.compaction.run("model", 1)
    assert len(referee.requests) == len(rows(path)) > 4


def test_a_whole_body_has_its_times_too(logged: SessionStore, referee: Referee, path: Path) -> None:
    """Without a stream reasoning and answer come at once."""
    open_session(logged, referee).chat("Hello?", stream=False)
    (row,) = rows(path)
    assert row["first_reasoning_ms"] <= row["first_answer_ms"] <= row["total_ms"] + 1


def test_prices_of_the_person_are_in_it(
    logged: SessionStore, referee: Referee, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a price is known a line has the cost; a file with a fault is told of and stops nothing."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    (tmp_path / "prices.toml").write_text(
        '[[price]]\nmodels = ["deepseek-*"]\ninput = 1000000\ncached = 0\noutput = 0\nsince = "2020-01-01"\n'
        'source = "me"\n'
    )
    session = open_session(logged, referee)
    session.chat("Hello?")
    (tmp_path / "prices.toml").write_text("[[price]]\nmodels = 3\n")
    with pytest.warns(UserWarning, match=r"prices\.toml: price\[0\]\.models: Expected `array`"):
        session.chat("Hello?")
    first, second = rows(path)
    assert (first["input_tokens"] - (first["cached_tokens"] or 0), None) == (first["cost_usd"], second["cost_usd"])


def test_watching_a_stream_costs_next_to_nothing(path: Path) -> None:
    """Once the answer has begun nothing is looked at any more."""
    watch = Watch(UsageLog(path), "s")
    assert not watch.waits
    watch.shown([])
    watch.over()
    assert not os.path.exists(path)
