"""Strict mode: reasoning that comes all the same ends the response before anything of it is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.turn.playbook import target
from thinkback.model.deltas import Delta
from thinkback.model.target import Settings
from thinkback.turn.events import Head
from thinkback.turn.exchange import Exchange
from thinkback.turn.plan import History

SSE = Head("r", 200, {"content-type": "text/event-stream"}, 1)


def chunk(**delta: Any) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def read(pieces: list[bytes], *, strict: bool = True) -> tuple[list[Delta], int, Exchange]:
    """What is shown of a response, and how many pieces are read of it."""
    plan = History().plan(target(), Settings(strict=strict), None, {"stream": True})
    exchange = Exchange(plan, "r")
    exchange.head(SSE)
    shown: list[Delta] = []
    for at, piece in enumerate(pieces):
        shown += exchange.feed(piece)
        if exchange.stops:
            return shown, at + 1, exchange
    return shown, len(pieces), exchange


HIDDEN = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "X", "format": "anthropic-claude-v1"}]}


@pytest.mark.parametrize("thought", [{"reasoning_content": "Hm."}, {"content": "<think>Hm.</think>"}, HIDDEN])
def test_nothing_is_shown_and_no_more_is_read(thought: dict[str, Any]) -> None:
    """Readable, tagged or hidden; pieces that come all the same are passed over."""
    pieces = [chunk(role="assistant"), chunk(**thought), chunk(content="Yes."), b"data: [DONE]\n\n"]
    shown, count, exchange = read(pieces)
    assert ([], 2, []) == (shown, count, exchange.feed(pieces[2]))
    deltas, result = exchange.end()
    assert [] == deltas
    error = result.response.error
    assert error is not None
    assert ("strict", "the endpoint sent reasoning, and reasoning.strict refuses it") == (error.type, error.message)
    assert not result.response.complete


def test_what_was_said_before_it_is_refused_with_it() -> None:
    """It was shown when nobody knew."""
    shown, count, exchange = read([chunk(content="Yes."), chunk(reasoning_content="Hm."), chunk(content="No.")])
    assert (1, 2) == (len(shown), count)
    error = exchange.end()[1].response.error
    assert error is not None
    assert error.message.endswith("what was shown of the answer is refused with it")


def test_without_reasoning_or_strictness_all_is_read() -> None:
    """As ever."""
    assert 2 == read([chunk(content="Yes."), b"data: [DONE]\n\n"])[1]
    assert 2 == read([chunk(reasoning_content="Hm."), b"data: [DONE]\n\n"], strict=False)[1]
